package postgres_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
)

// An answer that was lost behind the commit, or a request that was lost before it: the same entries
// again settle which, for starts and for records, alone and in batches.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := pgtest.NewWire(t, migrated.URL(t))
	l := open(t, w.URL())
	defer closed(t, l)
	token := session(t, l)
	for name, c := range map[string]struct {
		way  pgtest.Way
		want ledger.Result
	}{
		"answer":  {pgtest.Answers, ledger.Mine},
		"request": {pgtest.Requests, ledger.Appended},
	} {
		for _, size := range []int{1, 3} {
			var es []ledger.Entry
			for i := range size {
				es = append(es, start(token, name+strconv.Itoa(size)+strconv.Itoa(i)))
			}
			lose(t, w, c.way, l, token, es, c.want)
			for i, a := range appendAll(t, l, token, es, ledger.Mine) {
				es[i] = next(es[i], a.Number, token, machine.Record{Kind: machine.KindNoted, Status: saga.Completed}, &ledger.Schedule{})
			}
			lose(t, w, c.way, l, token, es, c.want)
			for _, e := range es {
				if records, err := l.History(t.Context(), e.ID); err != nil || len(records) != 2 {
					t.Errorf("%s: %d records, %v, want 2", e.ID, len(records), err)
				}
			}
		}
	}
}

// Backends that are terminated cost a repetition and nothing else: connections, settings and
// statements are made again.
func TestTerminatedBackends(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	es := []ledger.Entry{start(token, "a"), start(token, "b")}
	db := connect(t, l.url)
	for range 3 {
		terminate(t, db)
		repeat(t, l, token, es)
		for i, a := range appendAll(t, l, token, es, ledger.Mine) {
			es[i] = next(es[i], a.Number, token, machine.Record{Kind: machine.KindNoted, Status: saga.Running}, nil)
		}
	}
}

// terminate ends every connection of ledgers to a database.
func terminate(t *testing.T, db *sqlx.DB) {
	t.Helper()
	var n int
	err := db.GetContext(t.Context(), &n, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE application_name = 'amends' AND datname = current_database()`)
	if err != nil || n == 0 {
		t.Fatalf("terminated %d backends, %v", n, err)
	}
}

// repeat appends the same entries until there is an answer, as the contract asks.
func repeat(t *testing.T, l *store, token machine.Token, es []ledger.Entry) []ledger.Answer {
	t.Helper()
	var errs []error
	for range 10 {
		as, err := l.Append(t.Context(), token, es)
		if err == nil {
			return as
		}
		errs = append(errs, err)
	}
	t.Fatalf("no answer: %v", errors.Join(errs...))
	return nil
}

// lose appends entries while a message is lost, and wants the answer after as many repetitions as
// it takes.
func lose(t *testing.T, w *pgtest.Wire, way pgtest.Way, l *store, token machine.Token, es []ledger.Entry, want ledger.Result) {
	t.Helper()
	before := w.Lost()
	w.LoseNext(way)
	for i, a := range repeat(t, l, token, es) {
		if a.Result != want {
			t.Errorf("record %d of %s: got %+v, want %s", es[i].Record.Seq, es[i].ID, a, want)
		}
	}
	if w.Lost() != before+1 {
		t.Error("nothing was lost: the test proves nothing")
	}
}
