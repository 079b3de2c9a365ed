package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// Rule names one rule of the contract that [Break] can break.
type Rule string

// The rules, and what a store that breaks them does.
const (
	// DuplicateOnce: the second delivery of an event is a second event.
	DuplicateOnce Rule = "duplicate-once"
	// ContentCompared: an event with a known dedupe digest is a copy, whatever it says.
	ContentCompared Rule = "content-compared"
	// DigestKept: with a delivery goes what recognises its copies.
	DigestKept Rule = "digest-kept"
	// JudgeLocks: what others write while a batch is judged is overwritten.
	JudgeLocks Rule = "judge-locks"
	// OneTransaction: verdicts are stored first and entries a moment later.
	OneTransaction Rule = "one-transaction"
	// ErrorStoresNothing: what a callback left when it failed is stored.
	ErrorStoresNothing Rule = "error-stores-nothing"
	// LeaseHeld: entries are claimed that somebody works on.
	LeaseHeld Rule = "lease-held"
	// CommitFirst: Accept answers and stores a moment later.
	CommitFirst Rule = "commit-first"
	// SurvivesKill: the same, in a process that is killed.
	SurvivesKill Rule = "survives-kill"
	// OwedKept: what nobody has judged is purged.
	OwedKept Rule = "owed-kept"
	// DraftDies: a draft lives on beside the next one of its job.
	DraftDies Rule = "draft-dies"
	// InSyncOut: what turned out to be in sync stays found.
	InSyncOut Rule = "in-sync-out"
	// DriftLasts: drift begins anew with every run.
	DriftLasts Rule = "drift-lasts"
	// TurnLocks: two turns at one job go on at once, and the later one overwrites what the other left.
	TurnLocks Rule = "turn-locks"
	// TurnErrorStoresNothing: what a callback left of a job when it failed is stored.
	TurnErrorStoresNothing Rule = "turn-error-stores-nothing"
	// InstantOnce: a second run of an instant is recorded.
	InstantOnce Rule = "instant-once"
	// TurnOneTransaction: runs are stored first, and the job a moment later.
	TurnOneTransaction Rule = "turn-one-transaction"
	// HaltKnown: the pause of everything is no pause of a job.
	HaltKnown Rule = "halt-known"
	// SweepCompares: who is behind moves a sweep on all the same.
	SweepCompares Rule = "sweep-compares"
	// SweepOneTransaction: the events of a page are stored first, and what it saw a moment later.
	SweepOneTransaction Rule = "sweep-one-transaction"
	// SweepRepeatable: a page that was stored after all is somebody else's.
	SweepRepeatable Rule = "sweep-repeatable"
	// ByteOrder: sightings are in the order of an alphabet.
	ByteOrder Rule = "byte-order"
	// NewerKept: what the newest listing saw is discarded.
	NewerKept Rule = "newer-kept"
)

// Rules are all rules, each with the test of the suite that is named for it.
var Rules = map[Rule]string{
	DuplicateOnce:      "inbox/a_copy_is_counted",
	ContentCompared:    "inbox/a_conflict_is_kept",
	DigestKept:         "retention/digests_outlive_deliveries",
	JudgeLocks:         "judge/entries_are_locked",
	OneTransaction:     "judge/one_transaction",
	ErrorStoresNothing: "judge/an_error_stores_nothing",
	LeaseHeld:          "claim/leased_entries_are_left_alone",
	CommitFirst:        "inbox/stored_when_answered",
	SurvivesKill:       "crash/what_was_answered_is_there",
	OwedKept:           "retention/never_what_is_owed",
	DraftDies:          "plans/a_draft_dies_with_the_next",
	InSyncOut:          "plans/in_sync_takes_a_key_out",
	DriftLasts:         "drifts/what_lasts_keeps_its_first",

	TurnLocks:              "turn/the_job_is_locked",
	TurnErrorStoresNothing: "turn/an_error_stores_nothing",
	InstantOnce:            "turn/an_instant_has_one_run",
	TurnOneTransaction:     "turn/one_transaction",
	HaltKnown:              "turn/the_pause_of_everything",

	SweepCompares:       "sweep/who_is_behind_stores_nothing",
	SweepOneTransaction: "sweep/a_page_is_one_transaction",
	SweepRepeatable:     "sweep/a_repeated_page_is_known",
	ByteOrder:           "sweep/sightings_in_the_order_of_bytes",
	NewerKept:           "sweep/old_ones_are_discarded_in_parts",
}

// Break returns s with one rule broken. It really breaks it: the database behind s holds what the rule forbids, or
// lacks what it demands. It is for proving that a suite looks.
func Break(s Store, r Rule) Store {
	switch r {
	case DuplicateOnce:
		return doubler{s}
	case ContentCompared:
		return blind{s}
	case DigestKept:
		return forgetter{s}
	case JudgeLocks:
		return unlocked{s}
	case OneTransaction:
		return halver{s}
	case ErrorStoresNothing:
		return stubborn{s}
	case LeaseHeld:
		return thief{s}
	case CommitFirst, SurvivesKill:
		return hasty{s}
	case OwedKept:
		return careless{s}
	case DraftDies:
		return undying{s}
	case InSyncOut:
		return clinging{s}
	case DriftLasts:
		return oblivious{s}
	case TurnLocks, TurnErrorStoresNothing, InstantOnce, TurnOneTransaction, HaltKnown:
		return breakTurn(s, r)
	case SweepCompares, SweepOneTransaction, SweepRepeatable, ByteOrder, NewerKept:
		return breakSweep(s, r)
	default:
		panic(fmt.Sprintf("storetest: there is no rule %q", r))
	}
}

