package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Summarize folds st into a Summary. spec may be nil when the definition is not known.
func Summarize(spec *program.Spec, st *State) saga.Summary {
	s := saga.Summary{
		WorkID: st.ID.Work, Saga: st.ID.Saga, Version: st.Version, Revision: st.Revision,
		Key: st.root(), Status: st.Status, Reason: st.Reason, Cause: st.Cause, Tags: st.Tags,
		Input: st.given().InputSummary,
		Steps: make(map[string]saga.StepSummary, len(st.Steps)), Next: Next(spec, st),
		Started: st.Started, Updated: st.Updated, Due: st.Due,
	}
	if len(Choices(spec, st, time.Time{})) > 0 {
		s.Next += " What can be done about it: " + program.Command("show", st.ID.Work, " --saga "+st.ID.Saga) + "."
	}
	if st.Status == saga.Review || st.Status == saga.Paused {
		s.Note = st.Note
	}
	if !st.Status.Terminal() {
		s.Deadline, s.DeadlinePassed = st.Deadline, st.DeadlinePassed
	}
	if st.NewestRevision != st.Revision {
		s.NewestRevision = st.NewestRevision
	}
	s.HeldRevision = st.HeldRevision
	if st.PendingRevision != nil {
		s.PendingRevision = st.PendingRevision.Revision
	}
	if spec != nil {
		for i := range spec.Steps {
			s.Order = append(s.Order, spec.Steps[i].Name)
			s.Steps[spec.Steps[i].Name] = saga.StepSummary{Status: "not started", Repeat: spec.Steps[i].Repeat}
		}
	}
	for i := range st.Steps {
		ss := &st.Steps[i]
		if spec == nil || spec.Index(ss.Name) < 0 { // an earlier version of the definition had it
			s.Order = append(s.Order, ss.Name)
		}
		sum := ss.summary(s.Steps[ss.Name].Repeat)
		if ss.asking() && ss.Ballot() != nil {
			sum.Since, sum.WaitsFor = ss.Forward.PolicyStartedAt, []string{st.wantsVotes(spec, ss)}
		}
		s.Steps[ss.Name] = sum
	}
	return s
}

func (ss *StepState) summary(r program.Repeat) saga.StepSummary {
	f, u := &ss.Forward, &ss.Undo
	s := saga.StepSummary{
		Done: f.Phase == Done && u.Phase != Done, Status: string(f.Phase), ExternalID: ss.ExternalID, Attempts: f.Attempts,
		Key: f.Key, Repeat: r, Evidence: string(ss.Evidence), Unconfirmed: ss.Unconfirmed, Output: ss.Output,
		Until: ss.WaitsUntil,
	}
	if ss.Answering().WaitsFor != nil && f.Phase == Waiting {
		s.Since, s.WaitsFor = f.PolicyStartedAt, ss.Answering().WaitsFor.words()
	}
	if f.Phase != Done || ss.OutputDropped {
		s.Error = f.Error
	}
	if f.Phase == "" {
		s.Status = "not started"
	}
	if ss.Previous != nil {
		s.ExternalID = ss.Previous.ExternalID
	}
	if u.Attempts > 0 && u.Phase != "" { // an undo of an earlier revision leaves only its count
		s.Undo = &saga.StepSummary{Done: u.Phase == Done, Status: string(u.Phase), Attempts: u.Attempts, Key: u.Key}
		switch s.Status = "undoing"; u.Phase {
		case Done:
			s.Status = "undone"
		case Skipped:
			s.Status = "stands"
			fallthrough
		default:
			s.Undo.Error = u.Error
		}
	}
	return s
}

