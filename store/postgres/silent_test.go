package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
)

// methods calls every method of a ledger once, on a session and on a work that it holds.
func methods(l *store, token machine.Token, e ledger.Entry, head int64) map[string]func(context.Context) error {
	version := []ledger.Version{{Saga: "s", Version: 1}}
	n := 0
	return map[string]func(context.Context) error{
		"OpenSession": func(ctx context.Context) error { _, err := l.OpenSession(ctx, time.Hour, "test", version); return err },
		"Renew": func(ctx context.Context) error {
			_, err := l.Renew(ctx, token, ledger.Renewal{TTL: time.Hour})
			return err
		},
		"Append a start": func(ctx context.Context) error {
			n++
			_, err := l.Append(ctx, token, []ledger.Entry{start(token, fmt.Sprint("new", n))})
			return err
		},
		"Append a record": func(ctx context.Context) error {
			r := machine.Record{Kind: machine.KindNoted, Status: saga.Running}
			_, err := l.Append(ctx, token, []ledger.Entry{next(e, head, token, r, nil)})
			return err
		},
		"Claim": func(ctx context.Context) error {
			_, err := l.Claim(ctx, token, ledger.Claim{Limit: 1, Known: version})
			return err
		},
		"GiveBack": func(ctx context.Context) error { return l.GiveBack(ctx, token, []ledger.Return{{Number: 1 << 40}}) },
		"CatchUp":  func(ctx context.Context) error { _, _, err := l.CatchUp(ctx); return err },
		"Post": func(ctx context.Context) error {
			_, err := l.Post(ctx, e.ID, machine.Signal{Kind: machine.SignalCancel, Key: "k"})
			return err
		},
		"Load":        func(ctx context.Context) error { _, err := l.Load(ctx, []saga.ID{e.ID}); return err },
		"List":        func(ctx context.Context) error { _, err := ledger.First(ctx, l, ledger.Filter{}); return err },
		"History":     func(ctx context.Context) error { _, err := l.History(ctx, e.ID); return err },
		"Signals":     func(ctx context.Context) error { _, err := l.Signals(ctx, e.ID); return err },
		"Sessions":    func(ctx context.Context) error { _, err := l.Sessions(ctx); return err },
		"Overview":    func(ctx context.Context) error { _, err := l.Overview(ctx); return err },
		"Definitions": func(ctx context.Context) error { _, err := l.Definitions(ctx); return err },
		"Describe":    func(ctx context.Context) error { return l.Describe(ctx, &program.Spec{Saga: "s", Version: 1}) },
		"Count": func(ctx context.Context) error {
			return l.Count(ctx, 7, []ledger.Duplicate{{ID: e.ID, Source: "x", Count: 1}})
		},
		"Duplicates": func(ctx context.Context) error { _, err := l.Duplicates(ctx, ledger.Filter{}); return err },
		"Did": func(ctx context.Context) error {
			return l.Did(ctx, ledger.DeedLooked, "bodies", saga.Actor{Name: "anna"})
		},
		"SetControl by a person": func(ctx context.Context) error {
			n++
			_, err := l.SetControl(ctx, 0, ledger.Control{Kind: ledger.ControlPause, Name: fmt.Sprint("pause", n), Nonce: 1, Actor: "anna"})
			return err
		},
		"Bury": func(ctx context.Context) error { return l.Bury(ctx, 77) },
	}
}

// A connection that goes silent, in either direction or both, costs the call that was on it its own
// time and no more. The call comes back while the connection is silent still, the
// connection is thrown away, and the next call goes on through another one. So it is when new
// connections are silent, too: none of them, and no request to cancel, gets the hour that there is
// for connecting here.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ open, fresh pgtest.Way }{
		"requests": {pgtest.Requests, 0}, "answers": {pgtest.Answers, 0}, "both": {pgtest.Both, 0}, "all": {pgtest.Both, pgtest.Both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pgtest.NewWire(t, migrated.URL(t))
			l := open(t, with(t, w.URL(), "connect_timeout=3600"))
			token := session(t, l)
			e := start(token, "w")
			head := appendAll(t, l, token, []ledger.Entry{e}, ledger.Appended)[0].Number
			for method, call := range methods(l, token, e, head) {
				goesOn(t, method, call) // its lane is open
				w.SilenceNew(c.fresh)
				w.Silence(c.open)
				if err := comesBack(t, method, brief, call); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s on a silent connection: %v, want that its time is over", method, err)
				}
				w.SilenceNew(0)
				goesOn(t, method, call)
				w.Cut() // the lanes of others
			}
			for method, call := range methods(l, token, e, head) {
				goesOn(t, method, call) // every lane is open, with its statements
			}
			w.Silence(pgtest.Both)
			if err := comesBack(t, "Close", time.Minute, func(context.Context) error { return l.Close() }); err != nil {
				t.Errorf("closing over silent connections: %v", err)
			}
		})
	}
}

