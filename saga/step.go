package saga

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// Step is one element of a definition: an [Action] made by [Do], a [Delay], an [Until], an [Await], an [Approve], or what is said of the
// whole, as [Deadline] and [Identity] do.
type Step[In any] interface {
	// part mentions In so that [Define] can infer it from its arguments.
	part(d *Definition[In], in In)
}

// Action is a step under construction: one forward action, how it is safe to repeat, and how it is
// undone. Its methods change it and return it; they are meant to be chained inside [Define], which
// checks the whole.
type Action[In, Out any] struct {
	spec   program.StepSpec
	says   []program.Repeat // what the step said about repeating, to find steps that say nothing or two things
	undoes []string         // what it said about its undo, likewise
	ids    []string         // what it said about its external id, likewise
	later  []string         // what it said about later runs, likewise
	update func(context.Context, Call[In], string) (Out, error)
	faults faults

	run  func(context.Context, Call[In]) (Out, error)
	find func(context.Context, Call[In]) (Finding[Out], error)
	undo func(context.Context, Call[In], *Out) error
	id   func(Out) string

	applies func(Call[In]) bool
}

// Do makes a step out of its name and its action. The action gets a context that ends at the
// attempt's deadline and returns the destination's answer. It must send at most one request for
// each effect, under c.Key, with the same content on every attempt, across deploys too.
func Do[In, Out any](name string, run func(context.Context, Call[In]) (Out, error)) *Action[In, Out] {
	a := &Action[In, Out]{run: run, spec: program.StepSpec{Name: name, Timeout: DefaultTimeout, Settle: DefaultSettle}}
	a.faults.whenf(run == nil, "it has no action")
	return a
}

// DefaultTimeout is the time one attempt has from being armed to its answer. DefaultSettle is the
// time after which an unanswered request has either taken effect visibly or never will.
const (
	DefaultTimeout = 30 * time.Second
	DefaultSettle  = 30 * time.Second
)

// Idempotent says that repeating the action changes nothing, for ever, also while an earlier attempt
// is still under way: an upsert, a PUT, a natural id. After a crash it is repeated. Effectively once.
//
// To look for the thing and create it when it is not there is not idempotent: two attempts that
// overlap both look, both find nothing and both create. Where the destination holds the thing's
// natural id unique, the second is refused: take that answer as a success, and read the thing. Where
// it does not, the look belongs into [Action.Find].
func (a *Action[In, Out]) Idempotent() *Action[In, Out] { return a.repeat(program.RepeatIdempotent) }

// Keyed says that the destination remembers our key for ttl and answers a repetition with the first
// result. After a crash the same key is sent again inside the window; past it the step goes on as
// Find if it has one, else to review. Effectively once in the window.
func (a *Action[In, Out]) Keyed(ttl time.Duration) *Action[In, Out] {
	a.spec.TTL = ttl
	a.faults.whenf(ttl <= 0, "Keyed needs the time for which the destination remembers a key")
	return a.repeat(program.RepeatKeyed)
}

// Find says that the destination can be asked for our reference. Said alone it is how the step is
// safe to repeat: after a crash it waits until the attempt has settled, asks, and adopts, resumes
// or redoes. Said beside Keyed it takes over when the key has expired; beside AtMostOnce it is
// evidence only, never a licence to send again; beside Idempotent it serves to learn the result
// before an undo.
//
// Where newer versions of the source object run the work again, the question is whether the effect
// of c.Revision is there. A thing that only an earlier revision left, which [Call.PreviousID]
// names, is [NotFound] until it shows c.Input. Where the destination said that this thing is gone
// ([PreviousGone]), PreviousID names none: then everything is Found that stands for c.Work, of
// whichever revision.
func (a *Action[In, Out]) Find(fn func(context.Context, Call[In]) (Finding[Out], error)) *Action[In, Out] {
	a.find, a.spec.Find = fn, fn != nil
	a.faults.whenf(fn == nil, "Find needs a function")
	return a
}

