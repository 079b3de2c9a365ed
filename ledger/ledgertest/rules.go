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
	// UnknownLeft: a claim takes works of definitions that the process does not know.
	UnknownLeft Rule = "unknown-left"
	// ClassOrder: a claim takes what has not begun before what has.
	ClassOrder Rule = "class-order"
	// RoomAsked: a claim takes what waits for a destination where there is no room.
	RoomAsked Rule = "room-asked"
	// StartOrder: what came to wait first is claimed first.
	StartOrder Rule = "start-order"
	// TurnsTaken: what waits for a destination is claimed only when nothing else is due.
	TurnsTaken Rule = "turns-taken"
	// WaitEnds: a signal to what waits for a destination is read when there is room.
	WaitEnds Rule = "wait-ends"
	// LineKept: whoever asks for a released work earlier takes it out of its line.
	LineKept Rule = "line-kept"
	// ReadOnce: a load brings back signals that a record has consumed.
	ReadOnce Rule = "read-once"
	// StrayNamed: a renewal does not tell of works that are not in hand.
	StrayNamed Rule = "stray-named"
	// LiveTold: a renewal tells of no session but its own.
	LiveTold Rule = "live-told"
	// OwnReturned: works are given back that another session holds.
	OwnReturned Rule = "own-returned"
	// WaitCounted: what waits for a destination is not counted.
	WaitCounted Rule = "wait-counted"
	// ControlCompared: a control is set whatever it is by now.
	ControlCompared Rule = "control-compared"
	// ControlLease: what a dead session wants to control is set as if a person had.
	ControlLease Rule = "control-lease"
	// ActKept: of what people did to a control only the last is kept.
	ActKept Rule = "act-kept"
	// ControlTold: a claim does not tell of the newest version of the controls.
	ControlTold Rule = "control-told"
	// SetKnown: a set that comes again is not known again.
	SetKnown Rule = "set-known"
	// CountedOnce: what a counter tells again is added.
	CountedOnce Rule = "counted-once"
	// KnowsKept: a session forgets what its process knows.
	KnowsKept Rule = "knows-kept"
)

// Rules are all rules, each with the test of the suite that is named after it.
var Rules = map[Rule]string{
	Predecessor:     "append/stale",
	Lease:           "append/no_lease",
	UniqueStart:     "start/once",
	ResultKept:      "append/result_without_a_lease",
	SplitBatch:      "invalid/the_others_are_stored",
	SignalKept:      "signal/posted_before_the_release",
	ClaimOnce:       "claim/due_works",
	UnknownLeft:     "claim/unknown_definitions",
	ClassOrder:      "claim/by_class",
	RoomAsked:       "waiting/only_where_there_is_room",
	StartOrder:      "waiting/in_the_order_of_starting",
	TurnsTaken:      "waiting/lines_take_turns",
	WaitEnds:        "waiting/a_signal_ends_it",
	LineKept:        "waiting/given_back_again",
	ReadOnce:        "load/unread_signals",
	StrayNamed:      "give_back/stray_works",
	LiveTold:        "session/the_live_ones",
	OwnReturned:     "give_back/only_its_own",
	WaitCounted:     "overview/what_waits_for_destinations",
	ControlCompared: "control/compared",
	ControlLease:    "control/a_live_session",
	ActKept:         "control/acts",
	ControlTold:     "control/the_newest_version_is_told",
	SetKnown:        "control/repeated",
	CountedOnce:     "duplicate/counted_once",
	KnowsKept:       "overview/what_no_process_knows",
}

// Break returns s with one rule broken. It really breaks it: the database behind s holds what the rule forbids,
// or lacks what it demands. It is for proving that a suite looks.
func Break(s Store, r Rule) Store {
	wrap, ok := broken[r]
	if !ok {
		panic(fmt.Sprintf("ledgertest: there is no rule %q", r))
	}
	return wrap(s)
}

