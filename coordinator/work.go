package coordinator

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// work is one unit of work in this process's hands. One goroutine decides for it, and it has one
// append under way at most.
type work struct {
	c       *Coordinator
	s       *session
	id      saga.ID
	salt    machine.Salt
	program saga.Program
	head    int64 // the ledger's number
	st      *machine.State
	inHead  bool              // the ledger's head names our session
	times   chainClock        //
	sent    time.Time         // before the latest append went out
	slot    *flow.Destination // a send slot in hand, for the next attempt
	asked   flow.Rank         // what it was taken as, or a lookup's
	input   program.Decoded   // kept between its steps

	spoken atomic.Bool                    // there is an unread signal
	told   atomic.Pointer[machine.Signal] // what was said: one signal, or several
	nudge  chan struct{}                  // wakes a waiting work when spoken is set
	gone   chan struct{}                  // closed when the work is out of our hands
	final  *saga.Summary                  // set before gone is closed, when the work has ended
	// bystanders is how many other steps were in flight when the process died that the work was
	// taken over from, as far as is known.
	bystanders int
	heard      time.Time       // the signals that were posted before this time, by the ledger's clock, are read
	over       bool            // the session is over that armed the attempt which is open
	consumed   int64           // how many signals records have consumed: in the order of their numbers
	listening  bool            // there is another signal to read behind the one that is decided about
	awaits     []ledger.Wait   // what the next record makes findable
	polled     *machine.Polled // when the answer was asked for that the work waits for, by the ledger's clock
	back       *ledger.Return  // how it goes back into the ledger, when no record says so

	// Guarded by the hand.
	number      int64 // as head
	bytes       int64 // of what it carries
	startedHere bool
	given       bool // a claim has given it, and it has not looked since

	mu         sync.Mutex
	gate       *program.Gate // of the attempt under way
	endAttempt func()
}

func (c *Coordinator) newWork(s *session, id saga.ID, p saga.Program) *work {
	return &work{c: c, s: s, id: id, program: p, st: &machine.State{ID: id}, nudge: make(chan struct{}, 1), gone: make(chan struct{})}
}

// run does what was decided and decides what follows, until the work is out of our hands, or another goroutine goes on with it.
func (w *work) run(cmd machine.Command, ok bool) {
	for w.goOn(cmd, ok) {
		if w.dropSlot(); w.letGo() {
			return
		}
		cmd, ok = w.again()
	}
}

// again goes on with a work that a claim has given while it was on its way out, if it is ours.
func (w *work) again() (cmd machine.Command, ok bool) {
	if w.back, ok = nil, w.reload(); ok {
		cmd, ok = w.advance(machine.Event{})
	}
	return cmd, ok
}

// goOn does what was decided and decides what follows, until nothing is to be done here. It reports false when another goroutine goes on.
func (w *work) goOn(cmd machine.Command, ok bool) bool {
	for ok {
		if cmd.Do != machine.Act {
			cmd, ok = w.follow(cmd)
			continue
		}
		o, here := w.act(cmd)
		if !here {
			return false
		}
		cmd, ok = w.learn(o)
	}
	return true
}

// learn decides what follows from what came of an attempt.
//
//go:noinline // what is on the stack here is not there while an action runs, of which there may be many thousands
func (w *work) learn(o *program.Outcome) (machine.Command, bool) {
	return w.advance(machine.Event{Outcome: o})
}

// follow does what is no attempt, and decides what follows.
//
//go:noinline // as learn
func (w *work) follow(cmd machine.Command) (machine.Command, bool) {
	ev, ok := w.do(cmd)
	if !ok {
		return machine.Command{}, false
	}
	return w.advance(ev)
}

// letGo takes the work out of our hands, and back into the ledger if it is still ours there. It reports false when it stays: a claim has
// given it meanwhile.
func (w *work) letGo() bool {
	if w.final = nil; w.st.Status.Terminal() {
		sum := machine.Summarize(w.spec(), w.st)
		w.final = &sum
	}
	left := w.c.hand.letGo(w, func() {
		if w.back != nil {
			w.back.Leaves = w.ends()
			w.c.giveBack(w.s, *w.back)
		}
	})
	if !left {
		return false
	}
	close(w.gone)
	if w.spoken.Load() && w.back == nil { // it was said to it on its way out; what is given back cannot be moved now, and a poll is soon enough
		w.c.wake()
	}
	if w.final != nil || w.st.Status.Parked() {
		w.c.rests.tell(w.id)
	}
	return true
}