// FindFirst says that [Action.Find] is asked before the first request, too: another program may have done it. What is found is adopted,
// finished ([FoundUnfinished]) or changed ([FoundOther]), and not made again. It costs a lookup for each instance. What is there is asked by
// c.Work and c.Input: it has no key of ours. See [TakeOver] for a whole saga.
func (a *Action[In, Out]) FindFirst() *Action[In, Out] { a.spec.FindFirst = true; return a }

// AtMostOnce says that the action must not be repeated and that its outcome is unknown after a
// crash. The work then goes to review, unless [Action.Find] finds the effect. The action is never
// done twice without a person saying so.
func (a *Action[In, Out]) AtMostOnce() *Action[In, Out] { return a.repeat(program.RepeatAtMostOnce) }

// Undo says how the action is undone. fn gets the result, and is called only when it is known: so
// the step has a [Action.Find] by which a result is learned whose answer was lost. fn must be a
// no-op when there is nothing to undo: it is repeated under its own key until it succeeds.
// Returning [CannotUndo] means that it cannot be undone any more, [Permanent] that this attempt was refused: both bring the work to review.
func (a *Action[In, Out]) Undo(fn func(context.Context, Call[In], Out) error) *Action[In, Out] {
	a.undoes, a.spec.Undo = append(a.undoes, "Undo"), true
	a.faults.whenf(fn == nil, "Undo needs a function; say NoUndo(reason) when there is nothing to undo")
	a.undo = func(ctx context.Context, c Call[In], out *Out) error { return fn(ctx, c, *out) }
	return a
}

// UndoMaybe is [Action.Undo] for a step that can be undone without its result, by c.MadeKey or
// c.Work; c.Key is the undo's own key, under which the destination has made nothing. fn gets nil
// when the result is not known, because the answer was lost, or was too large to keep, or a person
// said that it happened.
func (a *Action[In, Out]) UndoMaybe(fn func(context.Context, Call[In], *Out) error) *Action[In, Out] {
	a.undoes, a.undo = append(a.undoes, "UndoMaybe"), fn
	a.spec.Undo, a.spec.UndoWhenUnknown = true, true
	a.faults.whenf(fn == nil, "UndoMaybe needs a function; say NoUndo(reason) when there is nothing to undo")
	return a
}

// NoUndo says why the step need not be undone.
func (a *Action[In, Out]) NoUndo(reason string) *Action[In, Out] {
	a.undoes, a.spec.NoUndoReason = append(a.undoes, "NoUndo"), reason
	a.faults.whenf(reason == "", "NoUndo needs a reason")
	return a
}

// Pivot makes the step the point of no return: once it is done, or may have been, no cancel turns
// the work back, and what fails behind it goes to a person. A pivot that is refused itself, or
// gives up, still turns the work; if it may have happened, only when it says how it is undone.
func (a *Action[In, Out]) Pivot() *Action[In, Out] { a.spec.Pivot = true; return a }

// When says in which runs the step is done; without it, in every one. fn is a function of the input and of the results of earlier steps,
// and asks nothing outside. It is asked once in a run, when the instance comes to this step, and what it says is on record: the step is
// done, or skipped, and later steps find no result of it. A newer version asks again. Where that says no, what an earlier one made stays
// as it is, and is undone with all else if the instance is.
func (a *Action[In, Out]) When(fn func(Call[In]) bool) *Action[In, Out] {
	a.applies, a.spec.Conditional = fn, true
	a.faults.whenf(fn == nil, "When needs a function")
	return a
}

// What a later run does: when a newer version of the source object comes, or a person runs the saga again, the destination is asked
// under a new key. A step that is neither Idempotent nor AtMostOnce says one of [Action.Once], [Action.Update] and [Action.EachRun];
// [Define] refuses one that is silent.

