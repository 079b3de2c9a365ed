package reading

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type identified struct {
	ID string `json:"id"`
}

type untagged struct{ ID, Note string }

type nested struct {
	Data *struct {
		Invoice identified
		Lines   []identified
	}
	By map[string]identified
}

// What is read is what was sent, or an error that says where and why, and quotes no value. What is
// not read changes nothing. "An external id is never altered" (machine/M2), and machine/M1 and R5: reading is strict
// only about what is read.
func TestStrictOnlyAboutWhatIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, doc string
		into      any
		want      string // as JSON, or
		wrong     string // what the error says
	}{
		{"a bad byte in the id", "{\"id\":\"GEB\xdcHR-17\"}", &identified{}, "", ".id: a text has a byte that is not UTF-8"},
		{"half of a surrogate pair in it", `{"id":"inv-\ud83d-17"}`, &identified{}, "", ".id: a text has a byte that is not UTF-8, or half"},
		{"the other half", `{"id":"inv-\ude00"}`, &identified{}, "", ".id: a text"},
		{"a whole pair", `{"id":"inv-\ud83d\ude00"}`, &identified{}, `{"id":"inv-😀"}`, ""},
		{"one of its own", `{"id":"inv-�"}`, &identified{}, `{"id":"inv-�"}`, ""},
		{"a bad byte beside it", "{\"note\":\"\xdc\",\"id\":\"a\"}", &identified{}, `{"id":"a"}`, ""},
		{"half of a pair beside it", `{"note":["\ud83d",{"x":"\ud83d"}],"id":"a"}`, &identified{}, `{"id":"a"}`, ""},
		{"a doubled name beside it", `{"note":1,"note":2,"more":{"a":1,"a":2},"id":"a"}`, &identified{}, `{"id":"a"}`, ""},
		{"a bad byte in a name beside it", "{\"i\xdcd\":1,\"id\\ud83d\":2,\"id\":\"a\"}", &identified{}, `{"id":"a"}`, ""},
		{"an exact name before another case", `{"id":"inv_1","ID":"other"}`, &identified{}, `{"id":"inv_1"}`, ""},
		{"behind it", `{"ID":"other","Id":"\ud83d","id":"inv_1"}`, &identified{}, `{"id":"inv_1"}`, ""},
		{"another case alone", `{"ID":"inv_1"}`, &identified{}, `{"id":"inv_1"}`, ""},
		{"two other cases", `{"ID":"inv_1","Id":"other"}`, &identified{}, "", `.id: "ID" and "Id" are both there, and either could be it`},
		{"without tags", `{"id":"inv_1","note":"x"}`, &untagged{}, `{"ID":"inv_1","Note":"x"}`, ""},
		{"without tags, both", `{"id":"other","ID":"inv_1"}`, &untagged{}, `{"ID":"inv_1","Note":""}`, ""},
		{"the name twice", `{"id":"inv_1","id":"other"}`, &identified{}, "", ".id: one name stands there twice"},
		{"the name twice, once escaped", `{"id":"inv_1","\u0069d":"other"}`, &identified{}, "", ".id: one name stands there twice"},
		{"inside", `{"data":{"invoice":{"id":"\ud83d"}}}`, &nested{}, "", ".Data.Invoice.id: a text"},
		{"inside a list", `{"data":{"lines":[{"id":"a"},{"id":"b","ID":"x"},{"id":"\ud83d"}]}}`, &nested{}, "", ".Data.Lines[2].id: a text"},
		{"inside a map", `{"by":{"secret":{"id":"\ud83d"}}}`, &nested{}, "", ".By.*.id: a text"},
		{"a doubled name of a map", `{"by":{"a":{},"a":{}}}`, &nested{}, "", ".By: one name stands there twice"},
		{"a half name of a map", `{"by":{"\ud83d":{}}}`, &nested{}, "", ".By: a text"},
		{"something untyped", `{"a":{"b":1,"b":2}}`, new(any), "", "one name stands there twice"},
		{"what is behind an interface", `{"id":"a","ID":"b"}`, new(any(&identified{})), `{"id":"a"}`, ""},
		{"a list of what is there", `["a",{"id":"a","ID":"b"}]`, &[]any{new(string), &identified{}}, `["a",{"id":"a"}]`, ""},
		{"beyond an array", `[{"id":"a"},{"id":"\ud83d"}]`, &[1]identified{}, `[{"id":"a"}]`, ""},
		{"what is kept as it came", `{"a":{"b":1,"b":"\ud83d"}}`, &json.RawMessage{}, `{"a":{"b":1,"b":"\ud83d"}}`, ""},
		{"numbers", `[105,105.0,1.05e2,10500e-2,-0,-0.0]`, &[]int{}, `[105,105,105,105,0,0]`, ""},
		{"large ones", `[616581622363398142,616581622363398142.0]`, &[]uint64{}, `[616581622363398142,616581622363398142]`, ""},
		{"one that is not whole", `{"a":105.5}`, &map[string]int{}, "", `it is a number, and a int is wanted`},
		{"one that is too large", `[1e99]`, &[]int{}, "", `it is a number, and a int is wanted`},
		{"a fraction", `[1.50]`, &[]float64{}, `[1.5]`, ""},
		{"a time", `"2026-11-25T10:00:00Z"`, &time.Time{}, `"2026-11-25T10:00:00Z"`, ""},
		{"no time", `"secret"`, &time.Time{}, "", "it has another form"},
		{"another kind", `{"id":["secret"]}`, &identified{}, "", ".id: it is a array, and a string is wanted"},
		{"an error of syntax beside it", `{"id":"a","note":tru}`, &identified{}, "", "it is not JSON"},
		{"something behind it", `{"id":"a"}{}`, &identified{}, "", "it is not JSON"},
		{"nothing", ``, &identified{}, "", "it is not JSON"},
		{"null", `null`, &identified{}, `{"id":""}`, ""},
	} {
		doc := strings.Clone(c.doc)
		err := Into([]byte(doc), c.into)
		if doc != c.doc {
			t.Errorf("%s: the document was changed", c.name)
		}
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the error is %v, want %q", c.name, err, c.wrong)
			}
			continue
		}
		got, bad := json.Marshal(c.into)
		if bad != nil {
			t.Fatal(bad)
		}
		if raw, ok := c.into.(*json.RawMessage); ok {
			got = *raw
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// Members are found by name as fields are.
func TestMembers(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct {
		id, note string
		others   bool
		wrong    string
	}{
		`{"id":102,"ID":5}`:                         {id: "102"},
		`{"ID":5,"id":102, "Note" : {"a":1,"a":2}}`: {id: "102", note: `{"a":1,"a":2}`},
		`{"ID":5,"x":1}`:                            {id: "5", others: true},
		`{"ID":5,"Id":6}`:                           {wrong: `.id: "ID" and "Id" are both there, and either could be it`},
		`{"id":5,"id":6}`:                           {wrong: `.id: one name stands there twice`},
		"{\"id\":5,\"\xdc\":\"\xdc\"}":              {id: "5", others: true},
		`{}`:                                        {},
		`[{"id":5}]`:                                {},
		`"id"`:                                      {},
		`{"id":5`:                                   {wrong: "it is not JSON"},
	} {
		values, others, err := Members([]byte(doc), "id", "note")
		if want.wrong != "" {
			if err == nil || err.Error() != want.wrong {
				t.Errorf("%s: %v, want %q", doc, err, want.wrong)
			}
			continue
		}
		if err != nil || string(values[0]) != want.id || string(values[1]) != want.note || others != want.others {
			t.Errorf("%s: %s, others %v, %v", doc, values, others, err)
		}
	}
}

// The declared charset is decoded where it is known. What it has no letter for is an error where it
// is read, and changes nothing elsewhere.
func TestCharsets(t *testing.T) {
	t.Parallel()
	utf16 := func(s string, big bool) string {
		var b strings.Builder
		for _, c := range s { // of the first plane
			pair := []byte{byte(c), byte(c >> 8)}
			if big {
				pair[0], pair[1] = pair[1], pair[0]
			}
			b.Write(pair)
		}
		return b.String()
	}
	for _, c := range []struct{ name, header, body, id, wrong string }{
		{"none", "application/json", `{"id":"GEBÜHR"}`, "GEBÜHR", ""},
		{"no header", "", `{"id":"GEBÜHR"}`, "GEBÜHR", ""},
		{"a header that cannot be read", `;;charset`, `{"id":"GEBÜHR"}`, "GEBÜHR", ""},
		{"UTF-8", `application/json; charset="UTF-8"`, `{"id":"GEBÜHR"}`, "GEBÜHR", ""},
		{"UTF-8 with a mark", "application/json;charset=utf8", "\uFEFF{\"id\":\"GEBÜHR\"}", "GEBÜHR", ""},
		{"ASCII is UTF-8", "application/json; charset=us-ascii", `{"id":"GEBÜHR"}`, "GEBÜHR", ""},
		{"ASCII is not Latin 1", "application/json; charset=us-ascii", "{\"id\":\"GEB\xdcHR\"}", "", ".id"},
		{"Latin 1", "application/json; charset=iso-8859-1", "{\"id\":\"GEB\xdcHR-17\"}", "GEBÜHR-17", ""},
		{"Latin 1, in capitals", "application/json; charset=ISO-8859-1", "{\"id\":\"GEB\xdcHR-17\"}", "GEBÜHR-17", ""},
		{"Latin 9", "application/json; charset=iso-8859-15", "{\"id\":\"\xa4\"}", "€", ""},
		{"Windows", "application/json; charset=windows-1252", "{\"id\":\"\x80\"}", "€", ""},
		{"Shift JIS", "application/json; charset=Shift_JIS", "{\"id\":\"\x83\x5c\"}", "ソ", ""},
		{"UTF-16", "application/json; charset=utf-16le", utf16(`{"id":"GEBÜHR"}`, false), "GEBÜHR", ""},
		{"UTF-16 with a mark", "application/json; charset=utf-16", utf16("\uFEFF"+`{"id":"GEBÜHR"}`, true), "GEBÜHR", ""},
		{"a byte that Greek does not have", "application/json; charset=iso-8859-7", "{\"id\":\"\xff\"}", "", ".id"},
		{"the same beside it", "application/json; charset=iso-8859-7", "{\"note\":\"\xff\",\"id\":\"\xe1\"}", "α", ""},
		{"half of a letter", "application/json; charset=euc-kr", "{\"id\":\"\xb0\"}", "", ".id"},
		{"one that is not known", "application/json; charset=x-klingon", `{"id":"a"}`, "", `its charset is "x-klingon", which is not known`},
		{"one that is refused", "application/json; charset=iso-2022-kr", `{"id":"a"}`, "", "not JSON"},
	} {
		var got identified
		text, err := Text(c.header, []byte(c.body))
		if err == nil {
			err = Into(text, &got)
		}
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) || got.ID != c.id {
			t.Errorf("%s: %q, %v", c.name, got.ID, err)
		}
	}
}

