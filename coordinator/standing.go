package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// DestinationStatus is where a destination stands, for people.
type DestinationStatus struct {
	Name     string
	State    string         // healthy, limited, failing or paused
	Since    time.Time      // failing, paused
	Until    time.Time      // limited: until then; failing: when the next attempt finds out, zero while one does
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
			known[name] = &DestinationStatus{Name: name, State: healthy}
		}
		return known[name]
	}
	for i := range all {
		switch c := &all[i]; {
		case c.Kind == ledger.ControlDestination:
			err = op.stands(ctx, of(c.Name), c, now)
		case c.Kind == ledger.ControlShare:
			of(c.Name).shared(c)
		case c.Kind == ledger.ControlPause && len(c.Body) > 0:
			st.Paused = append(st.Paused, Paused{Scope{c.Kind, c.Name}, *pausedBy(c), c.At})
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
	h, err := healthOf(c)
	if err != nil {
		return fmt.Errorf("destination %s: %w", c.Name, err)
	}
	d.State, d.Since, d.Why, d.Served = h.state(machine.Moment{Earliest: now, Latest: now}), h.FailingSince, h.Why, h.ServedAt
	switch d.State {
	case healthy:
		d.Since, d.Why = time.Time{}, ""
	case limited:
		d.Until = h.LimitedUntil
	case failing:
		d.Evidence = h.Evidence
		if h.Probe.By == "" && h.Retry.By == "" {
			if d.Until = h.Probe.Next; h.Retry.Next.Before(d.Until) {
				d.Until = h.Retry.Next
			}
		}
	case paused:
		d.Actor, d.Why = h.PausedBy, h.PausedWhy
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

// shared reads who has which part of a destination's limit. What another version of amends wrote is
// left out.
func (d *DestinationStatus) shared(c *ledger.Control) {
	var s share
	if len(c.Body) == 0 || json.Unmarshal(c.Body, &s) != nil {
		return
	}
	d.Parts, d.Shares = len(s.Parts), map[string]int{}
	for token := range s.Wants {
		d.Shares[token] = len(s.owned(token, len(s.Parts)))
	}
}
