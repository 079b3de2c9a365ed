package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// Stores that break one rule each, really, in the database behind them.

// shortlived: of what people did to a control only the last is kept.
type shortlived struct{ Store }

func (s shortlived) Acts(ctx context.Context, kind ledger.ControlKind, name string, _ int) ([]ledger.Control, error) {
	return s.Store.Acts(ctx, kind, name, 1)
}

// unlocked: what others write while a batch is judged is overwritten.
type unlocked struct{ Store }

func (u unlocked) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	ds, err := u.Deliveries(ctx, intake.DeliveryFilter{Unjudged: true, Limit: limit})
	if err != nil {
		return 0, err
	}
	es := make(map[intake.Object]*intake.Entry)
	for _, d := range ds {
		e, err := u.Entry(ctx, d.Object)
		if err != nil {
			return 0, err
		}
		if e == nil {
			e = &intake.Entry{Object: d.Object}
		}
		es[d.Object] = e
	}
	if err := decide(time.Now(), ds, es); err != nil {
		return 0, err
	}
	return u.Store.Judge(ctx, limit, func(_ time.Time, now []intake.Delivery, stored map[intake.Object]*intake.Entry) error {
		copy(now, ds)
		for o, e := range es {
			*stored[o] = *e
		}
		return nil
	})
}

// decision is the callback of Judge.
type decision = func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error

// halver: dispositions are stored first and entries a moment later.
type halver struct{ Store }

func (h halver) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	changed := make(map[intake.Object]intake.Entry)
	n, err := h.Store.Judge(ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		before := make(map[intake.Object]intake.Entry)
		for o, e := range es {
			before[o] = *e
		}
		if err := decide(now, ds, es); err != nil {
			return err
		}
		for o, e := range es {
			changed[o] = *e
			*e = before[o]
		}
		return nil
	})
	<-time.After(200 * time.Millisecond)
	for o, c := range changed {
		err := h.Update(ctx, o, func(_ time.Time, e *intake.Entry) error {
			*e = c
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, err
}

// hasty: Accept answers and stores a moment later.
type hasty struct{ Store }

func (h hasty) Accept(ctx context.Context, events []intake.Event) error {
	later := context.WithoutCancel(ctx)
	time.AfterFunc(time.Second, func() { _ = h.Store.Accept(later, events) })
	return nil
}

// apart: what is counted is not locked.
type apart struct{ Store }

func (a apart) Weigh(ctx context.Context, o intake.Object, id saga.ID, bound intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	var t intake.Tally
	err := a.Store.Weigh(ctx, o, id, bound, func(_ time.Time, _ *intake.Entry, tally intake.Tally) error {
		t = tally
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		return err
	}
	<-time.After(50 * time.Millisecond)
	return a.Update(ctx, o, func(now time.Time, e *intake.Entry) error { return decide(now, e, t) })
}

// lumper: one bad value fails its whole batch, every time.
type lumper struct{ Store }

func (l lumper) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	as, err := l.Store.Append(ctx, t, es)
	for _, a := range as {
		if a.Result == ledger.Invalid {
			return nil, fmt.Errorf("append %d records: %w", len(es), a.Err)
		}
	}
	return as, err
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

// next is a number beside n, and no number where there is none.
func next(n, by int64) int64 {
	if n == 0 {
		return 0
	}
	return n + by
}

// clinging: what turned out to be in sync stays found.
type clinging struct{ Store }

func (c clinging) Find(ctx context.Context, draft plan.Ref, fs []plan.Finding) error {
	var drifted []plan.Finding
	for _, f := range fs {
		if f.Class != plan.InSync {
			drifted = append(drifted, f)
		}
	}
	return c.Store.Find(ctx, draft, drifted)
}

// tornLoad: a head is read first, and its records when another process has written behind it.
type tornLoad struct{ Store }

func (s tornLoad) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	before, err := s.Store.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	<-time.After(20 * time.Millisecond)
	after, err := s.Store.Load(ctx, ids)
	for i := range after {
		after[i].Instance = before[i].Instance
	}
	return after, err
}

// lagging: a load answers what the one before it saw.
type lagging struct {
	Store

	mu   sync.Mutex
	seen map[string][]ledger.Chain
}

func (l *lagging) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	now, err := l.Store.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = make(map[string][]ledger.Chain)
	}
	key := fmt.Sprint(ids)
	before, known := l.seen[key]
	l.seen[key] = now
	if known {
		return before, nil
	}
	return now, nil
}

