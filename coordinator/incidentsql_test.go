package coordinator_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// The two hours on the ledgers with a database, which stands still for virtual time while it works.
// Its time is virtual, too.

func failing(context.Context) error { return errors.New("503 Service Unavailable") }

// It takes minutes, nearly all of them for the looks of an idle coordinator at its ledger: at
// night. By day the example has its books away on both databases (TestOutage), with real processes.
func TestTwoHoursWithoutTheBooksOnSQLite(t *testing.T) {
	t.Parallel()
	pace.Night(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	synctest.Test(t, func(t *testing.T) {
		l, err := sqlite.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		twoHours(t, l, failing, 1000)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// It takes three minutes, nearly all of it for the database: at night.
func TestTwoHoursWithoutTheBooksOnPostgres(t *testing.T) {
	t.Parallel()
	pace.Night(t)
	address := virtually(t, pgtest.URL(t))
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlx.Open("postgres", address)
		if err != nil {
			t.Fatal(err)
		}
		told := func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, `UPDATE virtual.now SET at = $1 WHERE at < $1`, time.Now())
			return err
		}
		if err := told(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := postgres.Open(t.Context(), address, &postgres.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		twoHours(t, &timely{l, told}, failing, 1000)
		if err := errors.Join(l.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
}

// virtually prepares a database whose clock is told what time it is, and returns its address.
func virtually(t *testing.T, address string) string {
	t.Helper()
	db, err := sqlx.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `
		CREATE SCHEMA virtual;
		CREATE UNLOGGED TABLE virtual.now (at timestamptz);
		INSERT INTO virtual.now VALUES ('1999-01-01');
		CREATE FUNCTION virtual.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM virtual.now'`)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("synchronous_commit", "off")         // nothing here is about a server that dies
	q.Set("search_path", "virtual,pg_catalog") // so that the clock is found before the server's own
	u.RawQuery = q.Encode()
	return u.String()
}

// timely is a ledger that is told what time it is before each call for which that matters.
type timely struct {
	ledger.Ledger

	told func(ctx context.Context) error
}

func timed[T any](ctx context.Context, l *timely, call func() (T, error)) (v T, err error) {
	if err := l.told(ctx); err != nil {
		return v, err
	}
	return call()
}

func (l *timely) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return timed(ctx, l, func() (ledger.Lease, error) { return l.Ledger.OpenSession(ctx, ttl, label, knows) })
}

func (l *timely) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return timed(ctx, l, func() (ledger.Lease, error) { return l.Ledger.Renew(ctx, t, r) })
}

func (l *timely) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return timed(ctx, l, func() ([]ledger.Answer, error) { return l.Ledger.Append(ctx, t, es) })
}

func (l *timely) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	return timed(ctx, l, func() ([]ledger.Chain, error) { return l.Ledger.Load(ctx, ids) })
}

func (l *timely) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	return timed(ctx, l, func() (ledger.Claimed, error) { return l.Ledger.Claim(ctx, t, c) })
}

func (l *timely) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	_, err := timed(ctx, l, func() (struct{}, error) { return struct{}{}, l.Ledger.GiveBack(ctx, t, works) })
	return err
}

func (l *timely) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	return timed(ctx, l, func() (ledger.Control, error) { return l.Ledger.SetControl(ctx, t, c) })
}
