package desk

import "testing"

// Of errors that say the same of different works one is made, and none of those that say different things.
func TestAlike(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"could not lock invoice 4711": "could not lock invoice …", "order shop:order:7: no\n such  mailbox": "order …: no such mailbox",
		"HTTP 503: try later (request 8f2a-11)": "HTTP 503: try later (request …)", "status=404": "status=404", "SQLSTATE 40001 at 10:22:01.5": "SQLSTATE 40001 at …",
		"no such customer": "no such customer", "connection reset by peer": "connection reset by peer", "code: E12": "code: E12", "": "",
	} {
		if got := alike("shop:order:7", text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// The filter of a group selects those that failed last with its error, and no others whose error has it, too.
func TestHaveExactly(t *testing.T) {
	t.Parallel()
	s := &failed{texts: []string{"timeout at 10:22"}, alike: "timeout at …"}
	for text, want := range map[string]bool{"Timeout": true, "=timeout": false, "=timeout at …": true, "=Timeout at …": false, "=": false, "": true, "10:22": true} {
		if s.have(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	if !new(failed).have("=") {
		t.Error("what failed with nothing is not found")
	}
}