// everlasting: nothing tells that a session is over.
type everlasting struct{ Store }

func (e everlasting) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	chains, err := e.Store.Load(ctx, ids)
	for i := range chains {
		chains[i].Over = false
	}
	return chains, err
}

// credulous: a schema that this program does not know is no reason to stop.
type credulous struct{ Store }

func (c credulous) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	lease, err := c.Store.Renew(ctx, t, r)
	if errors.Is(err, ledger.ErrSchema) {
		return ledger.Lease{Token: t, TTL: r.TTL, At: time.Now()}, nil
	}
	return lease, err
}

// tidy: a body comes back without its spaces.
type tidy struct{ Store }

func (t tidy) History(ctx context.Context, id saga.ID) ([]machine.Record, error) {
	rs, err := t.Store.History(ctx, id)
	for i := range rs {
		var body bytes.Buffer
		if len(rs[i].Body) > 0 && json.Compact(&body, rs[i].Body) == nil {
			rs[i].Body = body.Bytes()
		}
	}
	return rs, err
}

// torn: the events of a page are stored first, and what it saw a moment later.
type torn struct{ Store }

func (t torn) Advance(ctx context.Context, p scan.Position, page scan.Catch) (scan.Position, error) {
	for i := range page.Events {
		if err := t.Accept(ctx, page.Events[i:i+1]); err != nil {
			return p, err
		}
	}
	page.Events = nil
	return t.Store.Advance(ctx, p, page)
}

// agendaOf is the callback of Turn.
type agendaOf = func(now time.Time, a *schedule.Agenda) error

// turnOverwriter: two turns at one job go on at once, and the later one overwrites what the other
// left, because it decides on what it read before it had the lock.
type turnOverwriter struct{ Store }

func (o turnOverwriter) Turn(ctx context.Context, job string, decide agendaOf) error {
	var before schedule.Agenda
	err := o.Store.Turn(ctx, job, func(_ time.Time, a *schedule.Agenda) error {
		before = *a
		return nil
	})
	if err != nil {
		return err
	}
	<-time.After(time.Millisecond)
	return o.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		a.State = before.State
		return decide(now, a)
	})
}

// piecemeal: runs are stored first, and the job a moment later.
type piecemeal struct{ Store }

func (p piecemeal) Turn(ctx context.Context, job string, decide agendaOf) error {
	var after schedule.JobState
	err := p.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		before := a.State
		if err := decide(now, a); err != nil {
			return err
		}
		after, a.State = a.State, before
		return nil
	})
	if err != nil {
		return err
	}
	<-time.After(200 * time.Millisecond)
	return p.Store.Turn(ctx, job, func(_ time.Time, a *schedule.Agenda) error {
		a.State = after
		return nil
	})
}

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

// rash: what a record makes findable is, whether the record is stored or not.
type rash struct{ Store }

func (r rash) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	for i := range es {
		_ = r.Await(ctx, es[i].Waits) // an invalid one is refused there
	}
	return r.Store.Append(ctx, t, es)
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

// impatient: a claim takes what has not begun before what has.
type impatient struct{ Store }

func (i impatient) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	c.Fresh = c.Limit
	return i.Store.Claim(ctx, t, c)
}

// forgiving: another structure under a known version is taken for the same.
type forgiving struct{ Store }

func (f forgiving) Describe(ctx context.Context, spec *program.Spec) error {
	if err := f.Store.Describe(ctx, spec); !errors.Is(err, ledger.ErrDefinitionChanged) {
		return err
	}
	return nil
}
