package sqlite

import "time"

// SetTime stops every clock of db at a time: that of the ledger and the one by which a reconciler lives.
func SetTime(db *DB, at time.Time) {
	db.now = func() time.Time { return at }
	db.today = db.now
}
