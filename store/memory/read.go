package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// defaultLimit is what a Filter without a limit means.
const defaultLimit = 100

// List returns heads "in the order of their numbers, at most f.Limit of them, starting behind f.After; or in the order
// of their works behind f.AfterWork".
func (db *DB) List(ctx context.Context, f ledger.Filter) ([]ledger.Head, error) {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("list works: %w", err)
	}
	defer unlock()
	works := db.works
	if f.ByWork {
		works = slices.SortedFunc(slices.Values(works), func(a, b *work) int { return strings.Compare(a.head.ID.Work, b.head.ID.Work) })
	}
	var heads []ledger.Head
	for _, w := range works {
		if len(heads) == limit(f) {
			break
		}
		if w.matches(&f) {
			heads = append(heads, w.head)
		}
	}
	return heads, nil
}

func limit(f ledger.Filter) int { return cmp.Or(max(f.Limit, 0), defaultLimit) }

// matches applies a filter: "zero fields do not narrow".
func (w *work) matches(f *ledger.Filter) bool {
	h := &w.head
	behind := h.Number > f.After
	if f.ByWork {
		behind = h.ID.Work > f.AfterWork
	}
	return behind &&
		matchesID(f, h.ID) &&
		(f.Status == "" || h.Status == f.Status) &&
		(f.Reason == "" || h.Reason == f.Reason) &&
		(f.WaitsFor == "" || h.WaitsFor == f.WaitsFor) &&
		(f.ExternalID == "" || slices.ContainsFunc(w.records, func(r saga.Record) bool {
			return r.ExternalID == f.ExternalID
		})) &&
		(!f.Unconfirmed || h.Unconfirmed)
}

func matchesID(f *ledger.Filter, id saga.ID) bool {
	return (f.Saga == "" || id.Saga == f.Saga) &&
		(f.Work == "" || id.Work == f.Work) &&
		strings.HasPrefix(id.Work, f.Prefix)
}

// History returns "the whole chain of a work from its first record, whatever snapshots it holds".
func (db *DB) History(ctx context.Context, id saga.ID) ([]saga.Record, error) {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", id, err)
	}
	defer unlock()
	w := db.byID[id]
	if w == nil {
		return nil, fmt.Errorf("history of %s: %w", id, ledger.ErrNotFound)
	}
	return copyRecords(w.records), nil
}

// Signals returns every signal posted to a work, oldest first.
func (db *DB) Signals(ctx context.Context, id saga.ID) ([]saga.Signal, error) {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("signals of %s: %w", id, err)
	}
	defer unlock()
	if w := db.byID[id]; w != nil {
		return copySignals(w.signals), nil
	}
	return nil, fmt.Errorf("signals of %s: %w", id, ledger.ErrNotFound)
}

// Duplicates returns "how many duplicates of each work and source were blocked, by all counters, the most recent first".
func (db *DB) Duplicates(ctx context.Context, f ledger.Filter) ([]ledger.Duplicate, error) {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("list duplicates: %w", err)
	}
	defer unlock()
	sums := make(map[counter]ledger.Duplicate)
	for key, d := range db.duplicates {
		if key.name = 0; matchesID(&f, d.ID) {
			sums[key] = join(sums[key], d)
		}
	}
	ds := slices.SortedFunc(maps.Values(sums), byLast)
	return ds[:min(len(ds), limit(f))], nil
}

// Definitions returns every definition the ledger has seen, by name and version.
func (db *DB) Definitions(ctx context.Context) ([]ledger.Definition, error) {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	defer unlock()
	ds := make([]ledger.Definition, 0, len(db.definitions))
	for _, d := range db.definitions {
		ds = append(ds, copyDefinition(d))
	}
	slices.SortFunc(ds, func(a, b ledger.Definition) int {
		return cmp.Or(cmp.Compare(a.Spec.Saga, b.Spec.Saga), cmp.Compare(a.Spec.Version, b.Spec.Version))
	})
	return ds, nil
}
