package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// forker: a stale record is put on whatever the tail is now.
type forker struct{ Store }

func (f forker) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, f.Store, t, es, func(e ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		for a.Result == ledger.Stale {
			rs, err := f.History(ctx, e.ID)
			if err != nil {
				return a, err
			}
			tail := rs[len(rs)-1]
			e.Prev = tail.Hash
			e.Record.Seal(e.ID, theSalt, tail.Seq, tail.Hash, e.Record.Session)
			if a, err = once(ctx, f.Store, t, e); err != nil {
				return a, err
			}
		}
		return a, nil
	})
}

// reviver: a dead session gets a new lease when it arms.
type reviver struct{ Store }

func (r reviver) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, r.Store, t, es, func(e ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		if a.Result != ledger.NoLease {
			return a, nil
		}
		lease, err := r.OpenSession(ctx, time.Hour, "revived", nil)
		if err != nil {
			return a, err
		}
		e.Record.Seal(e.ID, theSalt, e.Record.Seq-1, e.Prev, lease.Token)
		return once(ctx, r.Store, lease.Token, e)
	})
}

// startDoubler: a known work is started again, under an id of its own.
type startDoubler struct{ Store }

func (d startDoubler) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return each(ctx, d.Store, t, es, func(e ledger.Entry, a ledger.Answer) (ledger.Answer, error) {
		for n := 2; a.Result == ledger.Exists; n++ {
			twin := e
			twin.ID.Work = fmt.Sprintf("%s (%d)", e.ID.Work, n)
			twin.Record.Seal(twin.ID, theSalt, 0, machine.Hash{}, e.Record.Session)
			var err error
			if a, err = once(ctx, d.Store, t, twin); err != nil {
				return a, err
			}
		}
		return a, nil
	})
}

// resultForgetter: what a session learned before it died is refused with its lease.
type resultForgetter struct{ Store }

func (f resultForgetter) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	if _, err := f.Claim(ctx, t, ledger.Claim{}); !errors.Is(err, ledger.ErrSessionDead) {
		return f.Store.Append(ctx, t, es)
	}
	as := make([]ledger.Answer, len(es))
	for i := range as {
		as[i].Result = ledger.NoLease
	}
	return as, nil
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

// signalDeaf: a signal to a held work is dropped.
type signalDeaf struct{ Store }

func (d signalDeaf) Post(ctx context.Context, id saga.ID, s machine.Signal) error {
	heads, err := ledger.First(ctx, d, ledger.Filter{Saga: id.Saga, Work: id.Work})
	if err != nil || len(heads) == 1 && heads[0].Session != 0 {
		return err
	}
	return d.Store.Post(ctx, id, s)
}

// numberless: the number that a signal wants is not looked at.
type numberless struct{ Store }

func (n numberless) Post(ctx context.Context, id saga.ID, s machine.Signal) error {
	s.ID = 0
	return n.Store.Post(ctx, id, s)
}

// sharer: a claim answers with works that another session holds.
type sharer struct{ Store }

func (s sharer) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	got, err := s.Store.Claim(ctx, t, c)
	if err != nil {
		return got, err
	}
	all, err := ledger.First(ctx, s, ledger.Filter{Limit: 1000})
	for _, h := range all {
		if h.Session != 0 && h.Session != t && len(got.Instances) < c.Limit {
			got.Instances = append(got.Instances, h)
		}
	}
	return got, err
}

// knowAll: a claim takes works of definitions that the process does not know.
type knowAll struct{ Store }

func (k knowAll) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	all, err := ledger.First(ctx, k, ledger.Filter{Limit: 1000})
	if err != nil {
		return ledger.Claimed{}, err
	}
	for _, h := range all {
		c.Known = append(c.Known, ledger.Version{Saga: h.ID.Saga, Version: h.Version})
	}
	return k.Store.Claim(ctx, t, c)
}

// impatient: a claim takes what has not begun before what has.
type impatient struct{ Store }

func (i impatient) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	c.Fresh = c.Limit
	return i.Store.Claim(ctx, t, c)
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

// silent: a renewal does not tell of works that are not in hand.
type silent struct{ Store }

func (s silent) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	all, err := ledger.First(ctx, s, ledger.Filter{Limit: 1000})
	for _, h := range all {
		r.InHand = append(r.InHand, h.Number)
	}
	if err != nil {
		return ledger.Lease{}, err
	}
	return s.Store.Renew(ctx, t, r)
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

type lonely struct{ Store }

func (s lonely) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	lease, err := s.Store.Renew(ctx, t, r)
	lease.Live = []machine.Token{t}
	return lease, err
}

// stranger: works are given back that another session holds.
type stranger struct{ Store }

func (s stranger) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	all, err := ledger.First(ctx, s, ledger.Filter{Limit: 1000})
	for _, h := range all {
		if h.Session != 0 && h.Session != t && err == nil {
			err = s.Store.GiveBack(ctx, h.Session, works)
		}
	}
	if err != nil {
		return err
	}
	return s.Store.GiveBack(ctx, t, works)
}

// forgetful: a session forgets what its process knows.
type forgetful struct{ Store }

func (f forgetful) OpenSession(ctx context.Context, ttl time.Duration, label string, _ []ledger.Version) (ledger.Lease, error) {
	return f.Store.OpenSession(ctx, ttl, label, nil)
}

type adder struct{ Store }

func (a adder) Count(ctx context.Context, _ ledger.Counter, totals []ledger.Duplicate) error {
	return a.Store.Count(ctx, ledger.Counter(nonces.Add(1)), totals)
}
