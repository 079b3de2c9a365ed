package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// run defines a saga of one step more than the done ones and runs an attempt of that step.
func run(t *testing.T, action func(context.Context, Call[string]) (thing, error), gate *Gate) Outcome {
	t.Helper()
	d, err := Define(order.Saga, 1, good("customer"), good("quote"), Do("invoice", action).Idempotent().UndoMaybe(undo))
	if err != nil {
		t.Fatal(err)
	}
	return d.Act(t.Context(), invoice(gate))
}

func invoice(gate *Gate) *Invocation {
	return &Invocation{
		Work: order.Work, Revision: "v7", Step: "invoice", Direction: Forward, Attempt: 2, Key: "am-k", Input: json.RawMessage(`"3 lines"`),
		Results: map[string]Result{
			"customer": {ExternalID: "cus_7", Output: output("cus_7")},
			"quote":    {}, // done, but it has no external id and its output was not kept
		},
		Gate: gate,
	}
}

// An action sees the work, its key and its input; and what earlier steps made.
func TestCall(t *testing.T) {
	t.Parallel()
	o := run(t, func(ctx context.Context, c Call[string]) (thing, error) {
		want := Call[string]{Saga: order.Saga, Work: order.Work, Revision: "v7", Step: "invoice", Key: "am-k", Attempt: 2, Input: "3 lines"}
		if c.inv, c.gate = nil, nil; c != want {
			t.Errorf("called with %+v\nwant %+v", c, want)
		}
		return thing{"inv_1"}, Sending(ctx)
	}, NewGate(nil))
	if !o.Done() || o.ExternalID != "inv_1" || string(o.Output) != `{"id":"inv_1"}` || o.Dropped || o.Error != "" {
		t.Errorf("the outcome is %+v", o)
	}
	o = run(t, func(_ context.Context, c Call[string]) (thing, error) {
		return thing{c.ExternalID("customer") + "," + ResultOf[thing](c, "customer").ID}, nil
	}, NewGate(nil))
	if o.ExternalID != "cus_7,cus_7" {
		t.Errorf("the outcome is %+v", o)
	}
}

// "Asking a Call for a step that is unknown or not done is a definition fault caught before anything is sent,
// never an empty string".
func TestCallFaults(t *testing.T) {
	t.Parallel()
	for what, ask := range map[string]func(Call[string]){
		`step "invoice" asked for step "nobody", which is unknown or not done`: func(c Call[string]) { c.ExternalID("nobody") },
		`step "invoice" asked for step "receipt", which`:                       func(c Call[string]) { ResultOf[thing](c, "receipt") },
		`step "quote" recorded no external id`:                                 func(c Call[string]) { c.ExternalID("quote") },
		`the result of step "quote" is not kept`:                               func(c Call[string]) { ResultOf[thing](c, "quote") },
		`the result of step "customer" is no int`:                              func(c Call[string]) { ResultOf[int](c, "customer") },
	} {
		gate := NewGate(nil)
		o := run(t, func(_ context.Context, c Call[string]) (thing, error) {
			ask(c)
			t.Errorf("%s: the action went on", what)
			return thing{}, c.Sending()
		}, gate)
		if o.Class != Fault || !strings.Contains(o.Error, what) || gate.Passed() {
			t.Errorf("the outcome is %+v, want a fault: %s", o, what)
		}
	}
}

// Behind the gate the same mistake proves nothing: something may have been sent.
func TestCallFaultBehindGate(t *testing.T) {
	t.Parallel()
	o := run(t, func(_ context.Context, c Call[string]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		return thing{c.ExternalID("nobody")}, nil
	}, NewGate(nil))
	if o.Class != Unknown {
		t.Errorf("the outcome is %+v", o)
	}
}

// An input or a step that the program does not have is a fault, not a panic.
func TestActFaults(t *testing.T) {
	t.Parallel()
	d, err := Define(order.Saga, 1, Do("invoice", act).Find(find).Undo(undoKnown))
	if err != nil {
		t.Fatal(err)
	}
	for want, inv := range map[string]*Invocation{
		`saga order-to-invoice version 1 has no step "nobody"`: {Step: "nobody", Input: json.RawMessage(`""`)},
		`the stored input is not the JSON of a string`:         {Step: "invoice", Input: json.RawMessage(`7`)},
		`the recorded result of invoice does not decode`:       {Step: "invoice", Input: json.RawMessage(`""`), Direction: Undo, Undoing: &Result{Output: json.RawMessage(`7`)}},
	} {
		if o := d.Act(t.Context(), inv); o.Class != Fault || !strings.Contains(o.Error, want) {
			t.Errorf("the outcome is %+v, want a fault: %s", o, want)
		}
		if inv.Direction == Undo {
			continue
		}
		if f := d.Look(t.Context(), inv); f.Kind != KindUnclear || !strings.Contains(f.Error, want) {
			t.Errorf("the lookup says %+v, want: %s", f, want)
		}
	}
}

