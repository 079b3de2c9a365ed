package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
)

// paying is a saga with a payment that must not be repeated, behind a step that fails until it may pass.
type paying struct {
	open atomic.Bool
	paid diary
}

func (p *paying) saga(t *testing.T) saga.Program {
	t.Helper()
	pass := func(context.Context, saga.Call[order]) (thing, error) {
		if !p.open.Load() {
			return thing{}, saga.NotSent(errors.New("not yet"))
		}
		return thing{ID: "p"}, nil
	}
	pay := func(_ context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		p.paid.note(c.Work)
		return thing{ID: "paid-" + c.Work}, nil
	}
	brisk := saga.Defaults{Timeout: time.Second, Settle: 10 * time.Millisecond, Retry: saga.Retry{Initial: 100 * time.Millisecond, Max: 200 * time.Millisecond, Within: time.Hour}}
	d, err := saga.Define("paying", 1, saga.Do("pass", pass).With(brisk).Idempotent().NoUndo("a test"),
		saga.Do("pay", pay).With(brisk).AtMostOnce().NoUndo("a test"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cases-4, 1: a dump that is restored on the same server, into a database of the same name, is noticed, and pays nothing twice in silence.
func TestARestoredLedgerPaysNothingTwice(t *testing.T) {
	t.Parallel()
	pace.Day(t)
	bin, err := pgtest.Find()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	c := pgtest.Own(t, pgtest.Settings{})
	do := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil { //nolint:gosec // programs of the test
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	execute := func(statement string) {
		t.Helper()
		db, err := sqlx.Open("postgres", c.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	url, drop, err := pgtest.Database(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = drop(context.Background()) })
	name := filepath.Base(regexp.MustCompile(`[?].*`).ReplaceAllString(url, ""))
	dump := filepath.Join(t.TempDir(), "dump.sql")

	w := &paying{}
	play := func(until func(*process) bool) {
		t.Helper()
		p := several(t, openPostgres(t, url), config{opts: coordinator.Options{Poll: 50 * time.Millisecond}}, w.saga(t))
		for tick := time.NewTicker(50 * time.Millisecond); !until(p); <-tick.C {
		}
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
	}
	const n = 10
	ids := func(do func(saga.ID) bool) bool {
		all := true
		for i := range n {
			all = do(saga.ID{Saga: "paying", Work: fmt.Sprint("w", i)}) && all
		}
		return all
	}
	stands := func(p *process, want ...saga.Status) bool {
		return ids(func(id saga.ID) bool {
			s, err := p.Show(t.Context(), id)
			for _, status := range want {
				if err == nil && s.Status == status {
					return true
				}
			}
			return false
		})
	}
	play(func(p *process) bool {
		ids(func(id saga.ID) bool {
			if _, err := p.Start(t.Context(), id.Saga, id.Work, order{}, nil); err != nil {
				t.Fatal(err)
			}
			return true
		})
		return ids(func(id saga.ID) bool { // each was in the hands of a session
			s, err := p.Show(t.Context(), id)
			return err == nil && s.Steps["pass"].Attempts > 0
		})
	})
	do(filepath.Join(bin, "pg_dump"), "-d", url, "-f", dump)
	w.open.Store(true)
	play(func(p *process) bool { return stands(p, saga.Completed) })
	execute("DROP DATABASE " + name + " WITH (FORCE)")
	execute("CREATE DATABASE " + name)
	do(filepath.Join(bin, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", dump)
	play(func(p *process) bool { return stands(p, saga.Review, saga.Completed) })
	twice := 0
	ids(func(id saga.ID) bool {
		if len(w.paid.of(id.Work)) != 1 {
			twice++
		}
		return true
	})
	if twice > 0 {
		t.Errorf("%d of %d payments were not made once", twice, n)
	}
}
