package saga

import (
	"errors"

	"github.com/amends-dev/amends/internal/program"
)

// Call is what an action, a lookup or an undo is called with.
type Call[In any] struct {
	Saga     string // the definition's name
	Work     string // the work's id: shop:order:10492
	Revision string // the version of the source object, if the work was started with one
	Step     string
	Key      string // the idempotency key of this request; the same on every attempt. An undo has one of its own
	MadeKey  string // the key under which the step was first sent: what an undo, or an update, is about
	Attempt  int    // from 1
	Input    In

	inv  *program.Invocation
	gate *program.Gate
}

// Sending passes the attempt's send gate. An action that does not use the client of package
// sagahttp calls it just before it acts, and returns its error as it is.
func (c Call[In]) Sending() error { return pass(c.gate) }

// ExternalID returns what the destination calls the result of an earlier step. Asking for a step
// that does not exist, is not done, or recorded no id is a fault of the definition: the attempt
// ends before anything is sent and the work goes to review. It is never an empty string.
func (c Call[In]) ExternalID(step string) string {
	r := c.done(step)
	if r.ExternalID == "" {
		panic(faultf("step %q recorded no external id; give its result an ExternalID method or say .ID(…)", step))
	}
	return r.ExternalID
}

// CallbackToken is what the destination is to send back with its answer: the token of the [Await] that says Callback
// of this step. It cannot be guessed, and one who has it can answer: send it to the destination only. Asking for it in
// a step that no Await names is a fault of the definition, as in [Call.ExternalID].
func (c Call[In]) CallbackToken() string {
	if c.inv == nil || c.inv.Token == "" {
		panic(faultf("step %q asked for a callback token, and no Await says Callback of it", c.Step))
	}
	return c.inv.Token
}

// Brief is what an action says that is the Ask of an [Approve]: what people are to decide, who may, and until when. Asking
// for it in another step is a fault of the definition, as in [Call.ExternalID].
func (c Call[In]) Brief() Brief {
	if c.inv == nil || c.inv.Brief == nil {
		panic(faultf("step %q asked for a brief, and is no Ask of an Approve", c.Step))
	}
	return *c.inv.Brief
}

func (c Call[In]) done(step string) *program.Result {
	r, ok := c.inv.Results[step]
	if !ok {
		panic(faultf("step %q asked for step %q, which is unknown, not done, or was skipped without a result", c.Step, step))
	}
	return &r
}

// ResultOf returns the result of an earlier step. Asking for a step that is not done, or whose
// result was too large to keep, is a fault of the definition, as in [Call.ExternalID].
func ResultOf[Out, In any](c Call[In], step string) Out {
	r := c.done(step)
	var out Out
	if len(r.Output) == 0 {
		panic(faultf("the result of step %q is not kept (too large, adopted by a person, or not serialisable); use its external id", step))
	}
	if err := program.Decode(r.Output, &out); err != nil {
		panic(faultf("the result of step %q is no %T: %v", step, out, err))
	}
	return out
}

// WasThere reports whether what an earlier step makes was there before anything was sent for it: [Action.FindFirst] found it, as it should
// be or not ([FoundOther]), or an adoption did. It is so in later runs, until it is undone or another one is made. So what goes with it, such as a
// mail, was done before, too:
//
//	saga.Do("receipt", m.receipt).AtMostOnce().When(func(c saga.Call[Order]) bool { return !c.WasThere("invoice") }),
func (c Call[In]) WasThere(step string) bool { return c.inv != nil && c.inv.Results[step].WasThere }

// PreviousID returns what the destination calls the result that an earlier revision of the work
// left there, or "" when there is none. An Idempotent action that finds one updates it; others say
// [Action.Update]. Where the destination says that it is gone, the action returns [PreviousGone] (package
// sagahttp does, for a request that says Updates), and is called once more without it.
func (c Call[In]) PreviousID() string {
	if c.inv == nil || c.inv.Previous == nil {
		return ""
	}
	return c.inv.Previous.ExternalID
}

