package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// How a chain takes up newer versions of its source object.

// page is the body of a [KindRevised] record.
type page struct {
	Input     json.RawMessage `json:"input,omitempty"`     // absent: the input that was heard before
	InputGone *Given          `json:"inputGone,omitempty"` // of an input that has gone
	KeptSteps []string        `json:"keptSteps,omitempty"` // steps that are done once for the whole work, and were
}

// reopens reports whether r may follow the end of a chain: a newer version of the source, or a
// note, which changes nothing. A note need not name a signal: then a chain that has one too many
// still folds.
func (st *State) reopens(r *Record) bool {
	switch r.Kind {
	case KindHeard, KindRevised:
		return true
	case KindNoted:
		return r.Status == st.Status
	case KindParked: // a success came that was given up (A5)
		return len(r.Signals) > 0
	case KindResolved: // of a step that was adopted as done because it could not be told (D10)
		return st.confirms(r)
	case KindCancelled:
		return r.Revision != ""
	default:
		return false
	}
}

// learnSource folds what r says about the source object, if it says anything.
func (st *State) learnSource(r *Record) error {
	switch r.Kind { //nolint:exhaustive // the caller's other kinds only move NewestRevision
	case KindCancelled:
		for i := range st.Steps {
			if u := &st.Steps[i].Undo; st.Status == saga.Completed && u.Phase == Skipped { // that it stands was said of an earlier way back
				u.Phase = ""
			}
		}
		st.Compensating, st.UndoneFrom, st.PendingRevision, st.Withdrawn = true, r.Step, nil, r.Revision != "" && !isSub(r.Revision)
	case KindHeard:
		input, left, err := given(r)
		if err != nil {
			return err
		}
		st.PendingRevision = &Newer{Revision: r.Revision, Version: r.Version, Withdrawn: r.Version == 0, Input: input, Identity: r.Identity, InputGone: left, By: r.Actor}
	case KindRevised:
		if err := st.revise(r); err != nil {
			return err
		}
	case KindResumed:
		if st.Reason == saga.ReasonConflict {
			st.PendingRevision = nil // a person keeps what stands
		}
		if st.Reason == saga.ReasonLate {
			st.lookedAt()
		}
		st.Reason = ""
	case KindNoted:
		if r.Revision != "" && st.PendingRevision != nil { // the same content at a newer version
			n := *st.PendingRevision
			n.Revision = r.Revision
			st.PendingRevision = &n
		}
	}
	if saga.CompareRevisions(r.Revision, st.NewestRevision) > 0 {
		st.NewestRevision = r.Revision
	}
	return nil
}

// newest is the newest definition that this process knows.
func (m *machine) newest() *program.Spec {
	if n := m.ev.Newest; n != nil && n.Version > m.spec.Version {
		return n
	}
	return m.spec
}

// revise begins the work again for a newer version of its source object. What stands at the
// destinations is kept as each step's previous result, and the attempts on their way as what has to
// settle first.
func (st *State) revise(r *Record) error {
	var p page
	if err := json.Unmarshal(r.Body, &p); err != nil {
		return fmt.Errorf("the body of %s does not decode: %w", r.Kind, err)
	}
	identity, left, err := r.Identity, (*Given)(nil), error(nil)
	switch {
	case len(p.Input) > 0:
	case p.InputGone != nil:
		left = p.InputGone
	case st.PendingRevision == nil || st.PendingRevision.Withdrawn:
		err = fmt.Errorf("%s has no input, and none was heard", r.Kind)
	default:
		p.Input, identity, left = st.PendingRevision.Input, st.PendingRevision.Identity, st.PendingRevision.InputGone
	}
	if err != nil {
		return err
	}
	undone, over := st.Compensating && st.UndoneFrom == "", st.Compensating || st.Status.Terminal()
	if over { // the run before it is over, and its deadline with it (W3)
		st.Deadline, st.DeadlinePassed = r.EndsBy(), false
	}
	_, again := saga.SplitRevision(r.Revision)
	newRun := over || again > 0
	if newRun {
		st.Run = r.Revision
	}
	by := r.Actor
	if st.PendingRevision != nil {
		by = cmp.Or(by, st.PendingRevision.By)
	}
	st.startedBy(by)
	st.Identity, st.InputGone = identity, left
	st.Revision, st.Version, st.Input, st.PendingRevision, st.Compensating, st.Unmatched = r.Revision, r.Version, p.Input, nil, false, false
	st.Withdrawn, st.LateAnswersLookedAt, st.UndoneFrom = false, false, ""
	for i := range st.Steps {
		st.Steps[i].StoodBeforeLoss = st.Steps[i].StoodBeforeLoss && st.Adopting // what is decided of a newer version is not decided yet
		undone = undone || st.Steps[i].Undo.Phase == Done                        // in part (V19): what came after it is of a request that is undone
		switch ss := &st.Steps[i]; {
		case !slices.Contains(p.KeptSteps, ss.Name):
			earlier := ss.earlier()
			ss.again()
			if ss.StoodBefore = ss.StoodBefore && !undone; newRun {
				ss.Outside = nil // votes are for the run in which they were given
			} else if b := ss.Ballot(); b != nil {
				ss.Outside = &Outside{Approval: b.without(by)} // and not of who changes the instance behind them
			}
			if earlier != nil && !undone {
				ss.outside().EarlierAnswer = earlier
			}
		case ss.Undo.Phase == Skipped: // skipped on the way back of that revision; decided again in this one
			ss.Undo.Phase = ""
		}
	}
	return nil
}

