package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Moment is what a process knows of the database's clock: it is not before Earliest and not after
// Latest. "Settled?" is asked of Earliest, "expired?" of Latest, so that neither is answered too
// soon.
type Moment struct {
	Earliest time.Time
	Latest   time.Time
}

// Event is something the machine decides about. At most one of the pointers is set; none means:
// look what is due.
type Event struct {
	Now Moment

	// Slot: a send slot for whatever is armed next is in hand, and this process may arm.
	Slot bool
	// Over: the session that armed the open attempt is over, so nothing of it is sent or awaited any
	// more: it is lost at once.
	Over bool

	// Hung: the open attempt's action has not returned long behind its deadline, in words for people. It stays open.
	Hung string

	// HeldUntil is until when a person held the work's saga, or everything, the last time: a deadline that
	// passed before is missed (W6). Zero: never.
	HeldUntil time.Time
	// Spoken: signals are still to be read. A deadline waits for them: what was said before it counts (W5).
	Spoken bool

	// Changed is when the database became another one after the work's latest record was written (a
	// fail-over, a restore): what was stored behind that record may be forgotten. Zero when it did
	// not.
	Changed time.Time
	// Unread: what was forgotten may have consumed a signal: one that was posted before Changed is
	// pending, or so much is forgotten that one may have come and gone (the database was restored).
	Unread bool
	// Recovered: the destination that failed the step has served others since. What an outage has the
	// step wait for is over.
	Recovered bool
	// Probed: a person had that destination tried since. The step waits no longer, whatever failed it.
	Probed bool
	// Same: the input that Signal brings has the identity of the one heard before.
	Same bool
	// Newest is the newest definition of the saga that this process knows; nil: none newer than the
	// work's. A revision takes its version, or a newer one that the signal or the work names.
	Newest *program.Spec
	// Invalid is how often the record of this very event could not be stored: the ledger called it
	// invalid, or it did not fold. The first time the machine leaves out the bodies and words that
	// others gave it; from the second on it parks the work with words of its own (M1).
	Invalid int
	// MaxCrashes is how often a step may have been in flight when its process died before a person
	// is asked; 0: 20.
	MaxCrashes int
	// Bystanders is how many other steps were in flight when the process of a lost attempt died, as
	// far as is known.
	Bystanders int

	Start    *Start            // the work begins
	Outcome  *program.Outcome  // of the armed attempt
	Evidence *program.Evidence // of the lookup that was asked for
	Asked    *Asked            // what the definition said, which was asked
	Signal   *Signal           // posted by an actor other than the holder
	Read     *Read             // beside Signal: how the definition reads the answer that it brings

	// Secret is the id of the secret that new callback tokens are made with.
	Secret string
	// Polled is when this process asked for the answer that a step waits for, the last time; nil: it has not.
	Polled *Polled
}

// Start is what a work begins with.
type Start struct {
	Revision  string
	Input     json.RawMessage
	Nonce     int64     // random, chosen by the caller that starts the work
	Cause     string    // what caused it, in the starter's words: an event's id, a run of a schedule, a person
	Starter   string    // who it is, if that is said
	Tags      []string  // what it is found by, name=value, sorted
	Identity  string    // hash of what makes two starts the same; empty: the whole input does
	NotBefore time.Time // nothing is sent before; zero: now
}

// Decision is what follows from an event: append Record if there is one, and only then do Do.
type Decision struct {
	Record *Record // not yet sealed
	Do     Command
}

// Verb is the kind of a command.
type Verb string

// What a process can be told to do.
const (
	Act  Verb = "act"  // run the attempt just armed; answer with its Outcome
	Ask  Verb = "ask"  // ask the definition until when the step waits; answer with Asked
	Look Verb = "look" // ask the destination; answer with Evidence
	Slot Verb = "slot" // get a send slot for the step's destination; come back with Event.Slot
	Wait Verb = "wait" // come back at Until, ledger time
	Rest Verb = "rest" // the work is parked or terminal: let go of it
)

// Command is what to do once the record is appended.
type Command struct {
	Do        Verb
	Step      string
	Direction saga.Direction
	Until     time.Time // Wait; of a Slot, when to come back without one, if there is such a time
}

