package storetest

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var totalsCases = []testCase{
	{name: "works by saga, status and reason", run: totalsGroups, breaks: broken{"reason-counted": func(s Store) Store { return reasonBlind{s} }}},
	{name: "the oldest due", run: totalsDue, breaks: broken{"due-released": func(s Store) Store { return dueBlind{s} }}},
	{name: "the oldest signal", run: totalsSignal, breaks: broken{"signal-seen": func(s Store) Store { return signalBlind{s} }}},
}

var blockedCases = []testCase{
	{
		name: "starts by day", run: blockedStarts, needs: func(h Harness) bool { return h.SetClock != nil },
		breaks: broken{"day-once": func(s Store) Store { return adder{s} }},
	},
	{name: "copies", run: blockedCopies, breaks: broken{"copy-in-day": func(s Store) Store { return copyDoubler{s} }}},
	{name: "known versions", run: blockedVersions, breaks: broken{"version-in-day": func(s Store) Store { return layerless{s} }}},
	{name: "kept for ever", run: blockedKept, breaks: broken{"day-kept": func(s Store) Store { return recounting{s} }}},
}

func (b *bench) totals() []ledger.Total {
	b.Helper()
	ts, err := b.Totals(b.Context())
	if err != nil {
		b.Fatalf("totals: %v", err)
	}
	return ts
}

// blocked is what was blocked since a time, by layer.
func (b *bench) blocked(since time.Time) map[string]int64 {
	b.Helper()
	days, err := b.BlockedDays(b.Context(), since)
	if err != nil {
		b.Fatalf("days of blocked duplicates: %v", err)
	}
	sums := make(map[string]int64)
	for i, d := range days {
		if i > 0 && (d.Day.Before(days[i-1].Day) || d.Day.Equal(days[i-1].Day) && d.By <= days[i-1].By) || !d.Day.Equal(ledger.DayOf(d.Day)) || d.Count == 0 {
			b.Errorf("%+v stands behind %+v: want days by day and layer", d, days[:i])
		}
		sums[d.By] += d.Count
	}
	return sums
}

func (b *bench) wantBlocked(when, by string, want int64) {
	b.Helper()
	if got := b.blocked(time.Time{})[by]; got != want {
		b.Errorf("%s: %d were blocked by %s, want %d", when, got, by, want)
	}
}

// Totals "counts the works of each saga, status and reason, in that order", held or not.
func totalsGroups(b *bench) {
	if got := b.totals(); len(got) != 0 {
		b.Errorf("an empty ledger has %+v", got)
	}
	t := b.session()
	other := b.fresh(t, "w")
	other.id.Saga = "a"
	other.add(started(), hold)
	b.start(t, "held", started(), hold)
	b.start(t, "released", started(), release)
	b.start(t, "ended", started(), hold).add(doing(machine.KindDone, saga.Completed), release)
	for _, w := range []string{"first", "second"} {
		b.start(t, w, started(), hold).add(reviewed(), release)
	}
	second := reviewed()
	second.Reason = saga.ReasonConflict
	b.start(t, "third", started(), hold).add(second, release)
	want := []ledger.Total{
		{Saga: "a", Status: saga.Running, Works: 1},
		{Saga: theSaga, Status: saga.Completed, Works: 1},
		{Saga: theSaga, Status: saga.Review, Reason: saga.ReasonConflict, Works: 1},
		{Saga: theSaga, Status: saga.Review, Reason: reviewed().Reason, Works: 2},
		{Saga: theSaga, Status: saga.Running, Works: 2},
	}
	slices.SortFunc(want, func(a, b ledger.Total) int { return a.Compare(&b) })
	got := b.totals()
	for i := range got {
		got[i].OldestDue = time.Time{}
	}
	if !slices.Equal(got, want) {
		b.Errorf("totals are %+v, want %+v", got, want)
	}
}

// "OldestDue is the earliest due time of those that no session holds and that wait for no
// destination"; zero when there is none.
func totalsDue(b *bench) {
	t := b.session()
	b.start(t, "held", started(), hold)
	b.wait(t, books, release, "waits")
	one := func() ledger.Total {
		b.Helper()
		ts := b.totals()
		if len(ts) != 1 {
			b.Fatalf("totals are %+v, want one saga that runs", ts)
		}
		return ts[0]
	}
	if got := one(); !got.OldestDue.IsZero() || got.Works != 2 {
		b.Errorf("without a released work: %+v", got)
	}
	later := b.start(t, "later", due(started(), time.Hour), release).now()
	if got := one(); !got.OldestDue.Equal(later.Due) || later.Due.IsZero() {
		b.Errorf("%+v, want the due time that lies ahead, %v", got, later.Due)
	}
	sooner := b.start(t, "sooner", started(), release).now()
	if got := one(); !got.OldestDue.Equal(sooner.Due) || got.Works != 4 {
		b.Errorf("%+v, want the earlier one, %v", got, sooner.Due)
	}
}

