package scan_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/store/memory"
)

// order is one object of the shop. Its states are listed from the moment they can be seen.
type order struct {
	id      string
	created time.Time
	changed time.Time
	seen    time.Time // from when on the shop shows this state
	total   int
}

// shop is a source of truth with a clock of its own, and with the habits that a test gives it.
type shop struct {
	now    time.Time     // ours
	ahead  time.Duration // of its clock
	step   time.Duration // of its clock
	orders map[string]*order

	most    int  // objects on a page; 0: as many as asked for
	byTime  bool // it pages by time alone
	deaf    bool // it ignores Since
	expired func(cursor string) bool
	before  func(q *scan.Query) error // called before every page
	after   func(q *scan.Query, p *scan.Page)
	asked   []scan.Query
}

func newShop() *shop {
	return &shop{now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), step: time.Millisecond, orders: map[string]*order{}}
}

// put changes an order, or makes it. It can be seen after a while.
func (s *shop) put(id string, total int, late time.Duration) *order {
	at := s.now.Add(s.ahead).Truncate(s.step)
	o := s.orders[id]
	if o == nil {
		o = &order{id: id, created: at}
		s.orders[id] = o
	}
	o.changed, o.seen, o.total = at, s.now.Add(late), total
	return o
}

func (o *order) object(step time.Duration) scan.Listed {
	body := json.RawMessage(fmt.Sprintf(`{"id": %q, "total": %d}`, o.id, o.total))
	return scan.Listed{ID: o.id, Version: intake.At(o.changed, step), Created: o.created, Changed: o.changed, Body: body}
}

// Changed lists by (changed, id).
func (s *shop) Changed(_ context.Context, q scan.Query) (scan.Page, error) {
	return s.page(q, func(o *order) bool { return s.deaf || !o.changed.Before(q.Since) }, func(a, b *order) int {
		return cmp.Or(a.changed.Compare(b.changed), cmp.Compare(a.id, b.id))
	})
}

// All lists by id.
func (s *shop) All(_ context.Context, q scan.Query) (scan.Page, error) {
	return s.page(q, func(o *order) bool { return q.Partition == "all" || strings.HasPrefix(o.id, q.Partition) }, func(a, b *order) int {
		return cmp.Compare(a.id, b.id)
	})
}

func (s *shop) page(q scan.Query, in func(*order) bool, less func(a, b *order) int) (p scan.Page, err error) {
	s.asked = append(s.asked, q)
	if s.before != nil {
		if err := s.before(&q); err != nil {
			return p, err
		}
	}
	if q.Cursor != "" && s.expired != nil && s.expired(q.Cursor) {
		return p, fmt.Errorf("410: %w", scan.ErrExpired)
	}
	var rows []*order
	for _, o := range s.orders {
		if in(o) && !o.seen.After(s.now) {
			rows = append(rows, o)
		}
	}
	slices.SortFunc(rows, less)
	if rows, err = s.from(q, rows); err != nil {
		return p, err
	}
	limit := q.Limit
	if s.most > 0 {
		limit = min(limit, s.most)
	}
	for _, o := range rows[:min(limit, len(rows))] {
		p.Objects = append(p.Objects, o.object(s.step))
	}
	if len(rows) > limit {
		p.Next = s.next(rows[limit-1])
	}
	if s.after != nil {
		s.after(&q, &p)
	}
	return p, nil
}

// from leaves out what is before the cursor.
func (s *shop) from(q scan.Query, rows []*order) ([]*order, error) {
	if q.Cursor == "" {
		return rows, nil
	}
	if s.byTime {
		at, err := time.Parse(time.RFC3339Nano, q.Cursor)
		return slices.DeleteFunc(rows, func(o *order) bool { return o.changed.Before(at) }), err
	}
	at, id, _ := strings.Cut(q.Cursor, " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	return slices.DeleteFunc(rows, func(o *order) bool {
		if q.Partition != "" {
			return o.id <= id
		}
		return cmp.Or(o.changed.Compare(t), cmp.Compare(o.id, id)) <= 0
	}), err
}

