package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/amends-dev/amends/migrations"
)

// onSQLite opens a file with the schema and nothing in it.
func onSQLite(t *testing.T) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := migrations.Up(t.Context(), db.DB, migrations.SQLite); err != nil {
		t.Fatal(err)
	}
	return db
}

// planOf says how SQLite goes about a statement, a step a line.
func planOf(t *testing.T, db *sqlx.DB, text string, args ...any) string {
	t.Helper()
	var steps []struct {
		ID, Parent, NotUsed int
		Detail              string
	}
	if err := db.SelectContext(t.Context(), &steps, `EXPLAIN QUERY PLAN `+text, args...); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var plan strings.Builder
	for _, s := range steps {
		plan.WriteString(s.Detail + "\n")
	}
	return plan.String()
}
