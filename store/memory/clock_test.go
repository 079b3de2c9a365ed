package memory_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// begin starts a work with the given record.
func begin(t *testing.T, l *memory.DB, s machine.Token, r machine.Record) ledger.Answer {
	t.Helper()
	id := saga.ID{Saga: "order-to-invoice", Work: "w"}
	r.Kind, r.Version, r.Status = machine.KindStarted, 1, saga.Running
	r.Seal(id, machine.Salt{}, 0, machine.Hash{}, s)
	as, err := l.Append(t.Context(), s, []ledger.Entry{{ID: id, Record: r, Schedule: &ledger.Schedule{}}})
	if err != nil || as[0].Result != ledger.Appended {
		t.Fatalf("start: %+v, %v", as, err)
	}
	return as[0]
}

// In a synctest bubble the ledger lives on the bubble's clock: weeks pass at once.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		lease, err := l.OpenSession(t.Context(), 21*24*time.Hour, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, l, lease.Token, machine.Record{Wait: 14 * 24 * time.Hour})
		c := ledger.Claim{Limit: 1, Known: []ledger.Version{{Saga: "order-to-invoice", Version: 1}}}
		for _, step := range []struct {
			wait  time.Duration
			works int
			err   error
		}{
			{14*24*time.Hour - 1, 0, nil}, // a nanosecond early
			{1, 1, nil},
			{7*24*time.Hour - 1, 0, nil},
			{1, 0, ledger.ErrSessionDead},
		} {
			<-time.After(step.wait)
			got, err := l.Claim(t.Context(), lease.Token, c)
			if len(got.Instances) != step.works || !errors.Is(err, step.err) {
				t.Errorf("%v after the start: claimed %+v, error %v; want %d works and error %v", time.Since(lease.At), got, err, step.works, step.err)
			}
		}
	})
}

// The clock of the options is the only one, and times within a chain do not follow it back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 29, 2, 30, 0, 123456789, time.FixedZone("CET", 3600))
	l := memory.New(&memory.Options{Now: func() time.Time { return now }})
	lease, err := l.OpenSession(t.Context(), time.Hour, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := begin(t, l, lease.Token, machine.Record{})
	if want := time.Date(2026, 3, 29, 1, 30, 0, 123456000, time.UTC); a.At != want {
		t.Errorf("the start is of %v, want %v: UTC, in microseconds", a.At, want)
	}
	id := saga.ID{Saga: "order-to-invoice", Work: "w"}
	chain, err := l.Load(t.Context(), []saga.ID{id})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Minute)
	r := machine.Record{Kind: machine.KindNoted, Status: saga.Running}
	prev := chain[0].Records[0].Hash
	r.Seal(id, machine.Salt{}, 1, prev, lease.Token)
	as, err := l.Append(t.Context(), lease.Token, []ledger.Entry{{ID: id, Number: a.Number, Prev: prev, Record: r}})
	if err != nil || as[0].Result != ledger.Appended || as[0].At.Before(a.At) {
		t.Errorf("got %+v and error %v, want a record not before its predecessor's %v", as, err, a.At)
	}
}

// Closed is closed: nothing is answered any more, as on a closed database.
func TestClosed(t *testing.T) {
	t.Parallel()
	l := memory.New(nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.OpenSession(t.Context(), time.Hour, "", nil); err == nil {
		t.Error("a closed ledger opened a session")
	}
	if _, err := ledger.First(t.Context(), l, ledger.Filter{}); err == nil {
		t.Error("a closed ledger listed works")
	}
}
