package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
)

// heard calls every method of the other roles once.
func heard(l *store) map[string]func(context.Context) error {
	o, n := intake.Object{Source: "shop", Type: "order", ID: "1"}, 0
	return map[string]func(context.Context) error{
		"Accept": func(ctx context.Context) error {
			n++
			return l.Accept(ctx, []intake.Event{{Object: o, Dedupe: intake.DigestOf(fmt.Sprint(n))}})
		},
		"Advance": func(ctx context.Context) error {
			p, err := l.Position(ctx, "orders")
			if err == nil {
				_, err = l.Advance(ctx, p, scan.Catch{Name: "orders", Side: scan.SourceSide})
			}
			return err
		},
		"Judge": func(ctx context.Context) error {
			_, err := l.Judge(ctx, 1, func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error { return nil })
			return err
		},
		"Lease": func(ctx context.Context) error {
			_, err := l.Lease(ctx, 1, func(time.Time, *intake.Entry) error { return nil })
			return err
		},
		"Update": func(ctx context.Context) error {
			return l.Update(ctx, o, func(time.Time, *intake.Entry) error { return nil })
		},
		"Turn": func(ctx context.Context) error {
			return l.Turn(ctx, "nightly", func(time.Time, *schedule.Agenda) error { return nil })
		},
		"Draft": func(ctx context.Context) error { _, err := l.Draft(ctx, "orders"); return err },
		"Remember": func(ctx context.Context) error {
			return l.Remember(ctx, plan.Ref{Job: "orders", Number: 1}, plan.Part{}, nil)
		},
		"Purge": func(ctx context.Context) error {
			_, err := l.Purge(ctx, intake.Retention{Bodies: time.Hour}, 1)
			return err
		},
		"Deliveries": func(ctx context.Context) error { _, err := l.Deliveries(ctx, intake.DeliveryFilter{}); return err },
		"Drifts":     func(ctx context.Context) error { _, err := l.Drifts(ctx, plan.DriftQuery{}); return err },
		"Jobs":       func(ctx context.Context) error { _, err := l.Jobs(ctx); return err },
	}
}

// uses says which lanes a call needs. The others of the ledger are writes.
var uses = map[string][]string{
	"OpenSession": {"pulse"}, "Renew": {"pulse"}, "Bury": {"pulse"}, "Claim": {"claims"},
	"Append a start": {"starts"}, "Append a record": {"records"}, "Append a blocked start": {"writes/blocked"},
	"Load": {"loads"}, "List": {"loads/lists"}, "History": {"loads/lists"}, "Signals": {"loads"}, "Sessions": {"loads/lists"},
	"Overview": {"loads/lists"}, "Definitions": {"loads/lists"}, "Duplicates": {"loads/lists"},
	"Accept": {"deliveries"}, "Advance": {"loads/lists", "deliveries"},
	"Deliveries": {"loads/lists"}, "Drifts": {"loads/lists"}, "Jobs": {"loads/lists"},
	"Draft": {"loads/lists", "writes"}, "Remember": {"loads/lists", "writes"}, "Purge": {"loads/lists", "writes"},
}

// Each kind of call has room of its own: with every other lane full, and all the connections of
// those taken, it is made; and it waits, for as long as its time allows, where its own is full. So
// a heartbeat never waits behind records, a person's listing holds up no claim, and a start that is
// blocked holds up nothing but its like.
func TestLanes(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	e := start(token, "w")
	head := appendAll(t, l, token, []ledger.Entry{e}, ledger.Appended)[0].Number
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := l.StartTx(t.Context(), tx, start(0, "blocked")); err != nil {
		t.Fatal(err)
	}
	blocked := []ledger.Entry{start(token, "blocked")}
	appendAll(t, l, token, blocked, ledger.Blocked)
	calls := methods(l, token, e, head)
	maps.Copy(calls, heard(l))
	calls["Append a blocked start"] = func(ctx context.Context) error {
		as, err := l.Append(ctx, token, blocked)
		if err == nil && as[0].Result != ledger.Blocked {
			err = fmt.Errorf("answered %+v", as[0])
		}
		return err
	}
	for name, call := range calls {
		needs := uses[name]
		if needs == nil {
			needs = []string{"writes"}
		}
		var leave []func()
		for _, lane := range postgres.Lanes {
			if needed := slices.ContainsFunc(needs, func(n string) bool { return n == lane || path.Dir(n) == lane }); !needed {
				leave = append(leave, occupy(t, l, lane))
			}
		}
		if err := comesBack(t, name, time.Minute, call); err != nil {
			t.Fatalf("%s with room in %v only: %v", name, needs, err)
		}
		for _, leave := range leave {
			leave()
		}
		leave = []func(){occupy(t, l, needs[len(needs)-1])}
		if err := comesBack(t, name, brief, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with no room in %s: %v, want that it waits", name, needs[len(needs)-1], err)
		}
		leave[0]()
	}
}

