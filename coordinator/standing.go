package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// RetryPrefix is before the name of a destination where [Instance].WaitsFor names it for those that failed there before and wait for
// another try.
const RetryPrefix = "retry:"

// DestinationStatus is where a destination stands, for people.
type DestinationStatus struct {
	flow.Kept // of its limit: Unanswered slots, UnansweredUntil; parts that a session has Left, LeftUntil

	Name     string
	State    string         // healthy, limited, failing or paused
	Since    time.Time      // failing, paused
	Until    time.Time      // limited: until then; failing: when the next attempt finds out, zero while one does or may at once
	Why      string         // what the latest failure said; paused: the person's words
	Evidence string         // failing: why it counts as that
	Actor    string         // paused: who wants it so
	Served   time.Time      // when an instance was served there, to ten seconds; zero: not known
	Parts    int            // of its limit; 0: it has none
	Shares   map[string]int // how many of them each session has
}

// Paused is a saga, or everything, that a person holds.
type Paused struct {
	Scope Scope
	By    saga.Actor
	At    time.Time
}

// Standing is what every process of a ledger obeys.
type Standing struct {
	Destinations []DestinationStatus // those that anything was ever told of, by name
	Paused       []Paused            // but for destinations
}

// Standing reads what every process obeys, as of now by the ledger's clock.
func (op *Operator) Standing(ctx context.Context, now time.Time) (Standing, error) {
	var st Standing
	all, _, err := op.ledger.Controls(ctx)
	if err != nil {
		return st, fmt.Errorf("read the controls: %w", err)
	}
	known := map[string]*DestinationStatus{}
	of := func(name string) *DestinationStatus {
		if known[name] == nil {
			known[name] = &DestinationStatus{Name: name, State: flow.Healthy}
		}
		return known[name]
	}
	for i := range all {
		switch c := &all[i]; {
		case c.Kind == ledger.ControlDestination:
			err = op.stands(ctx, of(c.Name), c, now)
		case c.Kind == ledger.ControlShare:
			d := of(c.Name)
			d.Parts, d.Shares, d.Kept = flow.SharesOf(c, now)
		case c.Kind == ledger.ControlPause && len(c.Body) > 0:
			st.Paused = append(st.Paused, Paused{Scope{c.Kind, c.Name}, *flow.PausedBy(c), c.At})
		}
		if err != nil {
			return st, err
		}
	}
	for _, d := range known {
		st.Destinations = append(st.Destinations, *d)
	}
	slices.SortFunc(st.Destinations, func(a, b DestinationStatus) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(st.Paused, func(a, b Paused) int { return cmp.Compare(a.Scope.name, b.Scope.name) })
	return st, nil
}

// stands reads a destination's health.
func (op *Operator) stands(ctx context.Context, d *DestinationStatus, c *ledger.Control, now time.Time) error {
	h, err := flow.HealthOf(c)
	if err != nil {
		return fmt.Errorf("destination %s: %w", c.Name, err)
	}
	d.State, d.Since, d.Why, d.Served = h.State(machine.Moment{Earliest: now, Latest: now}), h.FailureStartedAt, h.LastError, h.LastServedAt
	switch d.State {
	case flow.Healthy:
		d.Since, d.Why = time.Time{}, ""
	case flow.Limited:
		d.Until = h.LimitedUntil
	case flow.Failing:
		d.Evidence = h.Evidence
		d.Until = h.TriedAt(now)
	case flow.Paused:
		d.Actor, d.Why = h.PausedBy, h.PausedReason
		acts, err := op.ledger.Acts(ctx, c.Kind, c.Name, 1)
		if err != nil {
			return fmt.Errorf("read who paused %s: %w", c.Name, err)
		}
		if len(acts) > 0 {
			d.Since = acts[0].At
		}
	}
	return nil
}
