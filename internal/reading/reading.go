// Package reading reads the JSON that other systems send: answers, webhooks, listings. What it gives
// is what was sent, or an error; it never alters a text in silence.
//
// Into decodes as encoding/json does, with these differences:
//
//   - A member that is named exactly as a field wins. Without one, a single member that differs only
//     in case counts; two of those are an error, and so is one name twice.
//   - A text with a byte that is not UTF-8, or with half of a surrogate pair, is an error, and no
//     U+FFFD.
//   - A whole number is read as an integer, however it is written: 105, 105.0, 1.05e2. In an untyped
//     value a number is a json.Number and keeps its digits.
//
// All of this is asked only of what is read. What stands in members that no field has, or in a
// json.RawMessage, which is kept as it came, is asked for nothing but its syntax: a success must not
// come to be doubted for it.
package reading

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	errSyntax = errors.New("it is not JSON")
	errTwice  = errors.New("one name stands there twice")
	errText   = errors.New("a text has a byte that is not UTF-8, or half of a surrogate pair")
)

// Into decodes a document in UTF-8 into what v points to. Its errors name the place and what is
// wrong there, and quote no value.
func Into(doc []byte, v any) error {
	r, err := newReader(doc)
	if err != nil {
		return err
	}
	selected, err := r.value(make([]byte, 0, len(doc)), reflect.ValueOf(v), reflect.TypeOf(v))
	if err != nil {
		return err
	}
	var mismatch *json.UnmarshalTypeError
	plain := json.NewDecoder(bytes.NewReader(selected))
	plain.UseNumber()
	if err = plain.Decode(v); errors.As(err, &mismatch) {
		kind, _, _ := bytes.Cut([]byte(mismatch.Value), []byte(" ")) // behind it stands the number itself
		return within("."+mismatch.Field, fmt.Errorf("it is a %s, and a %s is wanted", kind, mismatch.Type))
	}
	if err != nil {
		return errors.New("it has another form") // the cause may quote it
	}
	return nil
}

// Members returns the values of the members of an object, nil for those that it does not have, and
// whether it has others. They are found by name as fields are, and kept as they came. No name may be
// asked for twice. What is no object has none.
func Members(doc []byte, names ...string) (values []json.RawMessage, others bool, err error) {
	r, err := newReader(doc)
	values = make([]json.RawMessage, len(names))
	if err != nil || r.dec.PeekKind() != '{' {
		return values, false, err
	}
	wanted := make(fields, len(names))
	for i, name := range names {
		wanted[i] = field{name: name, kind: rawType}
	}
	out, found, err := r.object(nil, reflect.Value{}, wanted)
	for i, m := range found {
		if m.there {
			values[i] = json.RawMessage(out[m.value:m.end:m.end])
		}
	}
	return values, r.others, err
}

// reader walks through a document beside the type that it is wanted as, and copies what is read. The
// document is JSON, so its calls of the decoder do not fail.
type reader struct {
	dec    *jsontext.Decoder
	others bool // an object has members that nothing reads
}

// lenient asks for nothing but the syntax.
var lenient = jsontext.AllowInvalidUTF8(true)

func newReader(doc []byte) (*reader, error) {
	if !jsontext.Value(doc).IsValid(lenient, jsontext.AllowDuplicateNames(true)) {
		return nil, errSyntax
	}
	return &reader{dec: jsontext.NewDecoder(bytes.NewBuffer(doc), lenient, jsontext.AllowDuplicateNames(true))}, nil
}

// open reads the beginning of an object or array.
func (r *reader) open() { _, _ = r.dec.ReadToken() }

// more reports whether an object or array goes on, and reads its end.
func (r *reader) more() bool {
	if kind := r.dec.PeekKind(); kind != '}' && kind != ']' {
		return true
	}
	_, _ = r.dec.ReadToken()
	return false
}

func (r *reader) skip() { _ = r.dec.SkipValue() }

// name reads the name of a member; wrong where it is no text.
func (r *reader) name() (written, name []byte, wrong error) {
	written, _ = r.dec.ReadValue()
	if n := len(written); bytes.IndexByte(written, '\\') < 0 && utf8.Valid(written) {
		return written, written[1 : n-1], nil
	}
	if name, wrong = jsontext.AppendUnquote(nil, written); wrong != nil {
		wrong = errText
	}
	return written, name, wrong
}

