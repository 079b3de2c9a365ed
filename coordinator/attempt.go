package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

// answerGrace is how long an action may take to notice that its context has ended before its attempt is
// closed without it.
const answerGrace = 250 * time.Millisecond

// errLate is why an attempt may not send any more.
var errLate = errors.New("the attempt's deadline has passed")

// act runs the attempt that was just armed, and says what came of it.
func (w *work) act(cmd saga.Command) saga.Outcome {
	defer w.dropSlot()
	o := w.attempt(cmd)
	o.Shutdown = w.c.isStopping()
	w.heed(cmd.Step, o.RetryAfter)
	return o
}

// heed keeps everybody away from the step's destination for as long as it asked, whatever its answer says about the
// effect.
func (w *work) heed(step string, after time.Duration) {
	if d := w.c.destination(w.stepSpec(step).To); d != nil && after > 0 {
		d.hush(after)
	}
}

// attempt lets the action act. Its deadline counts from before the arm was appended, so it is never later than
// the one on record. An arm confirmed too late, while the process stops, or on a lease in question is not sent.
func (w *work) attempt(cmd saga.Command) saga.Outcome {
	deadline := w.sent.Add(w.budget(cmd))
	if err := w.admit(deadline); err != nil {
		return saga.Outcome{Class: saga.Unsent, Error: err.Error()}
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	inv := w.st.Invocation(cmd)
	inv.Gate = w.openGate(deadline, cancel)
	answer := make(chan saga.Outcome, 1)
	w.hand() <- func() { answer <- w.program.Act(ctx, inv) }

	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
		return w.overdue(inv, answer)
	}
}

// hand is the goroutine in which the work's actions run, one after the other: an action that does not return
// must not hold the work up. It is one for all attempts, because a new goroutine has to grow its stack anew.
func (w *work) hand() chan<- func() {
	if w.jobs == nil {
		w.jobs = make(chan func(), 1)
		go func(jobs <-chan func()) {
			for job := range jobs {
				job()
			}
		}(w.jobs)
	}
	return w.jobs
}

// dropHand lets the hand end once its action has returned.
func (w *work) dropHand() {
	if w.jobs != nil {
		close(w.jobs)
		w.jobs = nil
	}
}

// admit says why nothing may be sent now, or nil.
func (w *work) admit(deadline time.Time) error {
	switch {
	case !time.Now().Before(deadline):
		return errLate
	case w.c.isStopping():
		return errStopping
	default:
		return w.s.trusted()
	}
}

// overdue closes an attempt whose time is over. Whatever its action says later becomes a signal.
func (w *work) overdue(inv *saga.Invocation, answer chan saga.Outcome) saga.Outcome {
	inv.Gate.Close()
	t := time.NewTimer(answerGrace)
	defer t.Stop()
	select {
	case o := <-answer:
		return o
	case <-t.C:
	}
	w.dropHand() // it may be busy for ever; the next attempt gets another
	name := attemptName{inv.Step, inv.Direction, inv.Attempt, inv.Key}
	go func() {
		o := <-answer
		w.postLate(name, &o)
	}()
	if inv.Gate.Unsent() {
		return saga.Outcome{Class: saga.Unsent, Error: "nothing was sent before the deadline"}
	}
	return saga.Outcome{Class: saga.Unknown, Error: "no answer before the deadline"}
}

// openGate makes the attempt's send gate and lets the coordinator close it at shutdown.
func (w *work) openGate(deadline time.Time, cancel context.CancelFunc) *saga.Gate {
	g := saga.NewGate(func() error { return w.admit(deadline) })
	w.mu.Lock()
	w.gate, w.cancel = g, cancel
	w.mu.Unlock()
	if w.c.isStopping() {
		g.Close()
	}
	return g
}

// closeGate lets nothing more out of the attempt under way, if there is one.
func (w *work) closeGate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate != nil {
		w.gate.Close()
	}
}

// abandon stops waiting for the attempt under way.
func (w *work) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
}

