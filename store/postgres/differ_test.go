package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/storetest"
	"github.com/amends-dev/amends/store/postgres"
)

// PostgreSQL answers what memory answers, whatever is called in whichever order.
func TestDiffer(t *testing.T) {
	t.Parallel()
	stopped.URL(t) // without a server the test is skipped, and not each of its histories
	beside := map[storetest.Store]*sqlx.DB{}
	h := variants[0].harness()
	h.Open = func(t storetest.T) storetest.Store {
		t.Helper()
		tb, ok := t.(interface {
			pgtest.TB
			storetest.T
		})
		if !ok {
			t.Fatalf("the suite runs in a %T", t)
		}
		s := variants[0].open(t, stopped.URL(tb)+"&search_path="+url.QueryEscape("public,clock,pg_catalog"))
		beside[s] = connect(t, s.url)
		return s
	}
	h.SetTime = func(t storetest.T, s storetest.Store, at time.Time) {
		t.Helper()
		postgres.SetClock(of(t, s).DB, at)
		if _, err := beside[s].ExecContext(t.Context(), `UPDATE clock.stands SET at = $1`, at); err != nil {
			t.Fatalf("set the clock: %v", err)
		}
	}
	storetest.Differ(t, h)
}

// stopped is a database whose clock stands still for those that look for functions in the schema
// clock first.
var stopped = &pgtest.Template{Prepare: func(ctx context.Context, address string) error {
	if err := migrated.Prepare(ctx, address); err != nil {
		return err
	}
	db, err := sqlx.ConnectContext(ctx, "postgres", address)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `CREATE SCHEMA clock;
		CREATE TABLE clock.stands (at timestamptz);
		INSERT INTO clock.stands VALUES ('2026-11-20Z');
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM clock.stands'`)
	return errors.Join(err, db.Close())
}}
