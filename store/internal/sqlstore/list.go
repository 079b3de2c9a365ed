package sqlstore

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// walked is how many heads a page looks at, at most, for those that match. A page of ten thousand
// takes some tens of milliseconds.
const walked = 10_000

// List returns a page of heads. It walks one index from the cursor on, see [walk], and looks at no
// more than walked of its entries.
func (s *chains) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	at, err := f.Position()
	if err != nil {
		return ledger.Page{}, s.failed(ctx, err, "list works")
	}
	var found, last []HeadRow
	err = s.db.View(ctx, func(ctx context.Context, q Queries) error {
		crowded := false
		if f.Status == saga.Running {
			if err := q.QueryRowxContext(ctx, crowd).Scan(&crowded); err != nil {
				return err
			}
		}
		l := s.walk(&f, at, crowded)
		found, last = found[:0], last[:0]
		if err := sqlx.SelectContext(ctx, q, &found, l.page(f.PageSize()+1), l.args...); err != nil || len(found) > f.PageSize() {
			return err
		}
		return sqlx.SelectContext(ctx, q, &last, l.end(), l.args[:l.bounds]...)
	})
	if err != nil {
		return ledger.Page{}, s.failed(ctx, err, "list works")
	}
	return paged(&f, found, last), nil
}

// paged makes a page of what was found, one more than it holds if there are more, and of the last
// head that was looked at, with one behind it if that was not all.
func paged(f *ledger.Filter, found, last []HeadRow) (page ledger.Page) {
	more := len(found) > f.PageSize()
	if more {
		found = found[:f.PageSize()]
	}
	page.Instances = heads(found)
	behind := func(h *HeadRow) string {
		return f.Behind(ledger.Position{Number: int64(h.Number), ID: saga.ID{Saga: string(h.Saga), Work: string(h.WorkID)}})
	}
	switch {
	case more:
		page.Next = behind(&found[len(found)-1])
	case len(last) > 1:
		page.Next, page.Looked = behind(&last[0]), last[0].Created.Time()
	}
	return page
}

// listing is a range of one index, in its order, and what matches in it.
type listing struct {
	filter         // while it is made: the range; then what matches
	bounds  int    // how many of the parameters belong to the range
	within  string // the range
	few     bool   // it is found by another index and then sorted, not looked for along the numbers
	from    string // what is walked
	order   string
	buckets int    // how many walks along the numbers are merged; 0: one is enough
	started string // by what
}

// walk chooses the index that a listing goes along. What it is led by is a condition on the range,
// the rest is looked at row by row. What runs is gathered and sorted unless it is a crowd, of which
// many are met along the numbers.
func (s *chains) walk(f *ledger.Filter, at ledger.Position, crowded bool) *listing {
	l, rest := &listing{from: "amends_instances"}, *f
	switch {
	case f.InOrderOfWork(): // amends_instances_work
		l.ids(f)
		if f.AfterWork != "" {
			l.add("h.work_id > ", f.AfterWork)
		}
	case f.ExternalID != "": // amends_records_external_id
		l.few = true
		rest.ExternalID = ""
		l.add("h.ref IN (SELECT r.instance FROM amends_records AS r WHERE r.external_id = ", f.ExternalID)
		l.text.WriteString(")")
	case f.Tag != "" && (f.Status == "" || f.Status.Terminal()) && f.Reason == "": // amends_tags
		l.few = true
		rest.Tag = ""
		l.tagged(f.Tag)
	case f.Unconfirmed: // amends_instances_unconfirmed
		l.few = true
		rest.Unconfirmed = false
		l.where("h.unconfirmed")
	case f.WaitsFor != "": // amends_instances_waiting
		l.few = true
		l.add("h.waits_for = ", f.WaitsFor)
	case f.Status == saga.Running && crowded:
	case f.Status == saga.Running: // the indexes of claims
		l.few, l.from = true, moving
		l.add("h.status = ", string(saga.Running))
	case f.Status != "" && !f.Status.Terminal(), f.Reason != "": // amends_instances_unfinished
		status := f.Status
		if status == "" { // only works in review have a reason
			status = saga.Review
		}
		l.add("h.status = ", string(status))
		l.where(unfinished)
	case f.Step != "": // amends_instances_unfinished, in a few ranges
		l.few = true
		l.where("h.status " + AtIssue)
		l.where(unfinished)
	}
	l.behind(f, at, s.db.Buckets)
	l.within, l.bounds = l.text.String(), len(l.args)
	l.text.Reset()
	l.matching(s.db, &rest)
	return l
}

// unfinished is what amends_instances_unfinished holds. No database concludes it from a status that
// is a parameter.
const unfinished = "h.finished_at IS NULL AND h.status <> 'running'"

