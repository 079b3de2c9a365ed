package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/program"
)

// input reads the input of a start and says why it is none.
func (d *Definition[In]) input(input any) (in In, body json.RawMessage, err error) {
	switch v := input.(type) {
	case In:
		body, err = json.Marshal(v)
		if err != nil {
			return in, nil, fmt.Errorf("the input is not serialisable: %w", err)
		}
		return v, body, valid(v)
	case json.RawMessage:
		if in, err = decode[In](v, d.strict); err != nil {
			return in, nil, err
		}
		// What others wrote can be read in more ways than one. From here on there is what was read, and nothing else: it is what is
		// stored, hashed, shown to people and given to steps.
		if body, err = json.Marshal(in); err != nil {
			return in, nil, fmt.Errorf("the input is not serialisable: %w", err)
		}
		if err := unambiguous(v, body); err != nil {
			return in, nil, err
		}
		var again In
		if err := program.Decode(body, &again); err != nil {
			return in, nil, fmt.Errorf("a %T is not read back from what it is written as: its MarshalJSON does not fit its UnmarshalJSON: %w", in, err)
		}
		return again, body, valid(again)
	default:
		return in, nil, fmt.Errorf("the input is a %T; the saga takes a %T or its JSON", input, in)
	}
}

// valid asks the input itself.
func valid[In any](in In) error {
	v, ok := any(in).(interface{ Validate() error })
	if !ok {
		v, ok = any(&in).(interface{ Validate() error })
	}
	if !ok {
		return nil
	}
	if err := v.Validate(); err != nil {
		return fmt.Errorf("the input is not valid: %w", err)
	}
	return nil
}

// decode reads JSON that others wrote. JSON of another shape must not become an input of zeros.
func decode[In any](body json.RawMessage, strictly bool) (in In, err error) {
	if !utf8.Valid(body) {
		return in, errors.New("the input is not valid UTF-8")
	}
	if err := program.Decode(body, &in); err != nil {
		return in, fmt.Errorf("the input is not the JSON of a %T: %w", in, err)
	}
	if strictly {
		strict := json.NewDecoder(bytes.NewReader(body))
		strict.DisallowUnknownFields()
		if err := strict.Decode(new(In)); err != nil {
			return in, fmt.Errorf("the input is not the JSON of a %T, and the saga says Strict: %w", in, err)
		}
	}
	want := fieldsOf(reflect.TypeFor[In]())
	if len(want) == 0 {
		return in, nil
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(body, &has); err != nil {
		return in, fmt.Errorf("the input is not the JSON of a %T: %w", in, err)
	}
	for name := range has {
		for _, field := range want {
			if strings.EqualFold(name, field) { // as encoding/json compares them
				return in, nil
			}
		}
	}
	return in, fmt.Errorf("the input has none of the fields of a %T (%s): is it the JSON of something else?", in, strings.Join(want, ", "))
}

// unambiguous refuses JSON that says something twice, so that its readers may take it for different things: a name that is there
// twice, or two that differ by case only and of which the input keeps but one. kept is the JSON of what was read.
func unambiguous(body, kept json.RawMessage) error {
	known := map[string]bool{} // names that the input keeps
	if err := eachName(kept, func(_ map[string]string, name string) error { known[name] = true; return nil }); err != nil {
		return err
	}
	return eachName(body, func(object map[string]string, name string) error {
		other, twice := object[folded(name)]
		if object[folded(name)] = name; twice && (name == other || !known[name] || !known[other]) {
			return fmt.Errorf("the input says both %q and %q: send one of them, because readers differ in which counts", other, name)
		}
		return nil
	})
}

// eachName visits the names of all objects in a JSON text, with what is kept of the object that the name is in.
func eachName(body json.RawMessage, visit func(object map[string]string, name string) error) error {
	type level struct {
		object map[string]string // nil of an array
		value  bool              // a name was read, and its value comes
	}
	d, open := json.NewDecoder(bytes.NewReader(body)), []*level{{}}
	d.UseNumber()
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		at := open[len(open)-1]
		name, isText := t.(string)
		switch {
		case err != nil:
			return err
		case t == json.Delim('}') || t == json.Delim(']'):
			open = open[:len(open)-1]
			continue
		case at.object != nil && !at.value && isText:
			at.value = true
			err = visit(at.object, name)
		case t == json.Delim('{'):
			at.value = false
			open = append(open, &level{object: map[string]string{}})
		case t == json.Delim('['):
			at.value = false
			open = append(open, &level{})
		default:
			at.value = false
		}
		if err != nil {
			return err
		}
	}
}

// folded is a name as it reads without case, as encoding/json compares names.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// fieldsOf returns the names that encoding/json reads into a t by its fields; none when t is no
// struct, or reads itself.
func fieldsOf(t reflect.Type) []string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		return fieldsOf(t.Elem())
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) { // with those of embedded structs
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Anonymous && name == "" && embeds(f.Type)
		if f.IsExported() && f.Tag.Get("json") != "-" && !embedded && reachable(t, f.Index) {
			if name == "" {
				name = f.Name
			}
			names = append(names, name)
		}
	}
	return names
}

// embeds reports whether the fields of an embedded t count as those of the struct around it.
func embeds(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// reachable reports whether nothing around the field at index in t has a name of its own in JSON,
// or is left out.
func reachable(t reflect.Type, index []int) bool {
	for n := 1; n < len(index); n++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(index[:n]).Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}
