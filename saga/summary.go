package saga

import (
	"encoding/json"
	"fmt"
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
	Heard    string                 `json:"heardRevision,omitempty"` // the newest anybody spoke of; the source's cancel has one, too
	Newer    string                 `json:"newerRevision,omitempty"` // heard of, and waiting for a step boundary
	Cause    string                 `json:"cause,omitempty"`         // what caused the start, in the starter's words
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
	// Unconfirmed: it counts as done because nobody can tell whether it happened.
	Unconfirmed bool            `json:"unconfirmed,omitempty"`
	Undo        *StepSummary    `json:"undo,omitempty"`
	Output      json.RawMessage `json:"-"` // for programs; not shown
}

// Result returns the external id and output of a step that is done.
func (s *Summary) Result(step string) (Result, bool) {
	ss, ok := s.Steps[step]
	return Result{ExternalID: ss.ExternalID, Output: ss.Output}, ok && ss.Done
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
	if st.Status == Review {
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
	if u.Attempts > 0 {
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
		return "Nothing: every step is done. Starting it again returns this result."
	case Compensated:
		return nextUndone(st)
	case Review:
		return nextInReview(spec, st)
	case Paused: // by an adoption that is not at its end
		return "It is being taken over from what its destinations have. If that was cut off, rebuild again: it goes on where it was."
	case Compensating:
		return "It is being undone, newest step first. Nothing to do."
	case Retrying:
		return fmt.Sprintf("It goes on by itself at %s. Nothing to do; to give it up, cancel it.", st.Due.UTC().Format(time.RFC3339))
	default:
		return "It is being worked on, or will be as soon as a coordinator runs. Nothing to do."
	}
}

// nextUndone: everything is undone, and the source may want it all the same.
func nextUndone(st *State) string {
	newest := st.Revision
	if CompareRevisions(st.Heard, newest) > 0 {
		newest = st.Heard
	}
	if newest == "" {
		return "Whatever had happened is undone. Starting it again returns this result; a start with a newer revision runs it again."
	}
	return fmt.Sprintf("Whatever had happened is undone. If that is wrong, change the object at its source: a version newer than %s "+
		"runs it again, by a webhook when it says something new, else by the next reconciliation.", newest)
}

// nextInConflict: the source cancelled what stands, and one step does not say how it is undone.
func nextInConflict(st *State, ss *StepState) string {
	resolve := fmt.Sprintf("amends resolve %s --saga %s --step %s --reason WHY", st.ID.Work, st.ID.Saga, ss.Name)
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
	e := ss.effort(dir)
	what := fmt.Sprintf("step %q", ss.Name)
	if dir == Undo {
		what = fmt.Sprintf("the undo of step %q", ss.Name)
	}
	resolve := fmt.Sprintf("amends resolve %s --saga %s --step %s --reason WHY", st.ID.Work, st.ID.Saga, ss.Name)
	look := fmt.Sprintf("Look at the destination of %s for key %s or the work id.", what, e.Key)
	switch {
	case e.Class == Refused && e.Stuck == ReasonInDoubt: // in quarantine
		look = fmt.Sprintf("Something stands under the mark of %s and was not taken over (see the note): look at it.", what)
		if m := (&machine{spec: spec, st: st}); spec != nil && !m.pastPivot() {
			look += " To give the work up, cancel it."
		}
	case e.Phase == Rebuff && dir == Forward:
		look = fmt.Sprintf("The destination refused %s: mend the cause there first.", what)
	case st.Reason == ReasonPoison || st.Reason == ReasonExhausted:
		look = fmt.Sprintf("Mend what makes %s fail. Then look at its destination for key %s or the work id.", what, e.Key)
	case dir == Undo:
		look = fmt.Sprintf("Undo step %q at its destination by hand, or mend what stops it.", ss.Name)
	}
	return fmt.Sprintf("%s If it happened: %s --happened ID (or --happened-without-id). "+
		"If it did not, and shall be done again under a new key: %s --did-not-happen", look, resolve, resolve)
}
