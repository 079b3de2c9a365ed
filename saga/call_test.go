package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// run defines a saga of one step more than the done ones and runs an attempt of that step.
func run(t *testing.T, action func(context.Context, Call[string]) (thing, error), gate *program.Gate) program.Outcome {
	t.Helper()
	d, err := Define(order.Saga, 1, good("customer"), good("quote"), Do("invoice", action).Idempotent().UndoMaybe(undo))
	if err != nil {
		t.Fatal(err)
	}
	return d.Act(t.Context(), invoice(gate))
}

func invoice(gate *program.Gate) *program.Invocation {
	return &program.Invocation{
		Work: order.Work, Revision: "v7", Step: "invoice", Direction: Forward, Attempt: 2, Key: "am-k", Input: json.RawMessage(`"3 lines"`),
		Results: map[string]program.Result{
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
	}, program.NewGate(nil))
	if !o.Done() || o.ExternalID != "inv_1" || string(o.Output) != `{"id":"inv_1"}` || o.Dropped || o.Error != "" {
		t.Errorf("the outcome is %+v", o)
	}
	o = run(t, func(_ context.Context, c Call[string]) (thing, error) {
		return thing{c.ExternalID("customer") + "," + ResultOf[thing](c, "customer").ID}, nil
	}, program.NewGate(nil))
	if o.ExternalID != "cus_7,cus_7" {
		t.Errorf("the outcome is %+v", o)
	}
}

// "Asking a Call for a step that is unknown or not done is a definition fault caught before
// anything is sent, never an empty string".
func TestCallFaults(t *testing.T) {
	t.Parallel()
	for what, ask := range map[string]func(Call[string]){
		`step "invoice" asked for step "nobody", which is unknown, not done, or was skipped without a result`: func(c Call[string]) { c.ExternalID("nobody") },
		`step "invoice" asked for step "receipt", which`:                                                      func(c Call[string]) { ResultOf[thing](c, "receipt") },
		`step "quote" recorded no external id`:                                                                func(c Call[string]) { c.ExternalID("quote") },
		`the result of step "quote" is not kept`:                                                              func(c Call[string]) { ResultOf[thing](c, "quote") },
		`the result of step "customer" is no int`:                                                             func(c Call[string]) { ResultOf[int](c, "customer") },
	} {
		gate := program.NewGate(nil)
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
	}, program.NewGate(nil))
	if o.Class != Unknown {
		t.Errorf("the outcome is %+v", o)
	}
}

// An input or a step that the program does not have is a fault, not a panic.
func TestActFaults(t *testing.T) {
	t.Parallel()
	d, err := Define(order.Saga, 1, Do("invoice", act).Find(find).EachRun().Undo(undoKnown))
	if err != nil {
		t.Fatal(err)
	}
	for want, inv := range map[string]*program.Invocation{
		`saga order-to-invoice version 1 has no step "nobody"`: {Step: "nobody", Input: json.RawMessage(`""`)},
		`the stored input is not the JSON of a string`:         {Step: "invoice", Input: json.RawMessage(`7`)},
		`the recorded result of invoice does not decode`:       {Step: "invoice", Input: json.RawMessage(`""`), Direction: Undo, Undoing: &program.Result{Output: json.RawMessage(`7`)}},
	} {
		if o := d.Act(t.Context(), inv); o.Class != Fault || !strings.Contains(o.Error, want) {
			t.Errorf("the outcome is %+v, want a fault: %s", o, want)
		}
		if inv.Direction == Undo {
			continue
		}
		if f := d.Look(t.Context(), inv); f.Answer != program.AnswerUnclear || !strings.Contains(f.Error, want) {
			t.Errorf("the lookup says %+v, want: %s", f, want)
		}
	}
}

