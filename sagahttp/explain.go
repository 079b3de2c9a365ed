package sagahttp

import (
	"encoding/json"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/reading"
)

// maxLine is how many bytes of an answer an error shows.
const maxLine = 200

// explain is the default of Options.Explain: what a JSON answer calls its message, detail, error or
// title, else the first line of the text; nothing when the answer is no text.
func explain(e *StatusError) string {
	declared := e.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(declared)
	body, unknown := reading.Text(declared, e.Body)
	switch {
	case err != nil || unknown != nil || !utf8.Valid(body):
		return ""
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		var v any
		if json.Unmarshal(body, &v) == nil {
			if said := saidIn(v, 4); said != "" {
				return said
			}
		}
		return string(body)
	case kind == "text/plain":
		return string(body)
	}
	return ""
}

// wordFields are the names of the fields that hold words for people, or hold what does. Xero and
// QuickBooks write them large.
var wordFields = []string{"message", "Message", "detail", "Detail", "error_description", "error", "Error", "errors", "Fault", "title"}

// saidIn looks for the words that are meant for people, as deep as depth.
func saidIn(v any, depth int) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for i := 0; i < len(v) && depth > 0; i++ {
			if said := saidIn(v[i], depth-1); said != "" {
				return said
			}
		}
	case map[string]any:
		for _, name := range wordFields {
			if said := saidIn(v[name], depth-1); said != "" && depth > 0 {
				return said
			}
		}
	}
	return ""
}

// oneLine makes words fit for logs and terminals: the first line that says anything, without
// control characters, at most maxLine bytes.
func oneLine(words string) string {
	for line := range strings.Lines(words) {
		line = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(line, "\uFFFD"), func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r)
		}), " ")
		if line == "" {
			continue
		}
		if len(line) <= maxLine {
			return line
		}
		cut := maxLine - len("…")
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		return line[:cut] + "…"
	}
	return ""
}

// ofIdempotency is in a text of a JSON answer; behind the name of a field, which may only echo the key, comes a colon.
var ofIdempotency = regexp.MustCompile(`(?i)idempoten[^"\\]*("\s*:)?`)

// speaksOfKey reports whether an answer to a request with a key says that the key came before with another request: an idempotency_error
// of Stripe, an IDEMPOTENCY_KEY_REUSED of Square, the 422 of the IETF's Idempotency-Key.
func speaksOfKey(e *StatusError) bool {
	return (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) &&
		slices.ContainsFunc(ofIdempotency.FindAllSubmatch(e.Body, -1), func(m [][]byte) bool { return len(m[1]) == 0 })
}
