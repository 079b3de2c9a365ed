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

// Kept is what of a destination's limit serves none for now.
type Kept struct {
	Unanswered      int       // slots held by requests without an answer, of each session that has at least half of its own so
	UnansweredUntil time.Time // when the last of those has settled that are awaited no more; those under way take as long as they take
	Left            int       // parts that a session has left, and of which requests may be under way
	LeftUntil       time.Time // when the last of them is free, at the latest
}

// Lasts reports whether it holds up half of a limit of so many parts or more, and longer than for a moment.
func (k *Kept) Lasts(parts int, now time.Time) (unanswered, left bool) {
	const moment = 10 * time.Second
	over := k.UnansweredUntil // long ago, where what holds them is under way still
	unanswered = k.Unanswered > 0 && (over.Before(now.Add(-moment)) || over.After(now.Add(moment)))
	return unanswered, k.Left > 0 && 2*k.Left >= parts && k.LeftUntil.After(now.Add(moment))
}

// SharesOf reads how many parts a destination's limit has, how many of them each session, and what is kept now. What another version of
// amends wrote is left out.
func SharesOf(c *ledger.Control, now time.Time) (parts int, of map[string]int, k Kept) {
	var s share
	if len(c.Body) == 0 || json.Unmarshal(c.Body, &s) != nil {
		return 0, nil, k
	}
	of = map[string]int{}
	for token, w := range s.Sessions {
		of[token] = len(s.owned(token, len(s.Parts)))
		if k.Unanswered += w.HeldWithoutAnswer; w.HeldWithoutAnswer > 0 {
			k.UnansweredUntil = Latest(k.UnansweredUntil, w.UnansweredUntil)
		}
	}
	for _, p := range s.Parts {
		if p.Session == "" && p.AvailableAt.After(now) {
			k.Left++
			k.LeftUntil = Latest(k.LeftUntil, p.AvailableAt)
		}
	}
	return len(s.Parts), of, k
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
	h.PausedBy, h.PausedReason, h.ProbedAt = "", "", time.Time{}
	if pause {
		h.PausedBy, h.PausedReason = by.Name, by.Reason
	}
	c.Body, err = json.Marshal(h)
	return err
}
