package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var delayCases = []testCase{
	{name: "a wait by a clock that moves", run: delayClock, needs: hasClock},
}

// until makes r a record that begins a wait.
func until(r machine.Record, at time.Time, wait time.Duration) machine.Record {
	r.Until, r.Wait = at, wait
	return r
}

// A wait is an absolute time: a record that takes half an hour to be stored makes it no longer, and a clock that goes
// back or forward ends it when it says so (W1). Between the wait and the deadline that comes before it, the record's
// own wait decides.
func delayClock(b *bench) {
	at := ahead.Add(time.Hour)
	b.setClock(ahead)
	t := b.sessionOf(24 * time.Hour)
	waits := func(name string, stored time.Time, wait time.Duration) *chain {
		c := b.start(t, name, started(), hold)
		b.setClock(stored)
		c.add(until(doing(machine.KindWaiting, saga.Waiting), at, wait), release)
		b.setClock(ahead)
		return c
	}
	slow := waits("slow", ahead.Add(30*time.Minute), time.Hour)
	waits("slower", ahead.Add(2*time.Hour), time.Hour)
	hurried := waits("hurried", ahead, 10*time.Minute)
	later := b.start(t, "later", until(started(), at, time.Hour), release)
	for _, w := range []struct {
		c    *chain
		want time.Time
	}{{slow, at}, {hurried, ahead.Add(10 * time.Minute)}, {later, at}} {
		if due := w.c.now().Due; !due.Equal(w.want) {
			b.Errorf("%s is due at %v, want %v", w.c.id, due, w.want)
		}
	}
	for _, w := range []struct {
		clock time.Time
		works int
	}{
		{ahead.Add(-time.Hour), 0},
		{ahead.Add(10 * time.Minute), 1},
		{at.Add(-time.Millisecond), 0},
		{ahead.Add(-time.Hour), 0},
		{at, 2},
		{ahead.Add(2 * time.Hour), 1}, // its record is of that time
	} {
		b.setClock(w.clock)
		if got := b.claim(t, 10); len(got) != w.works {
			b.Errorf("at %v %v were due, want %d", w.clock, works(got), w.works)
		}
	}
}
