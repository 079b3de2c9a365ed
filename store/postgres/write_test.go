package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
)

func session(t *testing.T, l *store) machine.Token {
	t.Helper()
	lease, err := l.OpenSession(t.Context(), time.Hour, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	return lease.Token
}

func closed(t *testing.T, ls ...*store) {
	t.Helper()
	for _, l := range ls {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// start is a new work, held by its session.
func start(t machine.Token, work string) ledger.Entry {
	e := ledger.Entry{ID: saga.ID{Saga: "s", Work: work}, Schedule: &ledger.Schedule{Hold: true}}
	e.Record = machine.Record{Kind: machine.KindStarted, Version: 1, Status: saga.Running}
	e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, t)
	return e
}

// next is a record behind e.
func next(e ledger.Entry, head int64, t machine.Token, r machine.Record, s *ledger.Schedule) ledger.Entry {
	n := ledger.Entry{ID: e.ID, Number: head, Prev: e.Record.Hash, Record: r, Schedule: s}
	n.Record.Seal(e.ID, machine.Salt{}, e.Record.Seq, e.Record.Hash, t)
	return n
}

func appendAll(t *testing.T, l *store, token machine.Token, es []ledger.Entry, want ...ledger.Result) []ledger.Answer {
	t.Helper()
	as, err := l.Append(t.Context(), token, es)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range as {
		if a.Result != want[min(i, len(want)-1)] {
			t.Fatalf("append record %d of %s: got %+v, want %s", es[i].Record.Seq, es[i].ID, a, want[min(i, len(want)-1)])
		}
	}
	return as
}

// An open transaction that starts the same work stalls nobody but that start, and a cancelled wait
// says that it was cancelled.
func TestContendedStart(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	tx, err := connect(t, l.url).BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if a, err := l.StartTx(t.Context(), tx, start(0, "w3")); err != nil || a.Result != ledger.Appended {
		t.Fatalf("start in a transaction: %+v, %v", a, err)
	}
	var batch []ledger.Entry
	want := make([]ledger.Result, 8)
	for i := range want {
		batch = append(batch, start(token, fmt.Sprint("w", i)))
		want[i] = ledger.Appended
	}
	want[3] = ledger.Blocked
	appendAll(t, l, token, batch, want...)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // less than the lock's timeout
	defer cancel()
	if _, err := l.Append(ctx, token, batch[3:4]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled start: %v, want the deadline", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	// The one that was cancelled may be on its way still: then it blocks this one for a moment, and
	// lands first.
	answer := ledger.Answer{Result: ledger.Blocked}
	for range 100 {
		if answer = repeat(t, l, token, batch[3:4])[0]; answer.Result != ledger.Blocked {
			break
		}
	}
	if answer.Result != ledger.Appended && answer.Result != ledger.Mine {
		t.Errorf("the start that nothing blocks any more: %+v", answer)
	}
}

// A value that no index can hold is refused for itself; the rest of the batch is stored.
func TestTooLongForAnIndex(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	batch := []ledger.Entry{start(token, "a"), start(token, "b"), start(token, "c")}
	answers := appendAll(t, l, token, batch, ledger.Appended)
	for i, a := range answers {
		r := machine.Record{Kind: machine.KindDone, Status: saga.Running, ExternalID: fmt.Sprint("inv_", i)}
		if i == 1 {
			r.ExternalID = ""
			for len(r.ExternalID) < 20000 { // nothing compresses it
				r.ExternalID += rand.Text()
			}
		}
		batch[i] = next(batch[i], a.Number, token, r, nil)
	}
	answers = appendAll(t, l, token, batch, ledger.Appended, ledger.Invalid, ledger.Appended)
	if answers[1].Err == nil {
		t.Error("it does not say why")
	}
}

// "MaxBatch counts records, not bytes": a batch takes as many statements as its size
// demands, whichever caller hands it in, and a record that no statement can carry is refused for
// itself.
func TestBatchesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	postgres.SetMost(l.DB, 100_000)
	body := func(n int) []byte { return append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, n)...), '"') }
	var es []ledger.Entry
	for i := range 8 {
		e := start(token, fmt.Sprint("w", i))
		e.Record.Body = body(30_000)
		e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, token)
		es = append(es, e)
	}
	started := appendAll(t, l, token, es, ledger.Appended)
	if n := moments(started); n != 3 {
		t.Errorf("eight starts of 30 KB went in %d statements of 100 KB, want 3", n)
	}
	want := make([]ledger.Result, len(es))
	for i := range es {
		r := machine.Record{Kind: machine.KindDone, Status: saga.Running, Snapshot: body(30_000)}
		want[i] = ledger.Appended
		if i == 4 {
			r.Snapshot, want[i] = body(100_000), ledger.Invalid
		}
		es[i] = next(es[i], started[i].Number, token, r, nil)
	}
	as := appendAll(t, l, token, es, want...)
	if as[4].Err == nil {
		t.Error("it does not say why")
	}
	if n := moments(as); n != 3 {
		t.Errorf("seven records of 30 KB went in %d statements of 100 KB, want 3", n)
	}
}

// moments counts the statements that stored records: each has a time of its own.
func moments(as []ledger.Answer) int {
	at := map[time.Time]bool{}
	for _, a := range as {
		if a.Result == ledger.Appended {
			at[a.At] = true
		}
	}
	return len(at)
}