// Once says that the step is done once for the whole work: in a later run it stays done, unless it was undone. An AtMostOnce step
// always does so. A step that is paid for, or that people read, says it.
func (a *Action[In, Out]) Once() *Action[In, Out] {
	a.later = append(a.later, "Once")
	a.spec.Once = true
	return a
}

// Update says how a later run changes what an earlier one left at the destination. fn is called instead of the action, under the
// step's own rules and a new key, with what the destination calls that thing; id is "" of a step that says NoID; of others
// it is never, for what has no known id goes to a person. When
// fn says that it is gone ([PreviousGone]), the action makes it again.
func (a *Action[In, Out]) Update(fn func(ctx context.Context, c Call[In], id string) (Out, error)) *Action[In, Out] {
	a.faults.whenf(fn == nil, "its Update is nil")
	a.later, a.spec.LaterRuns = append(a.later, "Update"), program.LaterUpdate
	a.update = fn
	return a
}

// EachRun says that each run makes another one, and leaves what earlier ones made: each is wanted, such as a letter about each version
// of an order. The action is told of the latest by [Call.PreviousID].
func (a *Action[In, Out]) EachRun() *Action[In, Out] {
	a.later, a.spec.LaterRuns = append(a.later, "EachRun"), program.LaterAnother
	return a
}

// To names the destination the step talks to. Rate limits and concurrency caps are set per
// destination.
func (a *Action[In, Out]) To(destination string) *Action[In, Out] {
	a.spec.Destination = destination
	return a
}

// Defaults are what the steps of a destination, or of a definition, have in common.
//
//	books := saga.Defaults{To: "books", Timeout: 10 * time.Second, Settle: time.Minute}
//	saga.Do("invoice", createInvoice).With(books).Find(findInvoice).Update(updateInvoice).Undo(voidInvoice)
type Defaults struct {
	To              string        // as [Action.To]
	Timeout, Settle time.Duration // as [Action.Timeout] and [Action.Settle]
	Retry           Retry         // as [Action.Retry]; zero fields keep what was said before
}

// With sets what d says; its zero fields change nothing. Of what is said twice the last counts, so
// a step says With first and then what it has for itself.
func (a *Action[In, Out]) With(d Defaults) *Action[In, Out] {
	a.spec.Destination = cmp.Or(d.To, a.spec.Destination)
	a.spec.Timeout = cmp.Or(d.Timeout.Truncate(time.Millisecond), a.spec.Timeout)
	a.spec.Settle = cmp.Or(d.Settle.Truncate(time.Millisecond), a.spec.Settle)
	r := &a.spec.Retry
	*r = program.Retry{
		Attempts: cmp.Or(d.Retry.Attempts, r.Attempts), Within: cmp.Or(d.Retry.Within, r.Within),
		Initial: cmp.Or(d.Retry.Initial, r.Initial), Max: cmp.Or(d.Retry.Max, r.Max), Compensate: d.Retry.Compensate || r.Compensate,
	}
	return a
}

// Retry sets when the step is tried again and when it gives up. Zero fields keep their defaults.
func (a *Action[In, Out]) Retry(r Retry) *Action[In, Out] { a.spec.Retry = program.Retry(r); return a }

// Timeout sets the time one attempt has, from being armed to its answer. No first byte leaves and
// no answer is awaited past it.
func (a *Action[In, Out]) Timeout(d time.Duration) *Action[In, Out] {
	a.spec.Timeout = d.Truncate(time.Millisecond)
	return a
}

// Settle sets how long an attempt's effect may still take to appear at the destination, plus the time until a lookup shows it, from when
// it is not awaited any more: from its deadline, or from the end of its process. "Not found" counts only after it.
func (a *Action[In, Out]) Settle(d time.Duration) *Action[In, Out] {
	a.spec.Settle = d.Truncate(time.Millisecond)
	return a
}