// The gate's word and the action's error make the class. "An error, panic or shutdown before the gate is
// provably not sent"; "an action that does neither is treated as having flipped it at once".
func TestGateAndErrorMakeTheClass(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	shut := func() *Gate { g := NewGate(nil); g.Close(); return g }
	late := func() *Gate { return NewGate(func() error { return errors.New("the lease is in question") }) }
	for _, c := range []struct {
		what string
		gate *Gate
		act  func(c Call[string]) error
		want Class
	}{
		{"an error without touching the gate", NewGate(nil), func(Call[string]) error { return boom }, Unknown},
		{"an error without touching a closed gate", shut(), func(Call[string]) error { return boom }, Unknown},
		{"an error behind the gate", NewGate(nil), func(c Call[string]) error { return errors.Join(c.Sending(), boom) }, Unknown},
		{"the closed gate's error as it is", shut(), func(c Call[string]) error { return c.Sending() }, Unsent},
		{"the lease's word", late(), func(c Call[string]) error { return c.Sending() }, Unsent},
		{"the closed gate's error wrapped", shut(), func(c Call[string]) error { return fmt.Errorf("send: %w", c.Sending()) }, Unsent},
		{"another error after being turned away", shut(), func(c Call[string]) error { _ = c.Sending(); return boom }, Unsent},
		{"turned away at the second request", NewGate(nil), func(c Call[string]) error { return errors.Join(c.Sending(), secondRequest(c)) }, Unknown},
		{"not sent, says the destination's contract", NewGate(nil), func(c Call[string]) error { _ = c.Sending(); return NotSent(boom) }, Unsent},
		{"refused", NewGate(nil), func(c Call[string]) error { _ = c.Sending(); return Permanent(boom) }, Refused},
		{"refused, wrapped", NewGate(nil), func(Call[string]) error { return fmt.Errorf("send: %w", Permanent(boom)) }, Refused},
		{"no gate at all", nil, func(c Call[string]) error { return c.Sending() }, succeeded},
		{"a context that ended", NewGate(nil), func(Call[string]) error { return context.DeadlineExceeded }, Unknown},
	} {
		o := run(t, func(_ context.Context, call Call[string]) (thing, error) { return thing{}, c.act(call) }, c.gate)
		if o.Class != c.want {
			t.Errorf("%s: the outcome is %+v, want %s", c.what, o, c.want)
		}
	}
}

// secondRequest closes the gate under the action and asks for a second request.
func secondRequest(c Call[string]) error {
	c.gate.Close()
	return c.Sending()
}