type shallow struct {
	A int    `json:"a,omitempty"`
	B string `json:"-"`
	C *int   `json:"c"`
}

type deep struct {
	A string `json:"a"`
	D bool
	X float64
	Y string `json:"y"`
}

type other struct {
	X, Y string
	Z    int `json:"ä\\"` //nolint:staticcheck // no name: its own counts
}

type text string

func (s *text) UnmarshalText(b []byte) error { *s = text(strings.ToUpper(string(b))); return nil }

type self struct{ text string }

func (s *self) UnmarshalJSON(b []byte) error { s.text = string(b); return nil }

// kinds has a field for each rule of encoding/json.
type kinds struct {
	shallow
	*deep
	Other other `json:"other"`
	other
	Name  other `json:""`
	Q     int   `json:"q,string"`
	Dash  int   `json:"-,"` //nolint:staticcheck // it is named so
	T     text
	S     *self
	R     json.RawMessage
	I     any
	M     map[string]*shallow
	N     map[int]text
	L     []deep
	P     **[]*int
	Two   [2]untagged
	Bytes []byte
	Num   json.Number
	Child *kinds
	note  string //nolint:unused // it is never decoded
	e     string //nolint:unused // the same
	E     string
	Ä     string //nolint:asciicheck // a field may be named so
	Fold  string `json:"ſk"`
}