// look asks the destination about a step in doubt. Nothing is learned when a signal comes before the lookup could
// be sent. It reports false when the session ended meanwhile: the next holder asks again.
func (w *work) look(cmd saga.Command) (saga.Event, bool) {
	s := w.stepSpec(cmd.Step)
	if d := w.c.destination(s.To); d != nil {
		switch err := d.take(w.s.idle, w.nudge); {
		case errors.Is(err, errWoken):
			return saga.Event{}, true
		case err != nil:
			return saga.Event{}, false
		}
		defer d.release()
	}
	ctx, cancel := context.WithTimeout(w.s.idle, s.Timeout)
	defer cancel()
	inv := w.st.Invocation(cmd)
	answer := make(chan saga.Evidence, 1)
	go func() { answer <- w.program.Look(ctx, inv) }()
	f := saga.Evidence{Kind: saga.KindUnclear, Error: "the lookup did not answer in time"}
	select {
	case f = <-answer:
	case <-ctx.Done():
		select {
		case f = <-answer:
		case <-time.After(answerGrace):
		}
	}
	f.Step = cmd.Step
	w.heed(f.Step, f.RetryAfter)
	return saga.Event{Evidence: &f}, w.s.idle.Err() == nil
}

// trySlot takes a send slot for the step's destination, unless one is in hand. It reports false when none is
// free.
func (w *work) trySlot(step string) bool {
	d := w.c.destination(w.stepSpec(step).To)
	if d == nil || w.hasSlot && w.slot == d {
		return true
	}
	w.dropSlot()
	if !d.try() {
		return false
	}
	w.slot, w.hasSlot = d, true
	return true
}

// awaitSlot waits for a send slot, and not for longer than until somebody speaks to the work: a cancel must not wait
// for a turn. It reports false when the session ended first.
func (w *work) awaitSlot(cmd saga.Command) bool {
	for w.s.trusted() != nil { // the lease is late, not lost: until it is renewed or ends, nothing is armed
		if sleep(w.s.idle, w.c.opts.Lease/30) != nil {
			return false
		}
	}
	d := w.c.destination(w.stepSpec(cmd.Step).To)
	if d == nil || w.hasSlot && w.slot == d {
		return w.s.idle.Err() == nil
	}
	w.dropSlot()
	switch err := d.take(w.s.idle, w.nudge); {
	case errors.Is(err, errWoken):
		return true
	case err != nil:
		return false
	}
	w.slot, w.hasSlot = d, true
	return true
}

func (w *work) dropSlot() {
	if w.hasSlot {
		w.slot.release()
		w.slot, w.hasSlot = nil, false
	}
}

func (w *work) stepSpec(step string) *saga.StepSpec {
	spec := w.spec()
	for i := range spec.Steps {
		if spec.Steps[i].Name == step {
			return &spec.Steps[i]
		}
	}
	return &saga.StepSpec{Name: step}
}

// budget is the time the attempt just armed has.
func (w *work) budget(cmd saga.Command) time.Duration { return w.stepSpec(cmd.Step).Timeout }

// attemptName names one attempt of a work.
type attemptName struct {
	step string
	dir  saga.Direction
	n    int
	key  string
}

// open names the armed attempt nobody has answered, or is zero.
func (w *work) open() (a attemptName) {
	for i := range w.st.Steps {
		ss := &w.st.Steps[i]
		if ss.Forward.Phase == saga.Started {
			a = attemptName{ss.Name, saga.Forward, ss.Forward.Attempts, ss.Forward.Key}
		}
		if ss.Undo.Phase == saga.Started {
			a = attemptName{ss.Name, saga.Undo, ss.Undo.Attempts, ss.Undo.Key}
		}
	}
	return a
}

// postLate posts a success that its attempt's holder could not record, as evidence for whoever holds the work
// now. A late failure proves nothing and is not posted.
func (w *work) postLate(a attemptName, o *saga.Outcome) {
	if o == nil || !o.Done() || a.step == "" {
		return
	}
	sig := saga.Signal{
		Kind: saga.SignalLate, Actor: "coordinator " + w.s.token.String(), Key: fmt.Sprintf("late:%s:%s:%d:%s", a.step, a.dir, a.n, a.key),
		Verdict: saga.Verdict{Step: a.step, Direction: a.dir, Attempt: a.n, StepKey: a.key, Happened: true, ExternalID: o.ExternalID, Output: o.Output},
	}
	ctx, cancel := context.WithTimeout(w.c.life, 4*w.c.opts.Lease)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := w.c.ledger.Post(ctx, w.id, sig)
		if err == nil {
			return
		}
		if sleep(ctx, wait) != nil {
			w.c.opts.Log.WithError(err).WithField("saga", w.id.Saga).WithField("work", w.id.Work).WithField("step", a.step).
				WithField("external_id", o.ExternalID).Error("a late success could not be posted; if the step goes to review, this is its evidence")
			return
		}
	}
}
