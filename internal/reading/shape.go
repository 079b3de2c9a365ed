package reading

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	readers  = []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
	shapes   sync.Map // of reflect.Type: *shape
	maxChain = 100    // pointers that point to themselves end somewhere
)

// target follows pointers, and interfaces that hold one, as encoding/json does.
func target(v reflect.Value, t reflect.Type) (reflect.Value, reflect.Type) {
	for range maxChain {
		held := v.IsValid() && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) && !v.IsNil()
		switch {
		case t.Kind() == reflect.Interface && held && v.Elem().Kind() == reflect.Pointer:
			v = v.Elem()
			t = v.Type()
		case t.Kind() == reflect.Pointer && held:
			v, t = v.Elem(), t.Elem()
		case t.Kind() == reflect.Pointer:
			v, t = reflect.Value{}, t.Elem()
		default:
			return v, t
		}
	}
	return v, t
}

// shape is what is known of a type that JSON is decoded into.
type shape struct {
	whole   bool // it has a method that reads its values
	integer bool
	fields  fields
}

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape) //nolint:forcetypeassert // nothing else is stored
	}
	s := &shape{whole: slices.ContainsFunc(readers, reflect.PointerTo(t).Implements)}
	s.integer = !s.whole && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr
	if t.Kind() == reflect.Struct && !s.whole {
		s.fields = fieldsOf(t)
	}
	shapes.Store(t, s)
	return s
}

// field is one that a member of an object is decoded into.
type field struct {
	name   string
	quoted []byte
	kind   reflect.Type
	index  []int
	tagged bool
}

// in returns the field of a struct, and nothing where that is not there yet.
func (f *field) in(v reflect.Value) reflect.Value {
	if !v.IsValid() {
		return v
	}
	v, _ = v.FieldByIndexErr(f.index) // on the way may be a pointer that is nil
	return v
}

// fields are in the order in which they are declared.
type fields []field

// find returns the field that a member of that name is decoded into, or -1.
func (fs fields) find(name []byte) (i int, exact bool) {
	for i := range fs {
		if fs[i].name == string(name) {
			return i, true
		}
	}
	return slices.IndexFunc(fs, func(f field) bool { return strings.EqualFold(f.name, string(name)) }), false
}

// level is a struct whose fields count, and how they are reached.
type level struct {
	t     reflect.Type
	index []int
}

// fieldsOf returns the fields of a struct that encoding/json decodes into, by its rules: those of
// embedded structs count as its own; of one name the least deep counts, then the one that has it
// from a tag; two of those hide each other.
func fieldsOf(t reflect.Type) (all fields) {
	visited := map[reflect.Type]bool{}
	next, count := []level{{t, nil}}, map[reflect.Type]int{}
	for len(next) > 0 {
		current, times := next, count
		next, count = nil, map[reflect.Type]int{}
		for _, l := range current {
			if visited[l.t] {
				continue
			}
			visited[l.t] = true
			own, embedded := l.fields()
			all = append(all, own...)
			if times[l.t] > 1 { // embedded twice at one depth: they hide each other
				all = append(all, own...)
			}
			for _, e := range embedded {
				if count[e.t]++; count[e.t] == 1 {
					next = append(next, e)
				}
			}
		}
	}
	return all.dominant()
}

// fields returns the fields of a struct, and those embedded whose fields count instead of them.
func (l *level) fields() (own fields, embedded []level) {
	for i := range l.t.NumField() {
		f := l.t.Field(i)
		name, inner, ok := nameOf(&f)
		index := append(slices.Clone(l.index), i)
		switch {
		case !ok:
		case inner != nil:
			embedded = append(embedded, level{inner, index})
		default:
			one := field{name: cmp.Or(name, f.Name), kind: f.Type, index: index, tagged: name != ""}
			one.quoted = []byte(strconv.Quote(one.name))
			own = append(own, one)
		}
	}
	return own, embedded
}

// nameOf returns the name that the tag gives a field, or the type of an embedded struct whose fields
// count instead of it; false for one that is not decoded.
func nameOf(f *reflect.StructField) (name string, embedded reflect.Type, ok bool) {
	t := f.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	tag := f.Tag.Get("json")
	embeds := f.Anonymous && t.Kind() == reflect.Struct
	if tag == "-" || !f.IsExported() && !embeds {
		return "", nil, false
	}
	name, _, _ = strings.Cut(tag, ",")
	if strings.IndexFunc(name, notInName) >= 0 {
		name = ""
	}
	if name == "" && embeds {
		return "", t, true
	}
	return name, nil, true
}

func notInName(r rune) bool {
	return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// dominant leaves of each name the field that counts.
func (fs fields) dominant() (left fields) {
	rank := func(f *field) int { // the lower counts
		if f.tagged {
			return 2 * len(f.index)
		}
		return 2*len(f.index) + 1
	}
	for i := range fs {
		beaten := false
		for j := range fs {
			beaten = beaten || i != j && fs[i].name == fs[j].name && rank(&fs[j]) <= rank(&fs[i])
		}
		if !beaten {
			left = append(left, fs[i])
		}
	}
	slices.SortFunc(left, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return left
}
