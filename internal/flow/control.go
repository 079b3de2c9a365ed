package flow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// What stands in a control, for those who set one by a person's word.

// IsPaused reports whether a control says that its scope is paused.
func IsPaused(c *ledger.Control) bool {
	if c.Kind == ledger.ControlPause {
		return len(c.Body) > 0
	}
	h, err := HealthOf(c)
	return err == nil && h.PausedBy != ""
}

// IsProbed reports whether a control was set to have a destination tried.
func IsProbed(c *ledger.Control) bool {
	if c.Kind != ledger.ControlDestination {
		return false
	}
	h, err := HealthOf(c)
	return err == nil && !h.ProbedAt.IsZero()
}

// HealthOf reads the health of a destination.
func HealthOf(c *ledger.Control) (h Health, err error) {
	if len(c.Body) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(c.Body, &h); err != nil {
		return h, fmt.Errorf("the state of the destination was written by another version of amends: %w", err)
	}
	return h, nil
}

// SharesOf reads how many parts a destination's limit has, and how many of them each session. What another version of amends wrote
// is left out.
func SharesOf(c *ledger.Control) (parts int, of map[string]int) {
	var s share
	if len(c.Body) == 0 || json.Unmarshal(c.Body, &s) != nil {
		return 0, nil
	}
	of = map[string]int{}
	for token := range s.Wants {
		of[token] = len(s.owned(token, len(s.Parts)))
	}
	return len(s.Parts), of
}

// PausedBy is who paused a scope that is not a destination, and why; nil when it is not paused.
func PausedBy(c *ledger.Control) *saga.Actor {
	if len(c.Body) == 0 {
		return nil
	}
	by := &saga.Actor{}
	if json.Unmarshal(c.Body, by) != nil {
		return &saga.Actor{Name: c.Actor, Reason: c.Reason} // of another version of amends: it is a pause all the same
	}
	return by
}

// SetProbe has a destination tried now.
func SetProbe(c *ledger.Control, now time.Time) error {
	h, err := HealthOf(c)
	if err != nil {
		return err
	}
	h = h.probed(machine.Moment{Earliest: now, Latest: now})
	c.Body, err = json.Marshal(h)
	return err
}

// SetPause pauses or resumes a scope. A destination's control says more, which stays.
func SetPause(c *ledger.Control, by saga.Actor, pause bool) error {
	if c.Kind == ledger.ControlPause {
		if c.Body = nil; !pause {
			return nil
		}
		body, err := json.Marshal(by)
		c.Body = body
		return err
	}
	h, err := HealthOf(c)
	if err != nil {
		return err
	}
	h.PausedBy, h.PausedWhy, h.ProbedAt = "", "", time.Time{}
	if pause {
		h.PausedBy, h.PausedWhy = by.Name, by.Reason
	}
	c.Body, err = json.Marshal(h)
	return err
}