func TestPanics(t *testing.T) {
	t.Parallel()
	closed := NewGate(nil)
	closed.Close()
	for _, c := range []struct {
		what string
		gate *Gate
		send bool
		want Class
	}{
		{"before a gate it never touches", NewGate(nil), false, Unknown},
		{"behind the gate", NewGate(nil), true, Unknown},
		{"after it was turned away", closed, true, Unsent},
		{"without a gate", nil, false, Unknown},
	} {
		o := run(t, func(_ context.Context, call Call[string]) (thing, error) {
			if c.send {
				_ = call.Sending()
			}
			panic("boom")
		}, c.gate)
		if o.Class != c.want || !strings.HasPrefix(o.Error, "panic: boom; at ") || !strings.Contains(o.Stack, "call_test.go") {
			t.Errorf("a panic %s: %+v, want %s", c.what, o, c.want)
		}
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	look := func(fn func(context.Context, Call[string]) (Finding[thing], error)) Evidence {
		d, err := Define(order.Saga, 1, Do("invoice", act).Find(fn).Undo(undoKnown))
		if err != nil {
			t.Fatal(err)
		}
		inv := invoice(nil)
		return d.Look(t.Context(), inv)
	}
	answer := func(f Finding[thing]) func(context.Context, Call[string]) (Finding[thing], error) {
		return func(ctx context.Context, c Call[string]) (Finding[thing], error) {
			if c.Key != "am-k" || c.Work != order.Work {
				t.Errorf("a lookup is called with %+v", c)
			}
			return f, errors.Join(Sending(ctx), c.Sending()) // a lookup has no gate
		}
	}
	for _, c := range []struct {
		f    Finding[thing]
		want Evidence
	}{
		{Found(thing{"1"}), Evidence{Kind: KindFound, ExternalID: "1", Output: output("1")}},
		{Found[thing](), Evidence{Kind: KindNotFound}},
		{Found(thing{"1"}, thing{"2"}), Evidence{Kind: KindSeveral, IDs: []string{"1", "2"}}},
		{FoundUnfinished(thing{"1"}), Evidence{Kind: KindUnfinished, ExternalID: "1", Output: output("1")}},
		{NotFound[thing](), Evidence{Kind: KindNotFound}},
		{CannotTell[thing](), Evidence{Kind: KindUnclear}},
		{Finding[thing]{}, Evidence{Kind: KindUnclear, Error: "the lookup answered with a zero Finding"}},
	} {
		if got := look(answer(c.f)); string(dump(t, got)) != string(dump(t, c.want)) {
			t.Errorf("%s: %+v, want %+v", c.f.kind, got, c.want)
		}
	}
	for recorded, want := range map[string]Kind{"2": KindFound, "3": KindSeveral, "": KindSeveral} { // C5: for its undo
		d, err := Define(order.Saga, 1, Do("invoice", act).Find(answer(Found(thing{"1"}, thing{"2"}))).Undo(undoKnown))
		if err != nil {
			t.Fatal(err)
		}
		inv := invoice(nil)
		inv.Direction, inv.Undoing = Undo, &Result{ExternalID: recorded}
		if f := d.Look(t.Context(), inv); f.Kind != want || want == KindFound && f.ExternalID != recorded {
			t.Errorf("with %q on record the undo is told %+v", recorded, f)
		}
		if inv.Direction = Forward; d.Look(t.Context(), inv).Kind != KindSeveral {
			t.Errorf("with %q on record a duplicate is not seen", recorded)
		}
	}
	twice, err := Define(order.Saga, 1, Do("invoice", act).Find(answer(Found(thing{"2"}, thing{"2"}))).Undo(undoKnown))
	if err != nil {
		t.Fatal(err)
	}
	inv := invoice(nil)
	inv.Direction, inv.Undoing = Undo, &Result{ExternalID: "2"}
	if f := twice.Look(t.Context(), inv); f.Kind != KindSeveral {
		t.Errorf("with two of the recorded id the undo is told %+v", f)
	}
	f := look(func(context.Context, Call[string]) (Finding[thing], error) {
		return Found(thing{"1"}), RetryAfter(time.Minute, errors.New("429"))
	})
	if f.Kind != KindUnclear || f.RetryAfter != time.Minute || f.Error != "429" {
		t.Errorf("an error beside a finding: %+v", f)
	}
	f = look(func(context.Context, Call[string]) (Finding[thing], error) { panic("boom") })
	if f.Kind != KindUnclear || !strings.HasPrefix(f.Error, "panic: boom; at ") || !strings.Contains(f.Stack, "call_test.go") {
		t.Errorf("a panic: %+v", f)
	}
}

// A4: "the quick start teaches two bugs: an undo dereferences a result that is nil when the outcome is unknown". Undo gets
// a result that is known, or is not called; only UndoMaybe takes a nil.
func TestUndoGetsTheResult(t *testing.T) {
	t.Parallel()
	paid := Permanent(errors.New("paid meanwhile"))
	var got []*thing
	maybe := Do("invoice", act).Idempotent().UndoMaybe(func(_ context.Context, _ Call[string], out *thing) error {
		got = append(got, out)
		return paid
	})
	known := Do("invoice", act).Find(find).Undo(func(_ context.Context, _ Call[string], out thing) error {
		got = append(got, &out)
		return paid
	})
	for i, r := range []*Result{nil, {ExternalID: "1"}, {Output: []byte("null")}, {Output: output("1")}} {
		for _, step := range []Step[string]{maybe, known} {
			d, err := Define(order.Saga, 1, step)
			if err != nil {
				t.Fatal(err)
			}
			inv := invoice(NewGate(nil))
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
	for _, r := range []*Result{nil, {ExternalID: "1"}, {Output: []byte("{}")}} {
		inv := invoice(NewGate(nil))
		inv.Direction, inv.Undoing = Undo, r
		if o := d.Act(t.Context(), inv); !o.Done() {
			t.Errorf("the outcome is %+v", o)
		}
	}
	if undone != 3 || !d.Spec().Steps[0].UndoMaybe {
		t.Errorf("undone %d times, %+v", undone, d.Spec().Steps[0])
	}
}

// Unfinished gives an attempt what a lookup found half-made.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	inv := invoice(NewGate(nil))
	ask := func() (out thing, ok bool) {
		d, err := Define(order.Saga, 1, Do("invoice", func(_ context.Context, c Call[string]) (thing, error) {
			out, ok = Unfinished[thing](c)
			return thing{}, nil
		}).Find(find).Undo(undoKnown))
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
	inv.Unfinished = &Result{ExternalID: "half", Output: output("half")}
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

// "An output too large or not serialisable after the effect is recorded as done with its external id, body
// dropped and flagged." Nothing behind the effect turns success into anything else.
func TestDroppedOutput(t *testing.T) {
	t.Parallel()
	for what, out := range map[string]awkward{
		"too large":        {"x", func() ([]byte, error) { return dump(t, strings.Repeat("x", MaxOutput)), nil }},
		"not serialisable": {"x", func() ([]byte, error) { return nil, errors.New("no: anna@example.com") }},
		"no JSON":          {"x", func() ([]byte, error) { return []byte("{"), nil }},
		"a panic":          {"x", func() ([]byte, error) { panic("boom") }},
		"a panicking id":   {"", func() ([]byte, error) { return []byte(`1`), nil }},
	} {
		d, err := Define("s", 1, Do("a", func(context.Context, Call[string]) (awkward, error) { return out, nil }).
			Find(func(context.Context, Call[string]) (Finding[awkward], error) { return Found(out), nil }).NoUndo("x"))
		if err != nil {
			t.Fatal(err)
		}
		inv := &Invocation{Step: "a", Input: json.RawMessage(`""`), Gate: NewGate(nil)}
		if o := d.Act(t.Context(), inv); !o.Done() || !o.Dropped || o.Output != nil || o.ExternalID != out.id {
			t.Errorf("%s: the outcome is %+v", what, o)
		} else if strings.Contains(o.Error, "anna") { // it goes on record and into the log
			t.Errorf("%s: the words quote the result: %s", what, o.Error)
		}
		if f := d.Look(t.Context(), inv); f.Kind != KindFound || !f.Dropped || f.Output != nil || f.ExternalID != out.id {
			t.Errorf("%s: the lookup says %+v", what, f)
		}
	}
	// the largest output that is kept
	o := run(t, func(context.Context, Call[string]) (thing, error) {
		return thing{strings.Repeat("x", MaxOutput-len(`{"id":""}`))}, nil
	}, NewGate(nil))
	if o.Dropped || len(o.Output) != MaxOutput {
		t.Errorf("%d bytes, dropped: %v", len(o.Output), o.Dropped)
	}
}

// number is a string that is written otherwise.
type number string

func (n number) MarshalText() ([]byte, error) { return []byte("no. " + n), nil }

// A4: "it records no external id although the step returns "ticket_1"". A string is its own external id; a result that has
// none says so; ".ID says what the destination calls the result" and goes before an ExternalID method.
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
		if s.OwnID != own[s.Name] {
			t.Errorf("step %s: the result is its id: %v", s.Name, s.OwnID)
		}
	}
	for step, want := range map[string]string{"a": "no. 7", "b": "by ID", "c": "", "d": "p7", "e": "p8", "f": "9", "g": "ticket_1", "h": "ticket_2", "i": "3", "j": ""} {
		o := d.Act(t.Context(), &Invocation{Step: step, Input: json.RawMessage(`""`), Gate: NewGate(nil)})
		if o.ExternalID != want {
			t.Errorf("step %s: external id %q, want %q", step, o.ExternalID, want)
		}
	}
}

// The outermost mark wins, and a Retry-After is found at any depth.
func TestClassify(t *testing.T) {
	t.Parallel()
	base := errors.New("no")
	for _, c := range []struct {
		err   error
		class Class
		after time.Duration
	}{
		{base, Unknown, 0},
		{nil, Unknown, 0},
		{Permanent(base), Refused, 0},
		{NotSent(base), Unsent, 0},
		{RetryAfter(time.Minute, base), Unknown, time.Minute},
		{RetryAfter(time.Minute, NotSent(base)), Unsent, time.Minute},
		{NotSent(RetryAfter(time.Minute, base)), Unsent, time.Minute},
		{RetryAfter(time.Second, RetryAfter(time.Minute, base)), Unknown, time.Second},
		{RetryAfter(-time.Minute, base), Unknown, 0},
		{Permanent(NotSent(base)), Refused, 0},
		{NotSent(fmt.Errorf("more: %w", Permanent(base))), Unsent, 0},
		{errors.Join(base, Permanent(base)), Refused, 0},
		{HoldBack(base), Unknown, 0},
		{HoldBack(RetryAfter(time.Minute, NotSent(base))), Unsent, time.Minute},
		{NotSent(HoldBack(RetryAfter(time.Minute, base))), Unsent, time.Minute},
	} {
		class, after := Classify(c.err)
		if class != c.class || after != c.after {
			t.Errorf("%v: %s after %s, want %s after %s", c.err, class, after, c.class, c.after)
		}
		if c.err != nil && !errors.Is(c.err, base) {
			t.Errorf("%v hides its cause", c.err)
		}
	}
	for _, err := range []error{Permanent(nil), NotSent(nil), RetryAfter(time.Second, nil), HoldBack(nil)} {
		if err != nil {
			t.Errorf("marking no error gives %v", err)
		}
	}
}

// CORE-8: a wait is for its own step, unless the destination is marked as one that has too much to do.
func TestHoldBack(t *testing.T) {
	t.Parallel()
	base := errors.New("503")
	for err, want := range map[error]bool{
		base: false, RetryAfter(time.Minute, base): false, HoldBack(base): true,
		NotSent(fmt.Errorf("the books: %w", HoldBack(RetryAfter(time.Minute, base)))): true,
	} {
		o := run(t, func(context.Context, Call[string]) (thing, error) { return thing{}, err }, NewGate(nil))
		if o.HoldBack != want || o.Error != err.Error() {
			t.Errorf("%v: %+v", err, o)
		}
	}
}

// What the gate says of itself.
func TestGate(t *testing.T) {
	t.Parallel()
	g := NewGate(nil)
	if g.Passed() || g.Unsent() {
		t.Error("nobody came yet")
	}
	if err := g.Pass(); err != nil || !g.Passed() || g.Unsent() {
		t.Errorf("passed: %v", err)
	}
	g.Close()
	err := g.Pass()
	if class, _ := Classify(err); !errors.Is(err, ErrGateClosed) || class != Unknown || !g.Passed() || g.Unsent() {
		t.Errorf("a later request at a closed gate: %v (%s)", err, class)
	}
	g = NewGate(nil)
	g.Close()
	err = g.Pass()
	if class, _ := Classify(err); !errors.Is(err, ErrGateClosed) || class != Unsent || g.Passed() || !g.Unsent() {
		t.Errorf("turned away: %v (%s)", err, class)
	}
	lease := []error{errors.New("the lease is in question"), nil}
	g = NewGate(func() error { err := lease[0]; lease = lease[1:]; return err })
	if class, _ := Classify(g.Pass()); class != Unsent || !g.Unsent() {
		t.Errorf("turned away at first: %s", class)
	}
	if err := g.Pass(); err != nil || g.Unsent() { // an action that came again and was let out may have taken effect
		t.Errorf("let out the second time: %v", err)
	}
	g = NewGate(nil)
	g.Close()
	ctx := WithGate(t.Context(), g)
	if err := Sending(ctx); !errors.Is(err, ErrGateClosed) {
		t.Errorf("by the context: %v", err)
	}
	if err := Sending(t.Context()); err != nil {
		t.Errorf("without a gate: %v", err)
	}
}

func careless(ticket *thing) string { return ticket.ID }

// Adoption 7.9: "panics in actions: no stack, nowhere". The record has the first line of what was said and the functions in
// which it happened, bounded; the outcome has the whole stack, for the log.
func TestPanicKeepsItsStack(t *testing.T) {
	t.Parallel()
	o := run(t, func(context.Context, Call[string]) (thing, error) { return thing{careless(nil)}, nil }, NewGate(nil))
	if !strings.HasPrefix(o.Error, "panic: runtime error: invalid memory address or nil pointer dereference; at github.com/amends-dev/amends/saga.careless (call_test.go:") ||
		!strings.Contains(o.Error, ", github.com/amends-dev/amends/saga.TestPanicKeepsItsStack.func1 (call_test.go:") || strings.Contains(o.Error, "runJSON") {
		t.Errorf("the words are %q", o.Error)
	}
	if !strings.Contains(o.Stack, "saga.careless") || len(o.Stack) > maxStack {
		t.Errorf("the stack is %s", o.Stack)
	}
	o = run(t, func(context.Context, Call[string]) (thing, error) { panic(strings.Repeat("x", 5000) + "\nsecret") }, NewGate(nil))
	if len(o.Error) > 600 || strings.Contains(o.Error, "secret") {
		t.Errorf("the words are %q", o.Error)
	}
	if o := run(t, func(_ context.Context, c Call[string]) (thing, error) { return thing{c.ExternalID("nowhere")}, nil }, NewGate(nil)); o.Stack != "" {
		t.Errorf("a fault of the definition has a stack: %s", o.Stack)
	}
}
