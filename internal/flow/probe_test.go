package flow

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/nap"
)

// known is a destination whose health is h. What changes it is stored when the test says so.
func known(t *testing.T, h Health) (d *Destination, store func() Health) {
	t.Helper()
	var changes []func(Health) (Health, bool)
	c := alone()
	c.change = func(f func(Health) (Health, bool)) { changes = append(changes, f) }
	d = newDestination("books", Limit{}, time.Hour, 100, func() {}, c, sharing{})
	d.obey(h)
	return d, func() Health {
		synctest.Wait() // a timer may have changed it
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

// Rule: a destination is failing when twenty that never failed there fail in a row, for two seconds at
// least, five for two minutes, or two for a minute, whether or not they failed before; one alone is not evidence, however often it
// fails, and one that is served, here or elsewhere, begins the count again.
func TestWhenADestinationFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, Health{})
		number := int64(0)
		fail := func(fresh, before int) string {
			for range fresh {
				number++
				d.FailedBy(Failure{Number: number, Rank: Rank{}, Why: "500"})
			}
			for range before {
				d.FailedBy(Failure{Number: 1, Rank: Rank{Again: true}, Why: "500"})
			}
			h := store()
			return h.State(d.now())
		}
		want := func(when, want, got string) {
			t.Helper()
			if got != want {
				t.Errorf("%s it is %s, want %s", when, got, want)
			}
			d.Answered(0)
			if h := store(); h.State(d.now()) != Healthy {
				t.Errorf("%s, and one is served: %s", when, h.State(d.now()))
			}
		}
		later := func(wait time.Duration) { time.Sleep(wait) } //nolint:forbidigo // virtual
		want("with twenty at once", Healthy, fail(20, 0))
		fail(19, 0)
		later(manyFor)
		want("with nineteen, and one of them again and again", Healthy, fail(0, 100))
		fail(19, 0)
		later(manyFor)
		want("with twenty", Failing, fail(1, 0))
		fail(0, 1)
		later(evidenceFor - time.Second)
		want("with one alone for long", Healthy, fail(0, 10))
		fail(1, 1)
		later(bothFor - time.Second)
		want("with two for less than a minute", Healthy, fail(0, 0))
		fail(1, 1)
		later(bothFor + time.Second)
		want("with two for a minute, when nothing more comes", Failing, fail(0, 0))
		fail(19, 0)
		d.obey(Health{LastServedAt: time.Now().Add(time.Second)}) // elsewhere
		later(time.Hour)
		want("with nineteen before one was served elsewhere and four after", Healthy, fail(4, 0))
	})
}

// Rule: one attempt at a time finds out whether a failing destination is Back: when the probe has
// failed, no second one leaves before that is known to all; and who has nothing to send gives the
// probe back.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	for _, r := range []Rank{{Of: new(int)}, {Of: new(int), Came: true}} {
		synctest.Test(t, func(t *testing.T) {
			d, store := known(t, fails(alone().now()))
			if d.Try(r) {
				t.Error("an attempt leaves before the time of a probe")
			}
			time.Sleep(firstProbe) //nolint:forbidigo // virtual
			turn := d.join(r)
			store()
			if <-turn.over; !turn.taken || d.Try(r) {
				t.Error("the probe was not given once")
			}
			d.FailedBy(Failure{Number: 1, Rank: r, Why: "500"})
			d.Release(r, time.Millisecond)
			if d.Try(r) {
				t.Error("a second attempt leaves before the failed probe is stored")
			}
			store()
			time.Sleep(4 * firstProbe) //nolint:forbidigo // virtual
			turn = d.join(r)           // it asks for the next probe, and leaves before it has it
			if d.leave(turn, nap.ErrWoken) == nil {
				t.Fatal("the probe was given before it was stored")
			}
			if h := store(); h.of(r.newcomer()).Session == "" {
				t.Fatal("the probe was not taken")
			}
			if h := store(); h.of(r.newcomer()).Session != "" {
				t.Error("a probe that no work wants is kept")
			}
		})
	}
}

// Rule: a newcomer is the probe, if there is one, also beside one that failed before and does not
// answer.
func TestANewcomerIsTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, fails(alone().now()))
		time.Sleep(firstProbe) //nolint:forbidigo // virtual
		hangs := d.join(Rank{Again: true, Number: 1})
		store()
		if !hangs.taken {
			t.Fatal("who failed before is not the probe, though there is no other")
		}
		waits := d.join(Rank{Again: true, Number: 2})
		came := d.join(Rank{Came: true, Number: 3})
		store()
		if !came.taken || waits.taken {
			t.Errorf("the newcomer is the probe: %t, another beside it: %t", came.taken, waits.taken)
		}
	})
}