// String shows c as golden scripts do.
func (c Command) String() string {
	switch c.Do {
	case Rest:
		return string(c.Do)
	case Wait:
		return "wait until " + c.Until.UTC().Format("15:04:05.999")
	default:
		return fmt.Sprintf("%s %s %s", c.Do, c.Step, c.Direction)
	}
}

// Bounds of the machine itself.
const (
	maxLookups    = 12 // lookups in a row that cannot tell before a person is asked
	maxConsumed   = 64 // consumed signals that the state remembers
	snapshotEvery = 64 // records between snapshots: what loading a chain costs at most
	// grace is how long after its arming an attempt that was lost before its deadline is not repeated:
	// most answers would have come by then, so that most repetitions meet no twin of themselves.
	grace   = 2 * time.Second
	maxText = 2 << 10
)

// Decide is the machine: a pure function of the definition's structure, the chain so far and an
// event. st is not changed; fold the record into it with [State.Apply] once the ledger has stored
// it. An error means that the event does not fit the chain: the caller's view is wrong, and it must
// load the chain again.
func Decide(spec *program.Spec, st *State, ev Event) (Decision, error) {
	if st.Adopting { // only Adopt moves the work until the adoption is at its end (D1)
		return Decision{Do: Command{Do: Rest}}, nil
	}
	if ev.Invalid > 1 && st.Seq > 0 {
		return giveUp(st, &ev, errors.New("what was to be recorded is not a value that the ledger takes")), nil
	}
	m := machine{spec: spec, st: st.borrowed(), ev: ev, turned: st.Compensating}
	defer m.st.giveBack()
	if ev.Invalid > 0 {
		m.ev = ev.bare()
	}
	cmd, err := m.decide()
	switch {
	case err != nil:
		return Decision{}, fmt.Errorf("%s at record %d: %w", st.ID, st.Seq, err)
	case m.broken != nil && st.Seq > 0:
		return giveUp(st, &ev, m.broken), nil
	case m.rec == nil:
		return Decision{Do: cmd}, nil
	}
	m.rec.clean()
	if st.Seq-st.SnapshotSeq+1 >= snapshotEvery {
		b, err := json.Marshal(st)
		if err != nil {
			return Decision{}, fmt.Errorf("%s: snapshot: %w", st.ID, err)
		}
		m.rec.Snapshot = b
	}
	return Decision{Record: m.rec, Do: cmd}, nil
}

// machine is one decision in the making.
type machine struct {
	spec     *program.Spec
	st       *State  // provisional: what happened is folded in
	ev       Event   //
	rec      *Record // nil until there is something to append
	unparked bool    // the event takes a parked work up again
	late     bool    // it brings a success that was given up, which a person has to look at
	turned   bool    // the work had turned before this decision
	broken   error   // what cannot be, and is
}

var errNotFitting = errors.New("the event does not fit the chain")

// decide learns what the event says and decides what follows. It recovers from a panic, which is a fault of the machine, or a
// chain that no machine of this version wrote: one bad chain must not crash process after process.
func (m *machine) decide() (cmd Command, err error) {
	defer func() {
		if p := recover(); p != nil {
			m.broken, err = fmt.Errorf("the machine panicked: %v", p), nil
		}
	}()
	if err := m.learn(); err != nil {
		return Command{}, err
	}
	return m.proceed(), nil
}

// proceed decides what comes next and completes the record with it.
func (m *machine) proceed() Command {
	if m.late {
		m.rec.Status, m.rec.Reason = saga.Review, saga.ReasonLate
		return Command{Do: Rest}
	}
	if m.st.Status.Terminal() && m.st.PendingRevision == nil && (m.rec == nil || m.rec.Kind == KindNoted) {
		return Command{Do: Rest}
	}
	if m.rec != nil && m.rec.Kind == KindForgotten { // what is in doubt settles from when the record is stored
		return Command{Do: Wait, Until: m.ev.Now.Earliest}
	}
	if live := m.st.live(); live != nil && m.ev.Hung != "" {
		m.record(KindParked)
		m.rec.Note = m.ev.Hung
		return m.park(saga.ReasonHung)
	} else if live != nil {
		deadline := live.effort(live.open()).Deadline
		if !m.ev.Over && m.ev.Now.Earliest.Before(deadline) {
			return Command{Do: Wait, Until: deadline} // a late answer may still land
		}
		if err := m.lost(live); err != nil { // an open attempt can always be lost
			return m.cannotBe(err)
		}
	}
	m.unparked = m.unparked || m.st.Status == saga.Review && m.st.Reason == saga.ReasonHung // it has returned, or its process is gone
	if m.st.Status == saga.Paused && !m.unparked || m.rec != nil && m.rec.Kind == KindPaused {
		m.stay()
		return Command{Do: Rest}
	}
	if m.st.PendingRevision != nil && (m.boundary() || m.turnsAtOnce()) {
		return m.begin()
	}
	if m.st.Status.Parked() && !m.unparked {
		m.stay()
		return Command{Do: Rest}
	}
	if m.st.Compensating {
		return m.back()
	}
	return m.forward()
}

