package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Post inserts a signal and makes the work due at the latest now. A key the work has already
// received changes nothing.
func (s *chains) Post(ctx context.Context, id saga.ID, sig machine.Signal) (ledger.Posted, error) {
	p := PostArgs{ID: id, Kind: string(sig.Kind), Key: sig.Key, Actor: sig.Actor, Reason: sig.Reason, ByHand: sig.ByHand, Number: sig.ID}
	err := valid.Signal(&sig)
	if err == nil {
		p.Doc, err = s.db.encodeResolution(id, &sig)
	}
	if err != nil {
		return ledger.Posted{}, fmt.Errorf("post %s to %s: %w", sig.Kind, id, err)
	}
	var a PostAnswer
	if findable(id) {
		a, err = s.db.Post(Again(ctx), p)
	}
	switch {
	case err != nil:
	case !a.Found:
		err = s.unheard(ctx, id)
	case !a.There:
		err = ledger.ErrChanged
	}
	return ledger.Posted{Number: int64(a.Number), At: a.At.Time()}, s.failed(ctx, err, "post %s to %s", sig.Kind, id)
}

// unheard is why a work hears nothing.
func (s *chains) unheard(ctx context.Context, id saga.ID) error {
	err := s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		_, err := find(ctx, q, id)
		if errors.Is(err, ledger.ErrNotFound) { // it may have been erased
			_, err = find(ctx, q, saga.ID{Saga: id.Saga, Work: s.Hide(id.Work)})
		}
		return err
	})
	if err == nil {
		return ledger.ErrForgotten
	}
	return err
}

// utterance is what a signal says beside its kind, as it is stored.
type utterance struct {
	saga.Resolution
	machine.News
	machine.Said
}

// encodeResolution returns what the signal says as JSON, nil when there is nothing beside its kind.
func (d *Dialect) encodeResolution(id saga.ID, sig *machine.Signal) (any, error) {
	b, err := json.Marshal(utterance{sig.Resolution, sig.News, sig.Said})
	if err != nil {
		return nil, fmt.Errorf("encode what it says: %w", err)
	}
	if string(b) == "{}" {
		return nil, nil //nolint:nilnil // NULL in the database: its kind says all
	}
	return seal(d, "", envelope{}, string(b), ofSignal(id, string(sig.Kind)))
}

// findable reports whether a work of this name can be there.
func findable(id saga.ID) bool {
	return valid.Text("saga", id.Saga) == nil && valid.Text("work", id.Work) == nil
}

// find returns the reference of an instance.
func find(ctx context.Context, q Queries, id saga.ID) (int64, error) {
	if !findable(id) {
		return 0, ledger.ErrNotFound
	}
	var ref int64
	err := q.QueryRowxContext(ctx, findInstance, id.Saga, id.Work).Scan(&ref)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ledger.ErrNotFound
	}
	return ref, err
}

// Describe stores a definition or compares its structure with the stored one.
func (s *chains) Describe(ctx context.Context, spec *program.Spec) error {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("describe %s version %d: encode its structure: %w", spec.Saga, spec.Version, err)
	}
	err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
		_, err := q.ExecContext(ctx, s.db.Text(addDefinition), s.db.Clock(), spec.Saga, spec.Version, spec.Structure(), string(b))
		if err != nil {
			return err
		}
		var stored string
		if err := q.QueryRowxContext(ctx, structure, spec.Saga, spec.Version).Scan(&stored); err != nil {
			return err
		}
		if stored != spec.Structure() {
			return fmt.Errorf("%w; raise the version", ledger.ErrDefinitionChanged)
		}
		return nil
	})
	return s.failed(ctx, err, "describe %s version %d", spec.Saga, spec.Version)
}

// maxFold is how many counters one call folds.
const maxFold = 100

// Count stores what a counter has seen, in the order of the keys: two processes that fold the same
// counters do not wait for each other in a circle. Sources that are cut to the same one are one.
func (s *chains) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	if len(totals) == 0 {
		return nil
	}
	type key struct{ saga, work, source string }
	sums := make(map[key]int64, len(totals))
	for _, d := range totals {
		sums[key{valid.Cut(d.ID.Saga), valid.Cut(d.ID.Work), valid.Cut(d.Source)}] += d.Count
	}
	rows := make([][5]any, 0, len(sums))
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.saga, b.saga), cmp.Compare(a.work, b.work), cmp.Compare(a.source, b.source))
	}) {
		rows = append(rows, [5]any{k.saga, k.work, k.source, sums[k], s.Hide(k.work)})
	}
	list, err := json.Marshal(rows)
	if err == nil {
		err = s.db.Plain(Again(ctx), func(ctx context.Context, q Queries) error {
			now := s.db.Clock() // one for all: they mean the same counters
			for _, text := range s.db.Count {
				if _, err := q.ExecContext(ctx, text, now, int64(c), string(list), ledger.CounterSilence.Microseconds(), maxFold); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return s.failed(ctx, err, "count %d duplicates", len(totals))
}
