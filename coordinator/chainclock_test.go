package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// The latest record may be of the fastest node and the next answer of the slowest, or the
// other way round. Neither end of what is known of the clock comes too early.
func TestTheLatestRecordIsOfAnyNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const skew = time.Second
		at := time.Now()
		c := chainClock{tail: reading{at.Add(skew), at, at}}
		l := &ledgerClock{skew: skew, basis: reading{at, at, at}}
		<-time.After(time.Minute)
		if m := c.bound(l); m.Earliest.After(time.Now()) || m.Latest.Before(time.Now().Add(2*skew)) {
			t.Errorf("it is between %s and %s at %s", m.Earliest, m.Latest, time.Now())
		}
	})
}

// The ledger's clock steps forward while an attempt is under way. Its time is not used
// before the attempt has settled by our own clock, and it is used from then on: a step of a day
// freezes no work for a day.
func TestAnAttemptHoldsTheClockUntilItHasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const settled, step = time.Minute, 24 * time.Hour
		at := time.Now()
		var c chainClock
		l := &ledgerClock{settled: settled, basis: reading{at.Add(step), at, at}}
		c.wrote(l, &machine.Record{At: at, Dispatch: &machine.Dispatch{}}, at, at)
		wait := func(d time.Duration) { <-time.After(d) }
		wait(settled)
		if m := c.bound(l); !m.Earliest.Equal(time.Now()) {
			t.Errorf("within %s of the attempt it is %s", settled, m.Earliest)
		}
		wait(time.Second)
		if m := c.bound(l); !m.Earliest.Equal(time.Now().Add(step)) {
			t.Errorf("a second later it is %s", m.Earliest)
		}
	})
}