// forward decides on the first step that is not done.
func (m *machine) forward() Command {
	switch newest := m.newest().Version; {
	case m.st.Version > newest: // it is due now, for a process that knows this version
		m.moving()
		return Command{Do: Rest}
	case m.st.Version != m.spec.Version: // the revision takes another version of the definition
		return m.again()
	}
	if i := slices.IndexFunc(m.st.Steps, func(ss StepState) bool { return ss.Forward.quarantined() }); i >= 0 {
		if m.rec != nil { // what a person said of the one before is no word about this one
			return m.again()
		}
		cmd := m.park(saga.ReasonInDoubt) // another one of several that were adopted: nothing is done before each is decided (D6)
		m.rec.Note = m.st.Steps[i].Forward.Error
		return cmd
	}
	for i := range m.spec.Steps {
		s := &m.spec.Steps[i]
		ss := m.st.Step(s.Name)
		if ss != nil && s.Waits() != ss.waits() && (ss.waits() || ss.mayHaveHappened()) {
			return m.renamed(s)
		}
		if ss != nil && ss.leftAtThat() {
			break
		} else if ss != nil && (ss.Forward.Phase == Done || ss.Forward.Phase == Skipped) {
			continue
		}
		if cmd, off := m.holdsOff(); off {
			return cmd
		}
		if m.st.AsksWhen(s) {
			m.moving()
			return Command{Do: Ask, Step: s.Name, Direction: saga.Forward}
		}
		if behind := m.doubtBehind(i); behind != nil && behind.Forward.NeedsReview != "" {
			return m.park(behind.Forward.NeedsReview)
		} else if behind != nil {
			return m.look(m.step(behind.Name), &behind.Forward)
		}
		if s.Waits() {
			if cmd, waits := m.awaitStep(i, s); waits {
				return cmd
			}
			continue
		}
		if s.Asks != nil {
			if cmd, asks := m.askVoters(s, ss); asks {
				return cmd
			}
			continue
		}
		if ss == nil && s.FindFirst {
			return m.look(s, &Effort{})
		}
		if ss == nil {
			return m.arm(s, saga.Forward)
		}
		return m.resume(i, s, ss)
	}
	return m.finish(saga.Completed)
}

// doubtBehind is a step behind a wait that has not begun, which may have happened before the ledger was lost and can be asked for: then
// the wait is over (D4), and none is to be asked to decide on what is done. What another program may have made says nothing of that. nil:
// there is none.
func (m *machine) doubtBehind(i int) *StepState {
	if asks := m.spec.Steps[i].Asks; asks != nil { // it is asked for that one
		i = m.spec.Index(asks.Approval)
	}
	if ss := m.st.Step(m.spec.Steps[i].Name); !m.spec.Steps[i].Waits() || ss != nil && ss.Forward.Phase != "" {
		return nil
	}
	for _, b := range m.spec.Steps[i+1:] {
		if bs := m.st.Step(b.Name); b.Find && !b.FindFirst && bs != nil && bs.Forward.Phase == InDoubt && bs.Forward.Attempts == bs.EarlierAttempts {
			return bs
		}
	}
	return nil
}

// resume decides on a step that was armed and is not done.
func (m *machine) resume(i int, s *program.StepSpec, ss *StepState) Command {
	e := &ss.Forward
	switch {
	case e.NeedsReview != "":
		return m.park(e.NeedsReview)
	case m.poisonous(e):
		return m.poison(e)
	case e.Phase == Refused:
		return m.refused(i)
	case e.Phase == InDoubt && (ss.PreviousGone || !m.resendable(s, e)):
		if !s.Find {
			return m.park(saga.ReasonInDoubt)
		}
		return m.look(s, e)
	case asksFirst(s, ss):
		return m.look(s, e)
	default:
		return m.attempt(i, s, e)
	}
}

