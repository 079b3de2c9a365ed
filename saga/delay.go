package saga

import (
	"fmt"
	"reflect"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// What an instance waits for that sends nothing: a length of time, a point in time. While it waits it is
// a row in the ledger that is due at an absolute time, by the ledger's clock: it costs no goroutine, no
// lease and no send slot, and no process has to live meanwhile. It is over when that time has come, never
// before, or when a person ends it (coordinator.Operator.Wake, amends wake).

// Delay is put among the steps of a definition: the instance waits for d before the next step, from when
// it comes to this one.
//
//	saga.Do("authorize", p.authorize).Keyed(24*time.Hour).Once().Undo(p.release),
//	saga.Delay[Booking]("cooling-off", 14*24*time.Hour),
//	saga.Do("capture", p.capture).Keyed(24*time.Hour).Once().NoUndo("a refund is a saga of its own").Pivot(),
//
// A day is 24 hours: where a change to daylight saving time counts, use [Until]. A cancel is followed at
// once, and a newer version of the source object begins at once. It does not wait again: a delay that was
// begun goes on, and one that is over stays over.
func Delay[In any](name string, d time.Duration) *WaitStep[In] {
	return &WaitStep[In]{spec: program.StepSpec{Name: name, Wait: program.WaitDelay, Delay: d.Truncate(time.Millisecond)}}
}

// Until is put among the steps of a definition: the instance waits until the time that when says. when is
// asked once, when the instance comes to this step, and what it says is on record. It is a function of
// the input and of the results of earlier steps, and asks nothing outside. A time that is past, such as the
// zero time, is no wait. A newer version of the source object does not change what was said.
func Until[In any](name string, when func(Call[In]) time.Time) *WaitStep[In] {
	return &WaitStep[In]{spec: program.StepSpec{Name: name, Wait: program.WaitUntil}, when: when}
}

// Consequence is what follows when the deadline of an instance passes: [Compensate] or [AskPerson].
type Consequence program.Overdue

// The consequences.
const (
	// Compensate undoes what was done, also while a destination is away. Where the pivot may have happened
	// a person is asked.
	Compensate Consequence = Consequence(program.OverdueCompensates)
	// AskPerson brings the instance to review, for [ReasonDeadline].
	AskPerson Consequence = Consequence(program.OverdueAsks)
)

// Deadline is put among the steps of a definition and says how long an instance has, from its start, and
// what follows when it is not at its end by then. A request under way is awaited first.
//
// While a person has the instance, in review or paused, a deadline that passes is only shown: nothing is
// undone behind that person's back, then or later. A newer version of the source object does not restart
// the deadline; one that opens an instance again that had ended has a deadline of its own.
func Deadline[In any](d time.Duration, then Consequence) Step[In] {
	return deadline[In]{d.Truncate(time.Millisecond), program.Overdue(then)}
}

// MaxWait is how long a [Delay] or a [Deadline] may be, and how far from now the time of an [Until].
const MaxWait = 100 * 365 * 24 * time.Hour

// WaitStep is a [Delay] or an [Until] under construction. Its methods change it and return it.
type WaitStep[In any] struct {
	spec    program.StepSpec
	when    func(Call[In]) time.Time
	applies func(Call[In]) bool
}

// When is as [Action.When]: where it says no, there is no wait.
func (w *WaitStep[In]) When(fn func(Call[In]) bool) *WaitStep[In] {
	w.applies, w.spec.Conditional = fn, true
	return w
}

// Pivot is as [Action.Pivot]: once the wait is over, no cancel turns the work back.
func (w *WaitStep[In]) Pivot() *WaitStep[In] { w.spec.Pivot = true; return w }

func (w *WaitStep[In]) part(d *Definition[In], _ In) {
	b := bound[In]{when: w.when, applies: w.applies}
	b.faults.whenf(w.spec.Conditional && w.applies == nil, "When needs a function")
	b.faults.whenf(w.spec.Wait == program.WaitUntil && w.when == nil, "Until needs a function")
	if w.spec.Wait == program.WaitDelay {
		b.faults = append(b.faults, lengthFaults("it", w.spec.Delay)...)
	}
	d.spec.Steps = append(d.spec.Steps, w.spec)
	d.parts = append(d.parts, b)
}

type deadline[In any] struct {
	after time.Duration
	then  program.Overdue
}

func (l deadline[In]) part(d *Definition[In], _ In) {
	d.faults.whenf(d.spec.Deadline != 0, "there are two deadlines")
	d.faults = append(d.faults, lengthFaults("the deadline", l.after)...)
	d.faults.whenf(l.then != program.OverdueCompensates && l.then != program.OverdueAsks, "the deadline is followed by %q: say Compensate or AskPerson", l.then)
	d.spec.Deadline, d.spec.Overdue = l.after, l.then
}

func lengthFaults(what string, d time.Duration) []string {
	if d < time.Millisecond || d > MaxWait {
		return []string{fmt.Sprintf("%s lasts %s; it must be a millisecond at least and 100 years at most", what, d)}
	}
	return nil
}

// Applies says whether a step is done in this run that has a condition. It does not panic.
func (d *Definition[In]) Applies(inv *program.Invocation) (yes bool, err error) {
	defer guarded(inv.Step, &err)
	part, call, err := d.call(inv)
	if err != nil || part.applies == nil {
		return err == nil, err
	}
	return part.applies(call), nil
}

// When says until when the instance waits at a step that is an [Until]. It does not panic.
func (d *Definition[In]) When(inv *program.Invocation) (at time.Time, err error) {
	defer guarded(inv.Step, &err)
	part, call, err := d.call(inv)
	if err != nil {
		return time.Time{}, err
	}
	if part.when == nil {
		return time.Time{}, faultf("step %q of saga %s version %d is no Until of %s", inv.Step, d.spec.Saga, d.spec.Version, reflect.TypeFor[In]())
	}
	return part.when(call), nil
}