// names are those that the fields of kinds have, in some case, and some that none has.
var names = []string{
	"a", "A", "B", "b", "-", "c", "d", "D", "x", "X", "y", "Y", "z", "Z", "ä", "Ä", "other", "Other", "Name", "q", "T", "s", "R", "i", "M", "n",
	"l", "P", "two", "Bytes", "Num", "child", "note", "E", "e", "ſk", "SK", "K", "shallow", "deep", "Dash", "",
}

// agree compares with encoding/json: what it decodes without doubt is decoded the same.
func agree(t *testing.T, doc []byte) {
	t.Helper()
	for _, target := range []reflect.Type{reflect.TypeFor[kinds](), reflect.TypeFor[any](), reflect.TypeFor[[]*kinds](), reflect.TypeFor[map[string]kinds](), reflect.TypeFor[untagged]()} {
		want, got := reflect.New(target), reflect.New(target)
		plain, err := unmarshal(doc, want.Interface()), Into(doc, got.Interface())
		switch {
		case odd(doc):
			if err == nil && !strings.Contains(string(doc), "�") && !strings.Contains(strings.ToLower(string(doc)), `\ufffd`) {
				noReplacement(t, got.Elem())
			}
		case plain == nil && err != nil:
			t.Fatalf("%s into %s: %v", doc, target, err)
		case plain == nil && !reflect.DeepEqual(want.Interface(), got.Interface()):
			t.Fatalf("%s into %s:\n%+v, want\n%+v", doc, target, got, want)
		case plain != nil && err == nil && !strings.ContainsAny(string(doc), ".eE"): // 1.0 is an integer here
			t.Fatalf("%s into %s: no error, want %v", doc, target, plain)
		}
	}
}