// asksFirst reports whether the destination is asked for the step before its first request (T1): nothing is known of it, and another
// program may have done it.
func asksFirst(s *program.StepSpec, ss *StepState) bool {
	return s.FindFirst && (ss == nil || ss.Forward.Phase == "" && ss.Previous == nil && !ss.PreviousGone)
}

// resendable reports whether a step in doubt may be sent again under the same key without a lookup
// or a resolution.
func (m *machine) resendable(s *program.StepSpec, e *Effort) bool {
	switch s.Repeat {
	case program.RepeatIdempotent:
		return true
	case program.RepeatKeyed:
		return m.inWindow(s, e)
	default:
		return false
	}
}

// inWindow reports whether an attempt armed now ends before the destination forgets the key.
func (m *machine) inWindow(s *program.StepSpec, e *Effort) bool {
	return m.ev.Now.Latest.Add(s.Timeout).Before(e.KeyFirstUsed.Add(s.TTL - s.KeyMargin()))
}

func (m *machine) refused(i int) Command {
	if i > m.spec.PivotIndex() || m.pivotStands(i) {
		return m.park(saga.ReasonAfterPivot)
	}
	return m.turn("")
}

// attempt arms the step's next attempt when its time has come, or gives up.
func (m *machine) attempt(i int, s *program.StepSpec, e *Effort) Command {
	if m.exhausted(s, e) {
		if s.Retry.Compensate && i <= m.spec.PivotIndex() && !m.pivotStands(i) {
			return m.turn(saga.ReasonExhausted)
		}
		return m.park(saga.ReasonExhausted)
	}
	until := m.notBefore(s, e)
	if !e.QuietUntil.IsZero() {
		until = later(until, e.QuietUntil.Add(s.Settle))
	}
	if m.ev.Now.Earliest.Before(until) {
		return m.wait(until, saga.Retrying)
	}
	return m.arm(s, saga.Forward)
}

// notBefore is until when the step waits after what failed it. What an outage failed waits no longer than
// the outage lasts (F30), unless the destination said for how long. A person can have it tried now,
// unless it may be what takes processes down.
func (m *machine) notBefore(s *program.StepSpec, e *Effort) time.Time {
	spent := e.ErrorClass != program.Outage && e.ErrorClass != saga.Unsent && e.ErrorClass != "" // the last: a lookup has answered since
	asked := e.BackoffUntil.Sub(e.Failed) > s.Retry.Backoff(e.Key, max(1, e.Failures))+time.Second
	if m.ev.Recovered && !spent && !asked || m.ev.Probed && e.Crashes < 2 {
		return time.Time{}
	}
	return e.BackoffUntil
}

// pivotStands reports whether the pivot may stand although the work is at step i, before it or at
// it: an earlier revision passed it, or a fail-over forgot whether it was sent. Then what step i is
// refused cannot turn the work.
func (m *machine) pivotStands(i int) bool {
	pivot := m.spec.PivotIndex()
	if pivot == len(m.spec.Steps) {
		return false
	}
	ss := m.st.Step(m.spec.Steps[pivot].Name)
	return ss != nil && (ss.Previous != nil || ss.StoodBefore || i < pivot && (ss.mayHaveHappened() || ss.waits() && ss.Forward.Phase == Done))
}

// exhausted reports whether the step's retry policy is used up.
func (*machine) exhausted(s *program.StepSpec, e *Effort) bool {
	return e.CountedAttempts >= s.Retry.WithDefaults().Attempts || overdue(s, e)
}

// overdue reports whether the step still failed when its time was over. Time alone uses up nothing:
// a work that no process could run for a weekend is tried again first.
func overdue(s *program.StepSpec, e *Effort) bool {
	return !e.PolicyStartedAt.IsZero() && e.Failed.After(e.PolicyStartedAt.Add(s.Retry.WithDefaults().Within))
}

