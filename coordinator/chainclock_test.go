package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/saga"
)

// T4, T5: the ledger's clock steps forward while an attempt is under way. Its time is not used before the attempt has
// settled by our own clock, and it is used from then on: a step of a day freezes no work for a day.
func TestAnAttemptHoldsTheClockUntilItHasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const settled, step = time.Minute, 24 * time.Hour
		at := time.Now()
		var c chainClock
		c.wrote(&saga.Record{At: at, Arm: &saga.Arm{}}, at, at)
		ahead := func() saga.Moment { now := time.Now().Add(step); return saga.Moment{Earliest: now, Latest: now} }
		wait := func(d time.Duration) { <-time.After(d) }
		wait(settled)
		if m := c.bound(ahead(), settled); !m.Earliest.Equal(time.Now()) {
			t.Errorf("within %s of the attempt it is %s", settled, m.Earliest)
		}
		wait(time.Second)
		if m := c.bound(ahead(), settled); !m.Earliest.Equal(time.Now().Add(step)) {
			t.Errorf("a second later it is %s", m.Earliest)
		}
	})
}
