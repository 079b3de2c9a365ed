package postgres_test

import (
	"testing"
	"time"
)

// The overview says since when the oldest transaction has been open that keeps the database from cleaning up.
func TestOverviewSaysWhoReads(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	if o, err := l.Overview(t.Context()); err != nil || o.At.Sub(o.Reading) > time.Minute {
		t.Errorf("nothing is open, and at %s it says %s (%v)", o.At, o.Reading, err)
	}
	tx := connect(t, l.url).MustBeginTx(t.Context(), nil)
	defer func() { _ = tx.Rollback() }()
	var began time.Time
	if err := tx.GetContext(t.Context(), &began, `SELECT now() FROM pg_sleep(0.01)`); err != nil {
		t.Fatal(err)
	}
	tx.MustExecContext(t.Context(), `CREATE TABLE kept (n integer)`)
	if o, err := l.Overview(t.Context()); err != nil || !o.Reading.Equal(began) {
		t.Errorf("a transaction has been open since %s, and it says %s (%v)", began, o.Reading, err)
	}
}
