package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	OwnReturned:     "give_back/only_its_own",
	WaitCounted:     "overview/what_waits_for_destinations",
	ControlCompared: "control/compared",
	ControlLease:    "control/a_live_session",
	ActKept:         "control/acts",
	ControlTold:     "control/the_newest_version_is_told",
	SetKnown:        "control/repeated",
	KnowsKept:       "overview/what_no_process_knows",
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
	case UnknownLeft:
		return knowAll{s}
	case ClassOrder:
		return impatient{s}
	case RoomAsked:
		return crowding{s}
	case StartOrder:
		return newcomer{s}
	case TurnsTaken:
		return pushing{s}
	case WaitEnds:
		return patient{s}
	case LineKept:
		return caller{s}
	case ReadOnce:
		return repeater{s}
	case StrayNamed:
		return silent{s}
	case OwnReturned:
		return stranger{s}
	case WaitCounted:
		return blind{s}
	case ControlCompared:
		return overwriter{s}
	case ControlLease:
		return haunted{s}
	case ActKept:
		return shortlived{s}
	case ControlTold:
		return mute{s}
	case SetKnown:
		return renamer{s}
	case KnowsKept:
		return forgetful{s}
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

type crowding struct{ Store }

func (c crowding) Claim(ctx context.Context, t saga.Token, k ledger.Claim) (ledger.Claimed, error) {
	all, err := c.List(ctx, ledger.Filter{Limit: 1000})
	if err != nil {
		return ledger.Claimed{}, err
	}
	k.Rooms = make(map[string]int)
	for _, h := range all {
		k.Rooms[h.WaitsFor] = len(all)
	}
	return c.Store.Claim(ctx, t, k)
}

// newcomer takes the longest due of all that wait, and gives the others back into their lines.
type newcomer struct{ Store }

func (n newcomer) Claim(ctx context.Context, t saga.Token, k ledger.Claim) (ledger.Claimed, error) {
	all, err := n.List(ctx, ledger.Filter{Limit: 1000})
	if err != nil {
		return ledger.Claimed{}, err
	}
	before := make(map[int64]ledger.Head)
	rooms := make(map[string]int)
	for _, h := range all {
		before[h.Number], rooms[h.WaitsFor] = h, len(all)
	}
	everything := k
	everything.Limit, everything.Rooms = len(all), rooms
	got, err := n.Store.Claim(ctx, t, everything)
	if err != nil {
		return got, err
	}
	slices.SortFunc(got.Heads, func(a, b ledger.Head) int {
		return before[a.Number].Due.Compare(before[b.Number].Due)
	})
	kept, taken := got.Heads[:0:0], make(map[string]int)
	for _, h := range got.Heads {
		was := before[h.Number]
		if was.WaitsFor == "" || taken[was.WaitsFor] < k.Rooms[was.WaitsFor] && len(kept) < k.Limit {
			taken[was.WaitsFor]++
			kept = append(kept, h)
		} else if err := n.GiveBack(ctx, t, []ledger.Return{{Number: h.Number, Due: was.Due, WaitsFor: was.WaitsFor}}); err != nil {
			return got, err
		}
	}
	got.Heads = kept
	return got, nil
}

type pushing struct{ Store }

func (p pushing) Claim(ctx context.Context, t saga.Token, c ledger.Claim) (ledger.Claimed, error) {
	rooms := c.Rooms
	c.Rooms = nil
	got, err := p.Store.Claim(ctx, t, c)
	if err != nil || len(got.Heads) >= c.Limit {
		return got, err
	}
	c.Rooms = rooms
	c.Limit -= len(got.Heads)
	more, err := p.Store.Claim(ctx, t, c)
	got.Heads = append(got.Heads, more.Heads...)
	return got, err
}

type patient struct{ Store }

func (p patient) Post(ctx context.Context, id saga.ID, s saga.Signal) error {
	heads, err := p.List(ctx, ledger.Filter{Saga: id.Saga, Work: id.Work})
	if err != nil || len(heads) == 1 && heads[0].WaitsFor != "" {
		return err
	}
	return p.Store.Post(ctx, id, s)
}

type caller struct{ Store }

func (c caller) GiveBack(ctx context.Context, t saga.Token, works []ledger.Return) error {
	for i, r := range works {
		heads, err := c.List(ctx, ledger.Filter{After: r.Number - 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(heads) == 1 && heads[0].WaitsFor != "" && heads[0].WaitsFor != r.WaitsFor {
			wake := saga.Signal{Kind: saga.SignalWake, Key: fmt.Sprint("called ", i), Actor: "suite", Reason: "because"}
			if err := c.Post(ctx, heads[0].ID, wake); err != nil {
				return err
			}
		}
	}
	return c.Store.GiveBack(ctx, t, works)
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

type blind struct{ Store }

func (s blind) Overview(ctx context.Context) (ledger.Overview, error) {
	o, err := s.Store.Overview(ctx)
	o.Waiting = nil
	return o, err
}

type overwriter struct{ Store }

func (o overwriter) SetControl(ctx context.Context, t saga.Token, c ledger.Control) (ledger.Control, error) {
	is, err := o.Store.SetControl(ctx, t, c)
	if !errors.Is(err, ledger.ErrChanged) {
		return is, err
	}
	all, _, err := o.Controls(ctx)
	c.Version = 0
	for _, now := range all {
		if now.Kind == c.Kind && now.Name == c.Name {
			c.Version = now.Version
		}
	}
	if err != nil {
		return is, err
	}
	return o.Store.SetControl(ctx, t, c)
}

type haunted struct{ Store }

func (h haunted) SetControl(ctx context.Context, t saga.Token, c ledger.Control) (ledger.Control, error) {
	is, err := h.Store.SetControl(ctx, t, c)
	if !errors.Is(err, ledger.ErrSessionDead) {
		return is, err
	}
	c.Actor = "the late " + t.String()
	return h.Store.SetControl(ctx, 0, c)
}

type shortlived struct{ Store }

func (s shortlived) Acts(ctx context.Context, kind ledger.ControlKind, name string, _ int) ([]ledger.Control, error) {
	return s.Store.Acts(ctx, kind, name, 1)
}

type mute struct{ Store }

func (m mute) Claim(ctx context.Context, t saga.Token, c ledger.Claim) (ledger.Claimed, error) {
	got, err := m.Store.Claim(ctx, t, c)
	got.Controls = 0
	return got, err
}

type renamer struct{ Store }

func (r renamer) SetControl(ctx context.Context, t saga.Token, c ledger.Control) (ledger.Control, error) {
	c.Nonce = nonces.Add(1)
	return r.Store.SetControl(ctx, t, c)
}

type forgetful struct{ Store }

func (f forgetful) OpenSession(ctx context.Context, ttl time.Duration, label string, _ []ledger.Version) (ledger.Lease, error) {
	return f.Store.OpenSession(ctx, ttl, label, nil)
}