// Rule: what never failed there goes first, and one send in ten is kept for what did.
func TestOneSendInTenIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := whole(Limit{Concurrent: 1}, time.Hour, 100, func() {})
		d.Try(Rank{})
		var came []bool
		var turns []*turn
		for n := range int64(30) {
			turns = append(turns, d.join(Rank{Again: n%2 == 0, Number: n}))
		}
		for range turns {
			d.Release(Rank{}, time.Second)
			for i, turn := range turns {
				if turn != nil && turn.taken {
					came = append(came, turn.rank.Again)
					turns[i] = nil
				}
			}
		}
		for i, failed := range came[:16] {
			if failed != (i == 9) {
				t.Errorf("the send number %d is of one that failed before: %t", i, failed)
			}
		}
		if len(came) != 30 {
			t.Errorf("%d were sent", len(came))
		}
	})
}

// Rule: after an outage as many may be under way as were served, and one; half as many where most of
// a round fail; what hangs is not counted.
func TestComingBackIsASlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, fails(alone().now()))
		d.Answered(0)
		store()
		takes := func(want int) {
			t.Helper()
			n := 0
			for ; d.Try(Rank{Of: new(int)}); n++ {
			}
			if n != want {
				t.Errorf("%d leave, want %d", n, want)
			}
		}
		ends := func(served bool) {
			for w := range d.flights {
				if served {
					d.Answered(0)
				} else {
					d.FailedBy(Failure{Number: int64(len(d.failed)), Rank: Rank{}, Why: "500"})
				}
				d.Release(Rank{Of: w}, 0)
			}
		}
		for _, n := range []int{1, 2, 4, 8, 16} {
			takes(n)
			ends(true)
		}
		takes(32)
		ends(false)
		takes(16)
		time.Sleep(hangsFor) //nolint:forbidigo // virtual
		takes(16)
	})
}

// Rule: once more than a quarter of a round has failed, none of it widens the window, also while the line is empty and what comes next is
// far away: a round of sixteen of which eight are refused is not followed by twenty-four.
func TestAPartOfARoundIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, fails(alone().now()))
		d.Answered(0)
		store()
		d.window, d.round, d.size = 16, 16, 16
		for n := range int64(14) {
			if n < 6 {
				d.FailedBy(Failure{Number: n, Rank: Rank{Again: true}, Why: "503", Busy: true})
			} else {
				d.Answered(0)
			}
			if d.window > 16 {
				t.Fatalf("%d at once, behind %d of 16", d.window, n+1)
			}
		}
		d.Answered(0)
		d.Answered(0)
		if d.window != 8 {
			t.Errorf("%d at once behind the round, want 8", d.window)
		}
	})
}

// What waits in the ledger for a failing destination may become due after the process has heard
// that nothing does: when the probe is to be had, there is room for one, and for no second.
func TestTheProbeIsOfferedToWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, fails(alone().now()))
		d.none(fresh)
		d.none(again)
		if n := d.offer(fresh) + d.offer(again); n != 0 {
			t.Errorf("room for %d before the time of a probe", n)
		}
		time.Sleep(firstProbe) //nolint:forbidigo // virtual
		if n, m := d.offer(fresh), d.offer(again); n != 1 || m != 1 {
			t.Errorf("room for %d and %d when the probe is to be had", n, m)
		}
		d.join(Rank{Came: true})
		if n := d.offer(fresh) + d.offer(again); n != 0 {
			t.Errorf("room for %d beside the one in line", n)
		}
		store()
		if n := d.offer(fresh) + d.offer(again); n != 0 {
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
		h := fails(alone().now())
		for range 4 { // the probes of 20 seconds
			h = h.missed(alone().now(), false, "500")
		}
		d, store := known(t, h)
		for n := range int64(40) {
			d.FailedBy(Failure{Number: n, Rank: Rank{Again: true}, Why: "500"})
		}
		for _, c := range []struct{ after, least, most time.Duration }{
			{20 * time.Second, 10 * time.Second, 21 * time.Second},
			{2 * time.Minute, time.Minute, 2*time.Minute + 21*time.Second},
			{2 * time.Hour, 40 * lastProbe / 2, 40 * lastProbe}, // a probe with each of them
		} {
			time.Sleep(c.after) //nolint:forbidigo // virtual
			for range 100 {
				if away := d.Aside(); away < c.least || away > c.most {
					t.Errorf("failing for %s more, it stays away for %s, and %s to %s is right", c.after, away, c.least, c.most)
				}
			}
		}
		d.Answered(0)
		store()
		if away := d.Aside(); away != 0 {
			t.Errorf("it stays away for %s from a destination that is back", away)
		}
	})
}

