package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/program"
)

// "The quick start teaches two bugs: an undo dereferences a result that is nil when the outcome
// is unknown". Undo gets a result that is known, or is not called; only UndoMaybe takes a nil.
func TestUndoGetsTheResult(t *testing.T) {
	t.Parallel()
	paid := Permanent(errors.New("paid meanwhile"))
	var got []*thing
	maybe := Do("invoice", act).Idempotent().UndoMaybe(func(_ context.Context, _ Call[string], out *thing) error {
		got = append(got, out)
		return paid
	})
	known := Do("invoice", act).Find(find).EachRun().Undo(func(_ context.Context, _ Call[string], out thing) error {
		got = append(got, &out)
		return paid
	})
	for i, r := range []*program.Result{nil, {ExternalID: "1"}, {Output: []byte("null")}, {Output: output("1")}} {
		for _, step := range []Step[string]{maybe, known} {
			d, err := Define(order.Saga, 1, step)
			if err != nil {
				t.Fatal(err)
			}
			inv := invoice(program.NewGate(nil))
			got, inv.Direction, inv.Undoing = nil, Undo, r
			o := d.Act(t.Context(), inv)
			switch {
			case i == 3:
				if len(got) != 1 || got[0] == nil || got[0].ID != "1" || o.Class != Refused || o.Error != "paid meanwhile" {
					t.Errorf("the undo got %v, the outcome is %+v", got, o)
				}
			case step == maybe:
				if len(got) != 1 || got[0] != nil || o.Class != Refused {
					t.Errorf("%+v: the undo got %v, the outcome is %+v", r, got, o)
				}
			default:
				if got != nil || o.Class != Fault || !strings.Contains(o.Error, "its undo needs it") {
					t.Errorf("%+v: the undo got %v, the outcome is %+v", r, got, o)
				}
			}
		}
	}
}

// A result without content is always known, so its step needs no lookup.
func TestUndoOfNothing(t *testing.T) {
	t.Parallel()
	undone := 0
	d, err := Define(order.Saga, 1, Do("invoice", func(context.Context, Call[string]) (struct{}, error) { return struct{}{}, nil }).
		NoID().Idempotent().Undo(func(context.Context, Call[string], struct{}) error { undone++; return nil }))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*program.Result{nil, {ExternalID: "1"}, {Output: []byte("{}")}} {
		inv := invoice(program.NewGate(nil))
		inv.Direction, inv.Undoing = Undo, r
		if o := d.Act(t.Context(), inv); !o.Done() {
			t.Errorf("the outcome is %+v", o)
		}
	}
	if undone != 3 || !d.Spec().Steps[0].UndoWhenUnknown {
		t.Errorf("undone %d times, %+v", undone, d.Spec().Steps[0])
	}
}

// Unfinished gives an attempt what a lookup found half-made.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	inv := invoice(program.NewGate(nil))
	ask := func() (out thing, ok bool) {
		d, err := Define(order.Saga, 1, Do("invoice", func(_ context.Context, c Call[string]) (thing, error) {
			out, ok = Unfinished[thing](c)
			return thing{}, nil
		}).Find(find).EachRun().Undo(undoKnown))
		if err != nil {
			t.Fatal(err)
		}
		if o := d.Act(t.Context(), inv); inv.Unfinished == nil && !o.Done() {
			t.Errorf("%+v", o)
		}
		return out, ok
	}
	if out, ok := ask(); ok || out.ID != "" {
		t.Errorf("nothing was found, and the attempt gets %+v", out)
	}
	inv.Unfinished = &program.Result{ExternalID: "half", Output: output("half")}
	if out, ok := ask(); !ok || out.ID != "half" {
		t.Errorf("the attempt gets %+v, %v", out, ok)
	}
	if _, ok := Unfinished[thing](Call[string]{}); ok {
		t.Error("a call from a test of the user's has something unfinished")
	}
}

type byPointer struct{ n int }

func (p *byPointer) ExternalID() string { return fmt.Sprint("p", p.n) }

type awkward struct {
	id   string
	body func() ([]byte, error)
}

func (a awkward) ExternalID() string {
	if a.id == "" {
		panic("no id")
	}
	return a.id
}
func (a awkward) MarshalJSON() ([]byte, error) { return a.body() }