// known returns the delivery of an event that e is a copy of, or in conflict with.
func known(ctx context.Context, s Store, e *reconcile.Event) (*reconcile.Delivery, error) {
	ds, err := s.Deliveries(ctx, reconcile.DeliveryFilter{Limit: 10_000})
	i := slices.IndexFunc(ds, func(d reconcile.Delivery) bool {
		return d.Dedupe == e.Dedupe && d.Object.Source == e.Object.Source
	})
	if err != nil || i < 0 {
		return nil, err
	}
	return &ds[i], nil
}

type doubler struct{ Store }

func (d doubler) Accept(ctx context.Context, events []reconcile.Event) error {
	for _, e := range events {
		twin, err := known(ctx, d.Store, &e)
		if err != nil {
			return err
		}
		if twin != nil {
			e.Dedupe = reconcile.DigestOf(rand.Text())
		}
		if err := d.Store.Accept(ctx, []reconcile.Event{e}); err != nil {
			return err
		}
	}
	return nil
}

type blind struct{ Store }

func (b blind) Accept(ctx context.Context, events []reconcile.Event) error {
	for _, e := range events {
		twin, err := known(ctx, b.Store, &e)
		if err != nil {
			return err
		}
		if twin != nil {
			e.Object, e.Body, e.Fingerprint = twin.Object, twin.Body, twin.Fingerprint
		}
		if err := b.Store.Accept(ctx, []reconcile.Event{e}); err != nil {
			return err
		}
	}
	return nil
}

type forgetter struct{ Store }

func (f forgetter) Purge(ctx context.Context, r reconcile.Retention, limit int) (int, error) {
	r.Digests = r.Verdicts
	return f.Store.Purge(ctx, r, limit)
}

type unlocked struct{ Store }

func (u unlocked) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	ds, err := u.Deliveries(ctx, reconcile.DeliveryFilter{Unjudged: true, Limit: limit})
	if err != nil {
		return 0, err
	}
	es := make(map[reconcile.Object]*reconcile.Entry)
	written := make(map[reconcile.Object]time.Time)
	for _, d := range ds {
		e, err := u.Entry(ctx, d.Object)
		if err != nil {
			return 0, err
		}
		if e == nil {
			e = &reconcile.Entry{Object: d.Object}
		}
		es[d.Object], written[d.Object] = e, e.Updated
	}
	if err := decide(time.Now(), ds, es); err != nil {
		return 0, err
	}
	u.letOthersWrite(ctx, written)
	return u.Store.Judge(ctx, limit, func(_ time.Time, now []reconcile.Delivery, stored map[reconcile.Object]*reconcile.Entry) error {
		copy(now, ds)
		for o, e := range es {
			*stored[o] = *e
		}
		return nil
	})
}

// letOthersWrite waits for somebody to change one of the entries, two seconds at most.
func (u unlocked) letOthersWrite(ctx context.Context, written map[reconcile.Object]time.Time) {
	end := time.NewTimer(2 * time.Second)
	defer end.Stop()
	for {
		for o, at := range written {
			if e, err := u.Entry(ctx, o); err == nil && e != nil && !e.Updated.Equal(at) {
				return
			}
		}
		select {
		case <-end.C:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// decision is the callback of Judge.
type decision = func(time.Time, []reconcile.Delivery, map[reconcile.Object]*reconcile.Entry) error

type halver struct{ Store }

func (h halver) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	changed := make(map[reconcile.Object]reconcile.Entry)
	n, err := h.Store.Judge(ctx, limit, func(now time.Time, ds []reconcile.Delivery, es map[reconcile.Object]*reconcile.Entry) error {
		before := make(map[reconcile.Object]reconcile.Entry)
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
		err := h.Update(ctx, o, func(_ time.Time, e *reconcile.Entry) error {
			*e = c
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, err
}

type stubborn struct{ Store }

func (s stubborn) Judge(ctx context.Context, limit int, decide decision) (int, error) {
	var refused error
	n, err := s.Store.Judge(ctx, limit, func(now time.Time, ds []reconcile.Delivery, es map[reconcile.Object]*reconcile.Entry) error {
		refused = decide(now, ds, es)
		return nil
	})
	if refused != nil {
		return 0, refused
	}
	return n, err
}

type thief struct{ Store }

func (t thief) Lease(ctx context.Context, limit int, decide func(time.Time, *reconcile.Entry) error) ([]reconcile.Entry, error) {
	held, err := t.Entries(ctx, reconcile.EntryFilter{})
	if err != nil {
		return nil, err
	}
	var claimed []reconcile.Entry
	for _, h := range held {
		if h.Due.IsZero() || len(claimed) == limit {
			continue
		}
		err := t.Update(ctx, h.Object, func(now time.Time, e *reconcile.Entry) error {
			defer func() { claimed = append(claimed, *e) }()
			return decide(now, e)
		})
		if err != nil {
			return nil, err
		}
	}
	return claimed, nil
}

type hasty struct{ Store }

func (h hasty) Accept(ctx context.Context, events []reconcile.Event) error {
	later := context.WithoutCancel(ctx)
	time.AfterFunc(time.Second, func() { _ = h.Store.Accept(later, events) })
	return nil
}

type careless struct{ Store }

func (c careless) Purge(ctx context.Context, r reconcile.Retention, limit int) (int, error) {
	_, err := c.Judge(ctx, limit, func(_ time.Time, ds []reconcile.Delivery, _ map[reconcile.Object]*reconcile.Entry) error {
		for i := range ds {
			ds[i].Outcome = reconcile.Stale
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return c.Store.Purge(ctx, r, limit)
}