// A process takes eleven connections and no more, whatever it does, and gives back what it does not
// use: each pool closes what was idle for a minute.
func TestConnections(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	var leave []func()
	for _, lane := range postgres.Lanes {
		if !strings.Contains(lane, "/") {
			leave = append(leave, occupy(t, l, lane))
		}
	}
	var n, most int
	if err := connect(t, l.url).GetContext(t.Context(), &n, `SELECT count(*) FROM pg_stat_activity
		WHERE application_name = 'amends' AND datname = current_database()`); err != nil || n < 10 || n > 11 {
		t.Errorf("%d connections, %v; want the 10 that are taken, and one of lists at most", n, err)
	}
	for _, pool := range []string{"work", "batch", "load", "read"} {
		most += postgres.Pool(l.DB, pool).Stats().MaxOpenConnections
	}
	if most != 11 {
		t.Errorf("the pools may open %d connections, want 11", most)
	}
	for _, leave := range leave {
		leave()
	}
}

// A fail-over ends no receiver, also when a coordinator has a session on the same handle: what the
// ledger does for it is refused until it opens another session, and deliveries are accepted by
// whichever primary answers.
func TestAFailOverEndsNoReceiver(t *testing.T) {
	t.Parallel()
	before := migrated.URL(t)
	after := elsewhere(t, before)
	closed(t, open(t, before), open(t, after))
	w := pgtest.NewWire(t, before)
	l := open(t, w.URL())
	defer closed(t, l)
	token := session(t, l)
	appendAll(t, l, token, []ledger.Entry{start(token, "a")}, ledger.Appended)
	w.Lead(t, after)
	w.Cut()
	for name, call := range heard(l) {
		goesOn(t, name, call)
	}
	for name, call := range methods(l, token, start(token, "a"), 1) {
		if name == "OpenSession" {
			continue
		}
		var err error
		for range 10 { // connections that were cut are noticed one by one
			if err = call(t.Context()); errors.Is(err, ledger.ErrDatabaseChanged) {
				break
			}
		}
		if !errors.Is(err, ledger.ErrDatabaseChanged) {
			t.Errorf("%s: %v, want ErrDatabaseChanged", name, err)
		}
	}
	fresh := session(t, l)
	appendAll(t, l, fresh, []ledger.Entry{start(fresh, "b")}, ledger.Appended)
	direct := open(t, after)
	defer closed(t, direct)
	if ds, err := direct.Deliveries(t.Context(), intake.DeliveryFilter{}); err != nil || len(ds) != 1 {
		t.Errorf("the new server has %d deliveries, %v, want one", len(ds), err)
	}
	if heads, err := ledger.First(t.Context(), direct, ledger.Filter{}); err != nil || len(heads) != 1 || heads[0].ID != (saga.ID{Saga: "s", Work: "b"}) {
		t.Errorf("the new server has %+v, %v, want the work of the new session", heads, err)
	}
}

// counting counts the connections that a store opens.
type counting struct {
	driver.Connector

	opened atomic.Int32
}

// Connect implements [driver.Connector].
func (c *counting) Connect(ctx context.Context) (driver.Conn, error) {
	c.opened.Add(1)
	return c.Connector.Connect(ctx)
}

// What a command of an operator does takes one connection of the server's: to open the database
// prepares nothing, and a lane that is not used takes none.
func TestAListingTakesOneConnection(t *testing.T) {
	t.Parallel()
	var c *counting
	between := func(to driver.Connector) driver.Connector { c = &counting{Connector: to}; return c }
	l, err := postgres.Open(t.Context(), migrated.URL(t), postgres.Between(between, postgres.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, list := range map[string]func() error{
		"List":       func() error { _, err := ledger.First(t.Context(), l, ledger.Filter{}); return err },
		"Overview":   func() error { _, err := l.Overview(t.Context()); return err },
		"Deliveries": func() error { _, err := l.Deliveries(t.Context(), intake.DeliveryFilter{}); return err },
		"Jobs":       func() error { _, err := l.Jobs(t.Context()); return err },
	} {
		if err := list(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := c.opened.Load(); n != 1 {
			t.Errorf("opened and %s: %d connections, want one", name, n)
		}
	}
	if err := l.Accept(t.Context(), []intake.Event{{Object: intake.Object{Source: "shop", Type: "order", ID: "1"}, Dedupe: intake.DigestOf("it")}}); err != nil {
		t.Error(err)
	}
	if n := c.opened.Load(); n != 2 {
		t.Errorf("and a delivery was accepted: %d connections, want two", n)
	}
}

// Rule: a load is planned once for a connection. Else the server may plan each anew: it compares with what the first five plans cost, when the
// ledger may have been empty.
func TestLoadsArePlannedOnce(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), pgtest.URL(t), &postgres.Options{Migrate: true, Readers: 1}) // one connection
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for i := range 20 {
		if _, err := db.Load(t.Context(), []saga.ID{{Saga: "s", Work: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	var custom, generic int
	err = postgres.Pool(db, "load").QueryRowxContext(t.Context(),
		`SELECT sum(custom_plans), sum(generic_plans) FROM pg_prepared_statements WHERE statement LIKE '%amends_records%'`).Scan(&custom, &generic)
	if err != nil || custom > 0 || generic < 20 {
		t.Errorf("%d loads were planned by themselves, %d had the plan of all: %v", custom, generic, err)
	}
}