// value appends the next value to out, as far as something of type t reads it. v is what is there
// already, if anything: encoding/json follows the pointers in it.
func (r *reader) value(out []byte, v reflect.Value, t reflect.Type) ([]byte, error) {
	v, t = target(v, t)
	s, kind := shapeOf(t), r.dec.PeekKind()
	switch {
	case s.whole:
	case kind == '{' && t.Kind() == reflect.Struct:
		out, _, err := r.object(out, v, s.fields)
		return out, err
	case kind == '{' && t.Kind() == reflect.Map:
		return r.entries(out, t.Elem())
	case kind == '[' && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return r.elements(out, v, t)
	}
	text, _ := r.dec.ReadValue()
	if kind == '0' && s.integer {
		if digits, ok := Whole(string(text)); ok {
			return append(out, digits...), nil
		}
	}
	out = append(out, text...)
	switch {
	case t == rawType || text.IsValid():
		return out, nil
	case text.IsValid(jsontext.AllowDuplicateNames(true)):
		return out, errTwice
	}
	return out, errText
}

// member is where the value of a field stands in what was selected.
type member struct {
	there, exact      bool
	start, value, end int
	name              string // as it is written, where it is not exact
	err               error
}

// object appends an object with the members that fields read, each under the field's own name.
func (r *reader) object(out []byte, v reflect.Value, fields fields) (_ []byte, found []member, err error) {
	found = make([]member, len(fields))
	out = append(out, '{')
	for r.open(); r.more(); {
		_, name, wrong := r.name()
		i, exact := fields.find(name)
		if wrong != nil || i < 0 {
			r.others = true
			r.skip()
			continue
		}
		m := &found[i]
		if m.there && (m.exact || !exact) {
			if exact || m.name == string(name) {
				m.err = errTwice
			} else if !m.exact {
				m.err = fmt.Errorf("%q and %q are both there, and either could be it", m.name, name)
			}
			r.skip()
			continue
		}
		for b := m.start; m.there && b <= m.end; b++ {
			out[b] = ' ' // what only differs in case does not count any more
		}
		*m = member{there: true, exact: exact, start: len(out)}
		if !exact {
			m.name = string(name)
		}
		out = append(append(out, fields[i].quoted...), ':')
		m.value = len(out)
		out, m.err = r.value(out, fields[i].in(v), fields[i].kind)
		m.end = len(out)
		out = append(out, ',')
	}
	for i, m := range found {
		err = cmp.Or(err, within("."+fields[i].name, m.err))
	}
	return append(bytes.TrimSuffix(out, []byte(",")), '}'), found, err
}

// entries appends an object of which every member is read.
func (r *reader) entries(out []byte, t reflect.Type) (_ []byte, wrong error) {
	seen := map[string]bool{}
	out = append(out, '{')
	for r.open(); r.more(); {
		written, name, err := r.name()
		if seen[string(name)] {
			err = errTwice
		}
		seen[string(name)] = true
		wrong = cmp.Or(wrong, err)
		out = append(append(out, written...), ':')
		out, err = r.value(out, reflect.Value{}, t)
		wrong = cmp.Or(wrong, within(".*", err)) // the name may be anything
		out = append(out, ',')
	}
	return append(bytes.TrimSuffix(out, []byte(",")), '}'), wrong
}

// elements appends an array. What is beyond the length of a Go array is not read.
func (r *reader) elements(out []byte, v reflect.Value, t reflect.Type) (_ []byte, wrong error) {
	out = append(out, '[')
	r.open()
	for i := 0; r.more(); i++ {
		if t.Kind() == reflect.Array && i >= t.Len() {
			r.skip()
			continue
		}
		var element reflect.Value
		if v.IsValid() && i < v.Len() {
			element = v.Index(i)
		}
		var err error
		out, err = r.value(out, element, t.Elem())
		wrong = cmp.Or(wrong, within("["+strconv.Itoa(i)+"]", err))
		out = append(out, ',')
	}
	return append(bytes.TrimSuffix(out, []byte(",")), ']'), wrong
}

// place is an error with where it is.
type place struct {
	path string
	err  error
}

func (p *place) Error() string { return p.path + ": " + p.err.Error() }

func within(path string, err error) error {
	if p, ok := err.(*place); ok { //nolint:errorlint // it is never wrapped
		return &place{path + p.path, p.err}
	}
	if err != nil {
		return &place{path, err}
	}
	return nil
}
