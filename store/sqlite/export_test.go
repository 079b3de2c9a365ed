package sqlite

import "time"

// SetClock stops the clock of db at a time.
func SetClock(db *DB, at time.Time) { db.now = func() time.Time { return at } }
