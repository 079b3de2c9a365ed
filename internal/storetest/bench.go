package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

// T is what a case needs of the test it runs in: a [*testing.T] is one. Fatalf ends the goroutine
// that calls it.
type T interface {
	Context() context.Context
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Helper()
}

// bench is one case with its store.
type bench struct {
	T
	Store
	harness Harness
	raw     Store         // the store without the wrapper of a broken rule
	witness machine.Token // the session by which the ledger's clock is read
	failed  atomic.Bool
}

// newBench opens a store for a case, closes it at the end, and checks what is in it unless the case
// leaves it unsound.
func newBench(t T, h Harness, c testCase, broken func(Store) Store) *bench {
	t.Helper()
	raw := h.Open(t)
	b := &bench{T: t, Store: raw, harness: h, raw: raw}
	if broken != nil {
		b.Store = broken(raw)
	}
	t.Cleanup(func() {
		if !c.unsound {
			b.check()
		}
		if err := raw.Close(); err != nil {
			b.Errorf("close: %v", err)
		}
	})
	return b
}

// check runs [ledger.Check] on every chain there is.
func (b *bench) check() {
	b.Helper()
	// In a Cleanup the context of the test is over.
	report, err := ledger.Check(context.Background(), b.raw, &ledger.CheckOptions{ChainsOnly: true})
	if err != nil {
		b.Errorf("check the ledger: %v", err)
	}
	for _, f := range report.Findings {
		b.Errorf("check the ledger: %s", f)
	}
}

func (b *bench) Errorf(format string, args ...any) {
	b.Helper()
	b.failed.Store(true)
	b.T.Errorf(format, args...)
}

func (b *bench) Error(what any) {
	b.Helper()
	b.Errorf("%v", what)
}

func (b *bench) Fatal(what any) {
	b.Helper()
	b.Fatalf("%v", what)
}

// Failed reports whether something was wrong so far.
func (b *bench) Failed() bool { return b.failed.Load() }

// again is a second process on the same database where the harness can have one, else the same
// store.
func (b *bench) again() Store {
	b.Helper()
	if b.harness.Again == nil {
		return b.Store
	}
	s := b.harness.Again(b.T, b.raw)
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Errorf("close the second process: %v", err)
		}
	})
	return s
}

// clock reads the ledger's clock, by which leases end and works become due: every renewal tells it.
func (b *bench) clock() time.Time {
	b.Helper()
	if b.witness == 0 {
		b.witness = b.session()
	}
	lease, err := b.raw.Renew(b.Context(), b.witness, ledger.Renewal{TTL: time.Hour})
	if err != nil {
		b.Fatalf("read the ledger's clock: %v", err)
	}
	return lease.At
}

var errOnlyAsking = errors.New("only asking what time it is")

// calendar reads the clock by which a reconciler lives, and stores nothing: every callback is told.
func (b *bench) calendar() (at time.Time) {
	b.Helper()
	err := b.raw.Update(b.Context(), object("clock"), func(now time.Time, _ *intake.Entry) error {
		at = now
		return errOnlyAsking
	})
	if !errors.Is(err, errOnlyAsking) {
		b.Fatalf("read the store's clock: %v", err)
	}
	return at
}

// until waits for one of the two clocks to pass at. Times in the suite are either a few
// milliseconds or an hour away, so a case waits briefly or not at all, and a slow machine changes
// nothing.
func (b *bench) until(clock func() time.Time, at time.Time) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !clock().After(at) {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatalf("the store's clock did not reach %v: %v", at, b.Context().Err())
		}
	}
}

// session opens a session that outlives the test.
func (b *bench) session() machine.Token { b.Helper(); return b.sessionOf(time.Hour) }

// sessionOf opens a session that outlives a clock which is set forward by less than ttl.
func (b *bench) sessionOf(ttl time.Duration) machine.Token {
	b.Helper()
	lease, err := b.OpenSession(b.Context(), ttl, "suite", nil)
	if err != nil {
		b.Fatalf("open session: %v", err)
	}
	return lease.Token
}

// bury ends a session as a process does when it stops.
func (b *bench) bury(t machine.Token) {
	b.Helper()
	if err := b.Bury(b.Context(), t); err != nil {
		b.Fatalf("bury session %s: %v", t, err)
	}
}

func (b *bench) wantError(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: got error %v, want one that matches %q", what, err, want)
	}
}
