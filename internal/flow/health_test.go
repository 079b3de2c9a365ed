package flow

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

func at(d time.Duration) machine.Moment {
	t := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(d)
	return machine.Moment{Earliest: t, Latest: t}
}

// fails is a destination that begins to fail.
func fails(now machine.Moment) Health { return Health{}.failed(now, "ten failed", "refused") }

// Rule: a destination that fails is probed by one process at a time, after a wait that grows to
// eight seconds; what is not answered within the wait is passed over.
func TestHealthOneProbeAtATime(t *testing.T) {
	t.Parallel()
	for _, newcomer := range newcomersAndOthers {
		h := fails(at(0))
		if h.State(at(0)) != Failing || h.mayProbe(at(0), newcomer) || !h.mayProbe(at(time.Second), newcomer) {
			t.Fatalf("%+v", h)
		}
		ends := 2 * time.Second
		h = h.taken(at(time.Second), 1, newcomer, 30*time.Second)
		switch now := at(ends - time.Millisecond); {
		case !h.probing(now, 1, newcomer), h.probing(now, 2, newcomer), h.mayProbe(now, newcomer):
			t.Fatalf("the probe is another's: %+v", h)
		case h.probing(at(ends), 1, newcomer), !h.mayProbe(at(ends), newcomer):
			t.Fatalf("a prober that died keeps the probe: %+v", h)
		}
		if beside := h.mayProbe(at(time.Second), !newcomer); beside == newcomer {
			t.Errorf("beside the probe of a newcomer (%t) another is to be had: %t", newcomer, beside)
		}
		h = fails(at(0))
		now := time.Duration(0)
		for i, want := range []int{2, 4, 8, 8, 8} {
			h = h.taken(at(now), 1, newcomer, time.Minute).missed(at(now), newcomer, "refused")
			wait := h.of(newcomer).Next.Sub(at(now).Earliest)
			if int(wait/time.Second) != want {
				t.Errorf("after probe %d: %s", i+1, wait)
			}
			now += wait
		}
		if !h.FailureStartedAt.Equal(at(0).Earliest) {
			t.Errorf("failing since %s", h.FailureStartedAt)
		}
	}
}

// Rule: what those who waited or failed before are told lengthens no newcomer's wait; a newcomer's
// failure has the others wait for the next newcomer.
func TestHealthNewcomersAreNews(t *testing.T) {
	t.Parallel()
	h := fails(at(0))
	for range 9 {
		h = h.taken(at(time.Second), 1, false, time.Minute).missed(at(time.Second), false, "refused")
	}
	if !h.mayProbe(at(time.Second), true) {
		t.Errorf("a newcomer waits for the others: %+v", h)
	}
	if h = fails(at(0)).missed(at(time.Second), true, "refused"); h.mayProbe(at(3*time.Second), false) || !h.mayProbe(at(4*time.Second), false) {
		t.Errorf("another is asked as soon as a newcomer: %+v", h)
	}
	hung := fails(at(0)).taken(at(time.Second), 1, true, time.Minute).taken(at(2*time.Second), 2, true, time.Minute)
	if !hung.mayProbe(at(4*time.Second), true) || hung.mayProbe(at(3*time.Second), true) {
		t.Errorf("what hangs does not lengthen the wait: %+v", hung)
	}
}

// Rule: one that was served is healthy; what fails again within a minute is probed as rarely as
// before.
func TestHealthBackAndAway(t *testing.T) {
	t.Parallel()
	h := fails(at(0)).missed(at(time.Second), true, "refused").missed(at(3*time.Second), true, "refused")
	h = h.taken(at(7*time.Second), 1, true, time.Hour).served(at(7 * time.Second))
	if h.State(at(7*time.Second)) != Healthy || h.Probe.Session != "" || h.LastError != "" || h.Evidence != "" {
		t.Fatalf("%+v", h)
	}
	if again := h.failed(at(60*time.Second), "", "refused"); again.Probe.Next.Sub(at(60*time.Second).Earliest) != 4*time.Second {
		t.Errorf("%+v", again)
	}
	if later := h.failed(at(time.Hour), "", "refused"); later.Probe.Next.Sub(at(time.Hour).Earliest) != time.Second {
		t.Errorf("%+v", later)
	}
	if h := h.unused(true); h.State(at(time.Hour)) != Healthy {
		t.Errorf("%+v", h)
	}
}

