package postgres

import (
	"testing"

	"github.com/jmoiron/sqlx"
)

// A record and a start say themselves how long they wait for a lock, and leave their connection as
// they found it. In a transaction of the caller's a start says nothing: it is not ours to be
// impatient in.
func TestPatience(t *testing.T) {
	t.Parallel()
	db, _ := opened(t)
	nothing := func(width int) []any { return append([]any{nil, 0}, make([]any, width)...) }
	for name, c := range map[string]struct {
		pool *sqlx.DB
		text string
		args []any
		want string
	}{
		"record":        {db.work, followText(many(followColumns), false, false), nothing(len(followColumns)), "250ms"},
		"disputed":      {db.work, followText(many(followColumns), true, true), nothing(len(followColumns)), "250ms"},
		"start":         {db.batch, startText(many(startColumns), false, startPatience, ""), nothing(len(startColumns)), "10ms"},
		"blocked start": {db.work, startText(many(startColumns), false, blockedPatience, ""), nothing(len(startColumns)), "250ms"},
		"caller's":      {db.work, startText(many(startColumns), false, 0, ""), nothing(len(startColumns)), "10s"},
	} {
		tx, err := db.work.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var within, behind string
		if _, err := tx.ExecContext(t.Context(), c.text, c.args...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := tx.GetContext(t.Context(), &within, `SHOW lock_timeout`); err != nil || within != c.want {
			t.Errorf("a %s waits %s for a lock (%v), want %s", name, within, err, c.want)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		conn, err := c.pool.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), c.text, c.args...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := conn.GetContext(t.Context(), &behind, `SHOW lock_timeout`); err != nil || behind != "10s" {
			t.Errorf("behind a %s its connection waits %s for a lock (%v), want 10s", name, behind, err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
