package desk

import (
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/saga"
)

// StartIn starts an instance: the body of POST /api/v1/works.
type StartIn struct {
	Saga     string          `json:"saga"`
	WorkID   string          `json:"workId"` // or the header Idempotency-Key, which says the same
	Input    json.RawMessage `json:"input"`
	Revision string          `json:"revision,omitempty"`
	Source   string          `json:"source,omitempty"`
	Cause    string          `json:"cause,omitempty"`
	// NotBefore is when it begins, at the earliest.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Wait is for how long its end is waited for.
	Wait Duration `json:"wait,omitempty"`
}

// Begun is what a start is answered with: what never changes of an instance, so that a repeat gets the very same; and where it stands,
// where that was waited for.
type Begun struct {
	Saga    string    `json:"saga"`
	WorkID  string    `json:"workId"`
	Started time.Time `json:"startedAt"`
	Href    string    `json:"href"` // where it stands, by HTTP

	*Ended
}

// Ended is where a started instance stands that was waited for.
type Ended struct {
	Status  saga.Status       `json:"status,omitempty"` // with --wait, as what follows: where it stands now, its end or not
	Reason  saga.Reason       `json:"reason,omitempty"`
	Note    string            `json:"note,omitempty"`    // why it is in review; as results
	Results map[string]Result `json:"results,omitempty"` // of the steps that are done; only for who started it, and for operators
}

// Result is what a step has done.
type Result struct {
	ExternalID string          `json:"externalId"`
	Output     json.RawMessage `json:"output"` // what its action returned; null where it is not kept
}

// EndedAs is where an instance stands, with its results and words about it where they may be shown.
func EndedAs(s *saga.Summary, results bool) *Ended {
	e := &Ended{Status: s.Status, Reason: s.Reason}
	if !results {
		return e
	}
	e.Note = s.Note
	for name, step := range s.Steps {
		if step.Done {
			if e.Results == nil {
				e.Results = map[string]Result{}
			}
			e.Results[name] = Result{step.ExternalID, step.Output}
		}
	}
	return e
}
