package ledgertest_test

import (
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// calls posts signals to a work through l and renews a session in between: P1 R1 P2 R2 P3 R3. It
// returns which of the six calls answered, and which signals are there in the end.
func calls(t *testing.T, faults ...ledgertest.Fault) (answered, posted string, f *ledgertest.FaultyLedger) {
	t.Helper()
	store := memory.New(nil)
	f = ledgertest.Faulty(store, faults...)
	lease, err := store.OpenSession(t.Context(), time.Hour, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := saga.ID{Saga: "s", Work: "w"}
	r := machine.Record{Kind: machine.KindStarted, Version: 1, Status: saga.Running}
	r.Seal(id, machine.Salt{}, 0, machine.Hash{}, lease.Token)
	if _, err := store.Append(t.Context(), lease.Token, []ledger.Entry{{ID: id, Record: r}}); err != nil {
		t.Fatal(err)
	}
	note := func(name string, err error) {
		if err == nil {
			answered += name
		} else if !errors.Is(err, ledgertest.ErrInjected) || !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("%s: error %v, want an injected one that looks like a cut connection", name, err)
		}
	}
	for _, key := range []string{"1", "2", "3"} {
		_, err := f.Post(t.Context(), id, machine.Signal{Kind: machine.SignalCancel, Key: key})
		note("P"+key, err)
		_, err = f.Renew(t.Context(), lease.Token, ledger.Renewal{TTL: time.Hour})
		note("R"+key, err)
	}
	signals, err := store.Signals(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signals {
		posted += "P" + s.Key
	}
	return answered, posted, f
}

// Each fault hits the calls it counts, before or behind their effect, and a crash ends everything
// after it.
func TestFaulty(t *testing.T) {
	t.Parallel()
	const all, p = "P1R1P2R2P3R3", ledgertest.Post
	for name, c := range map[string]struct {
		faults           []ledgertest.Fault
		answered, posted string
		crashed          bool
	}{
		"none":                  {nil, all, "P1P2P3", false},
		"fail before a post":    {[]ledgertest.Fault{ledgertest.FailBefore(2, p)}, "P1R1R2P3R3", "P1P3", false},
		"fail before a call":    {[]ledgertest.Fault{ledgertest.FailBefore(2)}, "P1P2R2P3R3", "P1P2P3", false},
		"lose an answer":        {[]ledgertest.Fault{ledgertest.LoseAnswer(2, p)}, "P1R1R2P3R3", "P1P2P3", false},
		"lose every answer":     {[]ledgertest.Fault{ledgertest.LoseAnswers(p)}, "R1R2R3", "P1P2P3", false},
		"fail always":           {[]ledgertest.Fault{ledgertest.FailAlways(p)}, "R1R2R3", "", false},
		"fail everything":       {[]ledgertest.Fault{ledgertest.FailAlways()}, "", "", false},
		"fail for a while":      {[]ledgertest.Fault{ledgertest.FailBetween(2, 5)}, "P1R3", "P1", false},
		"two methods counted":   {[]ledgertest.Fault{ledgertest.FailBefore(3, p, ledgertest.Renew)}, "P1R1R2P3R3", "P1P3", false},
		"two faults":            {[]ledgertest.Fault{ledgertest.FailBefore(1, p), ledgertest.LoseAnswer(3, p)}, "R1P2R2R3", "P2P3", false},
		"crash before a post":   {[]ledgertest.Fault{ledgertest.CrashBefore(2, p)}, "P1R1", "P1", true},
		"crash during a post":   {[]ledgertest.Fault{ledgertest.CrashDuring(2, p)}, "P1R1", "P1P2", true},
		"crash after a post":    {[]ledgertest.Fault{ledgertest.CrashAfter(2, p)}, "P1R1P2", "P1P2", true},
		"crash beyond the end":  {[]ledgertest.Fault{ledgertest.CrashBefore(4, p)}, all, "P1P2P3", false},
		"crash before any call": {[]ledgertest.Fault{ledgertest.CrashBefore(1)}, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answered, posted, f := calls(t, c.faults...)
			if answered != c.answered || posted != c.posted {
				t.Errorf("answered %s and posted %s, want %s and %s", answered, posted, c.answered, c.posted)
			}
			crashed := false
			select {
			case <-f.Crashed():
				crashed = true
			default:
			}
			if crashed != c.crashed {
				t.Errorf("crashed: %v, want %v", crashed, c.crashed)
			}
			if f.Calls() != 6 || f.Calls(ledgertest.Post) != 3 || f.Calls(ledgertest.Post, ledgertest.Renew) != 6 || f.Calls(ledgertest.Append) != 0 {
				t.Errorf("counted %d calls, %d posts", f.Calls(), f.Calls(ledgertest.Post))
			}
		})
	}
}

// Every method passes through: none is forgotten.
func TestFaultyEveryMethod(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := ledgertest.Faulty(memory.New(nil), ledgertest.FailAlways())
	for m, do := range map[ledgertest.Method]func() error{
		ledgertest.OpenSession: func() error { _, err := f.OpenSession(ctx, 1, "", nil); return err },
		ledgertest.Renew:       func() error { _, err := f.Renew(ctx, 1, ledger.Renewal{TTL: 1}); return err },
		ledgertest.Bury:        func() error { return f.Bury(ctx, 1) },
		ledgertest.Append:      func() error { _, err := f.Append(ctx, 1, nil); return err },
		ledgertest.Load:        func() error { _, err := f.Load(ctx, nil); return err },
		ledgertest.ClaimWorks:  func() error { _, err := f.Claim(ctx, 1, ledger.Claim{}); return err },
		ledgertest.GiveBack:    func() error { return f.GiveBack(ctx, 1, nil) },
		ledgertest.CatchUp:     func() error { _, _, err := f.CatchUp(ctx); return err },
		ledgertest.Post:        func() error { _, err := f.Post(ctx, saga.ID{}, machine.Signal{}); return err },
		ledgertest.Describe:    func() error { return f.Describe(ctx, &program.Spec{}) },
		ledgertest.Blocked:     func() error { return f.Blocked(ctx, ledger.ByVote, "order-to-invoice", 1) },
		ledgertest.Reduce:      func() error { _, err := f.Reduce(ctx, nil); return err },
		ledgertest.Count:       func() error { return f.Count(ctx, 1, nil) },
		ledgertest.Controls:    func() error { _, _, err := f.Controls(ctx); return err },
		ledgertest.SetControl:  func() error { _, err := f.SetControl(ctx, 1, ledger.Control{}); return err },
		ledgertest.Acts:        func() error { _, err := f.Acts(ctx, "", "", 1); return err },
		ledgertest.Did:         func() error { return f.Did(ctx, "", "", saga.Actor{}) },
		ledgertest.Request:     func() error { _, err := f.Request(ctx, ledger.Request{}); return err },
		ledgertest.Answer:      func() error { return f.Answer(ctx, "", 1, nil) },
		ledgertest.Deeds:       func() error { _, err := f.Deeds(ctx, time.Time{}, 1); return err },
	} {
		if err := do(); !errors.Is(err, ledgertest.ErrInjected) || f.Calls(m) != 1 {
			t.Errorf("%s: error %v and %d calls, want an injected error and one call", m, err, f.Calls(m))
		}
	}
}