// An instance that is served while the destination is limited was sent before it asked for that: it
// does not open it.
func TestALateAnswerDoesNotOpenALimitedDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 10 * time.Minute
		d, store := known(t, fails(alone().now()).limit(alone().now(), time.Now().Add(wait), "503"))
		d.Answered(0)
		store()
		if is := d.health.State(d.now()); is != Limited || d.health.LastServedAt.IsZero() {
			t.Errorf("it is %s, served at %s", is, d.health.LastServedAt)
		}
		time.Sleep(wait) //nolint:forbidigo // virtual
		if is := d.health.State(d.now()); is != Failing {
			t.Errorf("it is %s when the wait is over", is)
		}
		d.Answered(0)
		store()
		if is := d.health.State(d.now()); is != Healthy {
			t.Errorf("it is %s when an instance was served", is)
		}
	})
}

// Rule: what had no answer leaves the slots of a limit to others that stand in line, or did a moment ago; where none comes it is sent,
// whatever may wait in the ledger, and so it is without a limit, and where it finds out whether an outage is over.
func TestWhatHungIsBarredForAMomentAtMost(t *testing.T) {
	t.Parallel()
	hung := Rank{Again: true, Hung: true, Number: 1, Of: new(int)}
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		d := whole(Limit{Concurrent: 2}, hold, 100, func() {})
		d.Try(Rank{})
		d.Try(Rank{})
		other, waits := d.join(Rank{Number: 2}), d.join(hung)
		taken := func(t *turn) bool { d.mu.Lock(); defer d.mu.Unlock(); return t.taken }
		d.Release(Rank{}, time.Second)
		d.Release(Rank{}, time.Second)
		if !taken(other) || taken(waits) {
			t.Fatalf("another was sent: %t, and beside it what had hung: %t", taken(other), taken(waits))
		}
		time.Sleep(hold) //nolint:forbidigo // virtual
		synctest.Wait()
		if !taken(waits) {
			t.Error("it waits for others of which none comes")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if d := whole(Limit{}, time.Hour, 100, func() {}); !d.Try(hung) {
			t.Error("without a limit it is not sent")
		}
		d, store := known(t, fails(alone().now()))
		time.Sleep(firstProbe) //nolint:forbidigo // virtual
		turn := d.join(hung)
		if store(); !turn.taken {
			t.Error("it does not find out whether the outage is over")
		}
	})
}

// Rule: one that fails alone is at fault itself, however long it was not tried, but is not given up before it has failed for a while; and
// that one fails alone is told the others again, and for another, when it has become old.
func TestOneThatFailsAloneIsAtFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, store := known(t, Health{})
		began := time.Now()
		for range 5 {
			d.FailedBy(Failure{Number: 1, Rank: Rank{Again: true}, Why: "500"})
			early := time.Since(began) < aloneFor
			if d.Outage(time.Now(), began, false) || d.Outage(time.Now(), began, true) != early {
				t.Errorf("%s behind its first attempt it is an outage for its last try: %t", time.Since(began), !early)
			}
			time.Sleep(2 * evidenceFor) //nolint:forbidigo // virtual
		}
		d.FailedBy(Failure{Number: 1, Rank: Rank{Again: true}, Why: "500"})
		time.Sleep(tellsAlone) //nolint:forbidigo // virtual
		d.FailedBy(Failure{Number: 1, Rank: Rank{Again: true}, Why: "500"})
		if h := store(); h.FailsAlone.Number != 1 {
			t.Fatalf("%+v", h.FailsAlone)
		}
	})
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	for _, c := range []struct {
		was, is lone
		older   bool
	}{
		{lone{}, lone{1, at(0), at(1)}, true},
		{lone{1, at(0), at(1)}, lone{1, at(0), at(2)}, false},
		{lone{1, at(0), at(1)}, lone{1, at(0), at(7)}, true},
		{lone{1, at(0), at(1)}, lone{2, at(2), at(7)}, false},
		{lone{1, at(0), at(1)}, lone{2, at(20), at(22)}, true},
	} {
		if c.was.older(c.is) != c.older {
			t.Errorf("%+v is older than %+v: %t", c.was, c.is, !c.older)
		}
	}
}
