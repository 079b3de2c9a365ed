package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// answerGrace is how long an action may take to notice that its context has ended before its
// attempt is closed without it.
const answerGrace = 250 * time.Millisecond

// errNoSlot is why a start is not sent that a transaction held up: it gave its slot to others
// meanwhile.
var errNoSlot = errors.New("the destination has no slot free")

// errLate is why an attempt may not send any more.
var errLate = errors.New("the attempt's deadline has passed")

// attempt is an attempt under way. Its action runs in the goroutine of its work. When it has not returned in time another goroutine goes
// on with the work, and this one has no more to do with it than to say what the action returned.
type attempt struct {
	cmd   machine.Command
	begun time.Time
	inv   *program.Invocation

	mu       sync.Mutex
	returned bool
	late     chan program.Outcome // what it returned when another goroutine had the work; nil: none has
}

// handOver reports whether another goroutine may go on with the work: the action has not returned.
func (a *attempt) handOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.returned || a.late != nil {
		return false
	}
	a.late = make(chan program.Outcome, 1)
	return true
}

// back reports whether the work is still this goroutine's, now that the action has returned.
func (a *attempt) back(o program.Outcome) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.returned = true; a.late == nil {
		return true
	}
	a.late <- o
	return false
}

// act runs the attempt that was just armed, and returns what came of it; here is false when another goroutine has the work by then. Its
// deadline counts from before the arm was appended, so it is never later than the one on record, and it is not awaited when the lease is
// over. An arm confirmed too late, while the process stops, or on a lease in question is not sent.
func (w *work) act(cmd machine.Command) (o *program.Outcome, here bool) {
	a := &attempt{cmd: cmd, begun: time.Now()}
	deadline := w.sent.Add(w.budget(cmd))
	err := w.admit(deadline)
	if err == nil && w.slot == nil && w.destination(cmd.Step) != nil {
		err = errNoSlot
	}
	if err != nil {
		return w.acted(a, program.Outcome{Class: saga.Unsent, Error: err.Error()}), true
	}
	if err := w.invoke(a); err != nil {
		return w.acted(a, program.Outcome{Class: saga.Fault, Error: err.Error()}), true
	}
	// It ends with its session, too, by [Coordinator.endAttempts]: a context below the session's takes a lock that all attempts share.
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	p := w.program // from here on the work may be another goroutine's at any moment
	over := func() {
		<-ctx.Done()
		if a.handOver() {
			w.run(w.learn(w.acted(a, w.overdue(ctx, a))))
		}
	}
	w.openGate(a, deadline, func() { cancel(); go over() })
	defer time.AfterFunc(time.Until(deadline), over).Stop()
	if w.s.over.Err() != nil { // since it was admitted
		w.abandon()
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		o := exited(a.inv.Gate)
		w.logPanic(a.inv, o.Stack)
		if a.back(o) {
			go w.run(w.learn(w.acted(a, o)))
		}
	}()
	result := p.Act(ctx, a.inv)
	returned = true
	w.logPanic(a.inv, result.Stack)
	if !a.back(result) {
		return nil, false
	}
	return w.acted(a, result), true
}

// exited is what is known of an action that ended its goroutine, as t.FailNow of a test does: as of one that panicked.
func exited(g *program.Gate) program.Outcome {
	o := program.Outcome{Class: saga.Unknown, Error: "the action ended its goroutine (runtime.Goexit) and returned nothing", Stack: string(debug.Stack())}
	if g.Unsent() {
		o.Class = saga.Unsent
	}
	return o
}

// invoke says what the action is told.
func (w *work) invoke(a *attempt) error {
	inv := w.st.Invocation(a.cmd)
	inv.Brief, inv.Decoded = w.brief(a.cmd.Step), &w.input
	if secret := w.st.Step(a.cmd.Step).Answering().Secret; secret != "" && a.cmd.Direction == saga.Forward {
		if inv.Token = w.c.secrets.token(secret, inv.Key); inv.Token == "" {
			return errors.New("the secret " + secret + " of its callback token is not in Options.CallbackSecrets any more: put it back, behind the newest, then retry")
		}
	}
	a.inv = inv
	return nil
}

