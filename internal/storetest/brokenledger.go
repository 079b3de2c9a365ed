package storetest

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// each repairs the answers of Append that a broken ledger would not give.
func each(ctx context.Context, s Store, t machine.Token, es []ledger.Entry, mend func(ledger.Entry, ledger.Answer) (ledger.Answer, error)) ([]ledger.Answer, error) {
	as, err := s.Append(ctx, t, es)
	if err != nil {
		return nil, err
	}
	for i := range as {
		if as[i], err = mend(es[i], as[i]); err != nil {
			return nil, err
		}
	}
	return as, nil
}

// once appends one entry.
func once(ctx context.Context, s Store, t machine.Token, e ledger.Entry) (ledger.Answer, error) {
	as, err := s.Append(ctx, t, []ledger.Entry{e})
	if err != nil {
		return ledger.Answer{}, err
	}
	return as[0], nil
}

// lumper: one bad value fails its whole batch, every time.
type lumper struct{ Store }

func (l lumper) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, l.Store, t, es, func(_ ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		if a.Result == ledger.Invalid {
			return a, fmt.Errorf("append %d records: %w", len(es), a.Err)
		}
		return a, nil
	})
}

// signalRepeater: a load brings back signals that a record has consumed.
type signalRepeater struct{ Store }

func (r signalRepeater) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	chains, err := r.Store.Load(ctx, ids)
	for i := range chains {
		if len(chains[i].Signals) > 0 && err == nil {
			chains[i].Signals, err = r.Signals(ctx, chains[i].Instance.ID)
		}
	}
	return chains, err
}

// lonely: a renewal tells of no session but its own.
type early struct{ Store }

func (h early) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	all, err := h.Sessions(ctx)
	for _, s := range all {
		if s.Token != t && err == nil {
			err = h.Bury(ctx, s.Token)
		}
	}
	if err != nil {
		return ledger.Claimed{}, err
	}
	return h.Store.Claim(ctx, t, c)
}