// "An output too large or not serialisable after the effect is recorded as done with its external
// id, body dropped and flagged." Nothing behind the effect turns success into anything else.
func TestDroppedOutput(t *testing.T) {
	t.Parallel()
	for what, out := range map[string]awkward{
		"too large":        {"x", func() ([]byte, error) { return dump(t, strings.Repeat("x", program.MaxOutput)), nil }},
		"not serialisable": {"x", func() ([]byte, error) { return nil, errors.New("no: anna@example.com") }},
		"no JSON":          {"x", func() ([]byte, error) { return []byte("{"), nil }},
		"a panic":          {"x", func() ([]byte, error) { panic("boom") }},
		"a panicking id":   {"", func() ([]byte, error) { return []byte(`1`), nil }},
	} {
		d, err := Define("s", 1, Do("a", func(context.Context, Call[string]) (awkward, error) { return out, nil }).
			Find(func(context.Context, Call[string]) (Finding[awkward], error) { return Found(out), nil }).EachRun().NoUndo("x"))
		if err != nil {
			t.Fatal(err)
		}
		inv := &program.Invocation{Step: "a", Input: json.RawMessage(`""`), Gate: program.NewGate(nil)}
		if o := d.Act(t.Context(), inv); !o.Done() || !o.Dropped || o.Output != nil || o.ExternalID != out.id {
			t.Errorf("%s: the outcome is %+v", what, o)
		} else if strings.Contains(o.Error, "anna") { // it goes on record and into the log
			t.Errorf("%s: the words quote the result: %s", what, o.Error)
		}
		if f := d.Look(t.Context(), inv); f.Answer != program.AnswerFound || !f.Dropped || f.Output != nil || f.ExternalID != out.id {
			t.Errorf("%s: the lookup says %+v", what, f)
		}
	}
	// the largest output that is kept
	o := run(t, func(context.Context, Call[string]) (thing, error) {
		return thing{strings.Repeat("x", program.MaxOutput-len(`{"id":""}`))}, nil
	}, program.NewGate(nil))
	if o.Dropped || len(o.Output) != program.MaxOutput {
		t.Errorf("%d bytes, dropped: %v", len(o.Output), o.Dropped)
	}
}

// number is a string that is written otherwise.
type number string

func (n number) MarshalText() ([]byte, error) { return []byte("no. " + n), nil }

// "It records no external id although the step returns "ticket_1"". A string is its own
// external id; a result that has none says so; ".ID says what the destination calls the result" and
// goes before an ExternalID method.
func TestID(t *testing.T) {
	t.Parallel()
	type ticket string
	d, err := Define("s", 1,
		Do("a", func(context.Context, Call[string]) (int, error) { return 7, nil }).ID(func(n int) string { return fmt.Sprint("no. ", n) }).Idempotent().UndoMaybe(func(context.Context, Call[string], *int) error { return nil }),
		Do("b", act).ID(func(thing) string { return "by ID" }).Idempotent().UndoMaybe(undo),
		Do("c", func(context.Context, Call[string]) (int, error) { return 7, nil }).Idempotent().NoUndo("x").NoID(),
		Do("d", func(context.Context, Call[string]) (byPointer, error) { return byPointer{7}, nil }).Idempotent().NoUndo("x"),
		Do("e", func(context.Context, Call[string]) (*byPointer, error) { return &byPointer{8}, nil }).Idempotent().NoUndo("x"),
		Do("f", func(context.Context, Call[string]) (Identified, error) { return thing{"9"}, nil }).Idempotent().NoUndo("x"),
		Do("g", func(context.Context, Call[string]) (string, error) { return "ticket_1", nil }).Idempotent().NoUndo("x"),
		Do("h", func(context.Context, Call[string]) (ticket, error) { return "ticket_2", nil }).Idempotent().NoUndo("x"),
		Do("i", func(context.Context, Call[string]) (number, error) { return "3", nil }).Idempotent().NoUndo("x"),
		Do("j", func(context.Context, Call[string]) (string, error) { return "ok", nil }).Idempotent().NoUndo("x").NoID(),
	)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{"g": true, "h": true}
	for _, s := range d.Spec().Steps {
		if s.ResultIsExternalID != own[s.Name] {
			t.Errorf("step %s: the result is its id: %v", s.Name, s.ResultIsExternalID)
		}
	}
	for step, want := range map[string]string{"a": "no. 7", "b": "by ID", "c": "", "d": "p7", "e": "p8", "f": "9", "g": "ticket_1", "h": "ticket_2", "i": "3", "j": ""} {
		o := d.Act(t.Context(), &program.Invocation{Step: step, Input: json.RawMessage(`""`), Gate: program.NewGate(nil)})
		if o.ExternalID != want {
			t.Errorf("step %s: external id %q, want %q", step, o.ExternalID, want)
		}
	}
}