// Whatever is done on a connection that has gone silent ends with its context, also what
// the ledger does not do.
func TestSilentWhateverIsDone(t *testing.T) {
	t.Parallel()
	w := pgtest.NewWire(t, migrated.URL(t))
	l := open(t, w.URL())
	defer closed(t, l)
	for name, do := range map[string]func(context.Context, *sqlx.Conn) error{
		"query":   func(ctx context.Context, c *sqlx.Conn) error { return c.QueryRowxContext(ctx, `SELECT 1`).Err() },
		"execute": func(ctx context.Context, c *sqlx.Conn) error { _, err := c.ExecContext(ctx, `SELECT 1`); return err },
		"prepare": func(ctx context.Context, c *sqlx.Conn) error {
			stmt, err := c.PrepareContext(ctx, `SELECT 1`)
			if err != nil {
				return err
			}
			defer stmt.Close()
			return nil
		},
		"begin": func(ctx context.Context, c *sqlx.Conn) error { _, err := c.BeginTxx(ctx, nil); return err },
		"ping":  func(ctx context.Context, c *sqlx.Conn) error { return c.PingContext(ctx) },
	} {
		c, err := postgres.Pool(l.DB, "read").Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Silence(pgtest.Answers)
		if err := comesBack(t, name, brief, func(ctx context.Context) error { return do(ctx, c) }); err == nil {
			t.Errorf("%s on a silent connection has succeeded", name)
		}
		_ = c.Close() // it is thrown away
		w.Cut()
	}
}

// occupy takes all the room there is in a lane until it is left.
func occupy(t *testing.T, l *store, lane string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	give, err := postgres.Occupy(ctx, l.DB, lane)
	if err != nil {
		t.Fatalf("there is no room in lane %s that it could have: %v", lane, err)
	}
	return func() {
		t.Helper()
		if err := give(); err != nil {
			t.Error(err)
		}
	}
}

// brief is the time of a call that gets no answer, however long it waits.
const brief = 200 * time.Millisecond

// comesBack calls with a time of its own and fails when the call does not end by itself. The limit
// says never, not soon.
func comesBack(t *testing.T, method string, d time.Duration, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	back := make(chan error, 1)
	go func() { back <- call(ctx) }()
	select {
	case err := <-back:
		return err
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s with %s to go has not come back after two minutes", method, d)
		return nil
	}
}

// goesOn repeats a call until it succeeds: each connection that has gone silent costs one time-out.
func goesOn(t *testing.T, method string, call func(context.Context) error) {
	t.Helper()
	var errs []error
	for range 10 {
		err := comesBack(t, method, 10*time.Second, call)
		if err == nil {
			return
		}
		errs = append(errs, err)
	}
	t.Fatalf("%s did not go on: %v", method, errors.Join(errs...))
}

