package coordinator

import (
	"testing"
	"testing/synctest"
	"time"
)

// known is a destination whose health is h. What changes it is stored when the test says so.
func known(t *testing.T, h health) (d *destination, store func() health) {
	t.Helper()
	var changes []func(health) (health, bool)
	c := alone()
	c.change = func(f func(health) (health, bool)) { changes = append(changes, f) }
	d = newDestination("books", Limit{}, time.Hour, 100, func() {}, c, sharing{})
	d.obey(h)
	return d, func() health {
		for _, f := range changes {
			if changed, ok := f(h); ok {
				h = changed
			}
		}
		changes = nil
		d.obey(h)
		return h
	}
}

// Several instances that fail make a destination failing, and only when none was served for a
// while: one that fails now and then serves others between.
func TestWhenADestinationFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, health{})
		fail := func(numbers ...int64) string {
			for _, n := range numbers {
				d.failedBy(n, "500")
			}
			store()
			return d.health.state(d.now())
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		d.answered()
		store()
		if is := fail(1, 2, 3); is != healthy {
			t.Errorf("it is %s at once, although it has just served", is)
		}
		d.answered()
		time.Sleep(unservedFor) //nolint:forbidigo // virtual
		if is := fail(1, 1, 1, 2, 2); is != healthy {
			t.Errorf("it is %s because of two instances", is)
		}
		if is := fail(3); is != failing {
			t.Errorf("it is %s when three have failed and none was served", is)
		}
	})
}

// One attempt at a time finds out whether a failing destination is back: when the probe has failed,
// no second one leaves before that is known to all; and who has nothing to send gives the probe
// back.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, health{}.failed(alone().now(), "500"))
		if d.try(rank{}) {
			t.Error("an attempt leaves before the time of a probe")
		}
		time.Sleep(firstProbe) //nolint:forbidigo // virtual
		turn := d.join(rank{})
		store()
		if <-turn.over; !turn.taken || d.try(rank{}) {
			t.Error("the probe was not given once")
		}
		d.failedBy(1, "500")
		d.release(time.Millisecond)
		if d.try(rank{}) {
			t.Error("a second attempt leaves before the failed probe is stored")
		}
		store()
		time.Sleep(2 * firstProbe) //nolint:forbidigo // virtual
		turn = d.join(rank{})      // it asks for the next probe, and leaves before it has it
		if d.leave(turn, errWoken) == nil {
			t.Fatal("the probe was given before it was stored")
		}
		if store().Prober == "" {
			t.Fatal("the probe was not taken")
		}
		if store().Prober != "" {
			t.Error("a probe that no work wants is kept")
		}
	})
}

// What waits in the ledger for a failing destination may become due after the process has heard
// that nothing does: when the probe is to be had, there is room for one, and for no second.
func TestTheProbeIsOfferedToWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, health{}.failed(alone().now(), "500"))
		d.none()
		if n := d.offer(); n != 0 {
			t.Errorf("room for %d before the time of a probe", n)
		}
		time.Sleep(firstProbe) //nolint:forbidigo // virtual
		if n := d.offer(); n != 1 {
			t.Errorf("room for %d when the probe is to be had", n)
		}
		d.join(rank{})
		if n := d.offer(); n != 0 {
			t.Errorf("room for %d beside the one in line", n)
		}
		store()
		if n := d.offer(); n != 0 {
			t.Errorf("room for %d beside the probe", n)
		}
	})
}

// A work that failed at a destination stays away from its probes, and no longer than the
// destination has been failing: forty works that an outage of twenty seconds failed are not kept
// waiting for a quarter of an hour after it.
func TestHowLongAFailedWorkStaysAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := health{}
		for range 5 { // the probes of 20 seconds
			h = h.failed(alone().now(), "500")
		}
		d, store := known(t, h)
		for n := range int64(40) {
			d.failedBy(n, "500")
		}
		for _, c := range []struct{ after, least, most time.Duration }{
			{20 * time.Second, 10 * time.Second, 21 * time.Second},
			{10 * time.Minute, 5 * time.Minute, 10*time.Minute + 21*time.Second},
			{2 * time.Hour, 40 * 16 * time.Second / 2, 40 * 16 * time.Second}, // a probe with each of them
		} {
			time.Sleep(c.after) //nolint:forbidigo // virtual
			for range 100 {
				if away := d.aside(); away < c.least || away > c.most {
					t.Errorf("failing for %s more, it stays away for %s, and %s to %s is right", c.after, away, c.least, c.most)
				}
			}
		}
		d.answered()
		store()
		if away := d.aside(); away != 0 {
			t.Errorf("it stays away for %s from a destination that is back", away)
		}
	})
}

// An instance that is served while the destination is limited was sent before it asked for that:
// when the wait is over one attempt finds out whether it wants another, and not all at once.
func TestALateAnswerDoesNotOpenALimitedDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 10 * time.Minute
		d, store := known(t, health{}.limit(alone().now(), time.Now().Add(wait), "503"))
		d.answered()
		store()
		if is := d.health.state(d.now()); is != limited || d.health.ServedAt.IsZero() {
			t.Errorf("it is %s, served at %s", is, d.health.ServedAt)
		}
		time.Sleep(wait) //nolint:forbidigo // virtual
		if is := d.health.state(d.now()); is != failing {
			t.Errorf("it is %s when the wait is over", is)
		}
		d.answered()
		store()
		if is := d.health.state(d.now()); is != healthy {
			t.Errorf("it is %s when an instance was served", is)
		}
	})
}

// What failed here before another process served an instance is not counted together with what
// fails here after.
func TestFailuresAreCountedSinceAnyProcessServedSomebody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, health{})
		d.failedBy(1, "500")
		d.failedBy(2, "500")
		time.Sleep(time.Hour) //nolint:forbidigo // virtual
		d.obey(health{ServedAt: time.Now()})
		time.Sleep(unservedFor) //nolint:forbidigo // virtual
		d.failedBy(3, "500")
		store()
		if is := d.health.state(d.now()); is != healthy {
			t.Errorf("it is %s because of one instance", is)
		}
	})
}
