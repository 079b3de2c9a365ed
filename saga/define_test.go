package saga

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

func act(context.Context, Call[string]) (thing, error) { return thing{}, nil }

func seven(context.Context, Call[string]) (int, error) { return 7, nil }

func find(context.Context, Call[string]) (Finding[thing], error) { return NotFound[thing](), nil }

func undo(context.Context, Call[string], *thing) error { return nil }

func undoKnown(context.Context, Call[string], thing) error { return nil }

// good is a step without fault, to stand beside the one a test is about.
func good(name string) *Action[string, thing] { return Do(name, act).Idempotent().UndoMaybe(undo) }

// Every fault of a definition, by the words a person reads.
func TestDefineFaults(t *testing.T) {
	t.Parallel()
	type steps = []Step[string]
	long := strings.Repeat("x", program.MaxName+1)
	for _, c := range []struct {
		want  string
		steps steps
	}{
		{"there are no steps", nil},
		{"there are 65 steps; at most 64 are allowed", many(65)},
		{`step "a": the name is used twice`, steps{good("a"), good("b"), good("a")}},
		{`step "b": a saga has one pivot, and there is one before this step`, steps{good("a").Pivot(), Do("b", act).Idempotent().Pivot()}},
		{`step "": its name is empty`, steps{good("")}},
		{`its name has 65 characters; at most 64 are allowed`, steps{good(long)}},
		{`step "a b": its name "a b" may only have letters, digits, '-', '_' and '.', and starts with a letter or digit`, steps{good("a b")}},
		{`step "-a": its name "-a" may only have`, steps{good("-a")}},
		{`step "ä": its name "ä" may only have`, steps{good("ä")}},
		{`step "a": it has no action`, steps{Do[string, thing]("a", nil).Idempotent().UndoMaybe(undo)}},
		{`step "a": it does not say how it is safe to repeat: Idempotent, Keyed, Find or AtMostOnce`, steps{Do("a", act).UndoMaybe(undo)}},
		{`step "a": it says two things about repeating (idempotent, keyed)`, steps{good("a").Keyed(time.Hour).EachRun()}},
		{`step "a": it says two things about repeating (idempotent, at-most-once)`, steps{good("a").AtMostOnce()}},
		{`step "a": Keyed needs the time for which the destination remembers a key`, steps{Do("a", act).Keyed(0).EachRun().UndoMaybe(undo)}},
		{`step "a": the destination forgets its key before one attempt is over and settled`, steps{Do("a", act).Keyed(time.Minute).EachRun().UndoMaybe(undo)}},
		{`step "a": FindFirst needs a Find`, steps{good("a").FindFirst()}},
		{`TakeOver needs the time at which the other program was stopped`, steps{TakeOver[string](time.Time{}), good("a")}},
		{`step "a": the other program may have done it, and nothing can tell: say Find, or When with WasThere`,
			steps{TakeOver[string](time.Unix(1, 0)), Do("a", act).Keyed(time.Hour).EachRun().UndoMaybe(undo)}},
		{`step "a": Find needs a function`, steps{good("a").Find(nil).EachRun()}},
		{`step "a": Undo needs a function; say NoUndo(reason) when there is nothing to undo`, steps{Do("a", act).Idempotent().Undo(nil)}},
		{`step "a": NoUndo needs a reason`, steps{Do("a", act).Idempotent().NoUndo("")}},
		{`step "a": UndoMaybe needs a function; say NoUndo(reason) when there is nothing to undo`, steps{Do("a", act).Idempotent().UndoMaybe(nil)}},
		{`step "a": it says two things about its undo (UndoMaybe, NoUndo)`, steps{good("a").NoUndo("why not")}},
		{`step "a": it says two things about its undo (Undo, UndoMaybe)`, steps{Do("a", act).Find(find).EachRun().Undo(undoKnown).UndoMaybe(undo)}},
		{`step "a": its Undo needs the result, and after a lost answer nothing could tell it: say Find, too, or say UndoMaybe and take a nil`, steps{Do("a", act).Idempotent().Undo(undoKnown)}},
		{`step "a": its Undo needs the result`, steps{Do("a", act).Keyed(time.Hour).EachRun().Undo(undoKnown)}},
		{`step "a": its Undo needs the result`, steps{Do("a", act).AtMostOnce().Undo(undoKnown)}},
		{`step "a": it does not say what a later run does (a rerun, or a newer version of its source): Once leaves what was made, Update changes it, EachRun makes another one`,
			steps{Do("a", act).Keyed(time.Hour).UndoMaybe(undo)}},
		{`step "a": it does not say what a later run does`, steps{Do("a", act).Find(find).UndoMaybe(undo)}},
		{`step "a": it says two things about later runs (Once, EachRun)`, steps{Do("a", act).Find(find).Once().EachRun().UndoMaybe(undo)}},
		{`step "a": its Update is nil`, steps{Do("a", act).Find(find).Update(nil).UndoMaybe(undo)}},
		{`step "a": it does not say how it is undone: Undo or UndoMaybe, or NoUndo with the reason`, steps{Do("a", act).Idempotent(), good("b").Pivot()}},
		{`step "b": it does not say how it is undone: Undo or UndoMaybe, or NoUndo with the reason`, steps{good("a"), Do("b", act).Idempotent().Pivot()}},
		{`step "b": it does not say how it is undone: Undo or UndoMaybe, or NoUndo with the reason`, steps{good("a").Pivot(), Do("b", act).AtMostOnce()}},
		{`step "a": its outcome is unknown after a crash, so it must come after step "b", which can be repeated or looked up`, steps{Do("a", act).AtMostOnce().UndoMaybe(undo), good("b")}},
		{`step "a": its outcome is unknown after a crash, so it must come after step "b"`, steps{Do("a", act).AtMostOnce().UndoMaybe(undo), Do("b", act).AtMostOnce().Find(find).UndoMaybe(undo)}},
		{`step "b": it stands after the pivot, so its Retry cannot Compensate`, steps{good("a").Pivot(), Do("b", act).Idempotent().Retry(Retry{Compensate: true})}},
		{`step "a": its result, of type int, has no external id: give it an ExternalID method, or say ID(how to tell it) or NoID`, steps{Do("a", seven).Idempotent().NoUndo("x")}},
		{`step "a": its result, of type interface {}, has no external id`, steps{Do("a", func(context.Context, Call[string]) (any, error) { return thing{"9"}, nil }).Idempotent().NoUndo("x")}},
		{`step "a": its result, of type struct {}, has no external id`, steps{Do("a", func(context.Context, Call[string]) (struct{}, error) { return struct{}{}, nil }).Idempotent().NoUndo("x")}},
		{`step "a": it says two things about its external id (NoID, ID)`, steps{Do("a", seven).Idempotent().NoUndo("x").NoID().ID(func(int) string { return "" })}},
		{`step "a": ID needs a function; say NoID when the destination has no name for the result`, steps{Do("a", seven).Idempotent().NoUndo("x").ID(nil)}},
		{`step "a": its Timeout must be at least a millisecond`, steps{good("a").Timeout(time.Microsecond)}},
		{`step "a": its Settle must not be negative`, steps{good("a").Settle(-time.Second)}},
		{`step "a": its Retry.Attempts must not be negative`, steps{good("a").Retry(Retry{Attempts: -1})}},
		{`step "a": its Retry has a negative time`, steps{good("a").Retry(Retry{Within: -1})}},
		{`step "a": its Retry has a negative time`, steps{good("a").Retry(Retry{Initial: -1})}},
		{`step "a": its Retry has a negative time`, steps{good("a").Retry(Retry{Max: -1})}},
		{`step "a": its Retry.Initial is longer than its Retry.Max`, steps{good("a").Retry(Retry{Initial: time.Hour, Max: time.Minute})}},
		{`step "a": its destination "the books" may only have`, steps{good("a").To("the books")}},
	} {
		d, err := Define("s", 1, c.steps...)
		if err == nil || d != nil {
			t.Errorf("no fault is found where %q is expected", c.want)
			continue
		}
		if lines := strings.Split(err.Error(), "\n"); lines[0] != `saga "s" version 1 is wrong:` || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nlacks: %s", err, c.want)
		}
	}
}

