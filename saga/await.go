package saga

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/program"
)

// What an instance waits for from outside. An answer comes as a callback that carries a token of ours, or as a message
// whose name and key say what it is about; a lost one is only a delay where Find can be asked. While it waits the
// instance is a row in the ledger, as with [Delay].

// Message is what may be the answer that an instance waits for.
type Message struct {
	Name string // what it is: render.done. Empty: a callback, which a token of ours brought to its instance
	Key  string // what it is about: the number of a job, of an order
	ID   string // the sender's own. A message that comes again has the same, and is one
	Body []byte // at most 64 KiB
}

// Await is put among the steps of a definition: the instance waits for an answer from outside before its next step.
// read makes the step's result of it, or declines it with an error: then the instance goes on waiting. read is a
// function of the input, of the results of earlier steps and of the message, and asks nothing outside; it is called more
// than once.
//
//	saga.Do("submit", r.submit).Idempotent().UndoMaybe(r.cancel), // sends c.CallbackToken()
//	saga.Await("rendered", r.read).Callback("submit").Within(48*time.Hour, saga.Compensate).Find(r.find).Poll(time.Hour),
//	saga.Await("paid", r.paid).On("payment", orderID).Once().Within(72*time.Hour, saga.Compensate),
//
// An answer may come before it is waited for. One that another revision of the instance asked for ends no wait. A
// success that comes when the instance was turned back already is not dropped: a person is asked, unless what it
// is about was undone by its result.
func Await[In, Out any](name string, read func(Call[In], Message) (Out, error)) *Answer[In, Out] {
	a := &Answer[In, Out]{read: read, a: Do[In, Out](name, func(context.Context, Call[In]) (out Out, err error) { return out, nil })}
	a.a.spec.Wait, a.a.spec.Answer = program.WaitAnswer, &program.AnswerSpec{}
	a.a.faults.whenf(read == nil, "it has no function that reads the answer")
	return a
}

// Answer is a wait for an answer under construction; see [Await]. Its methods change it and return it.
type Answer[In, Out any] struct {
	a    *Action[In, Out] // its lookup, its destination and the name of its result
	read func(Call[In], Message) (Out, error)
	keys []func(Call[In]) string

	noUndo string
}

// Callback names the step before this one whose request carries the token for the answer: its action sends
// [Call.CallbackToken]. The token is the same for every attempt under one key.
func (a *Answer[In, Out]) Callback(step string) *Answer[In, Out] {
	a.a.spec.Answer.Callback = step
	return a
}

// On says that a message of that name answers, whose key is what key says of the call. key is asked once in each run, when the
// instance comes to this step. On may be said more than once: whichever comes first answers. Who says On also says what a newer version
// of the source object does: [Answer.Once] or [Answer.EachRun].
func (a *Answer[In, Out]) On(name string, key func(Call[In]) string) *Answer[In, Out] {
	a.a.spec.Answer.On, a.keys = append(a.a.spec.Answer.On, name), append(a.keys, key)
	a.a.faults.whenf(key == nil, "On needs a function that says the key")
	return a
}

// Once says that the answer stays in a later run, while the keys of the messages are the same: who has paid for an order pays once,
// however often the order is edited. What was undone waits again. Where there is a [Answer.Callback], too, the answer stays as its
// request does.
func (a *Answer[In, Out]) Once() *Answer[In, Out] { a.a.Once(); return a }

// EachRun says that each run waits for a message of its own, such as a new consent to each version of an order.
func (a *Answer[In, Out]) EachRun() *Answer[In, Out] { a.a.EachRun(); return a }

// NoUndo says that nothing is to be undone of what a message says that comes when the wait was given up: that is noted, and no person
// is asked. why is for people. Of a callback the step that sends the request says so.
func (a *Answer[In, Out]) NoUndo(why string) *Answer[In, Out] { a.noUndo = why; return a }

// When is as [Action.When]: where it says no, nothing is waited for.
func (a *Answer[In, Out]) When(fn func(Call[In]) bool) *Answer[In, Out] { a.a.When(fn); return a }

// Pivot is as [Action.Pivot]: once the answer is there, no cancel turns the work back.
func (a *Answer[In, Out]) Pivot() *Answer[In, Out] { a.a.Pivot(); return a }

// Within says how long the answer may take, and what follows when it does not come: [Compensate] is as if the answer
// were no, [AskPerson] brings the instance to review, [ReasonUnanswered]. Where there is a [Answer.Find], it is asked first.
func (a *Answer[In, Out]) Within(d time.Duration, then Consequence) *Answer[In, Out] {
	a.a.spec.Answer.Within, a.a.spec.Answer.Overdue = program.Duration(d.Truncate(time.Millisecond)), program.Overdue(then)
	return a
}

// Find says that the answer can be asked for, so that a lost one is only a delay. fn answers [Found] with the result when it
// is there, [FoundFailed] when it has failed, [FoundUnfinished] or [NotFound] when it is not there yet, and [CannotTell].
func (a *Answer[In, Out]) Find(fn func(context.Context, Call[In]) (Finding[Out], error)) *Answer[In, Out] {
	a.a.Find(fn)
	return a
}

// Poll says how often [Answer.Find] is asked while the instance waits. Without it, it is asked when the time is over.
func (a *Answer[In, Out]) Poll(every time.Duration) *Answer[In, Out] {
	a.a.spec.Answer.Poll = program.Duration(every.Truncate(time.Millisecond))
	a.a.faults.whenf(a.a.spec.Answer.Poll <= 0, "Poll needs the time between two lookups")
	return a
}