// moving are instances that go on: each is held, due, or in the line of a destination. A claim
// touches their rows, so an index of them by their status would cost each claim a tenth; these
// three it pays for anyway.
const moving = `(SELECT * FROM amends_instances WHERE session IS NOT NULL
	UNION ALL SELECT * FROM amends_instances WHERE session IS NULL AND due_at IS NOT NULL AND finished_at IS NULL AND waits_for IS NULL
	UNION ALL SELECT * FROM amends_instances WHERE waits_for IS NOT NULL AND session IS NULL)`

// crowd reports whether more instances go on than a page looks at.
var crowd = fmt.Sprintf("SELECT count(*) > %[1]d FROM (SELECT 1 AS one FROM %[2]s AS h LIMIT %[1]d + 1) AS h", walked, moving)

// behind sets the order, and begins the range where the page before ended.
func (l *listing) behind(f *ledger.Filter, at ledger.Position, buckets int) {
	switch {
	case f.InOrderOfWork():
		l.order = "h.work_id, h.saga"
		if f.After != "" {
			l.args = append(l.args, at.ID.Work, at.ID.Saga)
			l.where(fmt.Sprintf("(h.work_id, h.saga) > ($%d, $%d)", len(l.args)-1, len(l.args)))
		}
	case buckets > 1 && l.few:
		l.along(started, Started(at.Number), f)
	case buckets > 1:
		l.inBuckets(f, at, buckets)
	case l.few:
		l.along("h.ref + 0", at.Number, f) // no server takes the index of numbers for that
	default:
		l.along("h.ref", at.Number, f)
	}
}

// along orders by an expression, and begins behind the value that it had last.
func (l *listing) along(number string, last int64, f *ledger.Filter) {
	beyond := " > "
	l.order = number
	if f.Newest {
		l.order, beyond = number+" DESC", " < "
	}
	if f.After != "" {
		l.add(number+beyond, last)
	}
}

// matching adds what each row of the range is looked at for.
func (l *listing) matching(db *Dialect, f *ledger.Filter) {
	texts := []struct{ condition, value string }{
		{"h.saga = ", f.Saga}, {"h.status = ", string(f.Status)}, {"h.reason = ", string(f.Reason)}, {"h.waits_for = ", f.WaitsFor}, {"h.step = ", f.Step},
	}
	for _, t := range texts {
		if t.value != "" {
			l.add(t.condition, t.value)
		}
	}
	if !f.CreatedSince.IsZero() {
		l.add("h.created_at >= ", db.Moment(f.CreatedSince))
	}
	if !f.CreatedUntil.IsZero() {
		l.add("h.created_at < ", db.Moment(f.CreatedUntil))
	}
	if !f.UpdatedSince.IsZero() {
		l.add("h.updated_at >= ", db.Moment(f.UpdatedSince))
	}
	if !f.UpdatedUntil.IsZero() {
		l.add("h.updated_at < ", db.Moment(f.UpdatedUntil))
	}
	if f.ExternalID != "" {
		l.add("EXISTS (SELECT 1 FROM amends_records AS r WHERE r.instance = h.ref AND r.external_id = ", f.ExternalID)
		l.text.WriteString(")")
	}
	if f.Tag != "" {
		l.tagged(f.Tag)
	}
	if f.Unconfirmed {
		l.where("h.unconfirmed")
	}
	if f.Left != "" {
		l.where(resting + " AND " + left[f.Left])
	}
}

// resting are works of which something may go; left is what there is of them.
const resting = `h.status ` + Ended + ` AND h.session IS NULL AND h.received = h.consumed`

var left = map[ledger.Left]string{
	ledger.LeftAll: "h.remains IS NULL", ledger.LeftRecords: "h.remains = '" + ledger.BodiesGone + "'", ledger.LeftRemains: "h.remains <> '" + ledger.BodiesGone + "'",
}

func (l *listing) tagged(tag string) {
	l.add("h.ref IN (SELECT t.instance FROM amends_tags AS t WHERE t.tag = ", tag)
	l.text.WriteString(")")
}

// page selects n heads that match, of the first that are walked.
func (l *listing) page(n int) string {
	if l.buckets > 0 {
		return l.mergedPage(n)
	}
	return fmt.Sprintf(`SELECT %s FROM (SELECT * FROM %s AS h%s ORDER BY %s LIMIT %d) AS h%s ORDER BY %s LIMIT %d`,
		HeadColumns, l.from, l.within, l.order, walked, l.text.String(), l.order, n)
}

// end selects the last head that is walked, and the one behind it.
func (l *listing) end() string {
	if l.buckets > 0 {
		return l.mergedEnd()
	}
	return fmt.Sprintf(`SELECT %s FROM %s AS h%s ORDER BY %s LIMIT 2 OFFSET %d`, HeadColumns, l.from, l.within, l.order, walked-1)
}