// Next says in a sentence or two what happens to the work by itself, and what a person looks at first. What can be done about it is among
// [Choices].
func Next(spec *program.Spec, st *State) string {
	if st.RecordsGone {
		return "Its records have gone. A start of it still returns this. What is to be changed is changed at its destination, by hand."
	}
	if st.InputGone != nil && st.Status.Terminal() {
		return "It has ended, and its input is not here (gone by retention, or sealed, and AMENDS_KEYS names no key to it): it cannot be undone or run again. A start of it still returns this; a newer version at its source runs."
	}
	switch st.Status {
	case saga.Completed:
		return nextDone(st)
	case saga.Compensated:
		return nextUndone(st)
	case saga.Review:
		return nextInReview(spec, st)
	case saga.Paused:
		return nextHeld(spec, st)
	case saga.Adopting:
		return "It is being taken over from what its destinations have. If that was cut off, rebuild again: it goes on where it was."
	case saga.Compensating:
		if st.UndoneFrom != "" {
			return fmt.Sprintf("It is being undone, newest step first, down to step %q; what is before that stays. Nothing to do.", st.UndoneFrom)
		}
		return "It is being undone, newest step first. Nothing to do."
	case saga.Waiting:
		return st.nextWaiting(spec)
	case saga.Retrying:
		stop := "To give it up, cancel it."
		if m := (&machine{spec: spec, st: st}); spec != nil && m.pastPivot() {
			stop = "Its pivot has happened or may have, so a cancel is refused; to stop it, pause it. Then skip the step, or say that it happened."
		}
		return fmt.Sprintf("It goes on by itself at %s. Nothing to do; to have it tried now, retry it. %s", st.Due.UTC().Format(time.RFC3339), stop)
	default:
		return "It is being worked on, or will be as soon as a coordinator runs. Nothing to do."
	}
}

func nextDone(st *State) string {
	if steps := st.Unconfirmed(); len(steps) > 0 {
		return fmt.Sprintf("Every step counts as done. What could not be told after a rebuild: %s. Look at the destination; if you find out, "+
			"resolve the step, else leave it.", strings.Join(steps, ", "))
	}
	var undone, stands []string
	for i := range st.Steps {
		switch st.Steps[i].Undo.Phase { //nolint:exhaustive // the others are no ends
		case Done:
			undone = append(undone, st.Steps[i].Name)
		case Skipped:
			stands = append(stands, st.Steps[i].Name)
		}
	}
	if len(undone)+len(stands) > 0 {
		words := "Undone by a person's word: " + cmp.Or(strings.Join(undone, ", "), "nothing")
		if len(stands) > 0 {
			words += "; was to be undone, and stands: " + strings.Join(stands, ", ")
		}
		return words + ". What else was done stays. To have all of it again, rerun it; a newer version at its source runs it again by itself."
	}
	if i := slices.IndexFunc(st.Steps, func(ss StepState) bool { return ss.leftAtThat() }); i >= 0 {
		return fmt.Sprintf("People said no at step %q, and a person left it at that: nothing behind it was done. Starting it again returns this result.", st.Steps[i].Name)
	} else if slices.ContainsFunc(st.Steps, func(ss StepState) bool { return ss.Forward.Phase == Skipped }) {
		return "Nothing is left to do: every step is done or was skipped. Starting it again returns this result."
	}
	return "Nothing is left to do: every step is done. Starting it again returns this result."
}

// nextHeld: a person holds it.
func nextHeld(spec *program.Spec, st *State) string {
	ss := st.front(spec)
	if st.HeldRevision != "" {
		return "Its source is not done with it, and holds it: it goes on by itself when the source says so. To go on before, resume it."
	}
	switch waits := !st.Compensating && ss != nil && ss.Forward.Phase == Waiting; {
	case waits && ss.asking() && ss.Ballot() != nil:
		return "A person holds it, and it takes votes all the same."
	case waits && ss.Answering().WaitsFor != nil:
		return "A person holds it, and it takes the answer that it waits for all the same."
	case waits:
		return fmt.Sprintf("A person holds it while it waits at step %q.", ss.Name)
	}
	return "A person holds it."
}

