package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// List returns a page of heads in the order of their numbers or works. It is small enough to look
// at all of it.
func (db *DB) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	return in(ctx, db, func(time.Time) (ledger.Page, error) {
		at, err := f.Position()
		if err != nil {
			return ledger.Page{}, err
		}
		works := slices.SortedFunc(slices.Values(db.works), inOrder(&f))
		var page ledger.Page
		for _, w := range works {
			if f.After != "" && inOrder(&f)(w, &work{head: ledger.Instance{Number: at.Number, ID: at.ID}}) <= 0 || !w.matches(&f) {
				continue
			}
			if n := len(page.Instances); n == f.PageSize() { // there is another one
				page.Next = f.Behind(ledger.Position{Number: page.Instances[n-1].Number, ID: page.Instances[n-1].ID})
				break
			}
			page.Instances = append(page.Instances, w.head)
		}
		return page, nil
	}, "list works")
}

// inOrder is the order of a listing.
func inOrder(f *ledger.Filter) func(a, b *work) int {
	return func(a, b *work) int {
		c := cmp.Compare(a.head.Number, b.head.Number)
		if f.InOrderOfWork() {
			c = cmp.Or(strings.Compare(a.head.ID.Work, b.head.ID.Work), strings.Compare(a.head.ID.Saga, b.head.ID.Saga))
		}
		if f.Newest && !f.InOrderOfWork() {
			c = -c
		}
		return c
	}
}

// matches applies a filter: "zero fields do not narrow".
func (w *work) matches(f *ledger.Filter) bool {
	h := &w.head
	return (!f.ByWork || h.ID.Work > f.AfterWork) &&
		matchesID(f, h.ID) &&
		(f.Status == "" || h.Status == f.Status) &&
		(f.Reason == "" || h.Reason == f.Reason) &&
		(f.WaitsFor == "" || h.WaitsFor == f.WaitsFor) &&
		(f.Step == "" || h.Step == f.Step) &&
		between(h.Created, f.CreatedSince, f.CreatedUntil) &&
		between(h.Updated, f.UpdatedSince, f.UpdatedUntil) &&
		(f.ExternalID == "" || slices.ContainsFunc(w.records, func(r machine.Record) bool {
			return r.ExternalID == f.ExternalID
		})) &&
		(f.Tag == "" || slices.Contains(w.records[0].Tags, f.Tag)) &&
		(!f.Unconfirmed || h.Unconfirmed) &&
		(f.Left == "" || w.rests() && h.Left() == f.Left)
}

// between reports whether t is "from since on, and before until".
func between(t, since, until time.Time) bool {
	return !t.Before(since) && (until.IsZero() || t.Before(until))
}

func matchesID(f *ledger.Filter, id saga.ID) bool {
	return (f.Saga == "" || id.Saga == f.Saga) &&
		(f.Work == "" || id.Work == f.Work) &&
		strings.HasPrefix(id.Work, f.Prefix)
}

// History returns "the whole chain of a work from its first record, whatever snapshots it holds".
func (db *DB) History(ctx context.Context, id saga.ID) ([]machine.Record, error) {
	return in(ctx, db, func(time.Time) ([]machine.Record, error) {
		w := db.byID[id]
		if w == nil {
			return nil, ledger.ErrNotFound
		}
		return copyRecords(w.records), nil
	}, "history of %s", id)
}

// Signals returns every signal posted to a work, oldest first.
func (db *DB) Signals(ctx context.Context, id saga.ID) ([]machine.Signal, error) {
	return in(ctx, db, func(time.Time) ([]machine.Signal, error) {
		if w := db.byID[id]; w != nil {
			return copySignals(w.signals), nil
		}
		return nil, ledger.ErrNotFound
	}, "signals of %s", id)
}

// Duplicates returns "how many duplicates of each work and source were blocked, by all counters,
// the most recent first".
func (db *DB) Duplicates(ctx context.Context, f ledger.Filter) ([]ledger.Duplicate, error) {
	return in(ctx, db, func(time.Time) ([]ledger.Duplicate, error) {
		sums := make(map[counter]ledger.Duplicate)
		for key, d := range db.duplicates {
			if key.name = 0; matchesID(&f, d.ID) {
				sums[key] = join(sums[key], d)
			}
		}
		ds := slices.SortedFunc(maps.Values(sums), byLast)
		return ds[:min(len(ds), f.PageSize())], nil
	}, "list duplicates")
}

// Definitions returns every definition the ledger has seen, by name and version.
func (db *DB) Definitions(ctx context.Context) ([]ledger.Definition, error) {
	return in(ctx, db, func(time.Time) ([]ledger.Definition, error) {
		ds := make([]ledger.Definition, 0, len(db.definitions))
		for _, d := range db.definitions {
			ds = append(ds, copyDefinition(d))
		}
		slices.SortFunc(ds, func(a, b ledger.Definition) int {
			return cmp.Or(cmp.Compare(a.Spec.Saga, b.Spec.Saga), cmp.Compare(a.Spec.Version, b.Spec.Version))
		})
		return ds, nil
	}, "list definitions")
}