// lastLook is how long the last lookup of a wait may stand in line behind its end.
const lastLook = 10 * time.Minute

// ends is when the wait is over that the work is in, whatever line it stands in (machine/A15); zero: it is in none. Behind that a lookup has a
// while more, and then it is looked at again every minute.
func (w *work) ends() (at time.Time) {
	now := w.now().Earliest
	for i := range w.st.Steps {
		ss := &w.st.Steps[i]
		if o := ss.Answering(); ss.Forward.Phase != machine.Waiting || o.WaitsFor == nil && o.Approval == nil || w.st.Compensating {
			continue
		}
		end := ss.WaitsUntil
		if !end.After(now) {
			end = latest(end.Add(lastLook), now.Add(time.Minute))
		}
		if at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// advance decides about ev and then about whatever has been posted meanwhile. A signal waits for
// the attempt under way, and nothing is armed over the head of one that is known of.
func (w *work) advance(ev machine.Event) (machine.Command, bool) {
	if (ev.Outcome != nil || ev.Evidence != nil) && w.told.Load() != nil { // while it was busy, more may have been said elsewhere
		w.told.Store(&several)
	}
	cmd, ok := w.decide(ev, !w.spoken.Load())
	for ok && cmd.Do != machine.Act && !w.attempting() && w.spoken.Swap(false) {
		cmd, ok = w.listen()
	}
	return cmd, ok
}

// do carries out one command but an attempt, and returns the event it led to, or false when the work is to be let
// go.
func (w *work) do(cmd machine.Command) (machine.Event, bool) {
	if cmd.Do != machine.Slot {
		w.dropSlot() // a slot is for sending; a work that waits for something else lets others send
	}
	switch cmd.Do {
	case machine.Look:
		return w.look(cmd)
	case machine.Ask:
		return w.ask(cmd)
	case machine.Slot:
		return machine.Event{}, w.awaitSlot(cmd)
	case machine.Wait:
		return machine.Event{}, w.await(cmd.Until)
	default:
		return machine.Event{}, false
	}
}

// await sleeps until a ledger time. A work that has to wait for longer than it is kept in hand goes
// back into the ledger, unless there is a signal it has to read then; when others have no place for want of its
// own, for any wait. It reports false when it is to be let go: also when the session ended or the process stops.
func (w *work) await(until time.Time) bool {
	d := until.Sub(w.now().Earliest) + time.Millisecond
	most := w.c.opts.Hold
	if w.spoken.Load() || d <= shortWait || d <= most && !w.c.hand.crowded() {
		return !errors.Is(nap.Until(w.s.idle, w.nudge, d), context.Canceled)
	}
	answers := func(ss machine.StepState) bool {
		return ss.Forward.Phase == machine.Waiting && ss.Answering().WaitsFor != nil
	}
	if slices.ContainsFunc(w.st.Steps, answers) && w.c.hand.roomy() { // many come soon
		if err := nap.Until(w.s.idle, w.nudge, most); err != nil {
			return errors.Is(err, nap.ErrWoken)
		}
		d = until.Sub(w.now().Earliest) + time.Millisecond
	}
	return w.goBack(d)
}

// shortWait is for how long a work keeps its place in hand in any case: a place that is given back costs a call of the ledger.
const shortWait = 100 * time.Millisecond

// goBack lets go of the work for d, by the ledger's own clock. It reports false. A work that waits
// because its destination failed waits under the destination's name: its backoff ends when the destination recovers. Until then it
// leaves most probes to others.
func (w *work) goBack(d time.Duration) bool {
	w.back = &ledger.Return{Number: w.head}
	if to, _ := w.failedAt(); to != nil {
		w.back.WaitsFor = flow.RetryLine(to.Name())
		d = max(d, to.Aside())
	}
	w.back.Due = w.c.clock.now().Earliest.Add(d)
	return false
}

// failedAt is the destination that failed the work's latest attempt or lookup, or nil, and what
// is known of its attempts there.
func (w *work) failedAt() (*flow.Destination, *machine.Effort) {
	for i := range w.st.Steps {
		ss := &w.st.Steps[i]
		e := &ss.Forward
		if w.st.Compensating {
			e = &ss.Undo
		}
		if e.Failures > 0 && e.Phase != machine.Done && e.Phase != machine.Skipped {
			return w.destination(ss.Name), e
		}
	}
	return nil, nil
}

// now bounds the ledger's time, as far as the work is concerned.
func (w *work) now() machine.Moment { return w.times.bound(w.c.clock) }

// decide asks the machine about ev, makes the record durable and folds it. arm says whether
// something may be armed. It reports false when the work is no longer ours to move.
func (w *work) decide(ev machine.Event, arm bool) (machine.Command, bool) {
	for {
		ev.Now, ev.Over = w.now(), w.over
		ev.Spoken = w.spoken.Load()
		ev.Secret, ev.Polled = w.c.secrets.newest, w.polled
		ev.HeldUntil = w.c.flow.HeldUntil(w.id.Saga, ev.Now.Latest)
		ev.Slot = arm && !w.c.isStopping() && w.s.trusted() == nil
		d, err := w.judge(ev)
		if err != nil {
			w.c.opts.Log.WithError(err).WithField("work", w.id.Work).Debug("an event was overtaken")
			if nap.For(w.s.idle, 10*time.Millisecond) != nil || !w.reload() {
				return machine.Command{}, false
			}
			ev = machine.Event{}
			continue
		}
		if d.Record == nil {
			return d.Do, true
		}
		if w.endsUnheard(d.Record, ev.Now) { // what was said in time counts: it is read first, and a lookup asked again
			w.spoken.Store(true)
			return machine.Command{Do: machine.Wait, Until: ev.Now.Earliest}, true
		}
		hold, answer, err := w.append(&d)
		if err != nil {
			return d.Do, false
		}
		switch answer.Result {
		case ledger.Appended, ledger.Mine:
			return d.Do, w.stored(d.Record, answer, hold)
		case ledger.NoLease:
			arm = false
			w.c.loseSession(w.s, ledger.ErrSessionDead)
		case ledger.Stale:
			if !w.overtaken(&ev) {
				return d.Do, false
			}
		case ledger.Missing:
			w.c.loseSession(w.s, ledger.ErrDatabaseChanged)
			w.postLate(w.open(), ev.Outcome)
			return d.Do, false
		default:
			if !w.refused(&ev, answer) {
				return d.Do, false
			}
		}
	}
}

// judge asks the machine, and once more without a slot when the step's destination has none free.
func (w *work) judge(ev machine.Event) (machine.Decision, error) {
	spec := w.spec()
	ev.Newest, ev.MaxCrashes, ev.Bystanders = w.c.newestSpec(w.st), w.c.opts.MaxCrashes, w.bystanders
	if to, e := w.failedAt(); to != nil {
		fails := ev.Outcome != nil || ev.Evidence != nil && ev.Evidence.Answer == program.AnswerUnclear
		own := fails && e.ErrorClass != program.Outage                // it fails now, maybe, for a reason of its own
		if ev.Outcome != nil && ev.Outcome.HoldBack && to.Opening() { // or because too many come back at once
			own = false
		}
		ev.Recovered, ev.Probed = !own && (w.slot == to || to.Tries(e.Failed)), to.Probed().After(e.Failed) // by a person
	}
	d, err := machine.Decide(spec, w.st, ev)
	if err == nil && d.Record != nil && d.Record.Dispatch != nil && !w.trySlot(d.Record.Dispatch.Step, d.Record.Dispatch.Direction) {
		ev.Slot = false
		d, err = machine.Decide(spec, w.st, ev)
	}
	return d, err
}

// append seals the record and hands it to the committer, unless its own fold refuses it: then it is
// as invalid as if the ledger had said so, and nothing is sent.
func (w *work) append(d *machine.Decision) (hold bool, a ledger.Answer, err error) {
	r := d.Record
	at, _ := w.failedAt()
	failed := at != nil || r.Kind == machine.KindNotSent || r.Kind == machine.KindUnknown || r.Kind == machine.KindUnclear // see goBack
	hold = d.Do.Do != machine.Rest && r.Status.Live() && (failed || r.Wait <= w.c.opts.Hold && !w.c.isStopping()) && w.s.trusted() == nil
	hold = hold || (w.listening || w.spoken.Load()) && r.Status.Live()                        // what is said already is read at once
	hold = hold || w.asks(r) && w.c.hand.roomy() && !w.c.isStopping() && w.s.trusted() == nil // many an answer comes soon
	hold = hold || r.Dispatch != nil || r.Reason == saga.ReasonHung                           // who arms an attempt says what came of it, even when that is: not sent
	e := ledger.Entry{ID: w.id, Salt: w.salt, Subject: ledger.SubjectOf(w.st.Tags), Number: w.head, Prev: w.st.TailHash, Revision: w.st.Revision, Waits: w.findable(r)}
	if after := class(w.st, r); hold != w.inHead || r.Status != w.st.Status || r.Reason != w.st.Reason || after != class(w.st, nil) || r.Kind == machine.KindOverdue {
		e.Schedule = &ledger.Schedule{Hold: hold, Class: after}
	}
	if err := w.seal(r); err != nil {
		return hold, ledger.Answer{Result: ledger.Invalid, Err: err}, nil //nolint:nilerr // the answer carries it
	}
	e.Record = *r
	w.sent = time.Now()
	a, err = w.c.appends.append(nil, w.s.token, &e)
	return hold, a, err
}

// asks reports whether r has the work wait for an answer from outside.
func (w *work) asks(r *machine.Record) bool {
	return r.Status == saga.Waiting && w.stepSpec(r.Step).WaitsForAnswer()
}

// seal seals the next record, and reports when the work's fold refuses it: nothing is appended that
// breaks a chain.
func (w *work) seal(r *machine.Record) error {
	r.Seal(w.id, w.salt, w.st.Seq, w.st.TailHash, w.s.token)
	trial := *r
	trial.At = w.now().Earliest
	return w.st.Follows(&trial)
}

// class is where a work stands in the order of claims, after r if there is one.
func class(st *machine.State, r *machine.Record) ledger.Class {
	turned, begun := st.Compensating, len(st.Steps) > 0
	if r != nil {
		turned, begun = turned || r.Status == saga.Compensating, begun || r.Dispatch != nil
	}
	switch {
	case turned:
		return ledger.ClassCompensating
	case begun:
		return ledger.ClassBegun
	default:
		return ledger.ClassUnbegun
	}
}

// stored folds what the ledger has taken. It reports whether the work stays in our hands.
func (w *work) stored(r *machine.Record, a ledger.Answer, hold bool) bool {
	r.At, w.head, w.inHead, w.over, w.awaits = a.At, a.Number, hold, false, nil
	was, asked := w.st.Status, w.asking()
	w.consumed += int64(len(r.Signals))
	if err := w.st.Apply(r); err != nil { // the machine decided what its own fold refuses
		w.c.opts.Log.WithError(err).Error("a stored record does not fold; please report this")
		return false
	}
	w.unwait(asked)
	w.times.wrote(w.c.clock, r, w.sent, time.Now())
	w.c.hand.grew(w, len(r.Body))
	w.c.tell.recorded(w.st, was, r)
	if p := w.c.programFor(w.st); p != nil { // a revision may take another version of the definition
		w.program = p
	}
	return hold
}

// overtaken loads the chain after a stale answer. An outcome is never dropped: when its attempt is
// still open it is decided about again, and otherwise it is posted for the session that holds the
// work.
func (w *work) overtaken(ev *machine.Event) bool {
	before := w.open()
	ours := w.reload()
	if ev.Outcome != nil && w.open() == before {
		return true // also when the work is no longer ours: recording what was learned needs only the tail
	}
	w.postLate(before, ev.Outcome)
	*ev = machine.Event{}
	return ours
}

// reload loads the chain and folds it again. It reports whether the work is still ours.
func (w *work) reload() bool {
	chain, sent, err := w.load()
	if err != nil {
		return false
	}
	st, err := machine.Fold(w.id, chain.Records)
	if err != nil {
		w.c.opts.Log.WithError(err).Error("the chain does not fold; run amends check")
		return false
	}
	w.loaded(st, chain, sent)
	p := w.c.programFor(st)
	if p == nil {
		return w.goBack(0)
	}
	w.program = p
	return w.inHead
}

// loaded takes what was read of the work.
func (w *work) loaded(st *machine.State, chain *ledger.Chain, sent time.Time) {
	bytes := 0
	for i := range chain.Records {
		bytes += len(chain.Records[i].Body) + len(chain.Records[i].Snapshot)
	}
	w.c.hand.grew(w, bytes-int(w.bytes))
	w.salt, w.consumed = chain.Instance.Salt, chain.Instance.Consumed
	w.st, w.head, w.inHead, w.over = st, chain.Instance.Number, chain.Instance.Session == w.s.token, chain.Over && !w.c.clock.doubted() // by such a clock a lease that goes on is over
	w.times.read(w.c.clock, reading{st.Updated, sent, time.Now()})
}

// load reads the chain, however long the ledger takes to answer. A chain that can never be read
// costs one session and keeps the process from no other.
func (w *work) load() (chain *ledger.Chain, sent time.Time, err error) {
	over := w.c.outage.ask()
	defer over()
	defer context.AfterFunc(w.s.idle, over)()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		sent = time.Now()
		chains, err := w.c.ledger.Load(w.c.life, []saga.ID{w.id})
		if err == nil && len(chains) == 0 {
			err = ledger.ErrNotFound
		}
		if err == nil {
			w.c.outage.answered(callLoad)
			w.c.clock.heard(chains[0].At, sent, time.Now())
			return &chains[0], sent, nil
		}
		if errors.Is(err, ledger.ErrNotFound) || nap.For(w.c.life, wait) != nil {
			return nil, sent, err
		}
		w.c.outage.failed(callLoad, err)
	}
}

// refused asks the machine again about an event whose record the ledger, or the fold, calls
// invalid. It leaves out what others gave it first, and parks the work in the end. It reports false
// when not even that is taken.
func (w *work) refused(ev *machine.Event, a ledger.Answer) bool {
	log := w.c.opts.Log.WithError(a.Err).WithField("saga", w.id.Saga).WithField("work", w.id.Work)
	if ev.Invalid++; ev.Invalid > 3 {
		log.Error("no record of this work can be stored; it is tried again in a while, run amends check")
		return w.goBack(longestAway)
	}
	log.Warn("a record cannot be stored as it is; it is recorded without what others gave it")
	return true
}

// listen consumes every signal posted to the work, each by a record, and then decides what comes
// next.
func (w *work) listen() (machine.Command, bool) {
	unread, err := w.unread()
	if err != nil {
		return machine.Command{}, false
	}
	for i := range unread {
		sig := &unread[i]
		w.listening = i < len(unread)-1
		read, ok := w.read(sig)
		if !ok {
			return machine.Command{}, false
		}
		cmd, ok := w.decide(machine.Event{Signal: sig, Same: w.same(sig), Read: read}, !w.listening && !w.spoken.Load())
		if !ok || cmd.Do == machine.Act {
			return cmd, ok
		}
	}
	return w.decide(machine.Event{}, true)
}

// unread are the signals that no record has consumed. For one that is known, and is the next, the ledger is not asked.
func (w *work) unread() ([]machine.Signal, error) {
	if told := w.told.Swap(nil); told != nil && told.ID == w.consumed+1 && !w.st.Saw(told.ID) {
		return []machine.Signal{*told}, nil
	}
	asked := w.now().Earliest
	w.c.hand.looks(w)
	chain, _, err := w.load()
	if err != nil {
		return nil, err
	}
	w.heard = asked
	return slices.DeleteFunc(chain.Signals, func(s machine.Signal) bool { return w.st.Saw(s.ID) }), nil
}

// endsUnheard reports whether r says that a time is over, and what was posted before it may be unread: another process posted it since
// the last poll.
func (w *work) endsUnheard(r *machine.Record, now machine.Moment) bool {
	var end time.Time
	switch r.Kind { //nolint:exhaustive // no other says so
	case machine.KindOverdue:
		end = w.st.Deadline
	case machine.KindUnanswered:
		end = w.st.Step(r.Step).WaitsUntil
	}
	return w.heard.Before(end) && !now.Earliest.Before(end)
}

// attempting reports whether an armed attempt is open. No signal is consumed before it is answered
// or lost.
func (w *work) attempting() bool { return w.open() != attemptName{} }

// several stands for what a work was told of and only the ledger can say.
var several machine.Signal

// speak tells the work that a signal is waiting for it.
func (w *work) speak() {
	w.told.Store(&several)
	w.spoken.Store(true)
	w.stir()
}

// hear tells the work which signal was posted to it in this process, so that the ledger need not be asked.
func (w *work) hear(sig *machine.Signal) {
	sig.Body, sig.Input, sig.Output = bytes.Clone(sig.Body), bytes.Clone(sig.Input), bytes.Clone(sig.Output) // they are the caller's
	if !w.told.CompareAndSwap(nil, sig) {
		w.told.Store(&several)
	}
	w.spoken.Store(true)
	w.stir()
}

// stir wakes the work if it waits.
func (w *work) stir() {
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

func (w *work) spec() *program.Spec { return w.program.Spec() }
