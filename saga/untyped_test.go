package saga

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

type loose struct {
	Name  string
	Extra any `json:"extra"`
}

// numbers are those that a float64 does not hold, or writes otherwise.
var numbers = []string{
	"9007199254740993", "616581622363398142", "-616581622363398142", "18446744073709551616", "0.1234567890123456789", "1e400", "105.0", "1.05e2", "-0", "5",
}

// Digits are data: an untyped value that comes out of the ledger has those that went in, wherever it
// is decoded.
func TestSameDigits(t *testing.T) {
	t.Parallel()
	for _, n := range numbers {
		untyped[map[string]any](t, `{"order":`+n+`}`, func(v map[string]any) any { return v["order"] }, n)
		untyped[map[string]map[string]any](t, `{"order":{"id":`+n+`}}`, func(v map[string]map[string]any) any { return v["order"]["id"] }, n)
		untyped[[]any](t, `["x",`+n+`]`, func(v []any) any { return v[1] }, n)
		untyped[any](t, n, func(v any) any { return v }, n)
		untyped[loose](t, `{"Name":"x","extra":{"id":[`+n+`]}}`, func(v loose) any { return v.Extra.(map[string]any)["id"].([]any)[0] }, n) //nolint:forcetypeassert // else it panics
		untyped[*loose](t, `{"Name":"x","extra":`+n+`}`, func(v *loose) any { return v.Extra }, n)
	}
}