// unmarshal is json.Unmarshal, which has no UseNumber.
func unmarshal(doc []byte, v any) error {
	if !json.Valid(doc) {
		return errSyntax
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(v)
}

// odd reports whether a document has what encoding/json reads otherwise.
func odd(doc []byte) bool {
	var v any
	if Into(doc, &v) != nil {
		return true
	}
	var folded func(v any) bool
	folded = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for a, inner := range v {
				for b := range v {
					if a != b && strings.EqualFold(a, b) {
						return true
					}
				}
				if folded(inner) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, folded)
		}
		return false
	}
	return folded(v)
}

// noReplacement fails where a text was altered.
func noReplacement(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() { //nolint:exhaustive // the others hold no text
	case reflect.String:
		if strings.Contains(v.String(), "�") {
			t.Fatalf("%q was altered", v)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			noReplacement(t, v.Elem())
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			noReplacement(t, f)
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			noReplacement(t, v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			noReplacement(t, k)
			noReplacement(t, v.MapIndex(k))
		}
	}
}

var documents = []string{
	`{"id":"inv_1","ID":"other"}`, `{"id":"inv-\ud83d-17"}`, "{\"id\":\"GEB\xdcHR-17\"}", `{"id":105.0}`, `{"id":1.04e2,"note":"x"}`,
	`{"a":1,"c":null,"D":true,"x":1,"y":"y","q":"5","-":3,"t":"abc","S":{"x":[1]},"r":{"a":1},"i":[1],"m":{"k":{"a":1}},"n":{"5":"x"}}`,
	`{"L":[{"a":"x"},{"D":true}],"P":[1,null],"two":[{"id":"1"},{"ID":"2"},{"x":1}],"bytes":"AAAA","num":1.50,"child":{"child":{"a":5}}}`,
	`{"other":{"x":"1"},"E":"e","ä":"x","SK":"s","K":1}`, `[{"a":1},null,{"child":{}}]`, `{"k":{"a":1},"l":null}`, `"x"`, `5`, `[]`, `{}`, `{"a":}`, `[1,]`, `{"two":[1,2]}`, "",
	strings.Repeat("[", 10001), strings.Repeat(`{"child":`, 200) + "1" + strings.Repeat("}", 200), "\uFEFF{}", `{"num":"1.50"}`, `{"q":5}`, `{"n":{"x":"y"}}`,
}

func TestAgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, doc := range documents {
		agree(t, []byte(doc))
	}
	for _, name := range names { // each name with each kind of value
		for _, value := range []string{`1`, `"1"`, `"x"`, `null`, `true`, `[]`, `[1,"x"]`, `{}`, `{"a":1}`, `{"a":"x"}`, `{"x":"y","Y":"z"}`, `{"1":"x"}`, `[{"id":"x"}]`} {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, []byte(`{`+string(quoted)+`:`+value+`}`))
		}
	}
}