// An overview tells "when the oldest signal was posted that no record has consumed; zero when there
// is none".
func totalsSignal(b *bench) {
	t := b.session()
	first, second := b.start(t, "1", started(), hold), b.start(t, "2", started(), hold)
	want := func(when string, c *chain, place int) {
		b.Helper()
		var at time.Time
		if c != nil {
			at = b.signals(c.id)[place].At
		}
		if got := b.overview().OldestSignal; !got.Equal(at) {
			b.Errorf("%s: the oldest signal is of %v, want %v", when, got, at)
		}
	}
	want("before any", nil, 0)
	for _, key := range []string{"a", "b"} {
		for _, c := range []*chain{first, second} {
			b.post(c.id, key)
			b.until(b.clock, b.clock())
		}
	}
	want("all are unread", first, 0)
	first.add(b.consuming(first.id, doing(machine.KindNoted, saga.Running), 0), hold)
	want("one is read", second, 0)
	second.add(b.consuming(second.id, doing(machine.KindNoted, saga.Running), 0, 1), hold)
	want("three are read", first, 1)
	first.add(b.consuming(first.id, doing(machine.KindNoted, saga.Running), 1), hold)
	want("all are read", nil, 0)
}

// "By what a call really adds the day grows": one that comes again or late adds nothing, and what
// was counted yesterday stays yesterday's.
func blockedStarts(b *bench) {
	day := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	total := func(n int64) ledger.Duplicate { return ledger.Duplicate{ID: id("w"), Source: "webhook", Count: n} }
	b.setClock(day)
	if got := b.blocked(time.Time{}); len(got) != 0 {
		b.Errorf("before any: %v", got)
	}
	b.count(7, total(3), ledger.Duplicate{ID: id("v"), Source: "poll", Count: 1})
	b.count(7, total(3))
	b.count(7, total(2))
	b.count(8, total(5))
	b.setClock(day.Add(24*time.Hour - time.Microsecond))
	b.count(7, total(4))
	b.setClock(day.Add(24 * time.Hour))
	b.count(7, total(4))
	b.count(7, total(14), total(0))
	b.count(8, total(4))
	b.setClock(day.Add(5 * 24 * time.Hour)) // what is silent is folded, and no one is counted for it
	b.count(9, total(100))
	got, err := b.BlockedDays(b.Context(), day.Add(-time.Nanosecond))
	want := []ledger.BlockedDay{
		{Day: day, By: ledger.ByStart, Count: 10},
		{Day: day.Add(24 * time.Hour), By: ledger.ByStart, Count: 10},
		{Day: day.Add(5 * 24 * time.Hour), By: ledger.ByStart, Count: 100},
	}
	same := func(a, b ledger.BlockedDay) bool { return a.Day.Equal(b.Day) && a.By == b.By && a.Count == b.Count }
	if err != nil || !slices.EqualFunc(got, want, same) {
		b.Errorf("blocked %+v, %v; want %+v", got, err, want)
	}
	if n := b.blocked(day.Add(36 * time.Hour))[ledger.ByStart]; n != 110 {
		b.Errorf("since noon of the second day %d were blocked, want 110: that day is in", n)
	}
}

// A delivery that had come before counts for the day; neither the first one does nor one that
// conflicts with it.
func blockedCopies(b *bench) {
	e, other := event("1"), event("1")
	other.Fingerprint = intake.DigestOf("another")
	b.accept(e)
	b.wantBlocked("one", ledger.ByReceiver, 0)
	b.accept(e)
	b.wantBlocked("its copy", ledger.ByReceiver, 1)
	b.accept(other, e, event("2"))
	b.wantBlocked("a conflict and another copy", ledger.ByReceiver, 2)
	b.accept(event("3"), other, event("3"), other, e, event("3"))
	b.wantBlocked("five copies in one call", ledger.ByReceiver, 7)
	known := event("4")
	known.Disposition, known.Why = intake.Malformed, "the door says so"
	b.accept(known)
	b.accept(known)
	b.wantBlocked("one that the door knew", ledger.ByReceiver, 8)
	b.wantBlocked("none was judged", ledger.ByVersion, 0)
}

// "A delivery told of a version that was known, or older; one that is replayed counts once."
func blockedVersions(b *bench) {
	step := func(v intake.Disposition, want int64, es ...intake.Event) {
		b.Helper()
		b.accept(es...)
		b.judgeAs(v)
		b.wantBlocked(string(v), ledger.ByVersion, want)
	}
	step(intake.Applied, 0, event("1"))
	step(intake.Stale, 2, event("2"), event("3"))
	step(intake.Duplicate, 3, event("4"))
	step(intake.Hint, 3, event("5"))
	if n, err := b.Replay(b.Context(), intake.DeliveryFilter{}, "again"); n != 5 || err != nil {
		b.Fatalf("replayed %d, %v", n, err)
	}
	step(intake.Duplicate, 3)
	b.wantBlocked("no delivery came twice", ledger.ByReceiver, 0)
}

// "What a day counts stays when works and deliveries go."
func blockedKept(b *bench) {
	b.accept(event("1"), event("2"))
	b.accept(event("1"))
	b.judgeAs(intake.Stale)
	b.age()
	if n := b.purge(intake.Retention{Bodies: soon, Rows: soon, Digests: soon}); n == 0 {
		b.Error("nothing was purged")
	}
	b.wantBlocked("after a purge", ledger.ByReceiver, 1)
	b.wantBlocked("after a purge", ledger.ByVersion, 2)
}