// The gate's word and the action's error make the class. "An error, panic or shutdown before the
// gate is provably not sent"; "an action that does neither is treated as having flipped it at
// once".
func TestGateAndErrorMakeTheClass(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	shut := func() *program.Gate { g := program.NewGate(nil); g.Close(); return g }
	late := func() *program.Gate {
		return program.NewGate(func() error { return errors.New("the lease is in question") })
	}
	for _, c := range []struct {
		what string
		gate *program.Gate
		act  func(c Call[string]) error
		want Class
	}{
		{"an error without touching the gate", program.NewGate(nil), func(Call[string]) error { return boom }, Unknown},
		{"an error without touching a closed gate", shut(), func(Call[string]) error { return boom }, Unknown},
		{"an error behind the gate", program.NewGate(nil), func(c Call[string]) error { return errors.Join(c.Sending(), boom) }, Unknown},
		{"the closed gate's error as it is", shut(), func(c Call[string]) error { return c.Sending() }, Unsent},
		{"the lease's word", late(), func(c Call[string]) error { return c.Sending() }, Unsent},
		{"the closed gate's error wrapped", shut(), func(c Call[string]) error { return fmt.Errorf("send: %w", c.Sending()) }, Unsent},
		{"another error after being turned away", shut(), func(c Call[string]) error { _ = c.Sending(); return boom }, Unsent},
		{"turned away at the second request", program.NewGate(nil), func(c Call[string]) error { return errors.Join(c.Sending(), secondRequest(c)) }, Unknown},
		{"not sent, says the destination's contract", program.NewGate(nil), func(c Call[string]) error { _ = c.Sending(); return NotSent(boom) }, Unsent},
		{"refused", program.NewGate(nil), func(c Call[string]) error { _ = c.Sending(); return Permanent(boom) }, Refused},
		{"refused, wrapped", program.NewGate(nil), func(Call[string]) error { return fmt.Errorf("send: %w", Permanent(boom)) }, Refused},
		{"no gate at all", nil, func(c Call[string]) error { return c.Sending() }, program.Succeeded},
		{"a context that ended", program.NewGate(nil), func(Call[string]) error { return context.DeadlineExceeded }, Unknown},
	} {
		o := run(t, func(_ context.Context, call Call[string]) (thing, error) { return thing{"inv_1"}, c.act(call) }, c.gate)
		if o.Class != c.want {
			t.Errorf("%s: the outcome is %+v, want %s", c.what, o, c.want)
		}
	}
}

// What was sent and answered without the name that its result needs is no success: the next step, or
// the undo, would not know what was made. It is the destination's answer all the same. A step that
// sent nothing had nothing to name, and an update keeps the name of what it updated.
func TestASuccessWithoutItsName(t *testing.T) {
	t.Parallel()
	sends := func(ctx context.Context, _ Call[string]) (thing, error) { return thing{}, Sending(ctx) }
	o := run(t, sends, program.NewGate(nil))
	if o.Class != Unknown || !o.Nameless || !o.Answered || !strings.Contains(o.Error, "no external id") || len(o.Output) > 0 {
		t.Errorf("sent, and no name: %+v", o)
	}
	if o := run(t, func(context.Context, Call[string]) (thing, error) { return thing{}, nil }, program.NewGate(nil)); !o.Done() {
		t.Errorf("nothing sent: %+v", o)
	}
	d, err := Define(order.Saga, 1, Do("invoice", sends).NoID().Idempotent().NoUndo("it is final"))
	if err != nil {
		t.Fatal(err)
	}
	if o := d.Act(t.Context(), invoice(program.NewGate(nil))); !o.Done() {
		t.Errorf("it needs no name: %+v", o)
	}
	d, err = Define(order.Saga, 1, Do("invoice", sends).Idempotent().NoUndo("it is final"))
	if err != nil {
		t.Fatal(err)
	}
	update := invoice(program.NewGate(nil))
	update.Previous = &program.Result{ExternalID: "inv_1"}
	if o := d.Act(t.Context(), update); !o.Done() {
		t.Errorf("an update: %+v", o)
	}
}

