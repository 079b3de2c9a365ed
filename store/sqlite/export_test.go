package sqlite

import (
	"context"
	"time"
)

// SetClock stops the clock of db at a time.
func SetClock(db *DB, at time.Time) { db.now = func() time.Time { return at } }

// SetTime stops every clock of db at a time: that of the ledger and the one by which a reconciler lives.
func SetTime(db *DB, at time.Time) {
	SetClock(db, at)
	db.today = db.now
}

// Counters is how many counters of duplicates are kept.
func Counters(ctx context.Context, db *DB) (n int, err error) {
	err = db.readers.GetContext(ctx, &n, `SELECT count(*) FROM amends_duplicates`)
	return n, err
}
