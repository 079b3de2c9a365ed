package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// State is where a work stands: the fold of its chain. It needs no definition to be computed, so a
// ledger can be read without the program that wrote it.
type State struct {
	ID             saga.ID `json:"-"`
	Version        int     `json:"version"`
	Revision       string  `json:"revision,omitempty"`       // which is being worked on
	Run            string  `json:"run,omitempty"`            // the revision with which the run began: what a newer version takes over goes on in it
	NewestRevision string  `json:"newestRevision,omitempty"` // the newest that was spoken of
	Seq            int64   `json:"seq"`                      // of the tail
	TailHash       Hash    `json:"tailHash"`
	SnapshotSeq    int64   `json:"snapshotSeq"` // seq of the latest record with a snapshot; 1 when there is none

	Status saga.Status `json:"status"`
	Reason saga.Reason `json:"reason,omitempty"`
	Note   string      `json:"note,omitempty"`  // why it was parked, in words
	Cause  string      `json:"cause,omitempty"` // what caused the start, in the starter's words
	Tags   []string    `json:"tags,omitempty"`  // what it is found by: those that it was started with
	// Starters are who started it, brought a newer version of it or ran it again; "": that is not known of one of them.
	Starters     []string `json:"starters,omitempty"`
	Compensating bool     `json:"compensating,omitempty"` // going back: compensating, compensated, or in review on the way
	// UndoneFrom is where the way back ends, if it is no whole one: this step is the last that is undone, and the work is completed then (V19).
	UndoneFrom string `json:"undoneFrom,omitempty"`
	// Adopting: the work is being taken over from what stands at its destinations, and nothing else
	// may happen to it.
	Adopting bool      `json:"adopting,omitempty"`
	Due      time.Time `json:"dueAt,omitzero"`    // when the latest record wants attention
	StartsAt time.Time `json:"startsAt,omitzero"` // it was started for later
	// Deadline is when the run that goes on has to be at its end. DeadlinePassed: it was not, or a person had it
	// then; nothing follows any more.
	Deadline            time.Time `json:"deadlineAt,omitzero"`
	DeadlinePassed      bool      `json:"deadlinePassed,omitempty"`
	LateAnswersLookedAt bool      `json:"lateAnswersLookedAt,omitempty"` // by a person: further ones are noted

	// Withdrawn: the source cancelled what is worked on, and has said nothing newer since.
	Withdrawn bool `json:"withdrawn,omitempty"`

	Input json.RawMessage `json:"input"`
	// Identity is the hash of what makes two starts the same, where that is not the whole input. InputGone is what is left of an input that has
	// gone by retention: no step that needs it is run again. RecordsGone: nor is anything known but what [Remains] says.
	Identity        string      `json:"identity,omitempty"`
	InputGone       *Given      `json:"inputGone,omitempty"`
	RecordsGone     bool        `json:"recordsGone,omitempty"`
	PendingRevision *Newer      `json:"pendingRevision,omitempty"` // waits for a step boundary
	HeldRevision    string      `json:"heldRevision,omitempty"`    // it is paused because its source says "not yet" at this version
	Steps           []StepState `json:"steps,omitempty"`           // in the order of first arming
	ConsumedSignals signalIDs   `json:"consumedSignals,omitempty"` // the latest signals that were; the ledger knows all
	// Unmatched: it was adopted with what does not match its input: the next version is news, whatever it says.
	Unmatched bool `json:"unmatched,omitempty"`
	// Forgotten is when it was last put on record that the database went back.
	Forgotten time.Time `json:"forgottenAt,omitzero"`
	Started   time.Time `json:"startedAt"`
	Updated   time.Time `json:"updatedAt"`

	kept struct{ revision, root string } // the root key of the latest record's revision
}

// Newer is a newer version of the source object that the work has heard of and not yet begun.
type Newer struct {
	Revision  string          `json:"revision"`
	Version   int             `json:"version,omitempty"`   // of the definition
	Withdrawn bool            `json:"withdrawn,omitempty"` // the source cancelled or deleted the object
	Input     json.RawMessage `json:"input,omitempty"`
	Identity  string          `json:"identity,omitempty"`
	InputGone *Given          `json:"inputGone,omitempty"` // of an input that has gone
	By        string          `json:"by,omitempty"`        // who brought it
}