// look asks the destination once every attempt has settled, and a person when it cannot tell for
// too long.
func (m *machine) look(s *program.StepSpec, e *Effort) Command {
	failed := m.rec != nil && m.rec.Kind == KindUnclear
	if e.UnclearLookups >= maxLookups || failed && overdue(s, e) {
		return m.park(saga.ReasonInDoubt)
	}
	until := later(e.unsettled().Add(s.Settle), m.notBefore(s, e))
	if e.Phase == "" && !m.spec.TakenOver.IsZero() { // T2
		until = later(until, m.spec.TakenOver.Add(s.Settle))
	}
	if m.ev.Now.Earliest.Before(until) {
		return m.wait(until, saga.Retrying)
	}
	m.moving()
	return Command{Do: Look, Step: s.Name, Direction: saga.Forward}
}

// arm makes the next attempt of s the record's intent, when its send slot is in hand. The record
// that turns the work, whatever turns it, arms nothing (C13).
func (m *machine) arm(s *program.StepSpec, dir saga.Direction) Command {
	m.moving()
	if !m.ev.Slot || m.st.Compensating != m.turned {
		return Command{Do: Slot, Step: s.Name, Direction: dir, Until: m.deadline()}
	}
	e := &Effort{}
	if ss := m.st.Step(s.Name); ss != nil {
		e = ss.effort(dir)
	}
	reissue := e.Reissue
	if s.Repeat == program.RepeatKeyed && dir == saga.Forward && e.Phase == Ready && e.Attempts > 0 && !e.KeyFirstUsed.IsZero() && !m.inWindow(s, e) {
		reissue++ // nothing happened under the old key, and its window is over
	}
	m.record(KindDispatched)
	m.rec.Dispatch = &Dispatch{
		Step: s.Name, Direction: dir, Attempt: e.Attempts + 1, Reissue: reissue, Budget: s.Timeout,
		Key: StepKey(m.st.root(), s.Name, dir, reissue),
	}
	if dir == saga.Forward && m.spec.AnswerTo(s.Name) != nil {
		m.rec.Dispatch.SecretID = m.ev.Secret
		if ss := m.st.Step(s.Name); ss != nil && e.Key == m.rec.Dispatch.Key && ss.Answering().Secret != "" { // the same for every attempt (A2)
			m.rec.Dispatch.SecretID = ss.Answering().Secret
		}
	}
	return Command{Do: Act, Step: s.Name, Direction: dir}
}

// moving sets the status of a work that is being worked on.
func (m *machine) moving() {
	status := saga.Running
	if m.st.Compensating {
		status = saga.Compensating
	}
	if m.rec != nil {
		m.rec.Status, m.rec.Reason, m.rec.Wait = status, "", 0
	}
}

// wait puts the work down until a ledger time. Without news there is nothing to record.
func (m *machine) wait(until time.Time, status saga.Status) Command {
	if m.st.Compensating {
		status = saga.Compensating
	}
	if deadline := m.deadline(); !deadline.IsZero() && deadline.Before(until) {
		until = deadline
	}
	d := (min(until.Sub(m.ev.Now.Earliest), saga.MaxWait) + time.Millisecond - 1).Truncate(time.Millisecond)
	if m.rec != nil {
		m.rec.Status, m.rec.Reason, m.rec.Wait = status, "", d
	}
	return Command{Do: Wait, Until: m.ev.Now.Earliest.Add(d)}
}

// park hands the work to a person.
func (m *machine) park(why saga.Reason) Command {
	m.record(KindParked)
	m.rec.Status, m.rec.Reason, m.rec.Wait = saga.Review, why, 0
	if m.rec.Said() == "" {
		m.rec.Note = parkedBecause[why]
	}
	return Command{Do: Rest}
}

// finish ends the chain, until a newer version of the source opens it again.
func (m *machine) finish(s saga.Status) Command {
	m.record(KindNoted)
	m.rec.Status, m.rec.Reason, m.rec.Wait = s, "", 0
	return Command{Do: Rest}
}

// record makes sure that there is a record, of kind if nothing happened but the decision itself.
func (m *machine) record(kind Kind) {
	if m.rec == nil {
		m.rec = &Record{Kind: kind, Status: m.st.Status, Reason: m.st.Reason}
		m.moving()
	}
}

// step returns the structure of the named step, or nil when this version does not have it.
func (m *machine) step(name string) *program.StepSpec {
	if i := m.spec.Index(name); i >= 0 {
		return &m.spec.Steps[i]
	}
	return nil
}
