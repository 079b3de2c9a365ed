package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Rule names one rule of the ledger that [Break] can break.
type Rule string

// The rules, and what a ledger that breaks them does.
const (
	// Predecessor: a stale record is put on whatever the tail is now.
	Predecessor Rule = "predecessor"
	// Lease: a dead session gets a new lease when it arms.
	Lease Rule = "lease"
	// UniqueStart: a known work is started again, under an id of its own.
	UniqueStart Rule = "unique-start"
	// ResultKept: what a session learned before it died is refused with its lease.
	ResultKept Rule = "result-kept"
	// SplitBatch: one bad value fails its whole batch, every time.
	SplitBatch Rule = "split-batch"
	// SignalKept: a signal to a work that somebody holds is dropped.
	SignalKept Rule = "signal-kept"
	// ClaimOnce: a claim answers with works that another session holds.
	ClaimOnce Rule = "claim-once"
)

// Rules are all rules, each with the test of the suite that is named after it.
var Rules = map[Rule]string{
	Predecessor: "append/stale",
	Lease:       "append/no_lease",
	UniqueStart: "start/once",
	ResultKept:  "append/result_without_a_lease",
	SplitBatch:  "invalid/the_others_are_stored",
	SignalKept:  "signal/posted_before_the_release",
	ClaimOnce:   "claim/due_works",
}

// Break returns s with one rule broken. It really breaks it: the database behind s holds what the rule forbids,
// or lacks what it demands. It is for proving that a suite looks.
func Break(s Store, r Rule) Store {
	switch r {
	case Predecessor:
		return forker{s}
	case Lease:
		return reviver{s}
	case UniqueStart:
		return doubler{s}
	case ResultKept:
		return forgetter{s}
	case SplitBatch:
		return lumper{s}
	case SignalKept:
		return deaf{s}
	case ClaimOnce:
		return sharer{s}
	default:
		panic(fmt.Sprintf("ledgertest: there is no rule %q", r))
	}
}

// each repairs the answers of Append that a broken ledger would not give.
func each(ctx context.Context, s Store, t saga.Token, es []ledger.Entry, mend func(ledger.Entry, ledger.Answer) (ledger.Answer, error)) ([]ledger.Answer, error) {
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
func once(ctx context.Context, s Store, t saga.Token, e ledger.Entry) (ledger.Answer, error) {
	as, err := s.Append(ctx, t, []ledger.Entry{e})
	if err != nil {
		return ledger.Answer{}, err
	}
	return as[0], nil
}

type forker struct{ Store }

func (f forker) Append(ctx context.Context, t saga.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, f.Store, t, es, func(e ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		for a.Result == ledger.Stale {
			rs, err := f.History(ctx, e.ID)
			if err != nil {
				return a, err
			}
			tail := rs[len(rs)-1]
			e.Prev = tail.Hash
			e.Record.Seal(e.ID, tail.Seq, tail.Hash, e.Record.Session)
			if a, err = once(ctx, f.Store, t, e); err != nil {
				return a, err
			}
		}
		return a, nil
	})
}

type reviver struct{ Store }

func (r reviver) Append(ctx context.Context, t saga.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, r.Store, t, es, func(e ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		if a.Result != ledger.NoLease {
			return a, nil
		}
		lease, err := r.OpenSession(ctx, time.Hour, "revived", nil)
		if err != nil {
			return a, err
		}
		e.Record.Seal(e.ID, e.Record.Seq-1, e.Prev, lease.Token)
		return once(ctx, r.Store, lease.Token, e)
	})
}

type doubler struct{ Store }

func (d doubler) Append(ctx context.Context, t saga.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, d.Store, t, es, func(e ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		for n := 2; a.Result == ledger.Exists; n++ {
			twin := e
			twin.ID.Work = fmt.Sprintf("%s (%d)", e.ID.Work, n)
			twin.Record.Seal(twin.ID, 0, saga.Hash{}, e.Record.Session)
			var err error
			if a, err = once(ctx, d.Store, t, twin); err != nil {
				return a, err
			}
		}
		return a, nil
	})
}

type forgetter struct{ Store }

func (f forgetter) Append(ctx context.Context, t saga.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	if _, err := f.Claim(ctx, t, ledger.Claim{}); !errors.Is(err, ledger.ErrSessionDead) {
		return f.Store.Append(ctx, t, es)
	}
	as := make([]ledger.Answer, len(es))
	for i := range as {
		as[i].Result = ledger.NoLease
	}
	return as, nil
}

type lumper struct{ Store }

func (l lumper) Append(ctx context.Context, t saga.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, l.Store, t, es, func(_ ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		if a.Result == ledger.Invalid {
			return a, fmt.Errorf("append %d records: %w", len(es), a.Err)
		}
		return a, nil
	})
}

type deaf struct{ Store }

func (d deaf) Post(ctx context.Context, id saga.ID, s saga.Signal) error {
	heads, err := d.List(ctx, ledger.Filter{Saga: id.Saga, Work: id.Work})
	if err != nil || len(heads) == 1 && heads[0].Session != 0 {
		return err
	}
	return d.Store.Post(ctx, id, s)
}

type sharer struct{ Store }

func (s sharer) Claim(ctx context.Context, t saga.Token, c ledger.Claim) ([]ledger.Head, error) {
	heads, err := s.Store.Claim(ctx, t, c)
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, ledger.Filter{Limit: 1000})
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.Session != 0 && h.Session != t && len(heads) < c.Limit {
			heads = append(heads, h)
		}
	}
	return heads, nil
}