// Ten writers that decide on stale views of the same twelve works, from two processes, beside
// signals and claims: every chain has one record per place, and nobody waits in a circle.
func TestRacingWriters(t *testing.T) {
	t.Parallel()
	address := migrated.URL(t)
	ls := []*store{open(t, address), open(t, address)}
	defer closed(t, ls...)
	token := session(t, ls[0])
	tails := make([]ledger.Entry, 12)
	for i := range tails {
		tails[i] = start(token, fmt.Sprint("w", i))
	}
	heads := appendAll(t, ls[0], token, tails, ledger.Appended)

	const rounds = 8
	var wg sync.WaitGroup
	for w := range 10 {
		l := ls[w%2]
		wg.Go(func() {
			mine := append([]ledger.Entry(nil), tails...)
			for range rounds {
				batch := make([]ledger.Entry, len(mine))
				for i := range mine { // each writer in an order of its own
					k := (i*7 + w) % len(mine)
					batch[i] = next(mine[k], heads[k].Number, token, machine.Record{
						Kind: machine.KindNoted, Status: saga.Running, Error: fmt.Sprint("writer ", w)}, &ledger.Schedule{Hold: w%3 != 0})
				}
				if _, err := l.Append(t.Context(), token, batch); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				for i := range mine { // go on from the tail, whoever wrote it
					records, err := l.History(t.Context(), mine[i].ID)
					if err != nil {
						t.Errorf("writer %d: %v", w, err)
						return
					}
					mine[i].Record = records[len(records)-1]
				}
				if _, err := l.Claim(t.Context(), token, ledger.Claim{Limit: 100, Known: []ledger.Version{{Saga: "s", Version: 1}}}); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				if _, err := l.Post(t.Context(), mine[w].ID, machine.Signal{Kind: machine.SignalWake, Key: fmt.Sprint(w)}); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	report, err := ledger.Check(t.Context(), ls[0], &ledger.CheckOptions{ChainsOnly: true})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("%v, %v", report.Findings, err)
	}
	if report.Records < 12*(rounds+1) {
		t.Errorf("%d records: the writers did not get on", report.Records)
	}
	var deadlocks int
	if err := connect(t, address).GetContext(t.Context(), &deadlocks,
		`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); err != nil || deadlocks > 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}

// The times of a chain are in order even when the server's clock is set back, and so says the
// answer.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	es := []ledger.Entry{start(token, "a"), start(token, "b")}
	postgres.SetClock(l.DB, time.Now().Add(10*time.Minute))
	a := appendAll(t, l, token, es[:1], ledger.Appended)[0]
	postgres.SetClock(l.DB, time.Now().Add(5*time.Minute))
	b := appendAll(t, l, token, es[1:], ledger.Appended)[0]
	es = []ledger.Entry{
		next(es[0], a.Number, token, machine.Record{Kind: machine.KindNoted, Status: saga.Completed}, &ledger.Schedule{}),
		next(es[1], b.Number, token, machine.Record{Kind: machine.KindNoted, Status: saga.Completed}, &ledger.Schedule{}),
	}
	answers := appendAll(t, l, token, es, ledger.Appended)
	for i := range es {
		records, err := l.History(t.Context(), es[i].ID)
		if err != nil || len(records) != 2 || records[1].At.Before(records[0].At) || !records[1].At.Equal(answers[i].At) {
			t.Errorf("%s: %+v, %v; the answer was %+v", es[i].ID, records, err, answers[i])
		}
	}
	if !answers[0].At.Equal(a.At) || answers[0].Number != a.Number || answers[1].At.Equal(a.At) {
		t.Errorf("got %+v; want the first at the time of its predecessor, %v, and the second not", answers, a.At)
	}
}

// A lease ends by the server's clock and nobody else's.
func TestLeaseByServerClock(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	postgres.SetClock(l.DB, time.Now().Add(2*time.Hour))
	e := start(token, "w")
	e.Record.Dispatch = &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: 1, Key: "k", Budget: time.Second}
	e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, token)
	appendAll(t, l, token, []ledger.Entry{e}, ledger.NoLease)
	if _, err := l.Renew(t.Context(), token, ledger.Renewal{TTL: time.Hour}); !errors.Is(err, ledger.ErrSessionDead) {
		t.Errorf("renew: %v, want ErrSessionDead", err)
	}
}

// Posts share a statement, and one to a work that another transaction has locked holds up no other: it waits for itself. One to a work
// that is not there fails alone.
func TestALockedWorkHoldsUpNoOtherPost(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	l := open(t, address)
	defer closed(t, l)
	token := session(t, l)
	held, free := start(token, "held"), start(token, "free")
	appendAll(t, l, token, []ledger.Entry{held, free}, ledger.Appended)
	tx, err := connect(t, address).BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	tx.MustExecContext(t.Context(), `UPDATE amends_instances SET received = received WHERE work_id = 'held'`)
	post := func(ctx context.Context, id saga.ID, key int) error {
		_, err := l.Post(ctx, id, machine.Signal{Kind: machine.SignalWake, Key: fmt.Sprint(key)})
		return err
	}
	const n = 40
	var locked, others sync.WaitGroup
	locked.Go(func() {
		if err := post(t.Context(), held.ID, 0); err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		others.Go(func() {
			if err := post(t.Context(), free.ID, i%(n/2)); err != nil {
				t.Error(err)
			}
			if err := post(t.Context(), saga.ID{Saga: "s", Work: "none"}, i); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("posted to a work that is not there: %v", err)
			}
		})
	}
	others.Wait() // while the one is locked
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	locked.Wait()
	for id, want := range map[saga.ID]int{held.ID: 1, free.ID: n / 2} {
		all, err := l.Signals(t.Context(), id)
		if err != nil || len(all) != want || all[want-1].ID != int64(want) {
			t.Errorf("%s has %d signals, %v; want %d, numbered without a gap", id, len(all), err, want)
		}
	}
}