// ID says what the destination calls the result. A string is its own external id, and a result with
// an ExternalID method says it; every other result says ID or [Action.NoID].
func (a *Action[In, Out]) ID(fn func(Out) string) *Action[In, Out] {
	a.ids, a.id = append(a.ids, "ID"), fn
	a.faults.whenf(fn == nil, "ID needs a function; say NoID when the destination has no name for the result")
	return a
}

// NoID says that the destination has no name for what the step makes, so that there is nothing to
// find it by.
func (a *Action[In, Out]) NoID() *Action[In, Out] { a.ids = append(a.ids, "NoID"); return a }

func (a *Action[In, Out]) repeat(r program.Repeat) *Action[In, Out] {
	a.says = append(a.says, r)
	return a
}

// faults are what is wrong with a definition, or with a step of it.
type faults []string

// whenf says a fault, where it is one.
func (l *faults) whenf(bad bool, format string, args ...any) {
	if bad {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

// part adds the step to d.
func (a *Action[In, Out]) part(d *Definition[In], _ In) {
	spec := a.spec
	switch {
	case len(a.says) > 0:
		spec.Repeat = a.says[0]
	case spec.Find:
		spec.Repeat = program.RepeatFind
	}
	id, own, msg := a.identify()
	if spec.ResultIsExternalID = own; msg != "" {
		a.faults = append(a.faults, msg)
	}
	a.id = id
	if reflect.TypeFor[Out]().Size() == 0 { // a result without content is always known
		spec.UndoWhenUnknown = spec.Undo
	}
	d.spec.Steps = append(d.spec.Steps, spec)
	d.parts = append(d.parts, bound[In]{says: a.says, undoes: a.undoes, later: a.later, faults: a.faults, run: a.runJSON, find: a.findJSON, undo: a.undoJSON, applies: a.applies})
}

// bound is an action with its result type taken off: results travel as JSON between steps.
type bound[In any] struct {
	says   []program.Repeat
	undoes []string
	later  []string
	faults faults
	run    func(context.Context, Call[In]) program.Outcome
	find   func(context.Context, Call[In]) program.Evidence
	undo   func(context.Context, Call[In], *program.Result) program.Outcome
	when   func(Call[In]) time.Time // of a step that waits for a time
	keys   []func(Call[In]) string  // of one that waits for an answer
	read   func(Call[In], Message) (program.Evidence, error)
	asks   func(Call[In]) bool // of one that waits for votes: whether a decision is needed; nil: always
	about  func(Call[In]) About

	applies func(Call[In]) bool // whether the step is done in this run; nil: always
}

func (a *Action[In, Out]) runJSON(ctx context.Context, c Call[In]) program.Outcome {
	act := a.run
	switch {
	case a.update == nil || c.inv.Previous == nil:
	case a.id != nil && c.PreviousID() == "":
		return program.Outcome{Class: Fault, Error: errNoEarlierID}
	default:
		act = func(ctx context.Context, c Call[In]) (Out, error) { return a.update(ctx, c, c.PreviousID()) }
	}
	out, err := act(ctx, c)
	if err != nil {
		return failed(c.gate, err)
	}
	o := program.Outcome{Class: program.Succeeded}
	o.ExternalID, o.Output, o.Error = a.result(out)
	o.Dropped = o.Error != ""
	updates := c.inv.Previous != nil && c.inv.Previous.ExternalID != "" // which is kept
	if passed := c.gate != nil && c.gate.Passed(); a.id != nil && !o.Dropped && passed && (o.ExternalID == "" && !updates || !program.KeepsID(o.ExternalID)) {
		return program.Outcome{Class: Unknown, Error: errNameless, Answered: true, Nameless: true}
	}
	return o
}

// errNoEarlierID keeps a thing whose name is not known from being made again beside itself.
const errNoEarlierID = "an earlier run left something whose external id is not known, so it cannot be changed: find it and change it by hand, then skip the step"

// errNameless is why a success is none: to call it one would lose what the destination calls the
// result.
const errNameless = "the destination answered, and the result has no external id: an empty answer, or the id stands elsewhere in it, or it cannot be kept (over 512 bytes, or no valid text); where it has none to give, say NoID"

func (a *Action[In, Out]) findJSON(ctx context.Context, c Call[In]) program.Evidence {
	f, err := a.find(ctx, c)
	if err != nil {
		_, after := Classify(err)
		return program.Evidence{Answer: program.AnswerUnclear, Error: err.Error(), RetryAfter: after, HoldBack: holdsBack(err), Unreachable: unreachable(err)}
	}
	if one, ok := a.recorded(c, f); ok {
		f = one
	}
	switch f.answer {
	case "":
		return program.Evidence{Answer: program.AnswerUnclear, Error: "the lookup answered with a zero Finding"}
	case program.AnswerFound, program.AnswerUnfinished, program.AnswerOther:
		r := program.Evidence{Answer: f.answer}
		r.ExternalID, r.Output, r.Error = a.result(f.outs[0])
		if r.Dropped = r.Error != ""; f.answer == program.AnswerOther {
			r.Error = cmp.Or(f.why, "the lookup does not say what differs")
		}
		return r
	case program.AnswerSeveral:
		r := program.Evidence{Answer: f.answer}
		for _, o := range f.outs {
			id, _, _ := a.result(o)
			r.IDs = append(r.IDs, id)
		}
		return r
	default:
		return program.Evidence{Answer: f.answer, Error: f.why}
	}
}

// recorded is what f found of the step whose undo wants to know what it made: of several the one
// whose id is on record.
func (a *Action[In, Out]) recorded(c Call[In], f Finding[Out]) (one Finding[Out], ok bool) {
	if f.answer != program.AnswerSeveral || c.inv.Direction != Undo || c.inv.Undoing == nil || c.inv.Undoing.ExternalID == "" {
		return f, false
	}
	for _, out := range f.outs {
		if id, _, _ := a.result(out); id == c.inv.Undoing.ExternalID {
			one.outs = append(one.outs, out)
		}
	}
	one.answer = program.AnswerFound
	return one, len(one.outs) == 1
}

func (a *Action[In, Out]) undoJSON(ctx context.Context, c Call[In], r *program.Result) program.Outcome {
	var out *Out
	if r.Known() || reflect.TypeFor[Out]().Size() == 0 {
		out = new(Out)
	}
	if r.Known() {
		if err := program.Decode(r.Output, out); err != nil {
			return program.Outcome{Class: Fault, Error: "the recorded result of " + c.Step + " does not decode: " + err.Error()}
		}
	}
	if out == nil && !a.spec.UndoWhenUnknown { // the machine looks it up first (machine/C5)
		return program.Outcome{Class: Fault, Error: "the result of " + c.Step + " is not known, and its undo needs it"}
	}
	if err := a.undo(ctx, c, out); err != nil {
		return failed(c.gate, err)
	}
	return program.Outcome{Class: program.Succeeded}
}

// result encodes what an action returned. It happens after the effect, so nothing here may fail: a
// result that is too large or does not encode is not kept, and why says so; the external id stays.
func (a *Action[In, Out]) result(out Out) (id string, body json.RawMessage, why string) {
	defer func() {
		if recover() != nil { // in the result's own ExternalID or MarshalJSON
			body, why = nil, "the result is not kept: encoding it panicked"
		}
	}()
	if a.id != nil {
		id = a.id(out)
	}
	b, err := json.Marshal(out)
	switch {
	case err != nil: // its error may quote the result
		return id, nil, fmt.Sprintf("the result is not kept: a %T cannot be encoded as JSON", out)
	case len(b) > program.MaxOutput:
		return id, nil, fmt.Sprintf("the result is not kept: it has %d bytes as JSON, and at most %d are", len(b), program.MaxOutput)
	}
	return id, b, ""
}
