package storetest

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var txCases = []testCase{
	{name: "commit", run: txCommit, needs: hasTx}, {name: "rollback", run: txRollback, needs: hasTx},
	{name: "exists", run: txExists, needs: hasTx},
	{name: "open", run: txOpen, needs: hasTx},
}

// hasTx reports whether a store has transactions to share.
func hasTx(h Harness) bool { return h.DB != nil }

// inTx runs do in a transaction of the caller's own and ends it.
func (b *bench) inTx(commit bool, do func(s ledger.TxStarter, tx *sqlx.Tx)) {
	b.Helper()
	tx := of(b.harness.DB(b.T, b.raw).BeginTxx(b.Context(), nil))
	do(b.raw.(ledger.TxStarter), tx) //nolint:forcetypeassert // the harness has a DB
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	ok(end())
}

func (b *bench) startTx(ctx context.Context, s ledger.TxStarter, tx *sqlx.Tx, c *chain, r machine.Record, want ledger.Result) ledger.Answer {
	b.Helper()
	a := of(s.StartTx(ctx, struct{ ledger.Tx }{tx}, c.entry(r, release))) // no more of it than a Tx has
	if a.Result != want {
		b.Fatalf("start %s in a transaction: got %+v, want %s", c.id, a, want)
	}
	return a
}

// "StartTx inserts head and start record within tx, unheld and due now".
func txCommit(b *bench) {
	t := b.session()
	c := b.fresh(t, "w")
	b.inTx(true, func(s ledger.TxStarter, tx *sqlx.Tx) {
		a := b.startTx(b.Context(), s, tx, c, started(), ledger.Appended)
		c.moved(c.entry(started(), release), a)
	})
	h := c.now()
	if h.Session != 0 || h.Due.IsZero() || h.Due.After(b.clock()) || h.Status != saga.Running || h.Number != c.head {
		b.Errorf("the head is %+v, want unheld and due now", h)
	}
	if rs := c.history(); len(rs) != 1 || rs[0].Hash != c.tail {
		b.Errorf("the chain is %+v", rs)
	}
	if got := b.claim(t, 1); len(got) != 1 || got[0].ID != c.id {
		b.Errorf("claimed %v, want the new work", got)
	}
	c.add(arming(doing(machine.KindDispatched, saga.Running), 1), hold)
}

// "The answer is final only when tx commits": rolled back, the work was never there.
func txRollback(b *bench) {
	t := b.session()
	c := b.fresh(t, "w")
	b.inTx(false, func(s ledger.TxStarter, tx *sqlx.Tx) { b.startTx(b.Context(), s, tx, c, started(), ledger.Appended) })
	if all := b.list(ledger.Filter{}); len(all) != 0 {
		b.Errorf("a start that was rolled back is there: %+v", all)
	}
	c.add(started(), hold)
}

// "Exists is answered without aborting tx".
func txExists(b *bench) {
	t := b.session()
	first := b.start(t, "first", hold)
	second := b.fresh(t, "second")
	other := started()
	other.Body = []byte(`{"order":2}`)
	b.inTx(true, func(s ledger.TxStarter, tx *sqlx.Tx) {
		b.startTx(b.Context(), s, tx, b.fresh(t, "first"), other, ledger.Exists)
		a := b.startTx(b.Context(), s, tx, second, started(), ledger.Appended)
		again := b.startTx(b.Context(), s, tx, b.fresh(t, "second"), started(), ledger.Mine)
		if again.Number != a.Number || !again.At.Equal(a.At) {
			b.Errorf("the same start again: got %+v, want mine with time and number of %+v", again, a)
		}
		b.startTx(b.Context(), s, tx, b.fresh(t, "second"), other, ledger.Exists)
		second.moved(second.entry(started(), release), a)
	})
	if rs := first.history(); len(rs) != 1 || rs[0].Hash != first.tail {
		b.Errorf("the known work changed: %+v", rs)
	}
	second.add(doing(machine.KindDone, saga.Completed), release)
}

// Blocked: "a transaction that is still open starts the same work; ask again later". Other works
// are not held up by it. A database with one writer at a time answers the whole batch with an error
// instead; either way the same entries again settle it once the transaction has ended.
func txOpen(b *bench) {
	t := b.session()
	c := b.start(t, "known", hold)
	other := started()
	other.Body = []byte(`{"order":2}`)
	batch := []ledger.Entry{
		c.entry(doing(machine.KindDone, saga.Completed), release),
		b.fresh(t, "committed").entry(other, hold),
		b.fresh(t, "beside").entry(started(), hold),
	}
	b.inTx(true, func(s ledger.TxStarter, tx *sqlx.Tx) {
		b.startTx(b.Context(), s, tx, b.fresh(t, "committed"), started(), ledger.Appended)
		as, err := b.appendBeside(t, batch)
		if err != nil {
			return
		}
		for i, want := range []ledger.Result{ledger.Appended, ledger.Blocked, ledger.Appended} {
			if as[i].Result != want {
				b.Errorf("beside an open start, entry %d: got %s (%v), want %s", i, as[i].Result, as[i].Err, want)
			}
		}
	})
	for i, a := range of(b.Append(b.Context(), t, batch)) {
		if exists := a.Result == ledger.Exists; exists != (i == 1) || !exists && a.Result != ledger.Mine && a.Result != ledger.Appended {
			b.Errorf("after the commit, entry %d: got %s (%v)", i, a.Result, a.Err)
		}
	}
	if rs := b.fresh(t, "committed").history(); string(rs[0].Body) != string(started().Body) {
		b.Errorf("the work is %+v, want the one the transaction started", rs)
	}
	undone := b.fresh(t, "rolled back").entry(other, hold)
	b.inTx(false, func(s ledger.TxStarter, tx *sqlx.Tx) {
		b.startTx(b.Context(), s, tx, b.fresh(t, "rolled back"), started(), ledger.Appended)
		if as, err := b.appendBeside(t, []ledger.Entry{undone}); err == nil && as[0].Result != ledger.Blocked {
			b.Errorf("beside an open start: got %s, want blocked", as[0].Result)
		}
	})
	b.want(t, undone, ledger.Appended)
}

// appendBeside appends beside an open transaction. A ledger that has one writer can only wait, for
// as long as it is patient: a second shows that it does.
func (b *bench) appendBeside(t machine.Token, batch []ledger.Entry) ([]ledger.Answer, error) {
	ctx, stop := context.WithTimeout(b.Context(), time.Second)
	defer stop()
	return b.Append(ctx, t, batch)
}