func (s *shop) next(last *order) string {
	if s.byTime {
		return last.changed.Format(time.RFC3339Nano)
	}
	return last.changed.Format(time.RFC3339Nano) + " " + last.id
}

// want says that every order wants an invoice over its total.
func want(o *scan.Listed) (plan.Truth, error) {
	var b struct {
		ID    string `json:"id"`
		Total int    `json:"total"`
	}
	if err := json.Unmarshal(o.Body, &b); err != nil {
		return plan.Truth{}, err
	}
	if b.Total < 0 {
		return plan.Truth{}, errors.New("a negative total")
	}
	return plan.Truth{
		Key: "shop:order:" + b.ID, Revision: o.Version.Revision(), Wanted: b.Total > 0,
		Fields: plan.Fields{"total": strconv.Itoa(b.Total)}, Changed: o.Changed,
	}, nil
}

// bench is a shop with a store and a sweep over both.
type bench struct {
	*testing.T
	*shop

	store  *memory.DB
	config scan.Config
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, shop: newShop()}
	b.store = memory.New(&memory.Options{Now: func() time.Time { return b.now }})
	b.config = scan.Config{
		Name: "orders", Store: b.store, Now: func() time.Time { return b.now }, Attempts: 1, Mapping: "1",
		Source: scan.Source{
			Object: intake.Object{Source: "shop", Type: "order"}, Changed: b.Changed, All: b.All, Want: want,
			Quota: asking.NewQuota(asking.Limits{PerSecond: 1e6}),
		},
	}
	return b
}

func (b *bench) sweep() *scan.Sweep {
	b.Helper()
	s, err := scan.New(b.config)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// changed runs the incremental sweep as a new process would.
func (b *bench) changed() scan.Report {
	b.Helper()
	r, err := b.sweep().Changed(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// list runs the full sweep of the source as a new process would.
func (b *bench) list() scan.Report {
	b.Helper()
	r, err := b.sweep().List(b.Context(), scan.SourceSide)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// heard is what the inbox has of an order: its totals, in the order of their coming.
func (b *bench) heard() map[string][]int {
	b.Helper()
	ds, err := b.store.Deliveries(b.Context(), intake.DeliveryFilter{Limit: 1_000_000})
	if err != nil {
		b.Fatal(err)
	}
	slices.Reverse(ds)
	heard := map[string][]int{}
	for i := range ds {
		var body struct{ Total int }
		if err := json.Unmarshal(ds[i].Body, &body); err != nil {
			b.Fatal(err)
		}
		heard[ds[i].Object.ID] = append(heard[ds[i].Object.ID], body.Total)
	}
	return heard
}

// current fails unless the newest that was heard of every order is what it is.
func (b *bench) current() {
	b.Helper()
	heard := b.heard()
	for id, o := range b.orders {
		if totals := heard[id]; len(totals) == 0 || totals[len(totals)-1] != o.total {
			b.Errorf("order %s of %s is %d, heard was %v", id, o.changed.Format(time.RFC3339Nano), o.total, totals)
		}
	}
}

// sightings are the rows of one listing, in their order.
func sightings(ctx context.Context, store scan.Store, q scan.SightingQuery) iter.Seq2[scan.Sighting, error] {
	return func(yield func(scan.Sighting, error) bool) {
		r := scan.Read(ctx, store, q)
		defer r.Close()
		for {
			row, err := r.Next()
			switch {
			case err != nil:
				yield(scan.Sighting{}, err)
				return
			case row == nil || !yield(*row, nil):
				return
			}
		}
	}
}

// sightings are the rows of the newest listing of the source, by id.
func (b *bench) sightings(generation int64) map[string]scan.Sighting {
	b.Helper()
	seen := map[string]scan.Sighting{}
	for row, err := range sightings(b.Context(), b.store, scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Generation: generation}) {
		if err != nil {
			b.Fatal(err)
		}
		seen[row.ID] = row
	}
	return seen
}
