package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/reconcile/inbox"
)

// word is a JSON string, or a whole number: providers send ids as both. Null is empty.
type word string

var errNotWord = errors.New("an id, topic or time is neither a string nor a whole number")

// UnmarshalJSON keeps every digit of a number.
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
	n, ok := whole(string(b))
	if !ok {
		return errNotWord
	}
	*w = word(n)
	return nil
}

// whole writes a whole number with digits alone, however it came: 105, 105.0 and 1.05e2 are one id,
// as they are one number where bodies are compared.
func whole(text string) (digits string, ok bool) {
	if strings.Trim(text, "-0123456789") == "" {
		return text, text != "" && text != "-"
	}
	_, power, _ := strings.Cut(strings.ToLower(text), "e")
	if n := strings.TrimLeft(power, "+-0"); len(text) > maxWord || len(n) > 2 { // 1e999999999 is a gigabyte of digits
		return "", false
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok || !n.IsInt() {
		return "", false
	}
	return n.Num().String(), true
}

// raw is a JSON value that is kept as it is.
type raw = json.RawMessage

// errObject is what a body is that is no JSON object.
var errObject = errors.New("the body is no JSON object")

// at returns the value at a path of field names: data.id. An empty path is the whole. Names are
// matched as they are written.
func at(body raw, path string) (raw, bool) {
	if path == "" {
		return body, true
	}
	for name := range strings.SplitSeq(path, ".") {
		var fields map[string]raw
		if json.Unmarshal(body, &fields) != nil {
			return nil, false
		}
		var ok bool
		if body, ok = fields[name]; !ok {
			return nil, false
		}
	}
	return body, true
}

// wordAt returns the string or whole number at a path, empty when there is none.
func wordAt(body raw, path string) string {
	value, ok := at(body, path)
	var w word
	if !ok || path == "" || w.UnmarshalJSON(value) != nil {
		return ""
	}
	return string(w)
}

// isObject reports whether a value is a JSON object.
func isObject(body raw) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
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
