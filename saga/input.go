package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/program"
)

// input reads the input of a start and says why it is none.
func (d *Definition[In]) input(input any) (in In, body json.RawMessage, err error) {
	switch v := input.(type) {
	case json.RawMessage:
		if in, err = decode[In](v, d.strict); err != nil {
			return in, nil, err
		}
		// What others wrote can be read in more ways than one. From here on there is what was read, and nothing else: it is what is
		// stored, hashed, shown to people and given to steps.
		if body, err = json.Marshal(in); err != nil {
			return in, nil, fmt.Errorf("the input is not serialisable: %w", err)
		}
		if err := unambiguous(v, body, d.raw); err != nil {
			return in, nil, err
		}
		var again In
		if err := program.Decode(body, &again); err != nil {
			return in, nil, fmt.Errorf("a %T is not read back from what it is written as: its MarshalJSON does not fit its UnmarshalJSON: %w", in, err)
		}
		return again, body, valid(again)
	case In:
		body, err = json.Marshal(v)
		if err != nil {
			return in, nil, fmt.Errorf("the input is not serialisable: %w", err)
		}
		return v, body, valid(v)
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
// twice, or two that differ by case only, unless the input keeps both, as a map does. kept is the JSON of what was read; of one that
// may hold JSON as it came, raw, nothing is known by it.
func unambiguous(body, kept json.RawMessage, raw bool) error {
	var has any
	if err := program.Decode(kept, &has); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return readsOnce(d, map[bool]any{false: has}[raw], "")
}

// readsOnce reads the value at a place, of which kept is what was read of it.
func readsOnce(d *json.Decoder, kept any, at string) error {
	t, err := d.Token()
	if err != nil || t != json.Delim('[') && t != json.Delim('{') {
		return err
	}
	list, _ := kept.([]any)
	fields, _ := kept.(map[string]any)
	names := map[string]string{} // as they are, by how they read without case
	for i := 0; d.More(); i++ {
		var one any
		place := fmt.Sprintf("%s%d.", at, i)
		if t == json.Delim('{') {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := t.(string)
			other, twice := names[folded(name)]
			names[folded(name)], place = name, at+name+"."
			_, has := fields[name]
			_, hasOther := fields[other]
			if twice && (name == other || !has || !hasOther) {
				return fmt.Errorf("the input says both %q and %q: send one of them, because readers differ in which counts", at+other, at+name)
			}
			for field, v := range fields {
				if field == name || !has && folded(field) == folded(name) {
					one = v
				}
			}
		} else if i < len(list) {
			one = list[i]
		}
		if err := readsOnce(d, one, place); err != nil {
			return err
		}
	}
	_, err = d.Token() // its end
	return err
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