// Whatever comes, it is read as encoding/json reads it, or it has what that reads otherwise; and no
// text is altered.
func FuzzInto(f *testing.F) {
	for _, doc := range documents[:len(documents)-6] {
		f.Add([]byte(doc))
	}
	for _, name := range names {
		f.Add([]byte(`{"` + name + `":1,"` + strings.ToUpper(name) + `":"x"}`))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { agree(t, doc) })
}

// Whatever is declared, a text comes out or an error; ASCII in a charset that extends it stays what
// it is.
func FuzzText(f *testing.F) {
	for _, header := range []string{"", "application/json", "application/json; charset=iso-8859-1", "text/plain; charset=UTF-16", "a/b;charset=gb18030", "a/b; charset=x", "; charset"} {
		f.Add(header, []byte("{\"id\":\"GEB\xdcHR-17\"}"))
	}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		text, err := Text(header, body)
		if err != nil && text != nil {
			t.Fatal("both a text and an error")
		}
		var v identified
		if err == nil && Into(text, &v) == nil && !strings.Contains(string(body), "�") && strings.Contains(v.ID, "�") &&
			!strings.Contains(strings.ToLower(string(text)), `\ufffd`) {
			t.Fatalf("%q was altered", v.ID)
		}
	})
}

type twice struct{ Tie, Low int }

type left struct {
	twice
	Same int
	Tag  int `json:"Won"`
}

type right struct {
	twice
	Same string
	Won  []int
	Low  string
}

// The fields that count are those that encoding/json writes.
func TestFieldsThatCount(t *testing.T) {
	t.Parallel()
	v := struct {
		left
		*right
		Own  int
		Skip int `json:"-"`
	}{right: &right{}}
	var want map[string]json.RawMessage
	text, err := json.Marshal(v)
	if err != nil || json.Unmarshal(text, &want) != nil {
		t.Fatal(err)
	}
	got := fieldsOf(reflect.TypeOf(v))
	for _, f := range got {
		if value := f.in(reflect.ValueOf(v)); want[f.name] == nil || value.Type() != f.kind {
			t.Errorf("%s of type %s; want those of %s", f.name, f.kind, text)
		}
		if f.name == "Won" && f.kind.Kind() != reflect.Int {
			t.Error("the tag does not win")
		}
	}
	if len(got) != len(want) || want["Tie"] != nil || want["Same"] != nil {
		t.Errorf("%d fields, want %s", len(got), text)
	}
}

// A whole number is digits; what is no number, or not whole, is none, whatever it looks like.
func TestWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"105": "105", "105.0": "105", "1.04e2": "104", "1764000000.0": "1764000000", "10500E-2": "105", "-0": "0", "-7.0": "-7", "0": "0",
		"9007199254740993.0": "9007199254740993",
		"":                   "", "-": "", "--1": "", "1-2": "", "105.5": "", "1e999999999": "", "4/2": "", "0x10": "", "0b1.0": "", "1_0.0": "", "Inf": "", "1e1e1": "", "1.0 ": "",
	} {
		if got, ok := Whole(text); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, ok, want)
		}
	}
}