// untyped runs a body through everything that hands a V to a user.
func untyped[V any](t *testing.T, body string, number func(V) any, want string) {
	t.Helper()
	var seen []any
	see := func(v V) { seen = append(seen, number(v)) }
	d, err := Define("s", 1,
		Do("a", func(_ context.Context, c Call[V]) (V, error) { see(c.Input); return c.Input, nil }).NoID().Idempotent().NoUndo("it is the first"),
		Do("b", func(_ context.Context, c Call[V]) (V, error) {
			see(ResultOf[V](c, "a"))
			for _, before := range []func(Call[V]) (V, bool){Previous[V, V], Unfinished[V, V]} {
				v, ok := before(c)
				if see(v); !ok {
					t.Error("it had none")
				}
			}
			return c.Input, nil
		}).NoID().Find(func(_ context.Context, c Call[V]) (Finding[V], error) { see(c.Input); return Found(c.Input), nil }).EachRun().
			UndoMaybe(func(_ context.Context, _ Call[V], out *V) error { see(*out); return nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := d.Accept("w", json.RawMessage(body))
	if err != nil || string(accepted.Input) != body {
		t.Fatalf("%s is accepted as %s, %v", body, accepted.Input, err)
	}
	first := d.Act(t.Context(), &program.Invocation{Step: "a", Direction: Forward, Attempt: 1, Input: accepted.Input})
	kept := &program.Result{Output: first.Output}
	inv := &program.Invocation{
		Step: "b", Direction: Forward, Attempt: 1, Input: accepted.Input, Results: map[string]program.Result{"a": *kept},
		Previous: kept, Unfinished: kept, Undoing: kept,
	}
	second, found := d.Act(t.Context(), inv), d.Look(t.Context(), inv)
	inv.Direction = Undo
	if o := d.Act(t.Context(), inv); o.Class != program.Succeeded || found.Answer != program.AnswerFound {
		t.Errorf("%s: the undo ended with %+v, the lookup with %+v", body, o, found)
	}
	told, err := Output[V](Summary{Steps: map[string]StepSummary{"a": {Done: true, Output: first.Output}}}, "a")
	if err != nil {
		t.Error(err)
	}
	see(told)
	if string(first.Output) != body || string(second.Output) != body {
		t.Errorf("%s came back as %s and %s", body, first.Output, second.Output)
	}
	if len(seen) != 7 {
		t.Errorf("%s was seen %d times", body, len(seen))
	}
	for i, v := range seen {
		if v != any(json.Number(want)) {
			t.Errorf("%s is seen as %v, a %T, at place %d", body, v, v, i)
		}
	}
}

// Two inputs are the same when their untyped numbers are equal, however they are written, and are
// not the same when the numbers only look equal as float64. What is typed is compared as ever.
func TestIdentityOfUntypedNumbers(t *testing.T) {
	t.Parallel()
	d, err := Define[map[string]any]("s", 1, Do("a", func(context.Context, Call[map[string]any]) (struct{}, error) { return struct{}{}, nil }).NoID().Idempotent().NoUndo("x"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(input any) string {
		a, err := d.Accept("w", input)
		if err != nil {
			t.Fatal(err)
		}
		return a.Identity
	}
	raw := func(n string) string { return of(json.RawMessage(`{"note":"105.0 \" 1e2","n":` + n + `}`)) }
	for _, same := range [][]string{
		{"105", "105.0", "1.05e2", "10500e-2"}, {"9007199254740993", "9007199254740993"}, {"0", "0.00", "0e5"}, {"0.1", "0.10"}, {"1e21", "1000000000000000000000", "1E+21"},
	} {
		for _, n := range same {
			if raw(n) != raw(same[0]) {
				t.Errorf("%s and %s are two inputs", n, same[0])
			}
		}
	}
	for _, other := range [][2]string{
		{"9007199254740993", "9007199254740992"}, {"0.1234567890123456789", "0.1234567890123456788"}, {"1e400", "1e401"}, {"1e-400", "1e-401"}, {"1e-400", "0"}, {"1", `"1"`},
	} {
		if raw(other[0]) == raw(other[1]) {
			t.Errorf("%s and %s are one input", other[0], other[1])
		}
	}
	if of(map[string]any{"n": 105}) != of(json.RawMessage(`{"n":105.0}`)) || of(map[string]any{"n": 1e21}) != of(json.RawMessage(`{"n":1e21}`)) {
		t.Error("a value and its JSON are two inputs")
	}
}

// What can hold a number as it was written is known; for the others an identity is what it always was.
func TestHoldsUntyped(t *testing.T) {
	t.Parallel()
	type tree struct {
		Child []*tree
		Leaf  map[string]any
	}
	type list struct {
		Next *list
		Left any `json:"-"`
		num  any //nolint:unused // it is never decoded
		N    json.Number
		Raw  json.RawMessage
	}
	for want, types := range map[bool][]reflect.Type{
		true: {
			reflect.TypeFor[any](), reflect.TypeFor[loose](), reflect.TypeFor[*tree](), reflect.TypeFor[[2][]any](), reflect.TypeFor[map[string]map[int]any](),
			reflect.TypeFor[struct{ loose }](),
		},
		false: {reflect.TypeFor[string](), reflect.TypeFor[list](), reflect.TypeFor[map[string]float64](), reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage]()},
	} {
		for _, typ := range types {
			if holdsUntyped(typ) != want {
				t.Errorf("%s: not %t", typ, want)
			}
		}
	}
}

// A step sees the input as it is stored, whatever the step before it did to its own: only what cannot be changed through a copy is decoded once.
func TestAStepChangesNoOthersInput(t *testing.T) {
	t.Parallel()
	apart(t, [1]string{"kept"}, func(in *[1]string) { in[0] = "changed" })
	apart(t, struct{ At time.Time }{}, func(in *struct{ At time.Time }) { in.At = time.Now() })
	apart(t, []string{"kept"}, func(in *[]string) { (*in)[0] = "changed" })
	apart(t, map[string]int{"kept": 1}, func(in *map[string]int) { (*in)["kept"] = 2 })
	name := "kept"
	apart(t, struct{ Name *string }{&name}, func(in *struct{ Name *string }) { *in.Name = "changed" })
}

// apart runs an action twice that changes its input, as two steps of one instance.
func apart[In any](t *testing.T, in In, change func(*In)) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Define("order", 1, Do("a", func(_ context.Context, c Call[In]) (string, error) {
		if got, _ := json.Marshal(c.Input); string(got) != string(body) {
			t.Errorf("%T: a step sees %s where %s is stored", in, got, body)
		}
		change(&c.Input)
		return "x", nil
	}).Idempotent().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	var decoded program.Decoded
	for range 2 {
		o := d.Act(t.Context(), &program.Invocation{Work: "w", Step: "a", Input: body, Decoded: &decoded})
		if o.Class != program.Succeeded {
			t.Errorf("%T: %s %s", in, o.Class, o.Error)
		}
	}
}