// However many connections have gone silent together, they cost one time-out and not one each: who
// stops, or renews a lease, has time for a few.
func TestManySilentConnectionsCostOneTimeOut(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	w := pgtest.NewWire(t, address)
	l := open(t, w.URL())
	defer closed(t, l)
	token := session(t, l)
	e := start(token, "w")
	appendAll(t, l, token, []ledger.Entry{e}, ledger.Appended)
	onlooker := connect(t, address)
	tx, err := onlooker.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `UPDATE amends_instances SET received = received`); err != nil {
		t.Fatal(err)
	}
	var posts sync.WaitGroup
	const many = 2 // Options.Workers
	for i := range many {
		posts.Go(func() {
			if _, err := l.Post(t.Context(), e.ID, machine.Signal{Kind: machine.SignalCancel, Key: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < many; { // each on a connection of its own
		if err := onlooker.GetContext(t.Context(), &waiting,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	posts.Wait()
	w.Silence(pgtest.Both)
	count := func(ctx context.Context) error { // it has the same room
		return l.Count(ctx, 1, []ledger.Duplicate{{ID: e.ID, Source: "s", Count: 1}})
	}
	if err := comesBack(t, "Count", time.Second, count); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Count on a silent connection: %v, want that its time is over", err)
	}
	for range many {
		if err := comesBack(t, "Count", time.Minute, count); err != nil {
			t.Errorf("the call after it: %v, want that it takes no other silent connection", err)
		}
	}
}

// A connection that is opened while the server says nothing costs the call its time, too.
func TestSilentWhileConnecting(t *testing.T) {
	t.Parallel()
	w := pgtest.NewWire(t, migrated.URL(t))
	l := open(t, w.URL())
	defer closed(t, l)
	token := session(t, l)
	w.Cut()
	w.SilenceNew(pgtest.Answers)
	for range 3 { // cut connections are noticed one by one
		err := comesBack(t, "Renew", brief, func(ctx context.Context) error {
			_, err := l.Renew(ctx, token, ledger.Renewal{TTL: time.Hour})
			return err
		})
		if err == nil {
			t.Error("renewed over a connection that says nothing")
		}
	}
	w.SilenceNew(0)
	goesOn(t, "Renew", func(ctx context.Context) error {
		_, err := l.Renew(ctx, token, ledger.Renewal{TTL: time.Hour})
		return err
	})
}

// Works whose rows another transaction has locked hold up no other record of their batch, and are
// told apart. What they were told is not final.
func TestLockedWorksHoldUpNoOther(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	var es []ledger.Entry
	for i := range 20 {
		es = append(es, start(token, fmt.Sprint("w", i)))
	}
	want := make([]ledger.Result, len(es))
	for i, a := range appendAll(t, l, token, es, ledger.Appended) {
		es[i] = next(es[i], a.Number, token, machine.Record{Kind: machine.KindDone, Status: saga.Completed}, &ledger.Schedule{})
		want[i] = ledger.Appended
	}
	tx, err := connect(t, l.url).BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `UPDATE amends_instances SET received = received WHERE work_id IN ('w3', 'w11', 'w12')`); err != nil {
		t.Fatal(err)
	}
	want[3], want[11], want[12] = ledger.Blocked, ledger.Blocked, ledger.Blocked
	if n := moments(appendAll(t, l, token, es, want...)); n != 1 {
		t.Errorf("the others were stored by %d statements, want one", n)
	}
	appendAll(t, l, token, es[3:4], ledger.Blocked)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, token, []ledger.Entry{es[3], es[11], es[12]}, ledger.Appended)
	appendAll(t, l, token, es, ledger.Mine)
}

// A client that vanishes while it posts leaves nothing locked: its post is one statement.
func TestVanishedPost(t *testing.T) {
	t.Parallel()
	address := migrated.URL(t)
	w := pgtest.NewWire(t, address)
	laptop, l := open(t, w.URL()), open(t, address)
	defer closed(t, laptop, l)
	token := session(t, l)
	e := start(token, "w")
	head := appendAll(t, l, token, []ledger.Entry{e}, ledger.Appended)[0].Number
	post := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := laptop.Post(ctx, e.ID, machine.Signal{Kind: machine.SignalCancel, Key: key})
			return err
		}
	}
	if err := post("1")(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Silence(pgtest.Answers)
	_ = comesBack(t, "Post", brief, post("2"))
	r := machine.Record{Kind: machine.KindDone, Status: saga.Completed}
	appendAll(t, l, token, []ledger.Entry{next(e, head, token, r, &ledger.Schedule{})}, ledger.Appended)
}

// Every connection of every pool is bounded by the server, too: what a client locked and forgot is
// free again.
func TestServerGivesUp(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	for _, pool := range []string{"work", "batch", "load", "read"} {
		for _, setting := range []string{"idle_in_transaction_session_timeout", "lock_timeout"} {
			var value string
			if err := postgres.Pool(l.DB, pool).GetContext(t.Context(), &value, "SHOW "+setting); err != nil || value == "0" {
				t.Errorf("%s of pool %s is %s, %v", setting, pool, value, err)
			}
		}
	}
}

// A process that opens no session (it only starts, adopts or reads works) goes on with whatever
// database answers after a fail-over.
func TestWithoutASessionTheLedgerFollows(t *testing.T) {
	t.Parallel()
	before := migrated.URL(t)
	after := elsewhere(t, before)
	closed(t, open(t, before), open(t, after))
	w := pgtest.NewWire(t, before)
	l := open(t, w.URL())
	defer closed(t, l)
	stored := func(work string) []ledger.Entry {
		e := start(0, work)
		e.Schedule = &ledger.Schedule{}
		return []ledger.Entry{e}
	}
	appendAll(t, l, 0, stored("a"), ledger.Appended)
	w.Lead(t, after)
	w.Cut()
	goesOn(t, "start", func(ctx context.Context) error {
		_, err := l.Append(ctx, 0, stored("b"))
		return err
	})
	goesOn(t, "list", func(ctx context.Context) error {
		heads, err := ledger.First(ctx, l, ledger.Filter{})
		if err == nil && (len(heads) != 1 || heads[0].ID.Work != "b") {
			return fmt.Errorf("the new server has %+v", heads)
		}
		return err
	})
}

// Starts that wait for open transactions stall no other start: they are answered at
// once, and when they are repeated they take a lane of their own.
func TestBlockedStartsStallNoOther(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var blocked, all []ledger.Entry
	var want []ledger.Result
	for i := range 60 {
		all, want = append(all, start(token, fmt.Sprint("w", i))), append(want, ledger.Appended)
		if i%3 == 0 {
			if _, err := l.StartTx(t.Context(), tx, start(0, fmt.Sprint("w", i))); err != nil {
				t.Fatal(err)
			}
			blocked, want[i] = append(blocked, all[i]), ledger.Blocked
		}
	}
	appendAll(t, l, token, all, want...)

	leave := occupy(t, l, "starts") // all there is of it
	appendAll(t, l, token, blocked[:3], ledger.Blocked)
	leave()
	leave = occupy(t, l, "writes/blocked")
	appendAll(t, l, token, []ledger.Entry{start(token, "another")}, ledger.Appended)
	leave()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, token, slices.Concat(blocked, all), append(slices.Repeat([]ledger.Result{ledger.Appended}, len(blocked)), ledger.Mine)...)
}