// again makes the step one that is still to be done, with what it left behind.
func (ss *StepState) again() {
	f, u, made := &ss.Forward, &ss.Undo, ""
	if ss.standing() != nil {
		made = cmp.Or(ss.MadeKey, f.Key)
	}
	*ss = StepState{
		Name: ss.Name, Previous: ss.standing(), MadeKey: made, StoodBefore: ss.StoodBefore || ss.waits() && f.Phase == Done, EarlierAttempts: f.Attempts,
		Forward: Effort{Attempts: f.Attempts, QuietUntil: later(f.unsettled(), u.unsettled())},
		Undo:    Effort{Attempts: u.Attempts}, Outside: ss.kept(), MadeByAnother: ss.standing() != nil && ss.wasThere(),
	}
}

// standing is what the step has at its destination as far as it is known; nil when there is
// nothing.
func (ss *StepState) standing() *program.Result {
	switch {
	case ss.Undo.Phase == Done || ss.waits():
		return nil
	case ss.Forward.Phase == Done:
		return &program.Result{ExternalID: ss.ExternalID, Output: ss.Output}
	case ss.Unfinished != nil:
		return ss.Unfinished
	default:
		return ss.Previous
	}
}

// undoneInPart reports whether a person has had steps undone of what is completed (V19).
func (st *State) undoneInPart() bool {
	return slices.ContainsFunc(st.Steps, func(ss StepState) bool { return ss.Undo.Phase == Done })
}

// boundary reports whether the work may begin a newer revision now: nothing is open, in doubt or
// half-made, and it is not going back.
func (st *State) boundary() bool {
	return (!st.Compensating || st.Status == saga.Compensated) && !slices.ContainsFunc(st.Steps, func(ss StepState) bool {
		return ss.inDoubt() || ss.Unfinished != nil || ss.Undo.Phase == Started || ss.Undo.Phase == InDoubt
	})
}

// inDoubt reports whether the outcome of the step is not known yet.
func (ss *StepState) inDoubt() bool {
	f := &ss.Forward
	return f.Phase == Started || f.Phase == InDoubt || f.NeedsReview == saga.ReasonInDoubt || f.Phase != Done && !f.OutcomeUnknownUntil.IsZero()
}

// newestFirst returns the steps in the order in which they are undone: the reverse of arming.
// Revisions may run under different versions of the definition, so the order is the one of spec; a
// step that spec does not have is last. Without a spec the order is that of first arming.
func (st *State) newestFirst(spec *program.Spec) []*StepState {
	steps := make([]*StepState, 0, len(st.Steps))
	for i := len(st.Steps) - 1; i >= 0; i-- {
		steps = append(steps, &st.Steps[i])
	}
	if spec != nil {
		slices.SortStableFunc(steps, func(a, b *StepState) int { return spec.Index(b.Name) - spec.Index(a.Name) })
	}
	return steps
}

// noWayBack is the latest step that stands and that spec does not have any more, or that lacks the input by which it is undone: nothing says how
// it is undone. spec may be nil, and nothing is known then.
func (st *State) noWayBack(spec *program.Spec) *StepState {
	if spec == nil {
		return nil
	}
	for _, ss := range st.newestFirst(spec) {
		if ss.Undo.Phase == Done || !ss.stands(spec) {
			continue
		}
		if spec.Index(ss.Name) < 0 || st.InputGone != nil && !spec.NeedsNoUndo(ss.Name) {
			return ss
		}
	}
	return nil
}

