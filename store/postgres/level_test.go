package postgres_test

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/postgres"
)

// The store's own transactions are isolated as it asks, whatever the database's default is, and
// in the suite at the level that a variant names.
func TestLevels(t *testing.T) {
	t.Parallel()
	url := migrated.URL(t)
	connect(t, url).MustExecContext(t.Context(), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''serializable''', current_database()); END $$`)
	levels := map[string]*postgres.Options{"read committed": {}}
	for _, level := range []string{"repeatable read", "serializable"} {
		levels[level] = postgres.Isolated(level, postgres.Options{})
	}
	for want, options := range levels {
		l, err := postgres.Open(t.Context(), url, options)
		if err != nil {
			t.Fatal(err)
		}
		for _, pool := range []string{"work", "batch", "load", "read"} {
			var got string
			if err := postgres.Pool(l, pool).GetContext(t.Context(), &got, `SHOW transaction_isolation`); err != nil || got != want {
				t.Errorf("%s: transactions are isolated at %q, %v; want %q", pool, got, err, want)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The caller's transaction keeps its own level. Where another starts the same work behind its
// snapshot it is told to repeat the transaction, and finds the work then; where every statement has
// a snapshot of its own it finds it at once.
func TestAStartInTheCallersTransactionThatIsOvertaken(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"postgres", "pgx"} { // the caller's, by database/sql
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			l := open(t, migrated.URL(t))
			defer closed(t, l)
			db, err := sql.Open(driver, l.url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for level, overtaken := range map[sql.IsolationLevel]bool{
				sql.LevelReadCommitted: false, sql.LevelRepeatableRead: true, sql.LevelSerializable: true,
			} {
				overtake(t, l, db, level, overtaken)
			}
		})
	}
}

// overtake starts a work in a transaction of db that has seen that it is not there, and in another
// before that.
func overtake(t *testing.T, l *store, db *sql.DB, level sql.IsolationLevel, overtaken bool) {
	t.Helper()
	token, work := session(t, l), level.String()
	try := func(work string, meanwhile func()) (ledger.Answer, error) {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // nothing is kept of it
		if _, err := tx.ExecContext(t.Context(), `SELECT count(*) FROM amends_instances`); err != nil {
			t.Fatal(err)
		}
		meanwhile()
		return l.StartTx(t.Context(), tx, start(0, work))
	}
	if a, err := try("of its own", func() {}); err != nil || a.Result != ledger.Appended {
		t.Errorf("%s: %+v, %v, want appended", level, a, err)
	}
	a, err := try(work, func() { appendAll(t, l, token, []ledger.Entry{start(token, work)}, ledger.Appended) })
	switch {
	case !overtaken && (err != nil || a.Result != ledger.Exists):
		t.Errorf("%s: %+v, %v, want exists", level, a, err)
	case overtaken && (!pgdb.Undone(err) || !strings.Contains(err.Error(), "repeat the transaction")):
		t.Errorf("%s: %+v, %v, want an error that says to repeat the transaction", level, a, err)
	}
	if a, err := try(work, func() {}); err != nil || a.Result != ledger.Exists {
		t.Errorf("%s, again: %+v, %v, want exists", level, a, err)
	}
}
