package saga

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// oneNumber writes numbers that are equal in one way, so that 105.0 and 105 in an untyped input are
// one identity: as encoding/json writes a float64, where one is the number exactly, and else as they
// are.
func oneNumber(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		end := i + 1
		switch c := body[i]; {
		case c == '"':
			for ; body[end] != '"'; end++ {
				if body[end] == '\\' {
					end++
				}
			}
			end++
			out = append(out, body[i:end]...)
		case c == '-' || c >= '0' && c <= '9':
			for end < len(body) && strings.IndexByte("0123456789+-.eE", body[end]) >= 0 {
				end++
			}
			out = append(out, plainNumber(string(body[i:end]))...)
		default:
			out = append(out, c)
		}
		i = end
	}
	return out
}

func plainNumber(written string) string {
	f, err := strconv.ParseFloat(written, 64)
	if err != nil || f == 0 && strings.ContainsAny(written[:strings.IndexAny(written+"e", "eE")], "123456789") {
		return written // beyond what a float64 holds
	}
	b, err := json.Marshal(f)
	if err != nil {
		return written
	}
	exact, ok := new(big.Rat).SetString(written)
	near, okay := new(big.Rat).SetString(string(b))
	if !ok || !okay || exact.Cmp(near) != 0 {
		return written
	}
	return string(b)
}

// holdsUntyped reports whether JSON is read into a value of an interface type somewhere in a t, holdsRaw whether it is kept as it came.
func holdsUntyped(t reflect.Type) bool {
	return holds(t, func(t reflect.Type) bool { return t.Kind() == reflect.Interface }, map[reflect.Type]bool{})
}

func holdsRaw(t reflect.Type) bool {
	return holds(t, func(t reflect.Type) bool { return t == reflect.TypeFor[json.RawMessage]() }, map[reflect.Type]bool{})
}

func holds(t reflect.Type, one func(reflect.Type) bool, seen map[reflect.Type]bool) bool {
	if seen[t] || one(t) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return !seen[t] && one(t)
	}
	seen[t] = true
	switch t.Kind() { //nolint:exhaustive // the others hold nothing
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holds(t.Elem(), one, seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" && holds(f.Type, one, seen) {
				return true
			}
		}
	}
	return false
}

// isPlain reports whether a t is copied whole: nothing of it can be changed through a copy.
func isPlain(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.String || t == reflect.TypeFor[time.Time]():
		return true
	case k == reflect.Array:
		return isPlain(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
