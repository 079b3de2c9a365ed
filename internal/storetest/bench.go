package storetest

import (
	"context"
	"errors"
	"sync"
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

// newBench opens a store for a case, closes it at the end, and checks what is in it.
func newBench(t T, h Harness, broken func(Store) Store) *bench {
	t.Helper()
	raw := h.Open(t)
	b := &bench{T: t, Store: raw, harness: h, raw: raw}
	if broken != nil {
		b.Store = broken(raw)
	}
	t.Cleanup(func() {
		defer b.caught()
		// In a Cleanup the context of the test is over.
		report := of(ledger.Check(context.Background(), b.raw, &ledger.CheckOptions{ChainsOnly: true}))
		for _, f := range report.Findings {
			b.Errorf("check the ledger: %s", f)
		}
		ok(raw.Close())
	})
	return b
}

// failure is an error that a case did not expect.
type failure struct{ error }

// of is what a call answers, which must be no error: one ends the case.
func of[A any](answer A, err error) A {
	ok(err)
	return answer
}

func ok(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// caught tells of the error that ended a case, or a goroutine of it.
func (b *bench) caught() {
	switch e := recover().(type) {
	case nil:
	case failure:
		b.Errorf("%v", e.error)
	default:
		panic(e)
	}
}

// atOnce runs functions at the same time, and waits for all.
func (b *bench) atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer b.caught()
			do(i)
		})
	}
	all.Wait()
}

func (b *bench) Errorf(format string, args ...any) {
	b.Helper()
	b.failed.Store(true)
	b.T.Errorf(format, args...)
}

// stores are two processes on one database where the harness can have them, else the same store twice.
func (b *bench) stores() [2]Store { return [2]Store{b.Store, b.again()} }

func (b *bench) again() Store {
	if b.harness.Again == nil {
		return b.Store
	}
	s := b.harness.Again(b.T, b.raw)
	b.Cleanup(func() { defer b.caught(); ok(s.Close()) })
	return s
}

// clock reads the ledger's clock, by which leases end and works become due: every renewal tells it.
func (b *bench) clock() time.Time {
	if b.witness == 0 {
		b.witness = b.session()
	}
	return of(b.raw.Renew(b.Context(), b.witness, ledger.Renewal{TTL: time.Hour})).At
}

var (
	errOnlyAsking = errors.New("only asking what is there")
	errRefused    = errors.New("the callback refuses")
)

// calendar reads the clock by which a reconciler lives, and stores nothing: every callback is told.
func (b *bench) calendar() (at time.Time) {
	b.wantError("ask for the time", b.raw.Update(b.Context(), object("clock"), func(now time.Time, _ *intake.Entry) error {
		at = now
		return errOnlyAsking
	}), errOnlyAsking)
	return at
}

// until waits for one of the two clocks to pass at: a few milliseconds, so that a slow machine changes
// nothing.
func (b *bench) until(clock func() time.Time, at time.Time) {
	for !clock().After(at) {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-b.Context().Done():
			b.Fatalf("the store's clock did not reach %v: %v", at, b.Context().Err())
		}
	}
}

// session opens a session that outlives the test.
func (b *bench) session() machine.Token {
	return of(b.OpenSession(b.Context(), time.Hour, "suite", nil)).Token
}

func (b *bench) wantError(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: got error %v, want one that matches %q", what, err, want)
	}
}
