// Package turns keeps jobs and their runs for the SQL stores of package reconcile. What they ask differs between the
// databases in a few words only.
//
// A turn is one transaction that begins with the lock on the job's row. Everything else in it belongs to that job, so
// no two turns can wait for each other in a circle. The clock is read behind the lock: who waited for it long does not
// decide by an old time. Constraints say the rules once more, whatever a program does: one run for each instant of
// a job, one run of a job at work, an end that has a verdict.
package turns

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/reconcile/schedule"
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

	// Lock, behind a SELECT, locks its rows until the end of the transaction.
	Lock string

	// Bind turns question marks into the database's own parameters.
	Bind func(string) string

	// Now reads the database's clock; Moment writes a time as a parameter.
	Now    func(context.Context, sqlx.QueryerContext) (time.Time, error)
	Moment func(time.Time) any

	// Explain gives an error of the driver its meaning.
	Explain func(context.Context, error) error
}

// Turns implements [schedule.Store] and [schedule.Reader].
type Turns struct{ db Database }

var (
	_ schedule.Store  = (*Turns)(nil)
	_ schedule.Reader = (*Turns)(nil)
)

// New returns turns over db.
func New(db Database) *Turns { return &Turns{db: db} }

// pageSize is how long a list is when nobody says.
const pageSize = 100