// "Every step that has a Find is asked for before its first request", and the others are repeated or left out. "A definition may do so
// under its version."
func TestTakeOver(t *testing.T) {
	t.Parallel()
	all := []Step[string]{
		good("a"), Do("b", act).Find(find).EachRun().UndoMaybe(undo), Await("c", func(Call[string], Message) (thing, error) { return thing{}, nil }).NoID().Callback("b").Within(time.Hour, AskPerson),
		Do("d", act).AtMostOnce().NoUndo("it is read").When(func(c Call[string]) bool { return !c.WasThere("b") }),
	}
	before, err := Define("s", 1, all...)
	if err != nil {
		t.Fatal(err)
	}
	during, err := Define("s", 1, append(all, TakeOver[string](time.Unix(1, 0)))...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, false} {
		if s := during.Spec().Steps[i]; s.FindFirst != want || before.Spec().Steps[i].FindFirst {
			t.Errorf("step %s is asked for first: %t", s.Name, s.FindFirst)
		}
	}
	if before.Spec().Structure() != during.Spec().Structure() {
		t.Error("it needs another version")
	}
}

func many(n int) (steps []Step[string]) {
	for i := range n {
		steps = append(steps, good("s"+string(rune('0'+i/10))+string(rune('0'+i%10))))
	}
	return steps
}

