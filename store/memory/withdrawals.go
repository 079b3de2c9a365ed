package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Weigh hands one entry "as Update does, with what was withdrawn of its source lately".
func (db *DB) Weigh(ctx context.Context, o intake.Object, id saga.ID, b intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	return db.Update(ctx, o, func(now time.Time, e *intake.Entry) error { return decide(now, e, db.tally(now, o.Source, id, &b)) })
}

func (db *DB) tally(now time.Time, source string, id saga.ID, b *intake.Bound) (t intake.Tally) {
	w := db.byID[id]
	if w == nil || w.head.Status == saga.Compensated && w.head.Posted == w.head.Consumed {
		return t // "what was never started, or has been undone, undoes nothing"
	}
	t.Undoes = true
	since := now.Add(-b.Window)
	for i := range db.acts {
		if c := &db.acts[i]; c.Name == source && !c.At.After(now) && (c.Kind == intake.ActRelease || c.Kind == intake.ActDrop) {
			since = intake.Latest(since, c.At)
		}
	}
	for o, e := range db.entries {
		if o.Source != source {
			continue
		}
		t.Held = t.Held || e.Held > 0
		if e.Withdrawn.After(since) && !e.Withdrawn.After(now) {
			t.Withdrawn++
		}
		if e.Changed.After(since) && !e.Changed.After(now) {
			t.Changed++
		}
	}
	t.Changed = min(t.Changed, b.Others(t.Withdrawn))
	return t
}

// Holdings returns "of which sources withdrawals are held, by their names".
func (db *DB) Holdings(ctx context.Context) ([]intake.Holding, error) {
	return in(ctx, db, func(time.Time) ([]intake.Holding, error) {
		counts := map[string]int64{}
		for o, e := range db.entries {
			if e.Held > 0 {
				counts[o.Source]++
			}
		}
		var all []intake.Holding
		for source, n := range counts {
			all = append(all, intake.Holding{Source: source, Count: n})
		}
		slices.SortFunc(all, func(a, b intake.Holding) int { return cmp.Compare(a.Source, b.Source) })
		return all, nil
	}, "count what is held")
}

// EndHold does "[ActRelease] or [ActDrop] to the withdrawals of a source that are held".
func (db *DB) EndHold(ctx context.Context, source, act string, by saga.Actor) (int64, error) {
	return in(ctx, db, func(now time.Time) (n int64, err error) {
		if err := valid.Look(source, by); err != nil {
			return 0, err
		}
		for o, e := range db.entries {
			if o.Source != source || e.Held == 0 {
				continue
			}
			e = copyEntry(e)
			if act == intake.ActDrop {
				e.Delivered = e.Held
			} else {
				e.Let = e.Held
			}
			e.Held, e.Due = 0, now
			db.put(e, now)
			n++
		}
		if n > 0 {
			db.act(ledger.Control{Kind: ledger.ControlKind(act), Name: source, Actor: by.Name, Reason: by.Reason, At: now})
		}
		return n, nil
	}, "%s what is held of %s", act, source)
}
