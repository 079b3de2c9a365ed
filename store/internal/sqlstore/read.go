package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
)

// History returns the whole chain of a work from its first record.
func (s *chains) History(ctx context.Context, id saga.ID) ([]machine.Record, error) {
	chain := reading{db: s.db, id: id} // it starts over with each first record
	records, err := ofWork(ctx, s, s.db.View, "history of", id, history, chain.next)
	if err != nil || len(records) > 0 {
		return records, err
	}
	chains, err := s.Load(ctx, []saga.ID{id}) // they have gone
	if err != nil || len(chains) == 0 {
		return nil, err
	}
	return chains[0].Records, nil
}

// Signals returns every signal posted to a work, oldest first. Answers from outside ask for them, too: they are read
// where coordinators load.
func (s *chains) Signals(ctx context.Context, id saga.ID) ([]machine.Signal, error) {
	all, err := s.said.ask(ctx, id)
	if err == nil && all == nil {
		err = ledger.ErrNotFound
	}
	return slices.Clone(all), s.failed(ctx, err, "signals of %s", id) // others may have asked for the same
}

// signalsOf reads the signals of each work; nil: it does not exist.
func (s *chains) signalsOf(ctx context.Context, ids []saga.ID) ([][]machine.Signal, error) {
	works, err := pairs(ids)
	if err != nil {
		return nil, err
	}
	by := make(map[saga.ID][]machine.Signal, len(ids))
	err = s.db.Ask(ctx, func(ctx context.Context, q Queries) error {
		clear(by)
		rows, err := q.QueryxContext(ctx, s.db.Text(signals), works)
		if err != nil {
			return err
		}
		return each(rows, func(row *saidRow) error {
			if row.Number == 0 { // nothing was said to it
				by[row.ID] = []machine.Signal{}
				return nil
			}
			sig, err := s.db.signal(row.ID, &row.signalRow)
			if errors.Is(err, ledger.ErrKeys) { // that it was said can be read
				err = nil
			}
			by[row.ID] = append(by[row.ID], sig)
			return err
		})
	})
	all := make([][]machine.Signal, len(ids))
	for i, id := range ids {
		all[i] = by[id]
	}
	return all, err
}

// saidRow is a signal, or number 0, of a work.
type saidRow struct {
	saga.ID
	signalRow
}

// ofWork reads what belongs to one work, row by row.
func ofWork[R, T any](ctx context.Context, s *chains, lane Lane, what string, id saga.ID, query string, convert func(*R) (T, error)) ([]T, error) {
	var out []T
	err := lane(ctx, func(ctx context.Context, q Queries) error {
		out = out[:0]
		return within(ctx, s, q, id, query, func(row *R) error {
			v, err := convert(row)
			out = append(out, v)
			return err
		})
	})
	return orNone(out, s.failed(ctx, err, "%s %s", what, id))
}

// within reads the rows of a work as q sees them.
func within[R any](ctx context.Context, s *chains, q Queries, id saga.ID, query string, fn func(*R) error) error {
	head, err := find(ctx, q, id)
	if err != nil {
		return err
	}
	found, err := q.QueryxContext(ctx, s.db.Text(query), head)
	if err != nil {
		return err
	}
	return each(found, fn)
}

// Chain is the whole chain of a work as q sees it, which may be a transaction that wrote it.
func Chain(ctx context.Context, s *Store, q Queries, id saga.ID) (records []machine.Record, err error) {
	chain := reading{db: s.db, id: id}
	err = within(ctx, s.chains, q, id, history, func(row *recordRow) error {
		r, err := chain.next(row)
		records = append(records, r)
		return err
	})
	return records, err
}

// viewed reads all rows of a query for people, as fields say.
func viewed[T any](ctx context.Context, s *chains, what string, fields func(*T) []rows.Field, query string, args ...any) (list []T, err error) {
	err = s.db.View(ctx, func(ctx context.Context, q Queries) error {
		return s.db.choose(ctx, q, rows.Into(&list, fields), query, args...)
	})
	return orNone(list, s.failed(ctx, err, "%s", what))
}

// Duplicates returns how many duplicates of each work and source were blocked, the most recent
// first.
func (s *chains) Duplicates(ctx context.Context, f ledger.Filter) ([]ledger.Duplicate, error) {
	var w filter
	w.work(&f)
	query := duplicates + w.text.String() + ` ORDER BY h.last_at DESC, h.saga, h.work_id, h.source` + w.limit(f.PageSize())
	return viewed(ctx, s, "list duplicates", func(d *ledger.Duplicate) []rows.Field {
		return []rows.Field{
			{"saga", &d.ID.Saga}, {"work_id", &d.ID.Work}, {"source", &d.Source}, {"count", &d.Count}, {"first_at", &d.First}, {"last_at", &d.Last},
		}
	}, query, w.args...)
}

// Definitions returns every definition the ledger has seen, by name and version.
func (s *chains) Definitions(ctx context.Context) ([]ledger.Definition, error) {
	ds, err := viewed(ctx, s, "list definitions", func(d *ledger.Definition) []rows.Field {
		return []rows.Field{{"structure", &d.Structure}, {"spec", &d.JSON}, {"first_at", &d.First}}
	}, definitions)
	for i := range ds {
		if err := json.Unmarshal(ds[i].JSON, &ds[i].Spec); err != nil {
			return nil, fmt.Errorf("list definitions: decode one: %w", err)
		}
	}
	return ds, err
}

// filter collects conditions and their parameters.
type filter struct {
	text strings.Builder
	args []any
}

// where appends a condition.
func (w *filter) where(condition string) {
	join := " AND "
	if w.text.Len() == 0 {
		join = " WHERE "
	}
	w.text.WriteString(join + condition)
}

// add appends a condition that ends in a parameter.
func (w *filter) add(condition string, arg any) {
	w.args = append(w.args, arg)
	w.where(fmt.Sprintf("%s$%d", condition, len(w.args)))
}

// work narrows to the work ids of a filter. A prefix is a range of the index on work ids.
func (w *filter) work(f *ledger.Filter) {
	if f.Saga != "" {
		w.add("h.saga = ", f.Saga)
	}
	w.ids(f)
}

// ids narrows to a range of the index on work, and to what has the prefix in it.
func (w *filter) ids(f *ledger.Filter) {
	if f.Work != "" {
		w.add("h.work_id = ", f.Work)
	}
	if f.Prefix != "" {
		w.add("h.work_id >= ", f.Prefix)
		w.add("h.work_id <= ", f.Prefix+strings.Repeat("\U0010ffff", program.MaxWork/4))
		w.add(fmt.Sprintf("substr(h.work_id, 1, %d) = ", utf8.RuneCountInString(f.Prefix)), f.Prefix)
	}
}

func (w *filter) limit(n int) string {
	w.args = append(w.args, n)
	return fmt.Sprintf(" LIMIT $%d", len(w.args))
}