// acted is what came of an attempt. Its destination and its slot learn of it before the slot goes to the next in line.
func (w *work) acted(a *attempt, o program.Outcome) *program.Outcome {
	cmd, took := a.cmd, time.Since(a.begun)
	tried := a.inv != nil && !a.inv.Gate.Unsent() // it got further than this process
	o.Shutdown = w.c.isStopping() || w.s.over.Err() != nil
	if d := w.destination(cmd.Step); d != nil && tried && !o.Shutdown {
		switch {
		case o.Class == saga.Fault, o.Stack != "": // the program is at fault, and nothing is known of the destination
		case !o.Nameless && (o.Class == saga.Unknown || o.Class == saga.Unsent):
			o.Outage = w.heed(d, cmd, o.RetryAfter, flow.Failure{Busy: o.HoldBack, Away: o.Unreachable, Why: o.Error})
		default: // done, without a name perhaps, or refused: the destination works
			d.Answered(took)
		}
	}
	if d := w.slot; d != nil && tried && (o.Class == saga.Unknown && !o.Answered || o.Maybe) {
		d.Linger(latest(w.sent.Add(w.budget(cmd)), time.Now()).Add(w.stepSpec(cmd.Step).Settle))
	}
	w.freeSlot(took)
	return &o
}

// heed tells a destination that it failed the work: it may have asked to be left alone (A
// Retry-After that is about this request alone is the work's own wait), or it fails all that is
// sent there. It reports whether that is no fault of the work's (machine/F28).
func (w *work) heed(d *flow.Destination, cmd machine.Command, after time.Duration, f flow.Failure) (outage bool) {
	e := w.effort(cmd)
	f.Number, f.Rank = w.head, w.asked
	switch {
	case after == 0: // also when it says that it has too much to do, and not for how long
		d.FailedBy(f)
	case f.Busy:
		d.Hush(after, f.Why)
	case !f.Away: // it answers, about this request
		d.Answers()
	}
	last := e.CountedAttempts >= w.stepSpec(cmd.Step).Retry.WithDefaults().Attempts
	return f.Busy && e.Failures < freeHolds || d.Outage(e.Failed, e.PolicyStartedAt, last)
}

// hungAside is how long a work that had no answer leaves its place to others at most when they stand in line. Many do so at once, and do not
// come back at once.
const hungAside = 30 * time.Second

// freeHolds is how often in a row a work is asked to wait before that counts against its policy,
// when others are served meanwhile: its waits have reached their longest by then, and a destination
// that has too much to do serves each now and then.
const freeHolds = 12

// effort is what is known of the attempts that cmd belongs to.
func (w *work) effort(cmd machine.Command) *machine.Effort {
	switch ss := w.st.Step(cmd.Step); {
	case ss == nil: // it is asked for before its first attempt
		return &machine.Effort{}
	case cmd.Direction == saga.Undo:
		return &ss.Undo
	default:
		return &ss.Forward
	}
}

// logPanic tells where an action, an undo or a lookup panicked. The record has only the first of
// it.
func (w *work) logPanic(inv *program.Invocation, stack string) {
	if stack == "" {
		return
	}
	w.c.opts.Log.WithFields(logrus.Fields{
		"saga": w.id.Saga, "work": w.id.Work, "step": inv.Step, "direction": string(inv.Direction), "attempt": inv.Attempt, "stack": stack,
	}).Error("a step panicked")
}

// admit says why nothing may be sent now, or nil.
func (w *work) admit(deadline time.Time) error {
	switch {
	case passed(time.Now(), deadline):
		return errLate
	case w.c.isStopping():
		return errStopping
	}
	if _, by := w.c.flow.Holds(w.id.Saga); by != nil {
		return fmt.Errorf("%w by %s: %s", flow.ErrPaused, by.Name, by.Reason)
	}
	return w.s.trusted()
}