// nextWaiting: it goes on when a time has come.
func (st *State) nextWaiting(spec *program.Spec) string {
	until, what := st.StartsAt, "It was started for later, and begins"
	ss := st.front(spec)
	if ss != nil && ss.asking() && ss.Ballot() != nil {
		return fmt.Sprintf("It waits at step %q for %s, until %s; without a decision by then it is rejected. To give it up, cancel it.",
			ss.Name, st.wantsVotes(spec, ss), ss.WaitsUntil.UTC().Format(time.RFC3339))
	}
	if ss != nil && ss.Answering().WaitsFor != nil && ss.Forward.Phase == Waiting {
		return fmt.Sprintf("It waits at step %q for %s, until %s. Nothing to do.", ss.Name, strings.Join(ss.Answering().WaitsFor.words(), " or "), ss.WaitsUntil.UTC().Format(time.RFC3339))
	}
	if len(st.Steps) > 0 && ss != nil {
		until, what = ss.WaitsUntil, fmt.Sprintf("It waits at step %q, and goes on by itself", ss.Name)
	}
	return fmt.Sprintf("%s at %s. Nothing to do. To give it up, cancel it.", what, until.UTC().Format(time.RFC3339))
}

// nextUndone: it is undone as far as its definition says, and the source may want it all the same.
func nextUndone(st *State) string {
	undone := "What was done is undone"
	if left := st.leftAsItIs(); len(left) > 0 {
		undone += ", but for what no undo takes back: " + strings.Join(left, ", ")
	}
	if st.Withdrawn {
		return undone + ". Its source cancelled it. Starting it again returns this result; a newer version of its source runs it again."
	}
	return undone + ". A newer version at its source runs it again by itself."
}

// leftAsItIs are the effects that no undo has taken back, and those that may be there.
func (st *State) leftAsItIs() (names []string) {
	for i := range st.Steps {
		ss := &st.Steps[i]
		said := ss.Forward.Phase == Skipped && ss.Previous == nil // a person's word that it did not happen
		if !ss.mayHaveHappened() || ss.Undo.Phase == Done || said {
			continue
		}
		id := named(&program.Result{ExternalID: ss.ExternalID})
		if ss.ExternalID == "" {
			id = named(ss.Previous)
		}
		if ss.Unconfirmed || ss.Forward.Phase != Done && ss.Previous == nil {
			id += ", which may have happened"
		}
		names = append(names, ss.Name+id)
	}
	return names
}

func nextInReview(spec *program.Spec, st *State) string {
	ss, dir := st.Issue(spec)
	switch {
	case ss != nil && st.Reason == saga.ReasonConflict:
		return fmt.Sprintf("The source cancelled it, and step %q cannot be undone by itself.", ss.Name)
	case st.Reason == saga.ReasonDeadline:
		return fmt.Sprintf("It was not at its end by %s.%s", st.Deadline.UTC().Format(time.RFC3339), st.orCancel(spec))
	case st.Reason == saga.ReasonHung:
		return "Nothing follows until the action returns or its process ends: restart that process. Then it goes on by itself, as after any crash."
	case st.Reason == saga.ReasonLate:
		return "Look at the destination for what the late answer is about, and undo it there by hand if it stands."
	case ss != nil && ss.asking() && ss.Ballot() != nil:
		return fmt.Sprintf("No decision came at step %q in time (%s).%s", ss.Name, cmp.Or(ss.Forward.Error, "a person held it"), st.orCancel(spec))
	case ss != nil && ss.Answering().WaitsFor != nil && ss.Forward.Phase == Waiting:
		said := "No answer came"
		if ss.Forward.Error != "" {
			said = fmt.Sprintf("No answer counts yet (%s)", ss.Forward.Error)
		}
		return fmt.Sprintf("%s for step %q. Ask the other side, or have it wait longer.%s", said, ss.Name, st.orCancel(spec))
	case ss == nil || ss.effort(dir).Phase == Done:
		return "No step is at issue: mend what the note says, or cancel it."
	case ss.Rejected() && dir == saga.Forward:
		return fmt.Sprintf("People said no at step %q (%s), and nothing is undone for it.", ss.Name, ss.Forward.Error)
	}
	next := st.lookFirst(spec, ss, dir)
	if m := (&machine{spec: spec, st: st}); ss.effort(dir).ErrorClass == saga.Fault && spec != nil && m.decidedByPeople(ss.Name) {
		next += " To give the work up, cancel it."
	}
	return next
}

