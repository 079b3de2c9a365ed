package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var delayCases = []testCase{
	{name: "a wait by a clock that moves", run: delayClock, needs: hasClock},
	{name: "what a deadline concerns", run: delayDeadline, needs: hasClock},
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

// A head shows a deadline for as long as it concerns the work: counted from its start, or from the time that it was
// started for, by the record's own time; over with a miss, an undo, an end, and a person who lets it go on too late.
func delayDeadline(b *bench) {
	b.setClock(ahead)
	t := b.sessionOf(24 * time.Hour)
	limited := func(r machine.Record) machine.Record { r.Limit = time.Hour; return r }
	revised := limited(doing(machine.KindRevised, saga.Running))
	revised.Version, revised.Revision, revised.Step, revised.Direction, revised.Attempt = 1, "r2", "", "", 0
	at, end := ahead, ahead.Add(time.Hour)
	for name, w := range map[string]struct {
		start machine.Record
		then  []machine.Record // an hour lies before each
		want  time.Time
	}{
		"started":            {limited(started()), nil, end},
		"for later":          {limited(until(started(), at.Add(time.Hour), time.Minute)), nil, end.Add(time.Hour)},
		"for a time past":    {limited(until(started(), at.Add(-time.Hour), 0)), nil, end},
		"without":            {started(), nil, time.Time{}},
		"goes on":            {limited(started()), []machine.Record{doing(machine.KindDone, saga.Running)}, end},
		"missed":             {limited(started()), []machine.Record{doing(machine.KindOverdue, saga.Running)}, time.Time{}},
		"undone":             {limited(started()), []machine.Record{doing(machine.KindCancelled, saga.Compensating)}, time.Time{}},
		"ended":              {limited(started()), []machine.Record{doing(machine.KindDone, saga.Completed)}, time.Time{}},
		"held":               {limited(started()), []machine.Record{reviewed()}, end},
		"let go on too late": {limited(started()), []machine.Record{reviewed(), doing(machine.KindResolved, saga.Running)}, time.Time{}},
		"once more":          {started(), []machine.Record{doing(machine.KindDone, saga.Completed), revised}, end.Add(2 * time.Hour)},
	} {
		b.setClock(at)
		c := b.start(t, name, w.start, hold)
		for i, r := range w.then {
			b.setClock(at.Add(time.Duration(i+1) * time.Hour))
			c.add(r, hold)
		}
		if got := c.now().Deadline; !got.Equal(w.want) {
			b.Errorf("%s: its deadline is %v, want %v", name, got, w.want)
		}
	}
	b.setClock(at)
	defer b.setClock(at.Add(4 * time.Hour))
	early := b.start(t, "let go on in time", limited(started()), hold)
	early.add(reviewed(), release)
	if early.add(doing(machine.KindResolved, saga.Running), hold); !early.now().Deadline.Equal(end) {
		b.Errorf("it goes on before its deadline, and its head is %+v", early.now())
	}
}
