package saga

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Summary is a work as people and programs read it: what came in, what was attempted, what succeeded with
// which external ids, and what is safe to do next. Its JSON is stable.
type Summary struct {
	WorkID   string                 `json:"workId"`
	Saga     string                 `json:"saga"`
	Version  int                    `json:"version"`
	Key      string                 `json:"idempotencyKey"` // the root from which step keys derive
	Status   Status                 `json:"status"`
	Reason   Reason                 `json:"reason"`
	Note     string                 `json:"note,omitempty"` // why it is in review, in words
	Revision string                 `json:"revision"`
	Heard    string                 `json:"newestRevision,omitempty"`  // the newest that was spoken of; the source's cancel has one, too
	Newer    string                 `json:"pendingRevision,omitempty"` // heard of, and waiting for a step boundary
	Cause    string                 `json:"cause,omitempty"`           // what caused the start, in the starter's words
	Input    InputSummary           `json:"input"`
	Steps    map[string]StepSummary `json:"steps"`
	Order    []string               `json:"order"` // the steps' names as defined, then those that only an earlier version had
	Next     string                 `json:"next"`
	Started  time.Time              `json:"startedAt"`
	Updated  time.Time              `json:"updatedAt"`
	Due      time.Time              `json:"dueAt,omitzero"`
}

// InputSummary names a work's input without showing it.
type InputSummary struct {
	Hash  string `json:"sha256"`
	Bytes int    `json:"bytes"`
}

// StepSummary is one step of a [Summary].
type StepSummary struct {
	Done       bool   `json:"done"` // the effect is there: done and not undone
	Status     string `json:"status"`
	ExternalID string `json:"externalId"`
	Attempts   int    `json:"attempts"`
	Error      string `json:"error"`
	Key        string `json:"key,omitempty"`
	Repeat     Repeat `json:"repeat,omitempty"`
	Evidence   Kind   `json:"evidence,omitempty"` // how we know that it is done
	// Unconfirmed: the step counts as done although its outcome is unknown.
	Unconfirmed bool            `json:"unconfirmed,omitempty"`
	Undo        *StepSummary    `json:"undo,omitempty"`
	Output      json.RawMessage `json:"-"` // for programs; not shown
}

// Result returns the external id and output of a step that is done.
func (s *Summary) Result(step string) (Result, bool) {
	ss, ok := s.Steps[step]
	return Result{ExternalID: ss.ExternalID, Output: ss.Output}, ok && ss.Done
}

// Output returns what the action of a step returned. It is an error when the step is not done, and when its result is not
// kept: it was too large, or a person or a lookup said that it is done.
func Output[Out any](s Summary, step string) (out Out, err error) {
	switch r, done := s.Result(step); {
	case !done:
		err = fmt.Errorf("the output of step %q of %s: the step is not done", step, s.WorkID)
	case len(r.Output) == 0:
		err = fmt.Errorf("the output of step %q of %s: it is not kept; use the external id", step, s.WorkID)
	default:
		if err = json.Unmarshal(r.Output, &out); err != nil {
			err = fmt.Errorf("the output of step %q of %s is no %T: %w", step, s.WorkID, out, err)
		}
	}
	return out, err
}

// Summarize folds st into a Summary. spec may be nil when the definition is not known.
func Summarize(spec *Spec, st *State) Summary {
	s := Summary{
		WorkID: st.ID.Work, Saga: st.ID.Saga, Version: st.Version, Revision: st.Revision,
		Key: RootKey(st.ID.Saga, st.ID.Work, st.Revision), Status: st.Status, Reason: st.Reason, Cause: st.Cause,
		Input: InputSummary{Hash: hashHex(st.Input), Bytes: len(st.Input)},
		Steps: make(map[string]StepSummary, len(st.Steps)), Next: Next(spec, st),
		Started: st.Started, Updated: st.Updated, Due: st.Due,
	}
	if st.Status == Review || st.Status == Paused {
		s.Note = st.Note
	}
	if st.Heard != st.Revision {
		s.Heard = st.Heard
	}
	if st.Newer != nil {
		s.Newer = st.Newer.Revision
	}
	if spec != nil {
		for i := range spec.Steps {
			s.Order = append(s.Order, spec.Steps[i].Name)
			s.Steps[spec.Steps[i].Name] = StepSummary{Status: "not started", Repeat: spec.Steps[i].Repeat}
		}
	}
	for i := range st.Steps {
		ss := &st.Steps[i]
		if spec == nil || spec.index(ss.Name) < 0 { // an earlier version of the definition had it
			s.Order = append(s.Order, ss.Name)
		}
		s.Steps[ss.Name] = ss.summary(s.Steps[ss.Name].Repeat)
	}
	return s
}

func (ss *StepState) summary(r Repeat) StepSummary {
	f, u := &ss.Forward, &ss.Undo
	s := StepSummary{
		Done: f.Phase == Done && u.Phase != Done, Status: string(f.Phase), ExternalID: ss.ExternalID, Attempts: f.Attempts,
		Key: f.Key, Repeat: r, Evidence: ss.Evidence, Unconfirmed: ss.Unconfirmed, Output: ss.Output,
	}
	if f.Phase != Done || ss.Dropped {
		s.Error = f.Error
	}
	if f.Phase == "" {
		s.Status = "not started"
	}
	if ss.Previous != nil {
		s.ExternalID = ss.Previous.ExternalID
	}
	if u.Attempts > 0 && u.Phase != "" { // an undo of an earlier revision leaves only its count
		s.Undo = &StepSummary{Done: u.Phase == Done, Status: string(u.Phase), Attempts: u.Attempts, Key: u.Key}
		if s.Status = "undoing"; u.Phase == Done {
			s.Status = "undone"
		} else {
			s.Undo.Error = u.Error
		}
	}
	return s
}

