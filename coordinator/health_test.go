package coordinator

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

// Rule: a destination that fails is probed by one process at a time, after a wait that grows to a
// minute.
func TestHealthOneProbeAtATime(t *testing.T) {
	t.Parallel()
	h := health{}.failed(at(0), "refused")
	if h.state(at(0)) != failing || h.mayProbe(at(0)) || !h.mayProbe(at(time.Second)) {
		t.Fatalf("%+v", h)
	}
	h = h.taken(1, at(31*time.Second).Earliest)
	switch now := at(2 * time.Second); {
	case !h.probing(now, 1), h.probing(now, 2), h.mayProbe(now):
		t.Fatalf("the probe is another's: %+v", h)
	case h.probing(at(31*time.Second), 1), !h.mayProbe(at(31 * time.Second)):
		t.Fatalf("a prober that died keeps the probe: %+v", h)
	}
	now, waits := time.Duration(0), []time.Duration{}
	for range 9 {
		h = h.taken(1, at(now+time.Minute).Earliest).failed(at(now), "refused")
		waits = append(waits, h.NextProbe.Sub(at(now).Earliest))
		now += waits[len(waits)-1]
	}
	for i, want := range []int{2, 4, 8, 16, 32, 60, 60, 60, 60} {
		if int(waits[i]/time.Second) != want {
			t.Errorf("after probe %d: %s", i+1, waits[i])
		}
	}
	if !h.FailingSince.Equal(at(0).Earliest) {
		t.Errorf("failing since %s", h.FailingSince)
	}
}

// Rule: one that was served is healthy; what fails again within a minute is probed as rarely as
// before.
func TestHealthBackAndAway(t *testing.T) {
	t.Parallel()
	h := health{}.failed(at(0), "refused").failed(at(time.Second), "refused").failed(at(3*time.Second), "refused").taken(1, at(time.Hour).Earliest).served(at(7 * time.Second))
	if h.state(at(7*time.Second)) != healthy || h.Prober != "" || h.Why != "" {
		t.Fatalf("%+v", h)
	}
	if again := h.failed(at(60*time.Second), "refused"); again.NextProbe.Sub(at(60*time.Second).Earliest) != 4*time.Second {
		t.Errorf("%+v", again)
	}
	if later := h.failed(at(time.Hour), "refused"); later.NextProbe.Sub(at(time.Hour).Earliest) != time.Second {
		t.Errorf("%+v", later)
	}
	if h := h.unused(); h.state(at(time.Hour)) != healthy {
		t.Errorf("%+v", h)
	}
}

// Rule: a pause comes before everything, and what a destination asked for is kept for its longest.
func TestHealthOrder(t *testing.T) {
	t.Parallel()
	h := health{}.limit(at(0), at(time.Minute).Earliest, "503").taken(1, at(time.Hour).Earliest).limit(at(0), at(time.Second).Earliest, "503")
	if h.state(at(59*time.Second)) != limited || h.state(at(time.Minute)) != failing || !h.mayProbe(at(time.Minute)) || !h.changes(at(0)).Equal(at(time.Minute).Earliest) {
		t.Errorf("%+v", h)
	}
	h = h.failed(at(0), "503")
	if h.mayProbe(at(2 * time.Second)) {
		t.Error("it is probed although it asked to be left alone")
	}
	h.PausedBy = "anna"
	if h = h.taken(1, at(2*time.Hour).Earliest); h.state(at(time.Hour)) != paused || h.mayProbe(at(time.Hour)) || h.probing(at(time.Hour), 1) {
		t.Errorf("%+v", h)
	}
	if h = h.served(at(time.Hour)); h.state(at(time.Hour)) != paused { // what was under way was served
		t.Errorf("%+v", h)
	}
}

// T5: a clock that ran ahead by days and was set back closes no destination until it has come there
// again, and does not make an outage look like the fault of those who want it.
func TestAClockThatStepsBackClosesNoDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ahead = 4 * 24 * time.Hour
		then := machine.Moment{Earliest: time.Now().Add(ahead), Latest: time.Now().Add(ahead)}
		for name, h := range map[string]health{
			"failing": health{}.failed(then, "500"),
			"probing": health{}.failed(then, "500").taken(7, time.Now().Add(ahead+time.Minute)),
			"limited": health{}.limit(then, time.Now().Add(ahead+time.Minute), "503"),
		} {
			d, store := known(t, h)
			time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
			turn := d.join(rank{})
			store()
			if !turn.taken {
				t.Errorf("%s: it is closed for %s", name, time.Until(d.health.changes(d.now())))
			}
		}
		d, store := known(t, health{ServedAt: time.Now().Add(ahead)})
		time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
		for n := range int64(5) {
			d.failedBy(n, "500")
		}
		store()
		if d.health.state(d.now()) != failing || !d.outage(time.Now().Add(-time.Minute)) {
			t.Errorf("served in the future: %s, outage %t", d.health.state(d.now()), d.outage(time.Now().Add(-time.Minute)))
		}
	})
}
