package saga

import (
	textual "encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// Identified is implemented by results that know what the destination calls them.
type Identified interface {
	ExternalID() string
}

// identify returns how the external id of a result is told, and whether the result is the id, so
// that the id alone tells it. fault says what the step lacks.
func (a *Action[In, Out]) identify() (id func(Out) string, own bool, fault string) {
	out := reflect.TypeFor[Out]()
	identified := reflect.TypeFor[Identified]()
	switch {
	case len(a.ids) > 1:
		return nil, false, fmt.Sprintf("it says two things about its external id (%s, %s)", a.ids[0], a.ids[1])
	case len(a.ids) == 1:
		return a.id, false, ""
	case out.Implements(identified):
		return func(o Out) string { return any(o).(Identified).ExternalID() }, false, "" //nolint:forcetypeassert // it is one in this case
	case reflect.PointerTo(out).Implements(identified):
		return func(o Out) string { return any(&o).(Identified).ExternalID() }, false, "" //nolint:forcetypeassert // the same
	case out.Kind() == reflect.String:
		return func(o Out) string { return reflect.ValueOf(o).String() }, plainString(out), ""
	}
	return nil, false, fmt.Sprintf("its result, of type %s, has no external id: give it an ExternalID method, or say ID(how to tell it) or NoID", out)
}

// plainString reports whether the JSON of a string type is the string itself.
func plainString(t reflect.Type) bool {
	for _, odd := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[textual.TextMarshaler](), reflect.TypeFor[textual.TextUnmarshaler](),
	} {
		if t.Implements(odd) || reflect.PointerTo(t).Implements(odd) {
			return false
		}
	}
	return true
}
