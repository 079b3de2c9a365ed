package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A fail-over that lost commits: the old sessions are told, what was decided on a lost tail is missing, and what
// is left is a sound ledger.
func TestFailOver(t *testing.T) {
	t.Parallel()
	l := memory.New(nil)
	lease, err := l.OpenSession(t.Context(), time.Hour, "before", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := saga.ID{Saga: "order-to-invoice", Work: "w"}
	start := begin(t, l, lease.Token, saga.Record{})
	backup := l.Backup()

	append1 := func(t *testing.T, s saga.Token, e ledger.Entry) (ledger.Answer, error) {
		t.Helper()
		as, err := l.Append(t.Context(), s, []ledger.Entry{e})
		if err != nil {
			return ledger.Answer{}, err
		}
		return as[0], nil
	}
	next := func(prev ledger.Entry, s saga.Token) ledger.Entry {
		e := ledger.Entry{ID: id, Head: start.Head, Prev: prev.Record.Hash, Record: saga.Record{Kind: saga.KindNoted, Status: saga.Running}}
		e.Record.Seal(id, prev.Record.Seq, prev.Record.Hash, s)
		return e
	}
	history, err := l.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	first := ledger.Entry{Record: history[0]}
	lost := next(first, lease.Token)
	if a, err := append1(t, lease.Token, lost); err != nil || a.Result != ledger.Appended {
		t.Fatalf("got %+v, %v", a, err)
	}
	if err := l.Post(t.Context(), id, saga.Signal{Kind: saga.SignalCancel, Key: "lost"}); err != nil {
		t.Fatal(err)
	}

	pause := ledger.Control{Kind: ledger.ControlPause, Name: "lost", Actor: "ann", Nonce: 1}
	if _, err := l.SetControl(t.Context(), 0, pause); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the backup can be used again
		l.FailOver(backup)
		if _, err := l.Renew(t.Context(), lease.Token, ledger.Renewal{TTL: time.Hour}); !errors.Is(err, ledger.ErrDatabaseChanged) {
			t.Errorf("renew: error %v, want %q", err, ledger.ErrDatabaseChanged)
		}
		if _, err := append1(t, lease.Token, lost); !errors.Is(err, ledger.ErrDatabaseChanged) {
			t.Errorf("append: error %v, want %q", err, ledger.ErrDatabaseChanged)
		}
		if _, err := l.Claim(t.Context(), lease.Token, ledger.Claim{}); !errors.Is(err, ledger.ErrDatabaseChanged) {
			t.Errorf("claim: error %v, want %q", err, ledger.ErrDatabaseChanged)
		}
		if _, err := l.SetControl(t.Context(), lease.Token, pause); !errors.Is(err, ledger.ErrDatabaseChanged) {
			t.Errorf("set a control: error %v, want %q", err, ledger.ErrDatabaseChanged)
		}
		if all, newest, err := l.Controls(t.Context()); err != nil || len(all) != 0 || newest != 0 {
			t.Errorf("controls %+v, newest %d, %v, want none", all, newest, err)
		}
		if acts, err := l.Acts(t.Context(), pause.Kind, pause.Name, 0); err != nil || len(acts) != 0 {
			t.Errorf("acts %+v, %v, want none", acts, err)
		}
		after, err := l.OpenSession(t.Context(), time.Hour, "after", nil)
		if err != nil || after.Database == lease.Database {
			t.Fatalf("got %+v, %v, want another database", after, err)
		}
		if a, err := append1(t, after.Token, next(lost, after.Token)); err != nil || a.Result != ledger.Missing {
			t.Errorf("behind a lost record: got %+v, %v, want missing", a, err)
		}
		if ss, err := l.Signals(t.Context(), id); err != nil || len(ss) != 0 {
			t.Errorf("signals %+v, %v, want none", ss, err)
		}
		if a, err := append1(t, after.Token, next(first, after.Token)); err != nil || a.Result != ledger.Appended {
			t.Errorf("behind what is left: got %+v, %v, want appended", a, err)
		}
		ledgertest.MustCheck(t, l)
	}
}