// "Define returns every reason why a definition is wrong, in one error": one a line.
func TestDefineReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Define("bad name", 0,
		Do("a", act),
		Do("a", act).Idempotent().AtMostOnce().UndoMaybe(undo).NoUndo("x").Timeout(0).Settle(-time.Second),
		good("p").Pivot(),
		Do("mail", act).AtMostOnce().UndoMaybe(undo).Retry(Retry{Compensate: true, Attempts: -1}),
		good("q").Pivot(),
	)
	if err == nil {
		t.Fatal("no fault is found")
	}
	want := `saga "bad name" version 0 is wrong:
the saga's name "bad name" may only have letters, digits, '-', '_' and '.', and starts with a letter or digit
the version is 0; versions start at 1
step "a": it does not say how it is safe to repeat: Idempotent, Keyed, Find or AtMostOnce
step "a": it does not say how it is undone: Undo or UndoMaybe, or NoUndo with the reason
step "a": the name is used twice
step "a": it says two things about repeating (idempotent, at-most-once)
step "a": it says two things about its undo (UndoMaybe, NoUndo)
step "a": its Timeout must be at least a millisecond
step "a": its Settle must not be negative
step "mail": its outcome is unknown after a crash, so it must come after step "q", which can be repeated or looked up
step "mail": it stands after the pivot, so its Retry cannot Compensate
step "mail": its Retry.Attempts must not be negative
step "q": a saga has one pivot, and there is one before this step`
	if err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

