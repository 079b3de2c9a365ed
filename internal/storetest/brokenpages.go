package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
)

// What breaks the rules of a reconciler's lists: filters that are not obeyed, and pages that lose
// their place.

// misread: deliveries are listed by another filter.
type misread struct {
	Store

	change func(*intake.DeliveryFilter)
}

func misreads(change func(*intake.DeliveryFilter)) func(Store) Store {
	return func(s Store) Store { return misread{s, change} }
}

func (m misread) Deliveries(ctx context.Context, f intake.DeliveryFilter) ([]intake.Delivery, error) {
	m.change(&f)
	return m.Store.Deliveries(ctx, f)
}

// unsorted are lists of deliveries that do not narrow, each by one field.
var unsorted = broken{
	"delivery-number":      misreads(func(f *intake.DeliveryFilter) { f.Numbers = nil }),
	"delivery-source":      misreads(func(f *intake.DeliveryFilter) { f.Source = "" }),
	"delivery-object":      misreads(func(f *intake.DeliveryFilter) { f.Object = intake.Object{} }),
	"delivery-disposition": misreads(func(f *intake.DeliveryFilter) { f.Disposition = "" }),
	"delivery-unjudged":    misreads(func(f *intake.DeliveryFilter) { f.Unjudged = false }),
	"delivery-from":        misreads(func(f *intake.DeliveryFilter) { f.From = time.Time{} }),
	"delivery-until":       misreads(func(f *intake.DeliveryFilter) { f.Until = time.Time{} }),
	"delivery-limit":       misreads(func(f *intake.DeliveryFilter) { f.Limit = 0 }),
}

// leafed are lists of deliveries whose pages lose their place.
var leafed = broken{
	"delivery-repeats": misreads(func(f *intake.DeliveryFilter) { f.Before = next(f.Before, 1) }),
	"delivery-skips":   misreads(func(f *intake.DeliveryFilter) { f.Before = next(f.Before, -1) }),
	"delivery-order":   func(s Store) Store { return oldest{s} },
}

// next is a number beside n, and no number where there is none.
func next(n, by int64) int64 {
	if n == 0 {
		return 0
	}
	return n + by
}

// oldest: a page has the oldest first.
type oldest struct{ Store }

func (o oldest) Deliveries(ctx context.Context, f intake.DeliveryFilter) ([]intake.Delivery, error) {
	ds, err := o.Store.Deliveries(ctx, f)
	slices.Reverse(ds)
	return ds, err
}

// misfound: findings are listed by another query.
type misfound struct {
	Store

	change func(*plan.FindingQuery)
}

func misfinds(change func(*plan.FindingQuery)) func(Store) Store {
	return func(s Store) Store { return misfound{s, change} }
}

func (m misfound) Findings(ctx context.Context, q plan.FindingQuery) ([]plan.Row, error) {
	m.change(&q)
	return m.Store.Findings(ctx, q)
}

// turned: a page of findings begins n rows off its place.
type turned struct {
	Store

	by int
}

func (s turned) Findings(ctx context.Context, q plan.FindingQuery) ([]plan.Row, error) {
	if q.After == "" {
		return s.Store.Findings(ctx, q)
	}
	limit, after := q.Limit, q.After
	q.After, q.Limit = "", 1<<20
	rows, err := s.Store.Findings(ctx, q)
	first := slices.IndexFunc(rows, func(r plan.Row) bool { return r.Key > after })
	if err != nil || first < 0 {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	rows = rows[min(first+s.by, len(rows)):]
	return rows[:min(limit, len(rows))], nil
}

// backward: a page of findings has the last key first.
type backward struct{ Store }

func (s backward) Findings(ctx context.Context, q plan.FindingQuery) ([]plan.Row, error) {
	rows, err := s.Store.Findings(ctx, q)
	slices.Reverse(rows)
	return rows, err
}

// mislaid: entries are listed by another filter.
type mislaid struct {
	Store

	change func(*intake.EntryFilter)
}

func mislays(change func(*intake.EntryFilter)) func(Store) Store {
	return func(s Store) Store { return mislaid{s, change} }
}

func (m mislaid) Entries(ctx context.Context, f intake.EntryFilter) ([]intake.Entry, error) {
	m.change(&f)
	return m.Store.Entries(ctx, f)
}

// heaped are lists of entries that do not narrow, each by one field.
var heaped = broken{
	"entry-object":  mislays(func(f *intake.EntryFilter) { f.Object = intake.Object{} }),
	"entry-owing":   mislays(func(f *intake.EntryFilter) { f.Owing = false }),
	"entry-blocked": mislays(func(f *intake.EntryFilter) { f.Blocked = false }),
	"entry-after":   mislays(func(f *intake.EntryFilter) { f.After = intake.Object{} }),
	"entry-limit":   mislays(func(f *intake.EntryFilter) { f.Limit = 0 }),
}

// adrift: drift is listed by another query.
type adrift struct {
	Store

	change func(*plan.DriftQuery)
}

func drifting(change func(*plan.DriftQuery)) func(Store) Store {
	return func(s Store) Store { return adrift{s, change} }
}

func (a adrift) Drifts(ctx context.Context, q plan.DriftQuery) ([]plan.Drift, error) {
	a.change(&q)
	return a.Store.Drifts(ctx, q)
}

// unmoored are lists of drift that do not narrow, each by one field.
var unmoored = broken{
	"drift-job":   drifting(func(q *plan.DriftQuery) { q.Job = "" }),
	"drift-key":   drifting(func(q *plan.DriftQuery) { q.Key = "" }),
	"drift-class": drifting(func(q *plan.DriftQuery) { q.Class = "" }),
	"drift-times": drifting(func(q *plan.DriftQuery) { q.Times = 0 }),
	"drift-after": drifting(func(q *plan.DriftQuery) { q.After = nil }),
	"drift-limit": drifting(func(q *plan.DriftQuery) { q.Limit = 0 }),
}