// StepState is what is known of one step that was armed at least once.
type StepState struct {
	Name          string          `json:"name"`
	Forward       Effort          `json:"forward"`
	Undo          Effort          `json:"undo,omitzero"`
	ExternalID    string          `json:"externalId,omitempty"`
	Output        json.RawMessage `json:"output,omitempty"`
	OutputDropped bool            `json:"outputDropped,omitempty"` // the output was not kept
	Evidence      Kind            `json:"evidence,omitempty"`      // done by: KindDone, KindFound, KindResolved, KindAdopted
	Unfinished    *program.Result `json:"unfinished,omitempty"`    // what a lookup found half-made
	Previous      *program.Result `json:"previous,omitempty"`      // what an earlier revision left at the destination
	MadeKey       string          `json:"madeKey,omitempty"`       // the key under which that was first sent
	// PreviousGone: the destination says that Previous is not there any more. StoodBefore: it was not, and the step
	// still counts as made, by an earlier revision (V10).
	PreviousGone    bool `json:"previousGone,omitempty"`
	StoodBefore     bool `json:"stoodBefore,omitempty"`
	EarlierAttempts int  `json:"earlierAttempts,omitempty"` // attempts of earlier revisions; later ones are counted on
	Unconfirmed     bool `json:"unconfirmed,omitempty"`     // adopted as done although the outcome is unknown
	Applies         bool `json:"applies,omitempty"`         // its condition said so in this run
	// StoodBeforeLoss: it stood when the ledger was lost, or had gone back, in this run: the waits and approvals before it were over by then.
	StoodBeforeLoss bool `json:"stoodBeforeLoss,omitempty"`
	MadeByAnother   bool `json:"madeByAnother,omitempty"` // it was there before the first attempt, and stands; where it was found as it should be, only in later runs
	// WaitsUntil is when the wait of a step is over that only waits. It stays when it is over.
	WaitsUntil time.Time `json:"waitsUntil,omitzero"`
	Outside    *Outside  `json:"outside,omitempty"` // what an answer from outside is about; shared by copies, never changed
}

// Effort is one direction of a step: all its attempts.
type Effort struct {
	Phase           Phase  `json:"phase,omitempty"`
	Attempts        int    `json:"attempts,omitempty"`        // armed so far
	CountedAttempts int    `json:"countedAttempts,omitempty"` // of those, the ones that count against the retry policy
	Failures        int    `json:"failures,omitempty"`        // attempts and lookups that failed since the last resolution: the backoff's count
	UnclearLookups  int    `json:"unclearLookups,omitempty"`  // in a row that could not tell
	Crashes         int    `json:"crashes,omitempty"`         // attempts whose process died, since the last resolution
	ConcurrentSteps []int  `json:"concurrentSteps,omitempty"` // at each of the latest, how many other steps were in flight
	Reissue         int    `json:"reissue,omitempty"`
	Key             string `json:"key,omitempty"`

	PolicyStartedAt time.Time `json:"policyStartedAt,omitzero"` // first armed, since the last resolution: the policy's clock
	KeyFirstUsed    time.Time `json:"keyFirstUsedAt,omitzero"`  // first armed under this key, and perhaps sent: the key window's clock
	MayHaveReached  bool      `json:"mayHaveReached,omitempty"` // an attempt under this key may have reached the destination
	Failed          time.Time `json:"failedAt,omitzero"`        // when the latest attempt or lookup failed
	Deadline        time.Time `json:"deadlineAt,omitzero"`      // of the latest attempt
	// OutcomeUnknownUntil is the latest deadline of the attempts whose outcome is unknown, or of one that was
	// lost before, when it was. Zero: none may have happened without our knowing. This is the whole
	// of "may have happened".
	OutcomeUnknownUntil time.Time `json:"outcomeUnknownUntil,omitzero"`
	// QuietUntil is the latest deadline of the attempts that a person, or a newer revision, has put aside as not having happened. Before the step has
	// settled behind it nothing new is armed, and the step is not skipped on the way back: a request may still arrive.
	QuietUntil   time.Time `json:"quietUntil,omitzero"`
	BackoffUntil time.Time `json:"backoffUntil,omitzero"` // backoff, Retry-After

	ErrorClass  saga.Class  `json:"errorClass,omitempty"` // of the latest error
	Error       string      `json:"error,omitempty"`
	NeedsReview saga.Reason `json:"needsReview,omitempty"` // the effort waits for a person
}

