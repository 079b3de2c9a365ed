package visible

import "testing"

// In a text such a character is drawn, in a tag it is what it is, and all others stay.
func TestHTML(t *testing.T) {
	const page = "<p title=\"a\u202eb\">Alice\u202eyrollaM ot \u2066x, an\u200bna, \u00fcber \u05d0</p>"
	const want = "<p title=\"a\u202eb\">Alice\\u202eyrollaM ot \\u2066x, an\\u200bna, \u00fcber \u05d0</p>"
	if got := string(HTML([]byte(page))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
