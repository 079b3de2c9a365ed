package sqlite

import (
	"context"
	"time"
)

// SetClock stops the clock of db at a time.
func SetClock(db *DB, at time.Time) { db.now = func() time.Time { return at } }

// Counters is how many counters of duplicates are kept.
func Counters(ctx context.Context, db *DB) (n int, err error) {
	err = db.readers.GetContext(ctx, &n, `SELECT count(*) FROM amends_duplicates`)
	return n, err
}