// leftInDoubt returns the latest step that need not be undone and was left in doubt, or nil. A
// newer revision must not begin before it is known whether that step stands. An Idempotent step is
// left out, because repeating it is harmless.
func (st *State) leftInDoubt(spec *program.Spec) *StepState {
	for _, ss := range st.newestFirst(spec) {
		if ss.Undo.Phase == Done || !ss.inDoubt() {
			continue
		}
		if j := spec.Index(ss.Name); j < 0 || spec.Steps[j].Repeat != program.RepeatIdempotent {
			return ss
		}
	}
	return nil
}

// hearNews consumes the source's word about the object: a newer version, or that it is gone.
func (m *machine) hearNews(s *Signal) error {
	gone := s.Kind == SignalCancel
	r := &Record{Revision: s.Revision}
	note := func(words string) error {
		r.Kind, r.Note = KindNoted, words
		return m.foldSignal(s, r)
	}
	input, dropped := keep(s.Input, program.MaxInput)
	ends := m.st.HeldRevision != "" && saga.CompareRevisions(s.Revision, m.st.HeldRevision) >= 0 // what the source holds itself
	paused := m.st.Status == saga.Paused && !ends                                                // what the source says waits, too
	m.unparked = m.unparked || ends
	switch {
	case saga.CompareRevisions(s.Revision, m.st.NewestRevision) <= 0:
		r.Revision = ""
		return note(fmt.Sprintf("revision %s is not newer than %s", s.Revision, m.st.NewestRevision))
	case m.st.InputGone != nil && isSub(s.Revision):
		r.Revision = ""
		return note("a person had it undone or run again, and its input has gone by retention: no step can be run")
	case !gone && (dropped || len(input) == 0):
		r.Revision = ""
		return note(fmt.Sprintf("revision %s has no input that can be kept (JSON, at most %d bytes)", s.Revision, program.MaxInput))
	case gone && s.Step != "" && m.st.Status != saga.Completed:
		r.Revision = ""
		return note(fmt.Sprintf("undo from step %q: the work is %s by now", s.Step, m.st.Status))
	case gone && s.Step != "":
		if step := m.st.Step(s.Step); step == nil || step.Undo.Phase == Done || m.spec.Index(s.Step) < 0 || !step.mayHaveHappened() {
			r.Revision = ""
			return note(fmt.Sprintf("undo from step %q: nothing of it stands", s.Step))
		}
		m.unparked = true
		r.Kind, r.Step, r.Note = KindCancelled, s.Step, fmt.Sprintf("it is undone from step %q on, as a person said", s.Step)
		return m.foldSignal(s, r)
	case gone && m.st.Compensating:
		m.unparked = !paused // it may have waited for the newer version alone
		r.Kind, r.Note = KindCancelled, cancelledBy(s.Revision)+"; it has turned already"
		return m.foldSignal(s, r)
	case !gone && m.ev.Same && !isSub(s.Revision) && !m.st.Compensating && !m.st.Unmatched && !m.st.undoneInPart() && (m.st.PendingRevision == nil || !m.st.PendingRevision.Withdrawn):
		return note("a newer version that says the same")
	case !paused && gone && m.hasWayBack():
		m.unparked = true
		r.Kind, r.Note = KindCancelled, cancelledBy(s.Revision)
		return m.foldSignal(s, r)
	case !paused && m.boundary() && !gone:
		m.unparked, m.turned = true, false
		begun := m.revised(Newer{Revision: s.Revision, Version: s.Version, Identity: s.Identity}, input)
		if isSub(s.Revision) {
			begun.Note = "it is run again"
		}
		return m.foldSignal(s, begun)
	}
	r.Kind, r.Version, r.Body, r.Identity, r.Note = KindHeard, max(s.Version, m.st.Version), input, s.Identity, "the source has a newer version"
	switch {
	case gone:
		r.Version, r.Body, r.Identity, r.Note = 0, nil, "", cancelledBy(s.Revision)
	case isSub(s.Revision):
		r.Note = "it is to be run again"
	}
	return m.foldSignal(s, r)
}

