package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// word is a JSON string, or a whole number: providers send ids as both. Null is empty.
type word string

var errNotWord = errors.New("an id, topic or time is neither a string nor a whole number")

// UnmarshalJSON keeps every digit of a number. 105, 105.0 and 1.05e2 are one id.
func (w *word) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var s string
	if b[0] == '"' {
		err := json.Unmarshal(b, &s)
		*w = word(s)
		return err
	}
	n, ok := reading.Whole(string(b))
	if !ok {
		return errNotWord
	}
	*w = word(n)
	return nil
}

// raw is a JSON value that is kept as it is.
type raw = json.RawMessage

// errObject is what a body is that is no JSON object.
var errObject = errors.New("the body is no JSON object")

// at returns the value at a path of field names: data.id; nil when there is none. An empty path is
// the whole.
func at(body raw, path string) (raw, error) {
	if path == "" {
		return body, nil
	}
	for name := range strings.SplitSeq(path, ".") {
		values, _, err := reading.Members(body, name)
		if err != nil || values[0] == nil {
			return nil, err
		}
		body = values[0]
	}
	return body, nil
}

// wordAt returns the string or whole number at a path, empty when there is none. It is an error
// where that is not clear, or cannot be read without altering it.
func wordAt(body raw, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	value, err := at(body, path)
	if err != nil || value == nil {
		return "", err
	}
	var w word
	if err := reading.Into(value, &w); err != nil && value[0] == '"' {
		return "", fmt.Errorf(".%s: %w", path, err)
	}
	return string(w), nil
}

// words reads the words of one body, and keeps the first error.
type words struct {
	body raw
	err  error
}

func (w *words) at(path string) string {
	text, err := wordAt(w.body, path)
	w.err = cmp.Or(w.err, err)
	return text
}

// begins reports whether JSON is an object or array, by its first character.
func begins(body raw, with string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte(with))
}

// isObject reports whether a value is a JSON object.
func isObject(body raw) bool { return begins(body, "{") && json.Valid(body) }

// object reads a body that has to be an object.
func object(body raw, into any) error {
	if !begins(body, "{") {
		return errObject
	}
	return reading.Into(body, into)
}

// timeOf reads a time that is only shown, never compared; zero when it cannot be read.
func timeOf(text word) time.Time {
	v, err := inbox.ParseTime(string(text))
	if err != nil {
		return time.Time{}
	}
	return v.Time()
}

// versionAt reads an object's time of change that the provider tells in steps no finer than the
// given one.
func versionAt(text word, step time.Duration) inbox.Version {
	v, err := inbox.ParseTime(string(text))
	if err != nil {
		return inbox.Version{} // the event is a hint
	}
	v.Step = max(v.Step, step)
	return v
}

// maxWord bounds the names that an event carries, in bytes.
const maxWord = 255

// sound reports whether a name that came from outside can be stored, printed and be part of a key.
func sound(s string) bool {
	return len(s) <= maxWord && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// singular is the word for one of many: orders, order; companies, company.
func singular(plural string) string {
	if stem, ok := strings.CutSuffix(plural, "ies"); ok {
		return stem + "y"
	}
	if strings.HasSuffix(plural, "ss") || strings.HasSuffix(plural, "us") { // address, status
		return plural
	}
	return strings.TrimSuffix(plural, "s")
}
