package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// heard accepts an event about an object.
func heard(t *testing.T, l *memory.DB, id string) {
	t.Helper()
	o := intake.Object{Source: "shop", Type: "order", ID: id}
	if err := l.Accept(t.Context(), []intake.Event{{Object: o, Dedupe: intake.DigestOf(id)}}); err != nil {
		t.Fatal(err)
	}
}

// drafted makes a plan of one finding, and returns its number.
func drafted(t *testing.T, l *memory.DB, key string) plan.Ref {
	t.Helper()
	n, err := l.Draft(t.Context(), "job")
	if err == nil {
		err = l.Find(t.Context(), n, []plan.Finding{{Key: key, Class: plan.Orphan}})
	}
	if err == nil {
		_, err = l.Finish(t.Context(), n, &plan.Plan{ID: "plan", Job: "job"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ran stores a run of a job, and returns its number.
func ran(t *testing.T, l *memory.DB, instant string) int64 {
	t.Helper()
	var run *schedule.RunRow
	err := l.Turn(t.Context(), "job", func(now time.Time, a *schedule.Agenda) error {
		a.New = []schedule.RunRow{{Instant: instant, At: now, From: now, Instants: 1, Due: now, Created: now}}
		run = &a.New[0]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return run.Number
}

// A fail-over that lost commits: the old sessions are told, what was decided on a lost tail is
// missing, and what is left is a sound ledger. What a reconciler keeps goes back with it: it is one
// database.
func TestFailOver(t *testing.T) {
	t.Parallel()
	l := memory.New(nil)
	lease, err := l.OpenSession(t.Context(), time.Hour, "before", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := saga.ID{Saga: "order-to-invoice", Work: "w"}
	start := begin(t, l, lease.Token, machine.Record{})
	heard(t, l, "kept")
	kept, run := drafted(t, l, "kept"), ran(t, l, "kept")
	backup := l.Backup()

	append1 := func(t *testing.T, s machine.Token, e ledger.Entry) (ledger.Answer, error) {
		t.Helper()
		as, err := l.Append(t.Context(), s, []ledger.Entry{e})
		if err != nil {
			return ledger.Answer{}, err
		}
		return as[0], nil
	}
	next := func(prev ledger.Entry, s machine.Token) ledger.Entry {
		e := ledger.Entry{ID: id, Number: start.Number, Prev: prev.Record.Hash, Record: machine.Record{Kind: machine.KindNoted, Status: saga.Running}}
		e.Record.Seal(id, machine.Salt{}, prev.Record.Seq, prev.Record.Hash, s)
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
	if _, err := l.Post(t.Context(), id, machine.Signal{Kind: machine.SignalCancel, Key: "lost"}); err != nil {
		t.Fatal(err)
	}

	pause := ledger.Control{Kind: ledger.ControlPause, Name: "lost", Actor: "ann", Nonce: 1}
	if _, err := l.SetControl(t.Context(), 0, pause); err != nil {
		t.Fatal(err)
	}

	heard(t, l, "lost")
	if err := l.Done(t.Context(), kept, []plan.Row{{Finding: plan.Finding{Key: "kept"}, Outcome: plan.Applied}}); err != nil {
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
		heard(t, l, "lost") // as if it had never come
		ds, err := l.Deliveries(t.Context(), intake.DeliveryFilter{})
		if err != nil || len(ds) != 2 || ds[0].Object.ID != "lost" || ds[0].Copies != 1 || ds[1].Object.ID != "kept" {
			t.Errorf("deliveries %+v, %v, want the one that the backup has, and a new one", ds, err)
		}
		if rows, err := l.Findings(t.Context(), plan.FindingQuery{Plan: kept}); err != nil || len(rows) != 1 || rows[0].Outcome != plan.Pending {
			t.Errorf("findings %+v, %v, want one of which nothing became yet", rows, err)
		}
		draft, failed := l.Draft(t.Context(), "job")
		if got := ran(t, l, "after"); failed != nil || draft.Number != kept.Number+1 || got != run+1 {
			t.Errorf("draft %s, %v, and run %d: the numbers went back with the database", draft, failed, got)
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