// cancelledBy says who cancelled what was done at a revision: a person undoes at a sub-revision (V17).
func cancelledBy(revision string) string {
	if isSub(revision) {
		return "it is undone, as a person said"
	}
	return "the source cancelled it"
}

// isSub reports whether a revision asks for the version that the work has once more (V15).
func isSub(revision string) bool {
	_, sub := saga.SplitRevision(revision)
	return sub > 0
}

// revised is the record that begins n. input is nil when it was heard before.
func (m *machine) revised(n Newer, input json.RawMessage) *Record {
	p := page{Input: input, KeptSteps: Kept(m.spec, m.st)}
	body, err := json.Marshal(p)
	if err != nil { // a valid input and names always marshal
		m.cannotBe(err)
	}
	newest := m.newest()
	r := &Record{Kind: KindRevised, Revision: n.Revision, Version: max(n.Version, m.st.Version, newest.Version), Body: body}
	if input != nil {
		r.Identity = n.Identity
	}
	if m.st.Compensating || m.st.Status.Terminal() {
		r.Limit = newest.Deadline
	}
	return r
}

// Kept are the steps that stay as they are when the work is revised, or run again.
func Kept(spec *program.Spec, st *State) (keep []string) {
	for i := range spec.Steps {
		s := &spec.Steps[i]
		ss := st.Step(s.Name)
		if ss == nil || !ss.rests() || ss.Undo.Phase == Done || s.Asks != nil && (st.Compensating || st.Status.Terminal()) {
			continue
		}
		if keeps(s, ss) || s.WaitsForAnswer() && ss.waits() && slices.Contains(keep, s.Answer.Callback) { // an answer belongs to its request
			keep = append(keep, s.Name)
		}
	}
	for i := range st.Steps { // what this version does not have may be AtMostOnce in the next
		if ss := &st.Steps[i]; spec.Index(ss.Name) < 0 && ss.rests() && ss.Undo.Phase != Done {
			keep = append(keep, ss.Name)
		}
	}
	return keep
}

// rests reports whether the step is done, or is a wait that was begun: a revision does not restart it (W3).
func (ss *StepState) rests() bool {
	return ss.Forward.Phase == Done || ss.Forward.Phase == Waiting
}

// keeps reports whether the step, once done, stays done when the work is revised. A step whose
// outcome is unknown stays done, unless it is Idempotent: no known effect could be updated, and the
// effect must not be made a second time.
func keeps(s *program.StepSpec, ss *StepState) bool {
	if s.Waits() != ss.waits() { // the name is another thing's
		return false
	}
	return s.OncePerInstance() || ss.Unconfirmed && s.Repeat != program.RepeatIdempotent
}

// begin takes up what was heard of the source, now that the work is at a step boundary.
func (m *machine) begin() Command {
	n := *m.st.PendingRevision
	if n.Withdrawn && m.st.noWayBack(m.spec) != nil {
		if m.rec == nil && m.st.Status == saga.Review && m.st.Reason == saga.ReasonConflict {
			return Command{Do: Rest}
		}
		return m.park(saga.ReasonConflict)
	}
	if m.rec != nil { // one record for one decision
		return m.again()
	}
	r := m.revised(n, nil)
	if n.Withdrawn {
		r = &Record{Kind: KindCancelled, Revision: n.Revision, Error: cancelledBy(n.Revision)}
	}
	if err := m.fold(r); err != nil { // what waits at a boundary can always begin
		return m.cannotBe(err)
	}
	m.moving()
	if n.Withdrawn {
		return m.back()
	}
	m.turned = false
	return m.forward()
}

// turnsAtOnce reports whether the source's cancel, heard while there was no way back, turns the
// work now that there is one: it waits for no boundary, because going back settles every doubt by
// itself.
func (m *machine) turnsAtOnce() bool {
	return m.st.PendingRevision.Withdrawn && !m.st.Compensating && m.hasWayBack()
}

// hasWayBack reports whether a cancel by the source can be followed: the pivot cannot have
// happened, or this version of the definition has every step that may stand, and its input.
func (m *machine) hasWayBack() bool {
	return m.st.InputGone == nil && !m.pastPivot() || m.st.noWayBack(m.spec) == nil
}

// again asks for another decision at once: what follows needs a record of its own.
func (m *machine) again() Command {
	m.moving()
	return Command{Do: Wait, Until: m.ev.Now.Earliest}
}
