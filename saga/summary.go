package saga

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// Summary is a work as people and programs read it: what came in, what was attempted, what
// succeeded with which external ids, and what is safe to do next. Its JSON is stable.
type Summary struct {
	WorkID          string                 `json:"workId"`
	Saga            string                 `json:"saga"`
	Version         int                    `json:"version"`
	Key             string                 `json:"idempotencyKey"` // the root from which step keys derive
	Status          Status                 `json:"status"`
	Reason          Reason                 `json:"reason"`
	Note            string                 `json:"note,omitempty"`            // why it is in review, in words
	Revision        string                 `json:"revision"`                  // the version of the source that it runs for
	NewestRevision  string                 `json:"newestRevision,omitempty"`  // the newest that was spoken of; the source's cancel has one, too
	PendingRevision string                 `json:"pendingRevision,omitempty"` // heard of, and waiting for a step boundary
	HeldRevision    string                 `json:"heldRevision,omitempty"`    // at which the source says "not yet", and has paused it
	Cause           string                 `json:"cause,omitempty"`           // what caused the start, in the starter's words
	Tags            []string               `json:"tags,omitempty"`            // name=value, see [Tags]
	Input           InputSummary           `json:"input"`
	Steps           map[string]StepSummary `json:"steps"`
	Order           []string               `json:"order"` // the steps' names as defined, then those that only an earlier version had
	Next            string                 `json:"next"`  // what happens by itself, what to look at, and which command shows what is safe to do
	Started         time.Time              `json:"startedAt"`
	Updated         time.Time              `json:"updatedAt"`
	Due             time.Time              `json:"dueAt,omitzero"`
	Deadline        time.Time              `json:"deadlineAt,omitzero"`      // when it has to be at its end, or had to; while a person has it nothing follows from that
	DeadlinePassed  bool                   `json:"deadlinePassed,omitempty"` // that was missed
}

// InputSummary names a work's input without showing it.
type InputSummary struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// StepSummary is one step of a [Summary].
type StepSummary struct {
	Done        bool            `json:"done"` // the effect is there: done and not undone
	Status      string          `json:"status"`
	ExternalID  string          `json:"externalId"`
	Attempts    int             `json:"attempts"`
	Error       string          `json:"error"`
	Key         string          `json:"key,omitempty"` // once it was begun
	Repeat      program.Repeat  `json:"repeat,omitempty"`
	Evidence    string          `json:"evidence,omitempty"`    // how we know that it is done: done, found, resolved, adopted, answered or wait-over
	Until       time.Time       `json:"waitsUntil,omitzero"`   // of a step that waits
	Since       time.Time       `json:"waitsSince,omitzero"`   // of a step that waits for an answer
	WaitsFor    []string        `json:"waitsFor,omitempty"`    // the answers: "callback of submit", "message render.done 10492"
	Unconfirmed bool            `json:"unconfirmed,omitempty"` // it counts as done although its outcome is unknown
	Undo        *StepSummary    `json:"undo,omitempty"`        // once it was begun
	Output      json.RawMessage `json:"-"`                     // for programs; not shown
}

// Output returns what the action of a step returned. It is an error when the step is not done, and
// when its result is not kept: it was too large, or a person or a lookup said that it is done.
func Output[Out any](s Summary, step string) (out Out, err error) {
	switch r := s.Steps[step]; {
	case !r.Done:
		err = fmt.Errorf("the output of step %q of %s: the step is not done", step, s.WorkID)
	case len(r.Output) == 0:
		err = fmt.Errorf("the output of step %q of %s: it is not kept; use the external id", step, s.WorkID)
	default:
		if err = program.Decode(r.Output, &out); err != nil {
			err = fmt.Errorf("the output of step %q of %s is no %T: %w", step, s.WorkID, out, err)
		}
	}
	return out, err
}
