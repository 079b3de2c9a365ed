// Package people is the people's side of the SQL stores: lists, counts, replays and purges. What they ask differs
// between the databases in a few words only.
package people

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Queries runs statements: a connection or a transaction.
type Queries interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// Database is what one SQL database does differently from the other.
type Database struct {
	// Read runs statements that only read.
	Read sqlx.QueryerContext

	// Write runs fn in a transaction.
	Write func(ctx context.Context, fn func(context.Context, Queries) error) error

	// Numbers is the set of the numbers in a JSON list that is a parameter.
	Numbers string

	// Bind turns question marks into the database's own parameters.
	Bind func(string) string

	// Now reads the database's clock; Moment writes a time as a parameter.
	Now    func(context.Context) (time.Time, error)
	Moment func(time.Time) any

	// Explain gives an error of the driver its meaning.
	Explain func(context.Context, error) error
}

// Desk implements [reconcile.Reader].
type Desk struct{ db Database }

// New returns a desk over db.
func New(db Database) *Desk { return &Desk{db: db} }

var _ reconcile.Reader = (*Desk)(nil)

// pageSize is how long a list is when nobody says.
const pageSize = 100

// where is a condition of several, each with its parameters as question marks.
type where struct {
	all  []string
	args []any
}

func (w *where) and(condition string, args ...any) {
	w.all = append(w.all, condition)
	w.args = append(w.args, args...)
}

func (w *where) String() string {
	if len(w.all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.all, " AND ")
}

func (w *where) object(alias string, o reconcile.Object) {
	o = rows.Object(o)
	for i, value := range rows.Key(o) {
		if value != "" {
			w.and(alias+"."+rows.KeyColumns[i].Name+" = ?", value)
		}
	}
}

func (d *Desk) selected(f *reconcile.DeliveryFilter) *where {
	var w where
	if f.Numbers != nil {
		w.and("d.number IN "+d.db.Numbers, list(f.Numbers))
	}
	w.object("d", reconcile.Object{Source: f.Source})
	w.object("d", f.Object)
	if f.Verdict != "" {
		w.and("d.outcome = ?", string(f.Verdict))
	}
	if f.Unjudged {
		w.and("d.judged IS NULL")
	}
	if !f.From.IsZero() {
		w.and("d.received >= ?", d.db.Moment(f.From))
	}
	if !f.Until.IsZero() {
		w.and("d.received < ?", d.db.Moment(f.Until))
	}
	if f.Before > 0 {
		w.and("d.number < ?", f.Before)
	}
	return &w
}

func list(numbers []int64) string {
	b, _ := json.Marshal(append([]int64{}, numbers...)) //nolint:errchkjson // numbers always marshal
	return string(b)
}

// get reads all rows of a query into dest.
func (d *Desk) get(ctx context.Context, dest any, query string, args []any) error {
	return d.db.Explain(ctx, sqlx.SelectContext(ctx, d.db.Read, dest, d.db.Bind(query), args...))
}

// Deliveries returns deliveries, the newest first.
func (d *Desk) Deliveries(ctx context.Context, f reconcile.DeliveryFilter) ([]reconcile.Delivery, error) {
	w := d.selected(&f)
	var found []rows.Delivery
	// The page is chosen before anything is joined to it.
	err := d.get(ctx, &found, `SELECT `+rows.DeliveryColumns+`
		FROM (SELECT * FROM amends_inbox AS d`+w.String()+` ORDER BY d.number DESC LIMIT ?) AS d`+rows.BesideDelivery+`
		ORDER BY d.number DESC`, append(w.args, cmp.Or(f.Limit, pageSize)))
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return rows.Deliveries(found), nil
}

// Delivery returns one.
func (d *Desk) Delivery(ctx context.Context, number int64) (reconcile.Delivery, error) {
	found, err := d.Deliveries(ctx, reconcile.DeliveryFilter{Numbers: []int64{number}})
	if err == nil && len(found) == 0 {
		err = reconcile.ErrNotFound
	}
	if err != nil {
		return reconcile.Delivery{}, fmt.Errorf("delivery %d: %w", number, err)
	}
	return found[0], nil
}

// Entry returns what is known of an object, nil when nothing is.
func (d *Desk) Entry(ctx context.Context, o reconcile.Object) (*reconcile.Entry, error) {
	var w where
	for i, value := range rows.Key(rows.Object(o)) {
		w.and("e."+rows.KeyColumns[i].Name+" = ?", value)
	}
	found, err := d.entries(ctx, &w, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Entries returns entries in the order of their objects.
func (d *Desk) Entries(ctx context.Context, f reconcile.EntryFilter) ([]reconcile.Entry, error) {
	var w where
	w.object("e", f.Object)
	if f.Owing {
		w.and("(" + owing + ")")
	}
	if f.Blocked {
		w.and("e.blocked IS NOT NULL")
	}
	if f.After != (reconcile.Object{}) {
		w.and("("+rows.Names("e.", rows.KeyColumns)+") > (?, ?, ?, ?)", rows.Key(rows.Object(f.After))...)
	}
	return d.entries(ctx, &w, cmp.Or(f.Limit, pageSize))
}

const owing = `e.dirty > e.clean OR e.accepted > e.delivered`

func (d *Desk) entries(ctx context.Context, w *where, limit int) ([]reconcile.Entry, error) {
	key := rows.Names("e.", rows.KeyColumns)
	var found []rows.Entry
	err := d.get(ctx, &found, `SELECT `+key+`, `+rows.Names("e.", rows.EntryColumns)+`
		FROM amends_entries AS e`+w.String()+` ORDER BY `+key+` LIMIT ?`, append(w.args, limit))
	if err != nil {
		return nil, fmt.Errorf("list entries: %w", err)
	}
	return rows.Entries(found)
}

// Counts returns how many deliveries of each source met which verdict.
func (d *Desk) Counts(ctx context.Context) ([]reconcile.Count, error) {
	var found []rows.Census
	err := d.get(ctx, &found, `SELECT source, verdict, count(*) AS count, max(received) AS last
		FROM (SELECT source, received, CASE WHEN judged IS NOT NULL THEN outcome END AS verdict FROM amends_inbox) AS d
		GROUP BY source, verdict`, nil)
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	counts := make([]reconcile.Count, len(found))
	for i := range found {
		counts[i] = found[i].Row()
	}
	slices.SortFunc(counts, func(a, b reconcile.Count) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Verdict, b.Verdict))
	})
	return counts, nil
}