// orCancel says whether a cancel would undo what was done.
func (st *State) orCancel(spec *program.Spec) string {
	if m := (&machine{spec: spec, st: st}); spec != nil && !m.pastPivot() {
		return " To undo what was done, cancel it."
	}
	return " Its pivot has happened or may have, so a cancel is refused."
}

// lookFirst says what a person does before saying anything about the step at issue.
func (st *State) lookFirst(spec *program.Spec, ss *StepState, dir saga.Direction) string {
	e := ss.effort(dir)
	what := fmt.Sprintf("step %q", ss.Name)
	if dir == saga.Undo {
		what = fmt.Sprintf("the undo of step %q", ss.Name)
	}
	where, there := "its destination", "the destination of "+what
	if spec != nil && spec.Index(ss.Name) >= 0 && spec.Steps[spec.Index(ss.Name)].Destination != "" {
		where = fmt.Sprintf("%q", spec.Destination(ss.Name))
		if there = where; spec.Destination(ss.Name) != ss.Name {
			there = fmt.Sprintf("%s, where %s goes,", where, what)
		}
	}
	switch {
	case e.ErrorClass == saga.Refused && e.NeedsReview == saga.ReasonInDoubt: // in quarantine
		look := fmt.Sprintf("Something stands under the mark of %s and was not taken over (see the note): look at it.", what)
		if m := (&machine{spec: spec, st: st}); spec != nil && !m.pastPivot() {
			look += " To give the work up, cancel it."
		}
		return look
	case dir == saga.Forward && e.Key == "" && e.ErrorClass == saga.Fault && len(ss.Answering().HeldAnswers) > 0:
		return fmt.Sprintf("The program could not read the answer that came for %s, which is kept: mend it and start it again.", what)
	case dir == saga.Forward && e.Key == "" && e.ErrorClass == saga.Fault && ss.Answering().WaitsFor != nil:
		return fmt.Sprintf("The program failed when it asked for the answer of %s: mend it and start it again.", what)
	case dir == saga.Forward && e.Key == "" && e.ErrorClass == saga.Fault:
		return fmt.Sprintf("The program failed when it was asked about %s: mend it and start it again.", what)
	case dir == saga.Forward && e.Key == "" && e.NeedsReview == saga.ReasonInDoubt && !ss.mayHaveHappened():
		return fmt.Sprintf("Nothing was sent for %s yet. Look at %s for the work id: put right what is there and try again, or say whether it is the step's.", what, there)
	case ss.PreviousGone && dir == saga.Forward:
		return fmt.Sprintf("The destination says that what an earlier revision left of %s%s is gone. Look whether it is, and whether "+
			"anything else stands there for the work.", what, named(ss.Previous))
	case e.Phase == Refused && dir == saga.Forward:
		return fmt.Sprintf("The destination refused %s. Mend the cause and try it again, or go on without it.", what)
	case dir == saga.Undo && e.ErrorClass == saga.NotUndoable && e.Phase == Refused:
		return fmt.Sprintf("Step %q%s cannot be undone any more, says its undo (%s). Say that it stands, or undo it by hand.", ss.Name, named(&program.Result{ExternalID: ss.ExternalID}), e.Error)
	case st.Reason == saga.ReasonPoison || st.Reason == saga.ReasonExhausted:
		return fmt.Sprintf("Mend what makes %s fail. Then look at %s for key %s or the work id.", what, where, e.Key)
	case dir == saga.Undo:
		return fmt.Sprintf("Look at %s whether step %q%s is undone already. If it is not, undo it there by hand, or mend what stops it.",
			where, ss.Name, named(&program.Result{ExternalID: ss.ExternalID}))
	default:
		return fmt.Sprintf("Look at %s for key %s or the work id.", there, e.Key)
	}
}

// named is the external id of what stands, in words.
func named(r *program.Result) string {
	if r == nil || r.ExternalID == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", r.ExternalID)
}
