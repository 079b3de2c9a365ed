package shop

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// A page has defaultLimit orders unless the request names a limit, and never
// more than maxLimit.
const (
	defaultLimit = 100
	maxLimit     = 500
)

// filter chooses the orders of a page. Fields that are zero choose all.
type filter struct {
	status   Status
	unsynced bool // leaves out the orders that carry a mark
	// changedSince chooses what was not changed before, and puts it in the
	// order of the changes.
	changedSince time.Time
	createdFrom  time.Time // inclusive
	createdTo    time.Time // exclusive

	after string // the cursor behind which the page starts
	limit int
}

// clause is the part of a query that chooses orders.
type clause struct {
	sql  strings.Builder
	args []any
}

func (c *clause) and(sql string, args ...any) {
	c.sql.WriteString(" AND " + sql)
	c.args = append(c.args, args...)
}

// chosen is the clause for all orders of f, whatever the page.
func (f filter) chosen() *clause {
	var c clause
	c.sql.WriteString("deleted = 0")
	if f.status != "" {
		c.and("status = ?", f.status)
	}
	if f.unsynced {
		c.and("invoice_id = ''")
	}
	if !f.changedSince.IsZero() {
		c.and("updated_at >= ?", f.changedSince.Unix())
	}
	if !f.createdFrom.IsZero() {
		c.and("created_at >= ?", ceil(f.createdFrom))
	}
	if !f.createdTo.IsZero() {
		c.and("created_at < ?", ceil(f.createdTo))
	}
	return &c
}

// ceil is the first whole second that is not before t.
func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// partition says that f is one range of the shop, whose size is told.
func (f filter) partition() bool { return !f.createdFrom.IsZero() || !f.createdTo.IsZero() }

// sequence is how a list is sorted, and what its cursors are.
type sequence struct {
	by     string
	behind func(c *clause, cursor string) bool // false: it is no cursor of this list
	cursor func(last row) string
}

// asAdded is the sequence in which the orders came in.
var asAdded = sequence{
	by: "seq",
	behind: func(c *clause, cursor string) bool {
		seq, err := strconv.ParseInt(cursor, 10, 64)
		c.and("seq > ?", seq)
		return err == nil
	},
	cursor: func(last row) string { return strconv.FormatInt(last.Seq, 10) },
}

// asChanged is the sequence of the changes. Several orders change in one
// second, so the id is part of it.
var asChanged = sequence{
	by: "updated_at, id",
	behind: func(c *clause, cursor string) bool {
		text, err := base64.RawURLEncoding.DecodeString(cursor)
		at, id, ok := strings.Cut(string(text), " ")
		second, notNumber := strconv.ParseInt(at, 10, 64)
		c.and("(updated_at, id) > (?, ?)", second, id)
		return err == nil && ok && notNumber == nil
	},
	cursor: func(last row) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", last.UpdatedAt, last.ID))
	},
}

func (f filter) sequence() sequence {
	if f.changedSince.IsZero() {
		return asAdded
	}
	return asChanged
}

// page returns the chosen orders behind the filter's cursor.
func (s *Store) page(ctx context.Context, f filter) (Page, error) {
	p := Page{Next: f.after}
	if f.partition() {
		all := f.chosen()
		p.Total = new(int)
		if err := s.db.GetContext(ctx, p.Total, `SELECT count(*) FROM orders WHERE `+all.sql.String(), all.args...); err != nil {
			return p, fmt.Errorf("shop: count orders: %w", err)
		}
	}
	some, in := f.chosen(), f.sequence()
	if f.after != "" && !in.behind(some, f.after) {
		return p, rest.Refuse(http.StatusBadRequest, "bad_request", "after=%q is no cursor of this list", f.after)
	}
	var rows []row
	query := `SELECT ` + columns + ` FROM orders WHERE ` + some.sql.String() + ` ORDER BY ` + in.by + ` LIMIT ?`
	if err := s.db.SelectContext(ctx, &rows, query, append(some.args, f.limit)...); err != nil {
		return p, fmt.Errorf("shop: list orders: %w", err)
	}
	if len(rows) > 0 {
		p.Next = in.cursor(rows[len(rows)-1])
	}
	var err error
	p.Orders, err = ordersOf(rows)
	return p, err
}

// filterOf reads a query. Its error names one fault.
func filterOf(q url.Values) (filter, error) {
	f := filter{status: Status(q.Get("status")), unsynced: q.Get("synced") == "no", after: q.Get("after"), limit: defaultLimit}
	for name, into := range map[string]*time.Time{"changedSince": &f.changedSince, "createdFrom": &f.createdFrom, "createdTo": &f.createdTo} {
		if text := q.Get(name); text != "" {
			var err error
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return f, rest.Refuse(http.StatusBadRequest, "bad_request", "%s=%q is no time like 2026-01-05T08:00:00Z", name, text)
			}
		}
	}
	if limit := q.Get("limit"); limit != "" {
		var err error
		if f.limit, err = strconv.Atoi(limit); err != nil || f.limit < 1 {
			return f, rest.Refuse(http.StatusBadRequest, "bad_request", "limit=%q is not a positive number", limit)
		}
	}
	f.limit = min(f.limit, maxLimit)
	return f, nil
}
