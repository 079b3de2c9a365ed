package storetest

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// What breaks the rules of waiting for a destination.

// crowding: a claim takes what waits for a destination where there is no room.
type crowding struct{ Store }

func (c crowding) Claim(ctx context.Context, t machine.Token, k ledger.Claim) (ledger.Claimed, error) {
	all, err := ledger.First(ctx, c, ledger.Filter{Limit: 1000})
	if err != nil {
		return ledger.Claimed{}, err
	}
	k.Rooms = make(map[string]int)
	for _, h := range all {
		k.Rooms[h.WaitsFor] = len(all)
	}
	return c.Store.Claim(ctx, t, k)
}

// caller: a return of a released work for an earlier time takes it out of its line.
type caller struct{ Store }

func (c caller) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	for i, r := range works {
		f := ledger.Filter{Limit: 1}
		f.After = f.Behind(ledger.Position{Number: r.Number - 1})
		heads, err := ledger.First(ctx, c, f)
		if err != nil {
			return err
		}
		if len(heads) == 1 && heads[0].WaitsFor != "" && heads[0].WaitsFor != r.WaitsFor {
			wake := machine.Signal{Kind: machine.SignalWake, Key: fmt.Sprint("called ", i), Actor: "suite", Reason: "because"}
			if err := c.Post(ctx, heads[0].ID, wake); err != nil {
				return err
			}
		}
	}
	return c.Store.GiveBack(ctx, t, works)
}

// sweeping: a wait that ends takes those of other versions with it.
type sweeping struct{ Store }

func (s sweeping) Unwait(ctx context.Context, waits []ledger.Wait) error {
	for _, w := range waits {
		all, err := s.Waits(ctx, w.Name, w.Key)
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.ID == w.ID && o.Step == w.Step {
				if err := s.Store.Unwait(ctx, []ledger.Wait{o}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sharing: a message is used by all who say so.
type sharing struct{ Store }

func (s sharing) Use(ctx context.Context, name, id string, by ledger.Wait) (bool, error) {
	_, err := s.Store.Use(ctx, name, id, by)
	return true, err
}