type cart struct {
	Order     string `json:"order"`
	Lines     int    `json:"lines"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

func cartSaga(t *testing.T, same ...Step[cart]) *Definition[cart] {
	t.Helper()
	a := Do("a", func(context.Context, Call[cart]) (thing, error) { return thing{}, nil }).Idempotent().NoUndo("nothing")
	d, err := Define("carts", 1, append(same, Step[cart](a))...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// "Identity says which part of the input makes two starts the same": default, the whole input.
func TestIdentity(t *testing.T) {
	t.Parallel()
	identity := func(d *Definition[cart], in any) string {
		acc, err := d.Accept("w", in)
		if err != nil {
			t.Fatal(err)
		}
		return acc.Identity
	}
	whole := cartSaga(t)
	if got, want := identity(whole, cart{Order: "10492", Lines: 3}), "cd7f2edca0a7dbed0d009121db041f39"; got != want {
		t.Errorf("identity %s, want %s (SHA-256 of the input's JSON)", got, want)
	}
	if identity(whole, cart{Order: "1"}) != identity(whole, json.RawMessage(` { "lines":0, "order":"1", "other":5 }`)) {
		t.Error("the same input in another spelling is another identity")
	}
	if identity(whole, cart{Order: "1", UpdatedAt: "x"}) == identity(whole, cart{Order: "1"}) {
		t.Error("by default the whole input counts")
	}
	part := cartSaga(t, Identity(func(c cart) any { c.UpdatedAt = ""; return c }))
	if identity(part, cart{Order: "1", UpdatedAt: "x"}) != identity(part, cart{Order: "1"}) {
		t.Error("a part that was left out still counts")
	}
	if identity(part, cart{Order: "1"}) == identity(part, cart{Order: "2"}) {
		t.Error("two orders are the same")
	}
}

// "Input faults are refused at Start, every reason at once".
func TestAcceptFaults(t *testing.T) {
	t.Parallel()
	d := cartSaga(t)
	huge := json.RawMessage(`{"order":"` + strings.Repeat("x", program.MaxInput) + `"}`)
	for _, c := range []struct {
		work  string
		input any
		want  []string
	}{
		{"", cart{}, []string{"the work id is empty; it is the business identity, like shop:order:10492"}},
		{strings.Repeat("w", program.MaxWork+1), cart{}, []string{"the work id has 257 bytes; at most 256 are allowed"}},
		{"a\x00b", cart{}, []string{"control characters"}},
		{"a\nb", cart{}, []string{"control characters"}},
		{"a\xffb", cart{}, []string{"not valid UTF-8"}},
		{"w", 7, []string{"the input is a int; the saga takes a saga.cart or its JSON"}},
		{"w", json.RawMessage(`{"order":`), []string{"the input is not the JSON of a saga.cart"}},
		{"w", json.RawMessage("{\"order\":\"\xff\"}"), []string{"the input is not valid UTF-8"}},
		{"w", json.RawMessage(`{"order":7}`), []string{"the input is not the JSON of a saga.cart"}},
		{"w", huge, []string{"at most 262144 are allowed: store it elsewhere and start with its reference"}},
		{"\n" + strings.Repeat("w", program.MaxWork), huge, []string{"has 257 bytes", "control characters", "store it elsewhere"}},
	} {
		acc, err := d.Accept(c.work, c.input)
		if err == nil {
			t.Errorf("accepted %+v where %q is expected", acc, c.want)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nlacks: %s", err, want)
			}
		}
	}
	odd := Identity(func(cart) any { return func() {} })
	if _, err := cartSaga(t, odd).Accept("w", cart{}); err == nil || !strings.Contains(err.Error(), "identity is not serialisable") {
		t.Errorf("an identity without JSON: %v", err)
	}
	a := Do("a", func(context.Context, Call[func()]) (thing, error) { return thing{}, nil }).Idempotent().NoUndo("nothing")
	f, err := Define("f", 1, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Accept("w", func() {}); err == nil || !strings.Contains(err.Error(), "not serialisable") {
		t.Errorf("an input without JSON: %v", err)
	}
}

// What is accepted comes back from a snapshot as it went in.
func TestAcceptCanonicalInput(t *testing.T) {
	t.Parallel()
	acc, err := cartSaga(t).Accept("w", json.RawMessage(" {\n \"order\" : \"<1>\" } "))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(dump(t, acc.Input)); got != string(acc.Input) {
		t.Errorf("input %s comes back as %s", acc.Input, got)
	}
}

type base struct {
	ID     string `json:"id"`
	secret int
}

// Basket is embedded below, under a name of its own.
type Basket struct{ Lines int }

// parcel has fields by every way that encoding/json knows.
type parcel struct {
	base
	*Basket `json:"cart"`
	Cents   int `json:"-"`
	Dash    int `json:"-,"` //nolint:staticcheck // so it is called "-"
	NoTag   int
	skipped int
}

// hamper embeds structs that have no name of their own in JSON.
type hamper struct {
	Basket
	*Ribbon
	Note string
}

// Ribbon is embedded above by a pointer.
type Ribbon struct{ Colour string }

// itself reads its own JSON.
type itself struct{ N int }

func (i *itself) UnmarshalJSON(b []byte) error {
	if string(b) == `"no"` {
		return errors.New("no is no number")
	}
	i.N = len(b)
	return nil
}

// checked has something to say about its content.
type checked struct{ Cents int }

func (c *checked) Validate() error {
	if c.Cents <= 0 {
		return errors.New("the amount must be positive")
	}
	return nil
}

// accepts reports what a saga over In says to an input.
func accepts[In any](t *testing.T, input any, more ...Step[In]) error {
	t.Helper()
	a := Do("a", func(context.Context, Call[In]) (thing, error) { return thing{}, nil }).Idempotent().NoUndo("nothing")
	d, err := Define("s", 1, append(more, Step[In](a))...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Accept("w", input)
	return err
}

// What people are shown is what steps get: JSON is read once, and what could be read in two ways is refused.
func TestOneReadingOfAnInput(t *testing.T) {
	t.Parallel()
	type payment struct {
		Cents int                    `json:"cents"`
		To    string                 `json:"to"`
		Lines []struct{ SKU string } `json:"lines,omitempty"`
		Tags  map[string]any         `json:"tags,omitempty"`
	}
	d, err := Define("pay", 1, Do("pay", func(context.Context, Call[payment]) (string, error) { return "", nil }).Idempotent().NoUndo("no"))
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"cents":10,"Cents":99999,"to":"Alice"}`:                  `says both "cents" and "Cents"`,
		`{"Cents":99999,"cents":10}`:                               `says both "Cents" and "cents"`,
		`{"cents":10,"centſ":99999}`:                               `says both "cents" and "centſ"`,
		`{"cents":10,"to":"Alice","to":"Mallory"}`:                 `says both "to" and "to"`,
		`{"cents":10,"lines":[{"sku":"a"},{"SKU":"1","sku":"2"}]}`: `says both "lines.1.SKU" and "lines.1.sku"`,
		`{"cents":10,"Cents":99999,"tags":{"Cents":1}}`:            `says both "cents" and "Cents"`,
		`{"cents":10,"tags":{"a":1,"a":2}}`:                        `says both "tags.a" and "tags.a"`,
	} {
		if a, err := d.Accept("w", json.RawMessage(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is accepted as %s: %v, want %q", body, a.Input, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"Cents": 10, "unknown": true}`:                      `{"cents":10,"to":""}`,
		`{"cents":10,"tags":{"a":1,"A":2,"b":[{"a":1e400}]}}`: `{"cents":10,"to":"","tags":{"A":2,"a":1,"b":[{"a":1e400}]}}`,
		`{"cents":10,"LINES":[{"sku":"a"},{"Sku":"b"}]}`:      `{"cents":10,"to":"","lines":[{"SKU":"a"},{"SKU":"b"}]}`,
	} {
		if a, err := d.Accept("w", json.RawMessage(body)); err != nil || string(a.Input) != want {
			t.Errorf("%s is accepted as %s: %v, want %s", body, a.Input, err, want)
		}
	}
}

// JSON that is kept as it came is read by whoever it is for: there no two names may differ by case only, nor where the input is JSON itself.
func TestOneReadingOfRawInputs(t *testing.T) {
	t.Parallel()
	act := func(context.Context, Call[json.RawMessage]) (string, error) { return "", nil }
	all, err := Define("pay", 1, Do("pay", act).Idempotent().NoUndo("no"))
	if err != nil {
		t.Fatal(err)
	}
	type order struct{ Body json.RawMessage }
	part, err := Define("pay", 1, Do("pay", func(context.Context, Call[order]) (string, error) { return "", nil }).Idempotent().NoUndo("no"))
	if err != nil {
		t.Fatal(err)
	}
	loose, err := Define("pay", 1, Do("pay", func(context.Context, Call[any]) (string, error) { return "", nil }).Idempotent().NoUndo("no"))
	if err != nil {
		t.Fatal(err)
	}
	for body, wrong := range map[string]bool{`{"a":1,"A":2}`: true, `{"a":1,"a":1}`: true, `{"a":1,"b":[{"a":2}]}`: false} {
		for what, accept := range map[string]func(string, any) (program.Accepted, error){"raw": all.Accept, "in part": part.Accept, "any": loose.Accept} {
			text := body
			if what == "in part" {
				text = `{"Body":` + body + `}`
			}
			if a, err := accept("w", json.RawMessage(text)); (err != nil) != (wrong && (what != "any" || strings.Contains(body, `"a":1}`))) {
				t.Errorf("%s: %s is accepted as %s: %v", what, text, a.Input, err)
			}
		}
	}
}

// oneWay is read from a text, and written as an object.
type oneWay struct{ Cents int }

func (o *oneWay) UnmarshalJSON(b []byte) error { return json.Unmarshal(bytes.Trim(b, `"`), &o.Cents) }

func TestAnInputIsReadBack(t *testing.T) {
	t.Parallel()
	d, err := Define("pay", 1, Do("pay", func(context.Context, Call[oneWay]) (string, error) { return "", nil }).Idempotent().NoUndo("no"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := d.Accept("w", json.RawMessage(`"10"`)); err == nil || !strings.Contains(err.Error(), "MarshalJSON") {
		t.Errorf("accepted as %s: %v", a.Input, err)
	}
}

// Adoption 7.10: "Start with JSON of another shape is accepted as zeros". JSON that has none of the
// input's fields, does not decode, or fails the input's own Validate is refused; unknown fields
// only where the definition says Strict.
func TestAcceptJSONOfAnotherShape(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		err  error
		want string // "": accepted
	}{
		{accepts[struct{ Cents int }](t, raw(`{"Amount":5}`)), "the input has none of the fields of a struct { Cents int } (Cents): is it the JSON of something else?"},
		{accepts[struct{ Cents int }](t, raw(`{}`)), "has none of the fields"},
		{accepts[struct{ Cents int }](t, raw(`null`)), "has none of the fields"},
		{accepts[struct{ Cents int }](t, raw(`[]`)), "is not the JSON of"},
		{accepts[*cart](t, raw(`{"Amount":5}`)), "has none of the fields of a *saga.cart (order, lines, updatedAt)"},
		{accepts[*cart](t, raw(`{"lines":5}`)), ""},
		{accepts[struct{ Cents int }](t, raw(`{"CENTS":5,"more":true}`)), ""},
		{accepts[struct{ Cents int }](t, raw(`{"CENTS":5,"more":true}`), Strict[struct{ Cents int }]()), "the saga says Strict: json: unknown field"},
		{accepts[struct{ Cents int }](t, raw(`{"CENTS":5}`), Strict[struct{ Cents int }]()), ""},
		{accepts[parcel](t, raw(`{"id":"1"}`)), ""},
		{accepts[parcel](t, raw(`{"cart":{}}`)), ""},
		{accepts[parcel](t, raw(`{"-":1}`)), ""},
		{accepts[parcel](t, raw(`{"notag":1}`)), ""},
		{accepts[parcel](t, raw(`{"lines":1,"Cents":1,"secret":1,"skipped":1,"base":1}`)), "has none of the fields of a saga.parcel (id, cart, -, NoTag)"},
		{accepts[hamper](t, raw(`{"colour":"red"}`)), ""},
		{accepts[hamper](t, raw(`{"basket":{"lines":1},"ribbon":{}}`)), "has none of the fields of a saga.hamper (Lines, Colour, Note)"},
		{accepts[struct{}](t, raw(`{}`)), ""},
		{accepts[map[string]int](t, raw(`{}`)), ""},
		{accepts[[]int](t, raw(`[]`)), ""},
		{accepts[int](t, raw(`7`)), ""},
		{accepts[string](t, raw(`""`)), ""},
		{accepts[any](t, raw(`{}`)), ""},
		{accepts[itself](t, raw(`{}`)), ""},
		{accepts[*itself](t, raw(`{}`)), ""},
		{accepts[itself](t, raw(`"no"`)), "no is no number"},
		{accepts[time.Time](t, raw(`"2026-03-01T12:00:00Z"`)), ""},
		{accepts[checked](t, raw(`{"cents":0}`)), "the input is not valid: the amount must be positive"},
		{accepts[checked](t, checked{}), "the input is not valid: the amount must be positive"},
		{accepts[*checked](t, &checked{}), "the input is not valid: the amount must be positive"},
		{accepts[checked](t, checked{Cents: 5}), ""},
		{accepts[cart](t, cart{}), ""},
	} {
		if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%v\nwant %q", c.err, c.want)
		}
	}
	if p := (parcel{base: base{secret: 1}, skipped: 1}); p.secret != p.skipped {
		t.Error("these two are there to be read")
	}
}

// What is said of a destination holds for each of its steps, but for what the step says itself;
// what it does not say is as it was.
func TestWithDefaults(t *testing.T) {
	t.Parallel()
	books := Defaults{To: "books", Timeout: 10 * time.Second, Settle: time.Minute, Retry: Retry{Attempts: 3, Initial: 5 * time.Second, Compensate: true}}
	act := func(context.Context, Call[string]) (string, error) { return "", nil }
	d, err := Define("s", 1,
		Do("all", act).With(books).Idempotent().NoUndo("a test"),
		Do("own", act).With(books).Timeout(time.Second).Retry(Retry{Max: time.Hour}).Idempotent().NoUndo("a test"),
		Do("some", act).With(Defaults{To: "shop", Retry: Retry{Within: time.Hour}}).Idempotent().NoUndo("a test"),
		Do("twice", act).With(books).With(Defaults{Settle: 2 * time.Minute, Retry: Retry{Attempts: 4}}).Idempotent().NoUndo("a test"),
	)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Defaults{
		books,
		{To: "books", Timeout: time.Second, Settle: time.Minute, Retry: Retry{Max: time.Hour}},
		{To: "shop", Timeout: DefaultTimeout, Settle: DefaultSettle, Retry: Retry{Within: time.Hour}},
		{To: "books", Timeout: 10 * time.Second, Settle: 2 * time.Minute, Retry: Retry{Attempts: 4, Initial: 5 * time.Second, Compensate: true}},
	} {
		s := d.Spec().Steps[i]
		if got := (Defaults{To: s.Destination, Timeout: s.Timeout, Settle: s.Settle, Retry: Retry(s.Retry)}); got != want {
			t.Errorf("%s: %+v; want %+v", s.Name, got, want)
		}
	}
}

// What an instance is found by is said by its definition, at most eight, each a name and a value. What cannot be a tag is left out, and it is
// said why, without its value; the start is accepted. A function that panics takes down no process.
func TestTags(t *testing.T) {
	t.Parallel()
	step := Do("pay", func(context.Context, Call[map[string]string]) (struct{}, error) { return struct{}{}, nil }).Idempotent().Once().NoID().NoUndo("it is a test")
	d, err := Define("tagged", 1, Tags(func(in map[string]string) map[string]string {
		if in["panic"] != "" {
			panic("no")
		}
		return in
	}), step)
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]string{}
	for i := range 9 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, c := range map[string]struct {
		in          map[string]string
		want, wrong string
	}{
		"two":    {map[string]string{"shop": "at", "customer": "a=b"}, "customer=a=b shop=at", ""},
		"none":   {map[string]string{"customer": ""}, "", ""},
		"many":   {many, "0=x 1=x 2=x 3=x 4=x 5=x 6=x 7=x", "there are 9, and at most 8 are kept"},
		"wrong":  {map[string]string{"a=b": "c", "shop": "at", "e": "\x00"}, "shop=at", `tag "a=b": its name is empty or has a "="`},
		"long":   {map[string]string{"a": strings.Repeat("x", 300)}, "", "200 bytes at most"},
		"panics": {map[string]string{"panic": "yes"}, "", "the function panicked"},
	} {
		// Whose data it is stays, whatever becomes of the tags.
		of, err := Define("tagged", 1, Tags(d.tags), Subject(func(in map[string]string) string { return "customer:" + name }), step)
		if err != nil {
			t.Fatal(err)
		}
		if whose, err := of.Accept("w", c.in); err != nil || !slices.Contains(whose.Tags, SubjectTag("customer:"+name)) {
			t.Errorf("%s: %v, %v", name, whose.Tags, err)
		}
		got, err := d.Accept("w", c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := strings.Join(got.Tags, " "); text != c.want || (got.TagFault == nil) != (c.wrong == "") || c.wrong != "" && !strings.Contains(got.TagFault.Error(), c.wrong) {
			t.Errorf("%s: %q, %v; want %q, %q", name, text, got.TagFault, c.want, c.wrong)
		}
		if got.TagFault != nil && strings.Contains(got.TagFault.Error(), "xxx") {
			t.Errorf("%s: %v tells a value", name, got.TagFault)
		}
	}
	if long := SubjectTag(strings.Repeat("x", 300)); len(long) > 200 || long == SubjectTag(strings.Repeat("x", 301)) {
		t.Errorf("a long subject is the tag %q", long)
	}
}
