// Package shelf keeps plans and drift for the SQL stores of package reconcile. What they ask differs between the
// databases in a few words only.
//
// Findings go into the database in batches, each one statement with one parameter: a JSON list. So a plan of
// a million findings is a few hundred statements, and no more than one batch of it is in memory.
//
// Nothing large is erased in one transaction. A draft nobody finished, or a plan too many, is dropped first, which
// is one row; from then on nobody sees it and nobody can add to it. Its findings go in parts, before the next draft
// of the job begins. Whoever is killed on the way leaves the rest to that one.
package shelf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile/drift"
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

	// Elements is the table, with the one column value, of the elements of a JSON list that is a parameter.
	Elements string

	// Share locks a row that is read against changes until the transaction ends.
	Share string

	// Bind turns question marks into the database's own parameters.
	Bind func(string) string

	// Now reads the database's clock; Moment writes a time as a parameter.
	Now    func(context.Context) (time.Time, error)
	Moment func(time.Time) any

	// Explain gives an error of the driver its meaning.
	Explain func(context.Context, error) error
}

// Shelf implements [drift.Plans] and [drift.Drifts].
type Shelf struct{ db Database }

var (
	_ drift.Plans  = (*Shelf)(nil)
	_ drift.Drifts = (*Shelf)(nil)
)

// New returns a shelf over db.
func New(db Database) *Shelf { return &Shelf{db: db} }

const (
	pageSize = 100  // of a list when nobody says
	batch    = 2000 // findings in one statement
)

// write runs fn in a transaction, and tells it the database's clock.
func (s *Shelf) write(ctx context.Context, fn func(ctx context.Context, q writer) error) error {
	now, err := s.db.Now(ctx)
	if err == nil {
		err = s.db.Write(ctx, func(ctx context.Context, q Queries) error { return fn(ctx, writer{s, q, now}) })
	}
	return s.db.Explain(ctx, err)
}

// get reads all rows of a query into dest.
func (s *Shelf) get(ctx context.Context, dest any, query string, args ...any) error {
	return s.db.Explain(ctx, sqlx.SelectContext(ctx, s.db.Read, dest, s.db.Bind(query), args...))
}

// writer is one transaction.
type writer struct {
	*Shelf

	q   Queries
	now time.Time
}

// at is now as a parameter.
func (w writer) at() any { return w.db.Moment(w.now) }

// do runs a statement and returns how many rows it changed.
func (w writer) do(ctx context.Context, query string, args ...any) (int64, error) {
	r, err := w.q.ExecContext(ctx, w.db.Bind(query), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// choose reads all rows of a query within the transaction.
func (w writer) choose(ctx context.Context, dest any, query string, args ...any) error {
	return sqlx.SelectContext(ctx, w.q, dest, w.db.Bind(query), args...)
}

// where is a condition of several, each with its parameters as question marks.
type where struct {
	all  []string
	args []any
}

func (w *where) and(condition string, args ...any) {
	w.all = append(w.all, condition)
	w.args = append(w.args, args...)
}

// is narrows a column unless value is empty.
func (w *where) is(column, value string) {
	if value != "" {
		w.and(column+" = ?", value)
	}
}

func (w *where) String() string {
	if len(w.all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.all, " AND ")
}

// Approve notes an approval.
func (s *Shelf) Approve(ctx context.Context, id string, by drift.By) error {
	if by.Actor == "" {
		return errors.New("approve plan " + id + ": nobody says so; an approval has an actor")
	}
	err := s.write(ctx, func(ctx context.Context, w writer) error {
		var known []int64
		err := w.choose(ctx, &known, `SELECT number FROM amends_plans WHERE state = 'plan' AND id = ? LIMIT 1`+w.db.Share, id)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			return drift.ErrNotFound
		}
		_, err = w.do(ctx, `INSERT INTO amends_approvals (at, id, actor, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			w.at(), id, text(by.Actor), text(by.Reason))
		return err
	})
	if err != nil {
		return fmt.Errorf("approve plan %s: %w", id, err)
	}
	return nil
}

// Findings returns findings of a plan or draft in the order of their keys.
func (s *Shelf) Findings(ctx context.Context, q drift.FindingQuery) ([]drift.Row, error) {
	var w where
	w.and("plan = ?", q.Number)
	if q.After != "" {
		w.and("key > ?", name(q.After))
	}
	if q.Acting {
		w.and(acting)
	}
	w.is("class", string(q.Class))
	w.is("outcome", string(q.Outcome))
	var found []row
	err := s.get(ctx, &found, `SELECT key, outcome, error, at, finding FROM amends_findings`+w.String()+` ORDER BY key LIMIT ?`,
		append(w.args, limit(q.Limit))...)
	rows := make([]drift.Row, len(found))
	for i := range found {
		if err == nil {
			rows[i], err = found[i].row()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("findings of plan %d: %w", q.Number, err)
	}
	return rows, nil
}

// acting is [drift.Row.Acting]. Who asks goes through the plan once, page by page, so it has no index.
const acting = `acts = 1 AND (outcome IS NULL OR outcome = 'withheld')`

func limit(n int) int { return cmp.Or(max(n, 0), pageSize) }

// Done notes what became of actions.
func (s *Shelf) Done(ctx context.Context, number int64, rows []drift.Row) error {
	err := s.write(ctx, func(ctx context.Context, w writer) error {
		if err := w.held(ctx, number, "plan"); err != nil {
			return err
		}
		return inBatches(len(rows), func(from, to int) error {
			list, err := outcomes(number, rows[from:to])
			if err != nil {
				return err
			}
			_, err = w.do(ctx, doneText(w.db.Elements), w.at(), list)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("note what became of plan %d: %w", number, err)
	}
	return nil
}

// doneText notes outcomes. The plan's number is in the list, too: were it a parameter, SQLite would go through the
// whole plan for each element, instead of the other way round.
func doneText(elements string) string {
	return `UPDATE amends_findings SET outcome = e.value ->> 2, error = e.value ->> 3, at = ?
		FROM ` + elements + ` WHERE plan = CAST(e.value ->> 0 AS bigint) AND key = e.value ->> 1`
}

// held locks a plan in a state; there is none, or it is in another: [drift.ErrNotFound].
func (w writer) held(ctx context.Context, number int64, state string) error {
	var known []int64
	err := w.choose(ctx, &known, `SELECT number FROM amends_plans WHERE number = ? AND state = ?`+w.db.Share, number, state)
	if err == nil && len(known) == 0 {
		err = drift.ErrNotFound
	}
	return err
}

func inBatches(n int, do func(from, to int) error) error {
	for from := 0; from < n; from += batch {
		if err := do(from, min(from+batch, n)); err != nil {
			return err
		}
	}
	return nil
}