// To names the destination that [Answer.Find] asks.
func (a *Answer[In, Out]) To(destination string) *Answer[In, Out] {
	a.a.To(destination)
	return a
}

// With sets To and the Timeout of a lookup, as [Action.With] does. Settle and Retry say nothing of one: it changes nothing.
func (a *Answer[In, Out]) With(d Defaults) *Answer[In, Out] {
	a.a.With(Defaults{To: d.To, Timeout: d.Timeout})
	return a
}

// ID is as [Action.ID], for what read and Find return.
func (a *Answer[In, Out]) ID(fn func(Out) string) *Answer[In, Out] {
	a.a.ID(fn)
	return a
}

// NoID is as [Action.NoID].
func (a *Answer[In, Out]) NoID() *Answer[In, Out] {
	a.a.NoID()
	return a
}

func (a *Answer[In, Out]) part(d *Definition[In], in In) {
	a.a.NoUndo("it sends nothing")
	a.a.part(d, in)
	b := &d.parts[len(d.parts)-1]
	b.keys, b.read, b.run, b.undo = a.keys, a.readJSON, nil, nil
	spec, earlier := &d.spec.Steps[len(d.spec.Steps)-1], d.spec.Steps[:len(d.spec.Steps)-1]
	spec.Repeat, spec.NoUndoReason = "", a.noUndo
	wrong := b.faults.whenf
	s := spec.Answer
	b.faults = append(b.faults, lengthFaults("its Within", time.Duration(s.Within))...)
	wrong(s.Overdue != program.OverdueCompensates && s.Overdue != program.OverdueAsks, "Within is followed by %q: say Compensate or AskPerson", s.Overdue)
	wrong(s.Callback == "" && len(s.On) == 0 && s.Poll == 0, "nothing can answer it: say Callback, On, or Find and Poll")
	wrong(s.Poll > 0 && !spec.Find, "Poll needs a Find")
	wrong(s.Callback != "" && !slices.ContainsFunc(earlier, func(e program.StepSpec) bool { return e.Name == s.Callback && !e.Waits() }),
		"its Callback names step %q, and no action before it has that name", s.Callback)
	wrong(s.Callback != "" && slices.ContainsFunc(earlier, func(e program.StepSpec) bool { return e.Answer != nil && e.Answer.Callback == s.Callback }),
		"its Callback names step %q, and so does that of an Await before it", s.Callback)
	wrong(len(s.On) > 0 && len(b.later) != 1, "it does not say what becomes of its answer in a later run (a rerun, or a newer version of its source): "+
		"Once keeps it while the key is the same, EachRun waits again")
	wrong(len(s.On) == 0 && len(b.later) > 0, "Once and EachRun are said of messages (On): another answer stays as its request does")
	for i, name := range s.On {
		wrong(badName(name) != "", "the message %q that it waits for %s", name, badName(name))
		wrong(slices.Contains(s.On[:i], name), "it waits for the message %q twice", name)
	}
}

func (a *Answer[In, Out]) readJSON(c Call[In], m Message) (program.Evidence, error) {
	out, err := a.read(c, m)
	if err != nil {
		return program.Evidence{}, err
	}
	f := program.Evidence{Step: c.Step, Answer: program.AnswerFound}
	f.ExternalID, f.Output, f.Error = a.a.result(out)
	f.Dropped = f.Error != ""
	if !program.KeepsID(f.ExternalID) {
		return program.Evidence{}, errors.New("its external id cannot be kept: it has over 512 bytes, or is no valid text")
	}
	return f, nil
}

// Keys says by which messages a step is answered that is an [Await]. It does not panic.
func (d *Definition[In]) Keys(inv *program.Invocation) (_ []program.MessageKey, err error) {
	defer guarded(inv.Step, &err)
	part, call, err := d.answer(inv)
	if err != nil {
		return nil, err
	}
	var keys []program.MessageKey
	for i, key := range part.keys {
		k := program.MessageKey{Name: d.spec.Steps[d.spec.Index(inv.Step)].Answer.On[i], Key: key(call)}
		if k.Key == "" || len(k.Key) > program.MaxWork || !utf8.ValidString(k.Key) || strings.Contains(k.Key, "\x00") {
			return nil, fmt.Errorf("step %q: the key %q of message %s: a key is a text of one to %d bytes", inv.Step, k.Key, k.Name, program.MaxWork)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Read reads what may be the answer that a step waits for. It does not panic. An error is why it is none; where the evidence is
// unclear, it is the definition's fault, and nothing is known of the answer.
func (d *Definition[In]) Read(inv *program.Invocation, m program.Message) (f program.Evidence, err error) {
	defer func() {
		if p := recover(); p != nil {
			words, stack := panicked(p)
			f, err = program.Evidence{Answer: program.AnswerUnclear, Stack: stack}, fmt.Errorf("step %q: %s", inv.Step, words)
		}
	}()
	part, call, err := d.answer(inv)
	if err != nil {
		return program.Evidence{Answer: program.AnswerUnclear}, err
	}
	return part.read(call, Message(m))
}

func (d *Definition[In]) answer(inv *program.Invocation) (*bound[In], Call[In], error) {
	part, call, err := d.call(inv)
	if err == nil && part.read == nil {
		err = faultf("step %q of saga %s version %d is no Await of %s", inv.Step, d.spec.Saga, d.spec.Version, reflect.TypeFor[In]())
	}
	return part, call, err
}