// Next says in a sentence or two what happens to the work by itself and what is safe for a person to do.
func Next(spec *Spec, st *State) string {
	switch st.Status {
	case Completed:
		if steps := st.Unconfirmed(); len(steps) > 0 {
			return fmt.Sprintf("Every step counts as done. What could not be told after a rebuild: %s. Look at the destination; if you find out, "+
				"resolve the step, else leave it.", strings.Join(steps, ", "))
		}
		if slices.ContainsFunc(st.Steps, func(ss StepState) bool { return ss.Forward.Phase == Skipped }) {
			return "Nothing: every step is done or was skipped. Starting it again returns this result."
		}
		return "Nothing: every step is done. Starting it again returns this result."
	case Compensated:
		return nextUndone(st)
	case Review:
		return nextInReview(spec, st)
	case Paused:
		return fmt.Sprintf("A person holds it. To let it go on: %s. Until then it takes what a review takes: retry, skip, resolve, cancel.", st.verb("resume"))
	case Adopting:
		return "It is being taken over from what its destinations have. If that was cut off, rebuild again: it goes on where it was."
	case Compensating:
		return "It is being undone, newest step first. Nothing to do."
	case Retrying:
		stop := "To give it up, cancel it."
		if m := (&machine{spec: spec, st: st}); spec != nil && m.pastPivot() {
			stop = fmt.Sprintf("Its pivot has happened or may have, so a cancel is refused; to stop it: %s. Then skip the step, or say that it happened.", st.verb("pause"))
		}
		return fmt.Sprintf("It goes on by itself at %s. Nothing to do; to have it tried now: %s. %s",
			st.Due.UTC().Format(time.RFC3339), st.verb("retry"), stop)
	default:
		return "It is being worked on, or will be as soon as a coordinator runs. Nothing to do."
	}
}

// verb is the command by which a person does something to the work.
func (st *State) verb(verb string) string {
	return fmt.Sprintf("amends %s %s --saga %s --reason WHY", verb, st.ID.Work, st.ID.Saga)
}

// nextUndone: everything is undone, and the source may want it all the same.
func nextUndone(st *State) string {
	if st.Withdrawn {
		return "Whatever had happened is undone, because its source cancelled it. Starting it again returns this result; a newer version of its source runs it again."
	}
	return fmt.Sprintf("Whatever had happened is undone. If its source still wants it, run it again: %s. A newer version of its source does so by itself.", st.verb("rerun"))
}

// nextInConflict: the source cancelled what stands, and one step does not say how it is undone.
func nextInConflict(st *State, ss *StepState) string {
	resolve := st.verb("resolve") + " --step " + ss.Name
	return fmt.Sprintf("The source cancelled it, and step %q cannot be undone by itself. To undo the other steps, make this one good by hand, then: "+
		"%s --happened-without-id. To leave everything as it is: %s --keep", ss.Name, resolve, resolve)
}

func nextInReview(spec *Spec, st *State) string {
	ss, dir := st.Issue(spec)
	if ss != nil && st.Reason == ReasonConflict {
		return nextInConflict(st, ss)
	}
	if ss == nil || ss.effort(dir).Phase == Done {
		return "No step is at issue: mend what the note says, or cancel it."
	}
	return st.lookFirst(spec, ss, dir) + st.verbsFor(spec, ss, dir)
}

// lookFirst says what a person does before saying anything about the step at issue.
func (st *State) lookFirst(spec *Spec, ss *StepState, dir Direction) string {
	e := ss.effort(dir)
	what := fmt.Sprintf("step %q", ss.Name)
	if dir == Undo {
		what = fmt.Sprintf("the undo of step %q", ss.Name)
	}
	switch {
	case e.Class == Refused && e.Stuck == ReasonInDoubt: // in quarantine
		look := fmt.Sprintf("Something stands under the mark of %s and was not taken over (see the note): look at it.", what)
		if m := (&machine{spec: spec, st: st}); spec != nil && !m.pastPivot() {
			look += " To give the work up, cancel it."
		}
		return look
	case e.Phase == Rebuff && dir == Forward:
		return fmt.Sprintf("The destination refused %s: mend the cause there first.", what)
	case st.Reason == ReasonPoison || st.Reason == ReasonExhausted:
		return fmt.Sprintf("Mend what makes %s fail. Then look at its destination for key %s or the work id.", what, e.Key)
	case dir == Undo:
		return fmt.Sprintf("Undo step %q at its destination by hand, or mend what stops it.", ss.Name)
	default:
		return fmt.Sprintf("Look at the destination of %s for key %s or the work id.", what, e.Key)
	}
}

// verbsFor are the commands for the step at issue, the harmless first. A new key is offered only where nothing else is left.
func (st *State) verbsFor(spec *Spec, ss *StepState, dir Direction) string {
	var b strings.Builder
	resolve := st.verb("resolve") + " --step " + ss.Name
	again := st.CanRetry(spec)
	if again {
		fmt.Fprintf(&b, " To try it again under the same key: %s.", st.verb("retry"))
	}
	if dir == Undo {
		fmt.Fprintf(&b, " If it is undone: %s --happened-without-id.", resolve)
	} else {
		fmt.Fprintf(&b, " If it happened: %s --happened ID (or --happened-without-id).", resolve)
	}
	if dir == Forward && !st.Turned {
		fmt.Fprintf(&b, " If it did not and will not: %s.", st.verb("skip"))
	}
	switch {
	case again:
	case dir == Undo:
		fmt.Fprintf(&b, " If it is not, and shall be tried again under a new key: %s --did-not-happen.", resolve)
	default:
		fmt.Fprintf(&b, " If it did not, and shall be done again under a new key: %s --did-not-happen.", resolve)
	}
	return b.String()
}
