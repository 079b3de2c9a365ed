package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
)

// openPostgres opens the ledger at url for the length of the test, as one process does.
func openPostgres(t *testing.T, url string) ledger.Ledger {
	t.Helper()
	l, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Log(err) // after a restart of the server its connections are broken
		}
	})
	return l
}

// postgresAndItsDatabase opens a fresh ledger, and the database it lives in.
func postgresAndItsDatabase(t *testing.T) (ledger.Ledger, *sqlx.DB) {
	t.Helper()
	url := pgtest.URL(t)
	db, err := sqlx.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return openPostgres(t, url), db
}

// brisk are times for a real database: a lease and attempts of two seconds.
func brisk() config {
	return config{opts: fast(), tune: tuning{timeout: 2 * time.Second, settle: time.Second, retry: saga.Retry{Initial: 100 * time.Millisecond, Max: 2 * time.Second}}}
}

// fleet is several processes on one database, each with a connection pool of its own.
type fleet struct {
	t         *testing.T
	w         *world
	look      ledger.Ledger // the test's own view
	open      func() ledger.Ledger
	processes []*process
	works     []string
}

func newFleet(t *testing.T, url string, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, w: &world{}, open: func() ledger.Ledger { return openPostgres(t, url) }}
	f.look = f.open()
	f.w.watch(f.look)
	for range n {
		f.join()
	}
	return f
}

func (f *fleet) join() *process {
	p := boot(f.t, f.open(), f.w, brisk())
	f.processes = append(f.processes, p)
	return p
}

// load starts n more works, spread over the living processes. Whoever's process dies starts at the
// next one.
func (f *fleet) load(n int) {
	var all sync.WaitGroup
	first := len(f.works)
	for i := range n {
		work := fmt.Sprintf("o%d", first+i)
		f.works = append(f.works, work)
		all.Go(func() {
			for try := 0; ; try++ {
				p := f.processes[(i+try)%len(f.processes)]
				ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
				_, err := p.Start(ctx, orderSaga, work, order{Customer: "c-" + work}, nil)
				cancel()
				if err == nil {
					return
				}
				if try > 100 {
					f.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// finish waits for all works, resolves reviews about mails as a person who opens the mailbox, and
// checks all.
func (f *fleet) finish() (reviews int) {
	f.t.Helper()
	p := f.processes[len(f.processes)-1]
	for _, work := range f.works {
		for {
			ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Minute)
			s, err := p.Wait(ctx, orderSaga, work)
			cancel()
			if err != nil {
				f.t.Fatalf("%s: %v", work, err)
			}
			if s.Status == saga.Completed {
				break
			}
			if s.Status != saga.Review {
				f.t.Fatalf("%s is %s", work, s.Status)
			}
			reviews++
			(&trial{t: f.t, w: f.w}).person(p, stateOf(f.t, f.look, work))
			f.until(func() bool { return stateOf(f.t, f.look, work).Status != saga.Review })
		}
	}
	verify(f.t, f.look, f.w, f.works...)
	return reviews
}

// until polls a condition on the ledger.
func (f *fleet) until(ok func() bool) {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(10 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			f.t.Fatal("the condition did not come true within ten minutes")
		}
	}
}

// Three processes share one database; one is killed in the middle. No work is lost, none runs
// twice.
func TestThreeProcessesShareTheWorks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, pgtest.URL(t), 3)
	f.w.plan = func(a arrival) fault {
		if a.step == "invoice" && a.dir == saga.Forward && a.n == 1 {
			return fault{slow: 200 * time.Millisecond}
		}
		return fault{}
	}
	f.load(40)
	f.processes[0].kill()
	f.load(20)
	reviews := f.finish()
	t.Logf("%d works, one process of three killed, %d reviews", len(f.works), reviews)
}

// "Expiry is judged by the database's clock": a dead process's works are not taken over before its
// lease has ended there. (That it does not take much longer either is what TestFleet holds, in
// virtual time.)
func TestTakeoverByDatabaseTime(t *testing.T) {
	t.Parallel()
	f := newFleet(t, pgtest.URL(t), 1)
	f.w.plan = on("customer", saga.Forward, 3, fault{unsent: true})
	f.load(1) // it backs off, in hand
	f.until(func() bool { return f.w.count("o0", "customer", saga.Forward) > 0 })
	f.processes[0].kill()
	p, ends := f.join(), time.Time{}
	f.until(func() bool {
		sessions, err := f.look.Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range sessions {
			if sessions[i].Token == f.processes[0].records.session() {
				ends = sessions[i].Expires
			}
		}
		return len(p.records.of("o0")) > 0
	})
	if at := p.records.of("o0")[0].At; ends.IsZero() || at.Before(ends) {
		t.Errorf("the work was taken over at %s, and the lease ended at %s", at, ends)
	}
	f.finish()
}

// "Database restart: stop arming, keep results in memory, reconnect, continue from the tail":
// nothing is lost.
func TestADatabaseRestartLosesNothing(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Own(t, nil)
	f := newFleet(t, cluster.URL(), 2)
	f.w.judge = nil // it could not ask
	var arrived sync.Once
	half := make(chan struct{})
	f.w.plan = func(a arrival) fault {
		if a.step == "mark" {
			arrived.Do(func() { close(half) })
		}
		return fault{slow: 100 * time.Millisecond}
	}
	restarts := 1
	if pace.AtNight() {
		restarts = 20
	}
	f.load(30)
	<-half
	for range restarts {
		if err := cluster.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.load(10)
	}
	t.Logf("%d works, %d restarts, %d reviews", len(f.works), restarts, f.finish())
}