// broken makes a ledger that breaks a rule.
var broken = map[Rule]func(Store) Store{
	Predecessor:     func(s Store) Store { return forker{s} },
	Lease:           func(s Store) Store { return reviver{s} },
	UniqueStart:     func(s Store) Store { return doubler{s} },
	ResultKept:      func(s Store) Store { return forgetter{s} },
	SplitBatch:      func(s Store) Store { return lumper{s} },
	SignalKept:      func(s Store) Store { return deaf{s} },
	ClaimOnce:       func(s Store) Store { return sharer{s} },
	UnknownLeft:     func(s Store) Store { return knowAll{s} },
	ClassOrder:      func(s Store) Store { return impatient{s} },
	RoomAsked:       func(s Store) Store { return crowding{s} },
	StartOrder:      func(s Store) Store { return newcomer{s} },
	TurnsTaken:      func(s Store) Store { return pushing{s} },
	WaitEnds:        func(s Store) Store { return patient{s} },
	LineKept:        func(s Store) Store { return caller{s} },
	ReadOnce:        func(s Store) Store { return repeater{s} },
	StrayNamed:      func(s Store) Store { return silent{s} },
	LiveTold:        func(s Store) Store { return lonely{s} },
	OwnReturned:     func(s Store) Store { return stranger{s} },
	WaitCounted:     func(s Store) Store { return blind{s} },
	ControlCompared: func(s Store) Store { return overwriter{s} },
	ControlLease:    func(s Store) Store { return haunted{s} },
	ActKept:         func(s Store) Store { return shortlived{s} },
	ControlTold:     func(s Store) Store { return mute{s} },
	SetKnown:        func(s Store) Store { return renamer{s} },
	CountedOnce:     func(s Store) Store { return adder{s} },
	KnowsKept:       func(s Store) Store { return forgetful{s} },
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

func (s sharer) Claim(ctx context.Context, t saga.Token, c ledger.Claim) (ledger.Claimed, error) {
	got, err := s.Store.Claim(ctx, t, c)
	if err != nil {
		return got, err
	}
	all, err := s.List(ctx, ledger.Filter{Limit: 1000})
	for _, h := range all {
		if h.Session != 0 && h.Session != t && len(got.Heads) < c.Limit {
			got.Heads = append(got.Heads, h)
		}
	}
	return got, err
}

type knowAll struct{ Store }

func (k knowAll) Claim(ctx context.Context, t saga.Token, c ledger.Claim) (ledger.Claimed, error) {
	all, err := k.List(ctx, ledger.Filter{Limit: 1000})
	if err != nil {
		return ledger.Claimed{}, err
	}
	for _, h := range all {
		c.Known = append(c.Known, ledger.Version{Saga: h.ID.Saga, Version: h.Version})
	}
	return k.Store.Claim(ctx, t, c)
}

type impatient struct{ Store }

func (i impatient) Claim(ctx context.Context, t saga.Token, c ledger.Claim) (ledger.Claimed, error) {
	c.Fresh = c.Limit
	return i.Store.Claim(ctx, t, c)
}

type repeater struct{ Store }

func (r repeater) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	chains, err := r.Store.Load(ctx, ids)
	for i := range chains {
		if len(chains[i].Signals) > 0 && err == nil {
			chains[i].Signals, err = r.Signals(ctx, chains[i].Head.ID)
		}
	}
	return chains, err
}

type silent struct{ Store }

func (s silent) Renew(ctx context.Context, t saga.Token, r ledger.Renewal) (ledger.Lease, error) {
	all, err := s.List(ctx, ledger.Filter{Limit: 1000})
	for _, h := range all {
		r.InHand = append(r.InHand, h.Number)
	}
	if err != nil {
		return ledger.Lease{}, err
	}
	return s.Store.Renew(ctx, t, r)
}

type lonely struct{ Store }

func (s lonely) Renew(ctx context.Context, t saga.Token, r ledger.Renewal) (ledger.Lease, error) {
	lease, err := s.Store.Renew(ctx, t, r)
	lease.Live = []saga.Token{t}
	return lease, err
}

type stranger struct{ Store }

func (s stranger) GiveBack(ctx context.Context, t saga.Token, works []ledger.Return) error {
	all, err := s.List(ctx, ledger.Filter{Limit: 1000})
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

type adder struct{ Store }

func (a adder) Count(ctx context.Context, _ ledger.Counter, totals []ledger.Duplicate) error {
	return a.Store.Count(ctx, ledger.Counter(nonces.Add(1)), totals)
}

type forgetful struct{ Store }

func (f forgetful) OpenSession(ctx context.Context, ttl time.Duration, label string, _ []ledger.Version) (ledger.Lease, error) {
	return f.Store.OpenSession(ctx, ttl, label, nil)
}