// Fold computes the state of the chain of id. records are whole from the first one, or from one
// that carries a snapshot. The error names the first record that cannot follow its predecessor.
func Fold(id saga.ID, records []Record) (*State, error) {
	if len(records) == 0 {
		return nil, fmt.Errorf("%s: the chain is empty", id)
	}
	st := &State{ID: id}
	if first := &records[0]; first.Seq != 1 {
		if first.Snapshot == nil {
			return nil, fmt.Errorf("%s: the chain begins at record %d, which carries no snapshot", id, first.Seq)
		}
		if err := json.Unmarshal(first.Snapshot, st); err != nil {
			return nil, fmt.Errorf("%s: the snapshot in record %d does not decode: %w", id, first.Seq, err)
		}
	}
	for i := range records {
		if err := st.Apply(&records[i]); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// Apply folds the next record into st. On error st is unusable.
func (st *State) Apply(r *Record) error {
	if r.Seq != st.Seq+1 {
		return fmt.Errorf("%s: record %d follows record %d", st.ID, r.Seq, st.Seq)
	}
	confirms := st.confirms(r)
	if err := st.learn(r); err != nil {
		return fmt.Errorf("%s: record %d: %w", st.ID, r.Seq, err)
	}
	if r.Dispatch != nil {
		if err := st.arm(r); err != nil {
			return fmt.Errorf("%s: record %d: %w", st.ID, r.Seq, err)
		}
	}
	st.Seq, st.TailHash, st.Updated = r.Seq, r.Hash, r.At.UTC()
	if r.Kind == KindPaused || r.Reason != "" && !st.stays(r, confirms) {
		st.Note = program.Clean(r.Said(), maxText)
	}
	st.passes(r)
	st.Status, st.Reason = r.Status, r.Reason
	switch {
	case r.Kind == KindPaused:
		st.HeldRevision = r.Revision
	case r.Status != saga.Paused:
		st.HeldRevision = ""
	}
	if st.Compensating = st.Compensating || r.Status == saga.Compensating || r.Status == saga.Compensated; r.Status == saga.Completed {
		st.Compensating, st.UndoneFrom = false, ""
	}
	st.Due = time.Time{}
	if r.Wait > 0 {
		st.Due = r.Due()
	}
	if r.Snapshot != nil {
		st.SnapshotSeq = r.Seq
	}
	st.keepRoot()
	return nil
}

// stays reports whether r leaves a parked work where it is: its words are then not about why it was
// parked.
func (st *State) stays(r *Record, confirms bool) bool {
	passing := confirms || r.Kind == KindNoted || r.Kind == KindFound || r.Kind == KindLost || r.Kind == KindHeard || r.Kind == KindCancelled || r.Kind == KindForgotten
	return passing && st.Status.Parked() && r.Status == st.Status && r.Reason == st.Reason
}

// confirms reports whether r is a resolution on a step that was adopted as done because it could
// not be told (D10).
func (st *State) confirms(r *Record) bool {
	if r.Kind != KindResolved || r.Direction != saga.Forward {
		return false
	}
	ss := st.Step(r.Step)
	return ss != nil && ss.Unconfirmed
}

// learn folds what r says happened, and leaves what it arms and decides.
func (st *State) learn(r *Record) error {
	if st.Status.Terminal() && !st.reopens(r) {
		return fmt.Errorf("%s follows the end of the chain (%s)", r.Kind, st.Status)
	}
	if st.Adopting && !st.admits(r) {
		return fmt.Errorf("%s comes between the records of an adoption", r.Kind)
	}
	if st.ConsumedSignals = append(st.ConsumedSignals, r.Signals...); len(st.ConsumedSignals) > maxConsumed {
		st.ConsumedSignals = slices.Clone(st.ConsumedSignals[len(st.ConsumedSignals)-maxConsumed:])
	}
	switch r.Kind { //nolint:exhaustive // all others speak of a step
	case KindStarted:
		if st.Seq != 0 {
			return fmt.Errorf("the work is started twice")
		}
		var err error
		if st.Input, st.InputGone, err = given(r); err != nil {
			return err
		}
		st.Version, st.Revision, st.Run, st.Identity, st.Started, st.SnapshotSeq = r.Version, r.Revision, r.Revision, r.Identity, r.At.UTC(), 1
		st.Deadline, st.StartsAt, st.NewestRevision, st.Adopting, st.Cause = r.EndsBy(), r.Until, r.Revision, r.Status == saga.Adopting, cmp.Or(r.Cause, r.Said())
		st.Tags = r.Tags
		if st.Adopting { // who rebuilds it has not started it
			st.startedBy("")
		} else {
			st.startedBy(r.Actor)
		}
		return nil
	case KindRemembered:
		return st.remember(r)
	case KindDispatched, KindParked, KindPaused:
		return nil
	case KindNoted, KindCancelled, KindHeard, KindRevised, KindResumed:
		return st.learnSource(r)
	case KindForgotten:
		return st.forget(r)
	case KindAdopted:
		return st.adopt(r)
	}
	if ofWait(r) {
		return st.learnWait(r)
	}
	ss := st.Step(r.Step)
	if ss == nil && r.Direction == saga.Forward && r.Kind.ofLookup() { // asked for before its first attempt
		ss = st.begin(r.Step)
	}
	if ss == nil {
		return fmt.Errorf("%s speaks of step %q, which was never armed", r.Kind, r.Step)
	}
	e := ss.effort(r.Direction)
	if r.Attempt != e.Attempts {
		return fmt.Errorf("%s speaks of attempt %d of step %q; the latest is %d", r.Kind, r.Attempt, r.Step, e.Attempts)
	}
	if r.Kind != KindRetried && (r.Kind != KindSkipped || r.Direction == saga.Forward) { // what failed last stays to be read
		e.ErrorClass, e.Error = r.ErrorClass, r.Error
	}
	if r.Wait > 0 || r.Kind == KindUnclear { // who asks again at once waits for no failure before
		e.BackoffUntil = r.Due()
	}
	if r.Direction == saga.Forward && (r.Kind == KindNotFound || r.Kind == KindUnfinished) {
		st.acquit(ss)
	}
	return ss.learn(e, r)
}

// learn folds one record into the effort it speaks of.
func (ss *StepState) learn(e *Effort, r *Record) error {
	switch r.Kind {
	case KindDone, KindNotSent, KindRefused, KindUnknown, KindLost, KindFault:
		if e.Phase != Started {
			return fmt.Errorf("%s ends an attempt of step %q, which is %s", r.Kind, r.Step, e.Phase)
		}
		ss.endAttempt(e, r)
	case KindFound, KindUnfinished, KindOther, KindNotFound, KindUnclear, KindSeveral: // see ofLookup
		if e.Phase == Started || e.Phase == Done {
			return fmt.Errorf("%s is a lookup's answer on step %q, which is %s", r.Kind, r.Step, e.Phase)
		}
		if r.Direction == saga.Undo {
			ss.taught(e, r)
			break
		}
		ss.evidence(e, r)
	case KindResolved:
		if e.Phase == Started || e.Phase == Waiting || e.Phase == Done && (!ss.Unconfirmed && !(ss.OutputDropped && r.ErrorClass == "") || r.Direction != saga.Forward) {
			return fmt.Errorf("a resolution on step %q, which is %s", r.Step, e.Phase)
		}
		ss.resolve(e, r)
	case KindRetried:
		if e.Phase == Started || e.Phase == Done || e.Phase == Skipped || e.Phase == Waiting {
			return fmt.Errorf("a retry of step %q, which is %s", r.Step, e.Phase)
		}
		if e.retried(); r.Direction == saga.Forward {
			ss.PreviousGone = false
			if ss.Ballot() != nil { // it is decided again
				ss.Outside = nil
			}
		}
	case KindSkipped:
		if e.Phase == Started || e.Phase == Done || e.Phase == Waiting || r.Direction != saga.Forward && e.Phase != Refused {
			return fmt.Errorf("step %q is to be left out, and is %s", r.Step, e.Phase)
		}
		ss.skipped(r)
	default:
		return fmt.Errorf("unknown kind %q", r.Kind)
	}
	return nil
}

func (ss *StepState) endAttempt(e *Effort, r *Record) {
	if r.ErrorClass == program.Interrupted || r.ErrorClass == program.Outage || r.Kind == KindNotSent && r.ErrorClass != saga.Fault {
		e.CountedAttempts--
	}
	e.failed(r)
	e.MayHaveReached = e.MayHaveReached || r.Kind != KindNotSent && r.Kind != KindFault
	switch r.Kind {
	case KindDone:
		ss.done(e, r)
	case KindNotSent, KindFault:
		e.Phase = Ready
		if !e.OutcomeUnknownUntil.IsZero() {
			e.Phase = InDoubt
		}
		if !e.MayHaveReached {
			e.KeyFirstUsed = time.Time{}
		}
		if r.Kind == KindFault {
			e.NeedsReview = saga.ReasonPoison
		}
	case KindRefused:
		e.refused(r)
	case KindLost:
		e.crashed(r)
		fallthrough
	default: // KindUnknown
		e.Phase = InDoubt
		until, early := e.Deadline, r.At.Before(e.Deadline)
		if early && (r.Kind == KindLost || r.ErrorClass == program.Interrupted) || !early && r.Kind == KindUnknown { // its process was gone or stopped waiting; or it returned late
			until = r.At.UTC()
		}
		e.OutcomeUnknownUntil = later(e.OutcomeUnknownUntil, until)
		ss.PreviousGone = ss.PreviousGone || r.ErrorClass == saga.Gone
	}
}

// failed counts a failure for the backoff.
func (e *Effort) failed(r *Record) {
	if r.Kind != KindNotSent && r.Kind != KindUnknown && r.Kind != KindUnclear || r.ErrorClass == program.Interrupted {
		return
	}
	e.Failures++
	e.Failed = r.At.UTC()
}

func (st *State) arm(r *Record) error {
	a := r.Dispatch
	if live := st.live(); live != nil {
		return fmt.Errorf("it arms step %q while an attempt of step %q is open", a.Step, live.Name)
	}
	ss := st.Step(a.Step)
	if ss == nil {
		ss = st.begin(a.Step)
	}
	if a.Direction == saga.Forward && (st.Compensating || r.Status == saga.Compensating) {
		return fmt.Errorf("it arms step %q forward while compensating", a.Step)
	}
	if a.Direction == saga.Forward && ss.Undo.Phase == Done { // made good by hand, and then the work was kept
		ss.Undo = Effort{Attempts: ss.Undo.Attempts}
	}
	e := ss.effort(a.Direction)
	if a.Attempt != e.Attempts+1 || e.Phase == Done || a.Direction == saga.Forward && e.Phase == Skipped {
		return fmt.Errorf("it arms attempt %d of step %q (%s), which is %s after %d", a.Attempt, a.Step, a.Direction, e.Phase, e.Attempts)
	}
	if e.Key != a.Key || e.KeyFirstUsed.IsZero() {
		e.MayHaveReached = e.MayHaveReached && e.Key == a.Key
		e.Key, e.Reissue, e.KeyFirstUsed = a.Key, a.Reissue, r.At.UTC()
	}
	if a.SecretID != "" { // also under a key that a fail-over left without one
		ss.outside().Secret = a.SecretID
	}
	if e.PolicyStartedAt.IsZero() {
		e.PolicyStartedAt = r.At.UTC()
	}
	e.Phase, e.Attempts, e.CountedAttempts, e.Deadline = Started, a.Attempt, e.CountedAttempts+1, r.Deadline()
	e.BackoffUntil, e.QuietUntil = time.Time{}, time.Time{}
	return nil
}

// begin adds the state of a step.
func (st *State) begin(step string) *StepState {
	if len(st.Steps) == cap(st.Steps) {
		st.Steps = slices.Grow(st.Steps, max(1, 4-len(st.Steps)))
	}
	st.Steps = append(st.Steps, StepState{Name: step})
	return &st.Steps[len(st.Steps)-1]
}

// Step returns the state of the named step, or nil when nothing is known of it.
func (st *State) Step(name string) *StepState {
	for i := range st.Steps {
		if st.Steps[i].Name == name {
			return &st.Steps[i]
		}
	}
	return nil
}

// Saw reports whether the signal was consumed by a record, as far back as the chain's state
// remembers. A ledger gives out only what no record has consumed, whenever that was.
func (st *State) Saw(signal int64) bool { return slices.Contains(st.ConsumedSignals, signal) }

// live returns the step whose armed attempt has no recorded outcome, or nil.
func (st *State) live() *StepState {
	for i := range st.Steps {
		if st.Steps[i].Forward.Phase == Started || st.Steps[i].Undo.Phase == Started {
			return &st.Steps[i]
		}
	}
	return nil
}

// Issue returns the step and direction a review is about, nil when there is none: going forward the first step that is not done,
// going back the latest that is owed an undo, was left in doubt before a newer revision, or has none when the source cancelled it.
func (st *State) Issue(spec *program.Spec) (*StepState, saga.Direction) {
	switch {
	case st.Reason == saga.ReasonConflict:
		return st.noWayBack(spec), saga.Undo
	case !st.Compensating:
		return st.front(spec), saga.Forward
	}
	for _, ss := range st.newestFirst(spec) {
		switch {
		case ss.Undo.Phase == Done || !ss.stands(spec) || spec.NeedsNoUndo(ss.Name) || st.keepsBefore(spec, ss):
			continue
		case ss.Forward.Phase == Done || ss.Undo.Attempts > 0 || ss.Undo.NeedsReview != "":
			return ss, saga.Undo
		default:
			return ss, saga.Forward
		}
	}
	if st.PendingRevision != nil && !st.PendingRevision.Withdrawn {
		if ss := st.leftInDoubt(spec); ss != nil {
			return ss, saga.Forward
		}
	}
	return nil, ""
}

// IssueOf returns what a resolution on the named step is about, and in which direction: the step
// that a review is about; else one that was adopted as done because it could not be told, whatever
// the work's status is. It is nil when there is nothing to decide about the step.
func (st *State) IssueOf(spec *program.Spec, step string) (*StepState, saga.Direction) {
	if st.Status == saga.Review || st.Status == saga.Paused {
		if ss, dir := st.Issue(spec); ss != nil && ss.Name == step {
			return ss, dir
		}
	}
	if ss := st.Step(step); ss != nil && (ss.Unconfirmed || ss.lacksResult()) {
		return ss, saga.Forward
	}
	return nil, ""
}

// front is the first step that is not done, of those armed in this revision, in the order of spec, which may be nil; the latest when all are
// done. What an adoption put in quarantine comes before those it did not come to. While the work waits it is the step that waits: what
// a restore or an adoption put in doubt is behind that (F27).
func (st *State) front(spec *program.Spec) *StepState {
	var latest, first, waits, asked *StepState
	for _, ss := range slices.Backward(st.newestFirst(spec)) {
		if ss.Forward.NeedsReview != "" {
			asked = cmp.Or(asked, ss)
		}
		switch ss.Forward.Phase {
		case "", Skipped:
		case Done:
			latest = ss
		case Waiting: // since an earlier revision, perhaps
			waits = cmp.Or(waits, ss)
		default:
			first = cmp.Or(first, ss)
		}
	}
	if st.Status == saga.Waiting {
		asked = cmp.Or(waits, asked)
	}
	return cmp.Or(asked, first, waits, latest)
}

// mayHaveHappened reports whether the step's effect is or may be at the destination.
func (ss *StepState) mayHaveHappened() bool {
	f := &ss.Forward
	return !ss.waits() && (ss.Previous != nil || f.Phase == Done || f.Phase == Started || f.Phase == InDoubt || !f.unsettled().IsZero() || ss.Unfinished != nil)
}

// stands reports whether the step's effect is or may be at the destination. Where nothing but a
// person's word says that it is not, and spec has no undo that could make sure, the word counts.
// What an adoption skipped (D7) does not.
func (ss *StepState) stands(spec *program.Spec) bool {
	if ss.Undo.Phase == Skipped {
		return false
	}
	f := &ss.Forward
	word := (f.Phase == Ready || f.Phase == Skipped || f.Phase == "") && f.OutcomeUnknownUntil.IsZero() && ss.Previous == nil && ss.Unfinished == nil
	several := f.Phase == "" && f.NeedsReview == saga.ReasonInDoubt // they were there before its first request, and a person is asked
	return (several || ss.mayHaveHappened()) && (!word || !spec.NeedsNoUndo(ss.Name))
}

// unsettled is from when on the attempts settle that may still be on their way. Zero: there are
// none.
func (e *Effort) unsettled() time.Time { return later(e.OutcomeUnknownUntil, e.QuietUntil) }

func (ss *StepState) effort(d saga.Direction) *Effort {
	if d == saga.Undo {
		return &ss.Undo
	}
	return &ss.Forward
}

// open returns the direction of ss that has an open attempt.
func (ss *StepState) open() saga.Direction {
	if ss.Undo.Phase == Started {
		return saga.Undo
	}
	return saga.Forward
}
