package postgres

import (
	"context"

	"github.com/amends-dev/amends/store/internal/pgdb"
)

// explain gives Postgres's errors their meaning.
func explain(ctx context.Context, err error) error { return pgdb.Explain(ctx, err) }

// refused reports whether the database refused a value: bad data, a constraint, a limit of size.
func refused(err error) bool { return pgdb.Refused(err) }

// undone reports whether an error proves that nothing was stored: another transaction was in the
// way, and is gone.
func undone(err error) bool { return pgdb.Undone(err) }

// contended reports whether a lock was not had in time.
func contended(err error) bool { return pgdb.Contended(err) }

// taken reports whether something stands where it would be the only one.
func taken(err error) bool { return pgdb.Taken(err) }