// secondRequest closes the gate under the action and asks for a second request.
func secondRequest(c Call[string]) error {
	c.gate.Close()
	return c.Sending()
}

func TestPanics(t *testing.T) {
	t.Parallel()
	closed := program.NewGate(nil)
	closed.Close()
	for _, c := range []struct {
		what string
		gate *program.Gate
		send bool
		want Class
	}{
		{"before a gate it never touches", program.NewGate(nil), false, Unknown},
		{"behind the gate", program.NewGate(nil), true, Unknown},
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
	look := func(fn func(context.Context, Call[string]) (Finding[thing], error)) program.Evidence {
		d, err := Define(order.Saga, 1, Do("invoice", act).Find(fn).EachRun().Undo(undoKnown))
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
		want program.Evidence
	}{
		{Found(thing{"1"}), program.Evidence{Answer: program.AnswerFound, ExternalID: "1", Output: output("1")}},
		{Found[thing](), program.Evidence{Answer: program.AnswerNotFound}},
		{Found(thing{"1"}, thing{"2"}), program.Evidence{Answer: program.AnswerSeveral, IDs: []string{"1", "2"}}},
		{FoundUnfinished(thing{"1"}), program.Evidence{Answer: program.AnswerUnfinished, ExternalID: "1", Output: output("1")}},
		{NotFound[thing](), program.Evidence{Answer: program.AnswerNotFound}},
		{CannotTell[thing](), program.Evidence{Answer: program.AnswerUnclear}},
		{Finding[thing]{}, program.Evidence{Answer: program.AnswerUnclear, Error: "the lookup answered with a zero Finding"}},
	} {
		if got := look(answer(c.f)); string(dump(t, got)) != string(dump(t, c.want)) {
			t.Errorf("%s: %+v, want %+v", c.f.answer, got, c.want)
		}
	}
	for recorded, want := range map[string]program.Answer{"2": program.AnswerFound, "3": program.AnswerSeveral, "": program.AnswerSeveral} { // machine/C5: for its undo
		d, err := Define(order.Saga, 1, Do("invoice", act).Find(answer(Found(thing{"1"}, thing{"2"}))).EachRun().Undo(undoKnown))
		if err != nil {
			t.Fatal(err)
		}
		inv := invoice(nil)
		inv.Direction, inv.Undoing = Undo, &program.Result{ExternalID: recorded}
		if f := d.Look(t.Context(), inv); f.Answer != want || want == program.AnswerFound && f.ExternalID != recorded {
			t.Errorf("with %q on record the undo is told %+v", recorded, f)
		}
		if inv.Direction = Forward; d.Look(t.Context(), inv).Answer != program.AnswerSeveral {
			t.Errorf("with %q on record a duplicate is not seen", recorded)
		}
	}
	twice, err := Define(order.Saga, 1, Do("invoice", act).Find(answer(Found(thing{"2"}, thing{"2"}))).EachRun().Undo(undoKnown))
	if err != nil {
		t.Fatal(err)
	}
	inv := invoice(nil)
	inv.Direction, inv.Undoing = Undo, &program.Result{ExternalID: "2"}
	if f := twice.Look(t.Context(), inv); f.Answer != program.AnswerSeveral {
		t.Errorf("with two of the recorded id the undo is told %+v", f)
	}
	f := look(func(context.Context, Call[string]) (Finding[thing], error) {
		return Found(thing{"1"}), RetryAfter(time.Minute, errors.New("429"))
	})
	if f.Answer != program.AnswerUnclear || f.RetryAfter != time.Minute || f.Error != "429" {
		t.Errorf("an error beside a finding: %+v", f)
	}
	f = look(func(context.Context, Call[string]) (Finding[thing], error) { panic("boom") })
	if f.Answer != program.AnswerUnclear || !strings.HasPrefix(f.Error, "panic: boom; at ") || !strings.Contains(f.Stack, "call_test.go") {
		t.Errorf("a panic: %+v", f)
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
		{KeyRefused(RetryAfter(time.Second, base)), RefusedKey, time.Second},
		{RetryAfter(time.Minute, CannotUndo(base)), NotUndoable, time.Minute},
		{NotSent(fmt.Errorf("more: %w", Permanent(base))), Unsent, 0},
		{errors.Join(base, Permanent(base)), Refused, 0},
		{HoldBack(base), Unknown, 0},
		{HoldBack(RetryAfter(time.Minute, NotSent(base))), Unsent, time.Minute},
		{NotSent(HoldBack(RetryAfter(time.Minute, base))), Unsent, time.Minute},
		{Answered(base), Unknown, 0},
		{Answered(RetryAfter(time.Minute, Permanent(base))), Refused, time.Minute},
	} {
		class, after := Classify(c.err)
		if class != c.class || after != c.after {
			t.Errorf("%v: %s after %s, want %s after %s", c.err, class, after, c.class, c.after)
		}
		if c.err != nil && !errors.Is(c.err, base) {
			t.Errorf("%v hides its cause", c.err)
		}
	}
	for _, err := range []error{Permanent(nil), KeyRefused(nil), CannotUndo(nil), NotSent(nil), RetryAfter(time.Second, nil), HoldBack(nil), Answered(nil)} {
		if err != nil {
			t.Errorf("marking no error gives %v", err)
		}
	}
}

// A wait is for its own step, unless the destination is marked as one that has too much to
// do.
func TestHoldBack(t *testing.T) {
	t.Parallel()
	base := errors.New("503")
	for err, want := range map[error]bool{
		base: false, RetryAfter(time.Minute, base): false, HoldBack(base): true,
		NotSent(fmt.Errorf("the books: %w", HoldBack(RetryAfter(time.Minute, base)))): true,
	} {
		o := run(t, func(context.Context, Call[string]) (thing, error) { return thing{}, err }, program.NewGate(nil))
		if o.HoldBack != want || o.Error != err.Error() {
			t.Errorf("%v: %+v", err, o)
		}
	}
}

// An attempt is answered when the destination has said so of its last request, and that was its
// only one.
func TestAnswered(t *testing.T) {
	t.Parallel()
	base := errors.New("500")
	again := program.NewGate(nil)
	for range 2 {
		if err := again.Pass(); err != nil {
			t.Fatal(err)
		}
	}
	for err, want := range map[error]bool{
		base: false, Answered(base): true, fmt.Errorf("the books: %w", RetryAfter(time.Second, Answered(base))): true,
		HoldBack(base): true, NotSent(base): false,
	} {
		act := func(context.Context, Call[string]) (thing, error) { return thing{}, err }
		if o := run(t, act, program.NewGate(nil)); o.Answered != want {
			t.Errorf("%v: %+v", err, o)
		}
		if o := failed(again, err); o.Answered {
			t.Errorf("%v behind an earlier request: %+v", err, o)
		}
	}
}

// What the gate says of itself.
func TestGate(t *testing.T) {
	t.Parallel()
	g := program.NewGate(nil)
	if g.Passed() || g.Unsent() {
		t.Error("nobody came yet")
	}
	if err := g.Pass(); err != nil || !g.Passed() || g.Unsent() {
		t.Errorf("passed: %v", err)
	}
	g.Close()
	err := g.Pass()
	if class, _ := Classify(err); !errors.Is(err, program.ErrGateClosed) || class != Unknown || !g.Passed() || g.Unsent() {
		t.Errorf("a later request at a closed gate: %v (%s)", err, class)
	}
	g = program.NewGate(nil)
	g.Close()
	err = Sending(program.WithGate(t.Context(), g))
	if class, _ := Classify(err); !errors.Is(err, program.ErrGateClosed) || class != Unsent || g.Passed() || !g.Unsent() {
		t.Errorf("turned away: %v (%s)", err, class)
	}
	lease := []error{errors.New("the lease is in question"), nil}
	g = program.NewGate(func() error { err := lease[0]; lease = lease[1:]; return err })
	if err := g.Pass(); err == nil || !g.Unsent() {
		t.Errorf("turned away at first: %v", err)
	}
	if err := g.Pass(); err != nil || g.Unsent() { // an action that came again and was let out may have taken effect
		t.Errorf("let out the second time: %v", err)
	}
	g = program.NewGate(nil)
	g.Close()
	ctx := program.WithGate(t.Context(), g)
	if err := Sending(ctx); !errors.Is(err, program.ErrGateClosed) {
		t.Errorf("by the context: %v", err)
	}
	if err := Sending(t.Context()); err != nil {
		t.Errorf("without a gate: %v", err)
	}
}

func careless(ticket *thing) string { return ticket.ID }

// Adoption 7.9: "panics in actions: no stack, nowhere". The record has the first line of what was
// said and the functions in which it happened, bounded; the outcome has the whole stack, for the
// log.
func TestPanicKeepsItsStack(t *testing.T) {
	t.Parallel()
	o := run(t, func(context.Context, Call[string]) (thing, error) { return thing{careless(nil)}, nil }, program.NewGate(nil))
	if !strings.HasPrefix(o.Error, "panic: runtime error: invalid memory address or nil pointer dereference; at github.com/amends-dev/amends/saga.careless (call_test.go:") ||
		!strings.Contains(o.Error, ", github.com/amends-dev/amends/saga.TestPanicKeepsItsStack.func1 (call_test.go:") || strings.Contains(o.Error, "runJSON") {
		t.Errorf("the words are %q", o.Error)
	}
	if !strings.Contains(o.Stack, "saga.careless") || len(o.Stack) > maxStack {
		t.Errorf("the stack is %s", o.Stack)
	}
	o = run(t, func(context.Context, Call[string]) (thing, error) { panic(strings.Repeat("x", 5000) + "\nsecret") }, program.NewGate(nil))
	if len(o.Error) > 600 || strings.Contains(o.Error, "secret") {
		t.Errorf("the words are %q", o.Error)
	}
	if o := run(t, func(_ context.Context, c Call[string]) (thing, error) { return thing{c.ExternalID("nowhere")}, nil }, program.NewGate(nil)); o.Stack != "" {
		t.Errorf("a fault of the definition has a stack: %s", o.Stack)
	}
}

// Update is called instead of the action where an earlier run left something, with its id; without one nothing is made beside it.
func TestUpdate(t *testing.T) {
	t.Parallel()
	made := func(id string) func(context.Context, Call[string]) (thing, error) {
		return func(context.Context, Call[string]) (thing, error) { return thing{id}, nil }
	}
	update := func(_ context.Context, _ Call[string], id string) (thing, error) { return thing{id + "'"}, nil }
	named, err := Define("s", 1, Do("a", made("new")).Keyed(time.Hour).Update(update).NoUndo("x"))
	if err != nil {
		t.Fatal(err)
	}
	nameless, err := Define("s", 1, Do("a", made("new")).Keyed(time.Hour).NoID().Update(update).NoUndo("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d        *Definition[string]
		previous *program.Result
		class    Class
		output   string
	}{
		{named, nil, program.Succeeded, `{"id":"new"}`},
		{named, &program.Result{ExternalID: "old"}, program.Succeeded, `{"id":"old'"}`},
		{named, &program.Result{}, Fault, ""},
		{nameless, &program.Result{}, program.Succeeded, `{"id":"'"}`},
	} {
		o := c.d.Act(t.Context(), &program.Invocation{Work: "w", Step: "a", Direction: Forward, Input: []byte(`"x"`), Previous: c.previous})
		if o.Class != c.class || string(o.Output) != c.output {
			t.Errorf("behind %+v: %+v", c.previous, o)
		}
	}
}