// Previous returns the result that an earlier revision of the work left at the destination. ok is
// false when there is none, or when it was not kept; see [Call.PreviousID].
func Previous[Out, In any](c Call[In]) (out Out, ok bool) {
	if c.inv == nil || c.inv.Previous == nil || len(c.inv.Previous.Output) == 0 {
		return out, false
	}
	if err := program.Decode(c.inv.Previous.Output, &out); err != nil {
		panic(faultf("the previous result of step %q is no %T: %v", c.Step, out, err))
	}
	return out, true
}

// Unfinished returns what a lookup found half-made, when this attempt is there to finish it.
func Unfinished[Out, In any](c Call[In]) (out Out, ok bool) {
	if c.inv == nil || c.inv.Unfinished == nil {
		return out, false
	}
	if err := program.Decode(c.inv.Unfinished.Output, &out); err != nil {
		panic(faultf("what the lookup of step %q found is no %T: %v", c.Step, out, err))
	}
	return out, true
}

// Finding is a lookup's answer. Make one with [Found], [FoundUnfinished], [FoundFailed], [NotFound] or
// [CannotTell].
type Finding[Out any] struct {
	answer program.Answer
	outs   []Out
	why    string
}

// Found answers a lookup with everything the destination has under our reference: nothing is
// [NotFound], one is adopted as the step's result, more than one is a duplicate and goes to a
// person with all ids.
func Found[Out any](outs ...Out) Finding[Out] {
	switch len(outs) {
	case 0:
		return NotFound[Out]()
	case 1:
		return Finding[Out]{answer: program.AnswerFound, outs: outs}
	default:
		return Finding[Out]{answer: program.AnswerSeveral, outs: outs}
	}
}

// FoundUnfinished says that the thing was made but not completed (created, not posted). The next
// attempt gets it by [Unfinished] and goes on from there.
func FoundUnfinished[Out any](out Out) Finding[Out] {
	return Finding[Out]{answer: program.AnswerUnfinished, outs: []Out{out}}
}

// FoundOther says that the thing is there and is not as it should be, such as one that another program made, or that a person changed; why
// is for people. The step's [Action.Update] changes it, or its action where that is [Action.Idempotent]: they get it as what an earlier
// run left, see [Call.PreviousID]. Of another step a person decides.
func FoundOther[Out any](out Out, why string) Finding[Out] {
	return Finding[Out]{answer: program.AnswerOther, outs: []Out{out}, why: why}
}

// FoundFailed says, of what an [Await] waits for, that it has failed for good and nothing of it stands. why is for people.
func FoundFailed[Out any](why string) Finding[Out] {
	return Finding[Out]{answer: program.AnswerFailed, why: why}
}

// NotFound says that the destination has nothing under our reference.
func NotFound[Out any]() Finding[Out] { return Finding[Out]{answer: program.AnswerNotFound} }

// CannotTell says that the destination could not answer. So does a lookup that returns an error.
func CannotTell[Out any]() Finding[Out] { return Finding[Out]{answer: program.AnswerUnclear} }

// failed turns an action's error into an outcome, with what its gate knows.
func failed(g *program.Gate, err error) program.Outcome {
	var f *faultError
	if errors.As(err, &f) && (g == nil || !g.Passed()) {
		return program.Outcome{Class: Fault, Error: err.Error()}
	}
	class, after := Classify(err)
	if class == Unknown && g != nil && g.Unsent() {
		class = Unsent
	}
	o := program.Outcome{Class: class, Error: err.Error(), RetryAfter: after, HoldBack: holdsBack(err), Unreachable: unreachable(err), Answered: answered(err) || holdsBack(err)}
	if g != nil && g.Again() { // the error is about the last request, and an earlier one may have taken effect
		o.Maybe, o.Answered = class == Refused || class == RefusedKey || class == NotUndoable, false
		if class == Unsent || class == Gone {
			o.Class = Unknown
		}
	}
	return o
}