// overdue closes an attempt whose time is over. An action that has not returned is under way, whatever its deadline
// says: it may still have its effect. So it is awaited for as long as this process holds its lease and does not stop, and
// nothing follows: no lookup, no undo, no other attempt. What it says behind that becomes a signal.
func (w *work) overdue(ctx context.Context, a *attempt) program.Outcome {
	inv := a.inv
	inv.Gate.Close()
	t := time.NewTimer(answerGrace)
	defer t.Stop()
	select {
	case o := <-a.late:
		return o
	case <-t.C:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && w.s.over.Err() == nil {
		w.c.opts.Log.WithFields(logrus.Fields{"saga": w.id.Saga, "work": w.id.Work, "step": inv.Step, "direction": string(inv.Direction), "attempt": inv.Attempt}).
			Warn("an action has not returned at its deadline: it does not heed its context. Nothing follows, and it keeps its place at the destination, until it returns or this process is restarted")
		if o := w.awaitHung(a); o != nil {
			return *o
		}
	}
	name := attemptName{inv.Step, inv.Direction, inv.Attempt, inv.Key}
	go func() {
		o := <-a.late
		w.postLate(name, &o)
	}()
	end := "the deadline"
	if w.s.over.Err() != nil {
		end = "the process's lease was over"
	}
	if inv.Gate.Unsent() {
		return program.Outcome{Class: saga.Unsent, Error: "nothing was sent before " + end}
	}
	return program.Outcome{Class: saga.Unknown, Error: "no answer before " + end}
}

// hungFor is how long an action is awaited before a person is told.
const hungFor = 5 * time.Minute

// awaitHung awaits an action that has not returned at its deadline, and brings the work to review after a while: what ends it is the
// end of this process. It returns nil when that, or the session's, comes first.
func (w *work) awaitHung(a *attempt) *program.Outcome {
	long := time.NewTimer(hungFor)
	defer long.Stop()
	for {
		select {
		case o := <-a.late:
			return &o
		case <-w.s.over.Done():
			return nil
		case <-w.c.left:
			return nil
		case <-long.C:
			w.decide(machine.Event{Hung: fmt.Sprintf("the action of step %q has not returned %s behind its deadline, in process %s: it does not heed its context", a.inv.Step, hungFor, w.c.opts.Label)}, false)
		}
	}
}

// openGate makes the attempt's send gate and lets the coordinator close it at shutdown. end ends the attempt.
func (w *work) openGate(a *attempt, deadline time.Time, end func()) {
	d := w.slot
	g := program.NewGate(func() error { return errors.Join(w.admit(deadline), d.Paused()) })
	a.inv.Gate = g
	w.mu.Lock()
	w.gate, w.endAttempt = g, end
	w.mu.Unlock()
	if w.c.isStopping() {
		g.Close()
	}
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
	if w.endAttempt != nil {
		w.endAttempt()
	}
}

// trySlot takes a send slot for the step's destination, unless one is in hand. It reports false
// when none is free.
func (w *work) trySlot(step string, dir saga.Direction) bool {
	d := w.destination(step)
	if d == nil {
		return true
	}
	if _, held := w.c.flow.Holds(w.id.Saga); held != nil {
		return false
	}
	if w.slot == d {
		return true
	}
	w.dropSlot()
	r := w.rank(d, step, dir)
	if !d.Try(r) {
		return false
	}
	w.slot, w.asked = d, r
	return true
}

// awaitSlot waits for a send slot, and not for longer than until a signal comes: a cancel must not
// wait for a turn. It reports false when the work is to be let go: the session ended, or the line
// is too long.
func (w *work) awaitSlot(cmd machine.Command) bool {
	for w.s.trusted() != nil { // the lease is late, not lost: until it is renewed or ends, nothing is armed
		if nap.For(w.s.idle, w.c.opts.Lease/30) != nil {
			return false
		}
	}
	if w.held() {
		return false
	}
	d := w.destination(cmd.Step)
	if d == nil || w.slot == d {
		return w.s.idle.Err() == nil
	}
	w.dropSlot()
	got, ok := w.stand(d, cmd)
	if got {
		w.slot = d
	}
	return ok
}

// held reports whether a person has paused the work's saga, or everything. Then it goes back into
// the ledger, and waits there under the name of the pause.
func (w *work) held() bool {
	name, by := w.c.flow.Holds(w.id.Saga)
	if by == nil {
		return false
	}
	w.dropSlot()
	w.back = &ledger.Return{Number: w.head, WaitsFor: name}
	return true
}

// stand stands in line for a slot. ok is false when the work is to be let go; with neither it was
// woken.
func (w *work) stand(d *flow.Destination, cmd machine.Command) (got, ok bool) {
	w.asked = w.rank(d, cmd.Step, cmd.Direction)
	if !cmd.Until.IsZero() { // its deadline is looked at in time
		stir := time.AfterFunc(cmd.Until.Sub(w.now().Earliest)+time.Millisecond, w.stir)
		defer stir.Stop()
	}
	err := d.Take(w.s.idle, w.nudge, w.asked)
	switch {
	case err == nil && (w.s.idle.Err() != nil || w.held()): // it came too late
		d.Release(w.asked, 0)
		return false, false
	case errors.Is(err, flow.ErrNoRoom):
		w.back = &ledger.Return{Number: w.head, WaitsFor: d.Line(w.asked)}
		if w.asked.Hung { // behind the others, also in the ledger
			w.back.Due = w.c.clock.now().Earliest.Add(hungAside/2 + rand.N(hungAside/2))
		}
		return false, false
	}
	return err == nil, err == nil || errors.Is(err, nap.ErrWoken)
}

// rank is the work's place in the line for a step: the fewer steps are left, the further it is
// along.
func (w *work) rank(d *flow.Destination, step string, dir saga.Direction) flow.Rank {
	done, undone := 0, 0
	for i := range w.st.Steps {
		if ss := &w.st.Steps[i]; ss.Forward.Phase == machine.Done {
			done++
			if ss.Undo.Phase == machine.Done {
				undone++
			}
		}
	}
	r := flow.Rank{Left: len(w.spec().Steps) - done, Number: w.head, Of: w, Came: w.startedHere || w.st.Started.After(d.Failing())}
	if w.st.Compensating {
		r.Back, r.Left = true, done-undone
	}
	if w.st.Step(step) != nil {
		e := w.effort(machine.Command{Step: step, Direction: dir})
		r.Again = e.Failures > 0
		r.Hung = r.Again && e.UnclearLookups == 0 && !e.Deadline.IsZero() && !e.Failed.Before(e.Deadline) // a lookup that failed says nothing of it
	}
	return r
}

func (w *work) dropSlot() { w.freeSlot(0) }

// freeSlot gives the slot in hand back, which was in use for so long.
func (w *work) freeSlot(used time.Duration) {
	if w.slot != nil {
		w.slot.Release(w.asked, used)
		w.slot = nil
	}
}

// destination returns that of a step, or nil when it names none.
func (w *work) destination(step string) *flow.Destination {
	return w.c.flow.Destination(w.spec().Destination(step))
}

func (w *work) stepSpec(step string) *program.StepSpec {
	spec := w.spec()
	for i := range spec.Steps {
		if spec.Steps[i].Name == step {
			return &spec.Steps[i]
		}
	}
	return &program.StepSpec{Name: step}
}

// budget is the time the attempt just armed has.
func (w *work) budget(cmd machine.Command) time.Duration { return w.stepSpec(cmd.Step).Timeout }

// attemptName names one attempt of a work.
type attemptName struct {
	step string
	dir  saga.Direction
	n    int
	key  string
}

// open returns the name of the armed attempt that has no recorded outcome, or zero.
func (w *work) open() (a attemptName) {
	for i := range w.st.Steps {
		ss := &w.st.Steps[i]
		if ss.Forward.Phase == machine.Started {
			a = attemptName{ss.Name, saga.Forward, ss.Forward.Attempts, ss.Forward.Key}
		}
		if ss.Undo.Phase == machine.Started {
			a = attemptName{ss.Name, saga.Undo, ss.Undo.Attempts, ss.Undo.Key}
		}
	}
	return a
}

// postLate posts a success that its attempt's holder could not record, as evidence for the session
// that holds the work now. A late failure proves nothing and is not posted.
func (w *work) postLate(a attemptName, o *program.Outcome) {
	if o == nil || !o.Done() || a.step == "" {
		return
	}
	sig := machine.Signal{
		Kind: machine.SignalLate, Actor: "coordinator " + w.s.token.String(), Key: fmt.Sprintf("late:%s:%s:%d:%s", a.step, a.dir, a.n, a.key),
		Resolution: saga.Resolution{Step: a.step, Direction: a.dir, Attempt: a.n, StepKey: a.key, Happened: true, ExternalID: o.ExternalID, Output: o.Output},
	}
	ctx, cancel := context.WithTimeout(w.c.life, 4*w.c.opts.Lease)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		_, err := w.c.ledger.Post(ctx, w.id, sig)
		if err == nil {
			return
		}
		if nap.For(ctx, wait) != nil {
			w.c.opts.Log.WithError(err).WithField("saga", w.id.Saga).WithField("work", w.id.Work).WithField("step", a.step).
				WithField("external_id", o.ExternalID).Error("a late success could not be posted; if the step goes to review, this is its evidence")
			return
		}
	}
}
