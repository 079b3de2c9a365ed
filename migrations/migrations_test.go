package migrations_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
)

var dialects = []migrations.Dialect{migrations.Postgres, migrations.SQLite}

// connect opens an empty database.
func connect(t *testing.T, d migrations.Dialect) *sql.DB {
	t.Helper()
	driver, dsn := "sqlite", "file:"+filepath.Join(t.TempDir(), "test.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)"
	if d == migrations.Postgres {
		driver, dsn = "postgres", pgtest.URL(t)
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// "Schema version 3" means the same on every database: same numbers, same names.
func TestSameNumbersAndNames(t *testing.T) {
	t.Parallel()
	list := func(d migrations.Dialect) []string {
		names, err := fs.Glob(os.DirFS(string(d)), "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	pg, lite := list(migrations.Postgres), list(migrations.SQLite)
	if len(pg) == 0 || !slices.Equal(pg, lite) {
		t.Errorf("postgres has %v, sqlite %v", pg, lite)
	}
	for i, name := range pg {
		if n, err := strconv.Atoi(strings.SplitN(name, "_", 2)[0]); err != nil || n != i+1 {
			t.Errorf("%s is number %d: numbers have no gap", name, i+1)
		}
	}
	if v := migrations.Latest(migrations.Postgres); v != int64(len(pg)) {
		t.Errorf("the latest version is %d of %d files", v, len(pg))
	}
}

// Every migration can be taken back, and applied again afterwards.
func TestUpDownUp(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			db, latest := connect(t, d), migrations.Latest(d)
			wantVersion(t, db, d, 0)
			up(t, db, d, int(latest))
			wantVersion(t, db, d, latest)
			up(t, db, d, 0) // nothing left to do
			if got := tables(t, db, d); !slices.Contains(got, "amends_instances") || !slices.Contains(got, "amends_records") {
				t.Errorf("after up there are tables %v", got)
			}
			if err := migrations.Down(t.Context(), db, d, 0); err != nil {
				t.Fatal(err)
			}
			wantVersion(t, db, d, 0)
			if got := tables(t, db, d); !slices.Equal(got, []string{migrations.Table}) {
				t.Errorf("after down there are still tables %v", got)
			}
			up(t, db, d, int(latest))
			wantVersion(t, db, d, latest)
		})
	}
}

// Who has dropped the tables of a lost ledger makes a new one beside what else is left of it.
func TestUpBehindDroppedTables(t *testing.T) {
	t.Parallel()
	db, latest := connect(t, migrations.Postgres), migrations.Latest(migrations.Postgres)
	up(t, db, migrations.Postgres, int(latest))
	for _, table := range append(tables(t, db, migrations.Postgres), migrations.Table) {
		if _, err := db.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+table+" CASCADE"); err != nil {
			t.Fatal(err)
		}
	}
	up(t, db, migrations.Postgres, int(latest))
	wantVersion(t, db, migrations.Postgres, latest)
}

// A look at the version or at the status writes nothing that matters, and the status tells what is
// missing.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			db := connect(t, d)
			wantVersion(t, db, d, 0)
			if got := tables(t, db, d); len(got) != 0 {
				t.Errorf("asking for the version made tables %v", got)
			}
			before, err := migrations.Status(t.Context(), db, d)
			if err != nil {
				t.Fatal(err)
			}
			up(t, db, d, len(before))
			after, err := migrations.Status(t.Context(), db, d)
			if err != nil {
				t.Fatal(err)
			}
			if !before[0].Applied.IsZero() || after[0].Applied.IsZero() || after[0].Name != "00001_amends.sql" {
				t.Errorf("status before %+v, after %+v", before, after)
			}
		})
	}
}

// A schema that is newer than this program is an error and stays as it is (adoption, section 7,
// number 2).
func TestUpRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			db := connect(t, d)
			up(t, db, d, int(migrations.Latest(d)))
			if _, err := db.ExecContext(t.Context(), `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, true)`); err != nil {
				t.Fatal(err)
			}
			if steps, err := migrations.Up(t.Context(), db, d); !errors.Is(err, migrations.ErrNewer) || len(steps) != 0 {
				t.Errorf("applied %v, %v; want an error that matches %q", steps, err, migrations.ErrNewer)
			}
			wantVersion(t, db, d, 99)
		})
	}
}

// Processes that migrate at the same time all end with the schema in place.
func TestConcurrentUp(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			db := connect(t, d)
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() { _, errs[i] = migrations.Up(t.Context(), db, d) })
			}
			wg.Wait()
			for i, err := range errs {
				if err != nil {
					t.Errorf("process %d: %v", i, err)
				}
			}
			wantVersion(t, db, d, migrations.Latest(d))
		})
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func up(t *testing.T, db *sql.DB, d migrations.Dialect, want int) {
	t.Helper()
	if steps := must(migrations.Up(t.Context(), db, d))(t); len(steps) != want {
		t.Errorf("up applied %v, want %d migrations", steps, want)
	}
}

func wantVersion(t *testing.T, db *sql.DB, d migrations.Dialect, want int64) {
	t.Helper()
	if got := must(migrations.Version(t.Context(), db, d))(t); got != want {
		t.Errorf("version %d, want %d", got, want)
	}
}

func tables(t *testing.T, db *sql.DB, d migrations.Dialect) []string {
	t.Helper()
	query := `SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'amends%' ORDER BY name`
	if d == migrations.Postgres {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`
	}
	var names []string
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}