// Rule: a pause comes before everything, and what a destination asked for is kept for its longest.
// When that is over it is healthy at once; when it asks again, and has served none, it is probed.
func TestHealthOrder(t *testing.T) {
	t.Parallel()
	until := func(d time.Duration) time.Time { return at(d).Earliest }
	h := Health{}.limit(at(0), until(time.Minute), "503").limit(at(0), until(time.Second), "503")
	if h.State(at(59*time.Second)) != Limited || h.State(at(time.Minute)) != Healthy || h.shut(at(0), true) != time.Minute {
		t.Errorf("%+v", h)
	}
	if h := h.served(at(61*time.Second)).limit(at(62*time.Second), until(63*time.Second), "503"); h.State(at(63*time.Second)) != Healthy {
		t.Errorf("one that serves between two waits is probed: %+v", h)
	}
	h = h.limit(at(62*time.Second), until(80*time.Second), "503")
	if h.State(at(79*time.Second)) != Limited || h.State(at(80*time.Second)) != Failing || !h.mayProbe(at(80*time.Second), true) || h.mayProbe(at(79*time.Second), true) {
		t.Errorf("one that serves none between two waits is not probed: %+v", h)
	}
	h.PausedBy = "anna"
	if h = h.taken(at(0), 1, true, 2*time.Hour); h.State(at(time.Hour)) != Paused || h.mayProbe(at(time.Hour), true) || h.probing(at(time.Hour), 1, true) {
		t.Errorf("%+v", h)
	}
	if h = h.served(at(time.Hour)); h.State(at(time.Hour)) != Paused { // what was under way was served
		t.Errorf("%+v", h)
	}
}

// Rule: a person may have it tried now, whatever it asked for, and whoever has the probe.
func TestHealthProbedByHand(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]Health{
		"failing": fails(at(0)).missed(at(0), true, "500").missed(at(0), false, "500").taken(at(0), 7, true, time.Hour),
		"limited": Health{}.limit(at(0), at(time.Hour).Earliest, "503"),
		"both":    fails(at(0)).limit(at(0), at(time.Hour).Earliest, "503"),
	} {
		if h = h.probed(at(time.Second)); !h.mayProbe(at(time.Second), true) || !h.mayProbe(at(time.Second), false) {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// A clock that ran ahead by days and was set back closes no destination until it has come there
// again, and does not make an outage look like the fault of those who want it.
func TestAClockThatStepsBackClosesNoDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ahead = 4 * 24 * time.Hour
		then := machine.Moment{Earliest: time.Now().Add(ahead), Latest: time.Now().Add(ahead)}
		for name, h := range map[string]Health{
			"failing": fails(then),
			"probing": fails(then).taken(then, 7, false, time.Minute),
			"limited": Health{}.limit(then, time.Now().Add(ahead+time.Minute), "503"),
		} {
			d, store := known(t, h)
			time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
			turn := d.join(Rank{})
			store()
			if !turn.taken {
				t.Errorf("%s: it is closed for %s", name, d.health.shut(d.now(), false))
			}
		}
		d, store := known(t, Health{LastServedAt: time.Now().Add(ahead)})
		time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
		for n := range int64(manyMisses) {
			d.FailedBy(Failure{Number: n, Rank: Rank{}, Why: "500"})
		}
		time.Sleep(manyFor) //nolint:forbidigo // virtual
		d.FailedBy(Failure{Number: 0, Rank: Rank{Again: true}, Why: "500"})
		store()
		if d.health.State(d.now()) != Failing || !d.Outage(time.Now().Add(-time.Minute), time.Now().Add(-time.Minute), false) {
			t.Errorf("served in the future: %s, outage %t", d.health.State(d.now()), d.Outage(time.Now().Add(-time.Minute), time.Now().Add(-time.Minute), false))
		}
	})
}
