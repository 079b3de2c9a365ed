package storetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

var turnCases = []testCase{
	{name: "an empty agenda at first", run: turnEmpty},
	{name: "everything of a job comes back", run: turnJob},
	{name: "everything of a run comes back", run: turnRun},
	{name: "open runs only, in order", run: turnOpen},
	{name: "an instant has one run", run: turnInstant, breaks: broken{"instant-once": func(s Store) Store { return instantRepeater{s} }}},
	{name: "an error stores nothing", run: turnError, breaks: broken{"turn-error-stores-nothing": func(s Store) Store { return turnDeaf{s} }}},
	{name: "the job is locked", run: turnLocks, breaks: broken{"turn-locks": func(s Store) Store { return turnOverwriter{s} }}},
	{name: "one transaction", run: turnOneTransaction, breaks: broken{"turn-one-transaction": func(s Store) Store { return piecemeal{s} }}},
	{name: "the database's clock", run: turnClock},
	{name: "a lease ends and another begins", run: turnHandOver},
	{name: "the pause of everything", run: turnHalt, breaks: broken{"halt-known": func(s Store) Store { return haltless{s} }}},
	{name: "odd values", run: turnOdd},
	{name: "old runs are forgotten", run: turnForget},
}

// sweepJob is the job of most tests.
const sweepJob = "shop:sweep"

// turn changes the agenda of the one job.
func (b *bench) turn(change func(now time.Time, a *schedule.Agenda)) {
	b.Helper()
	err := b.Turn(b.Context(), sweepJob, func(now time.Time, a *schedule.Agenda) error {
		change(now, a)
		return nil
	})
	if err != nil {
		b.Fatalf("turn: %v", err)
	}
}

// agenda returns what a store has of the one job.
func (b *bench) agenda() (agenda schedule.Agenda) {
	b.Helper()
	err := b.raw.Turn(b.Context(), sweepJob, func(_ time.Time, a *schedule.Agenda) error {
		agenda = *a
		return errOnlyAsking
	})
	if !errors.Is(err, errOnlyAsking) {
		b.Fatalf("look at the agenda: %v", err)
	}
	return agenda
}

// planned is a run that waits.
func planned(at time.Time, instant string) schedule.RunRow {
	return schedule.RunRow{Job: sweepJob, Instant: instant, At: at, From: at, Instants: 1, Due: at, Created: at}
}

// Of a job that the store does not have, "the agenda is empty but for State.Name".
func turnEmpty(b *bench) {
	b.turn(func(_ time.Time, a *schedule.Agenda) {
		if a.State != (schedule.JobState{Name: sweepJob}) || a.Halt.Is() || len(a.Open)+len(a.New) != 0 {
			b.Errorf("the agenda is %+v", a)
		}
	})
}

// fullState is a job of which everything is known.
func fullState(now time.Time) schedule.JobState {
	mark := schedule.Mark{At: now, By: "ann", Why: "the shop is closed"}
	return schedule.JobState{
		Name: sweepJob, Schedule: "*/5 * * * *", Zone: "Europe/Vienna", Overlap: schedule.BufferOne, CatchUp: time.Hour,
		Fresh: 4, First: now, Described: now.Add(time.Second), Planned: now.Add(2 * time.Second), Fence: 12, Asked: 3,
		Paused: mark, Approved: schedule.Mark{At: now.Add(time.Hour), By: "bob", Why: "looks good"},
		Good:     schedule.Good{Instant: "2026-11-21T01:00:00 Europe/Vienna", At: now.Add(-time.Hour), Ended: now.Add(-time.Minute)},
		Failures: 2, Watermark: strings.Repeat("w", 10_000),
	}
}

// "What decide leaves is stored: the state".
func turnJob(b *bench) {
	want := fullState(b.calendar())
	b.turn(func(_ time.Time, a *schedule.Agenda) { a.State = want })
	if got := b.agenda().State; got != want {
		b.Errorf("the job is\n%+v, want\n%+v", got, want)
	}
	b.turn(func(_ time.Time, a *schedule.Agenda) {
		a.State = schedule.JobState{Name: "another name", First: want.First}
	})
	if got := b.agenda().State; got != (schedule.JobState{Name: sweepJob, First: want.First}) {
		b.Errorf("emptied, the job is %+v", got)
	}
}

// fullRun is a run of which everything is known.
func fullRun(now time.Time) schedule.RunRow {
	return schedule.RunRow{
		Job: sweepJob, Instant: "2026-11-21T01:00:00 Europe/Vienna", At: now, From: now.Add(-time.Hour), Instants: 13,
		Due: now.Add(time.Second), Created: now.Add(time.Millisecond), Ask: "apply " + strings.Repeat("p", 9000), By: "ann", Why: "an incident",
		Began: now.Add(2 * time.Second), Attempt: 3, Crashes: 2, Fence: 9, Holder: "host-1 abc", Until: now.Add(time.Minute),
		Outcome: schedule.Outcome{
			Before: strings.Repeat("b", 10_000), After: "a", Seen: 1, Planned: 2, Applied: 3, Refused: 4, Errors: 5, Calls: 6, Plan: "p1", Note: "n",
		},
		Error: "no",
	}
}

// "What decide leaves is stored: [...] the open runs, and the new ones", which it numbers.
func turnRun(b *bench) {
	want := fullRun(b.calendar())
	b.turn(func(_ time.Time, a *schedule.Agenda) { a.New = append(a.New, want) })
	if got := b.agenda().Open; len(got) != 1 || got[0].Number == 0 {
		b.Fatalf("open are %+v", got)
	} else {
		want.Number = got[0].Number
	}
	if got := b.agenda().Open[0]; got != want {
		b.Errorf("the new run is\n%+v, want\n%+v", got, want)
	}
	ended := schedule.RunRow{
		Number: want.Number, Job: sweepJob, Instant: want.Instant, At: want.At, From: want.From, Instants: 1, Due: want.Due, Created: want.Created,
		Ended: want.At.Add(time.Hour), Outcome: schedule.Outcome{Result: schedule.Skipped, Note: "why not"},
	}
	b.turn(func(_ time.Time, a *schedule.Agenda) {
		a.Open[0] = ended
		a.Open[0].Number, a.Open[0].Job, a.Open[0].Instant = 99, "another", "another" // what it is stays
	})
	got, err := b.Run(b.Context(), want.Job, want.Number)
	if err != nil || got != ended {
		b.Errorf("the changed run is\n%+v, %v; want\n%+v", got, err, ended)
	}
}

// "runs without a result, in the order of their numbers", of this job and of no other.
func turnOpen(b *bench) {
	now := b.calendar()
	b.turn(func(_ time.Time, a *schedule.Agenda) {
		done := planned(now, "done")
		done.Result, done.Ended = schedule.Skipped, now
		a.New = []schedule.RunRow{planned(now, "b"), done, planned(now, "a")}
	})
	err := b.Turn(b.Context(), "another", func(_ time.Time, a *schedule.Agenda) error {
		a.New = []schedule.RunRow{planned(now, "b")}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	var open []string
	for _, r := range b.agenda().Open {
		open = append(open, r.Job+" "+r.Instant)
	}
	if got := strings.Join(open, ", "); got != "shop:sweep b, shop:sweep a" {
		b.Errorf("open are %s", got)
	}
}

// R1: a run is a row that is unique on (job, instant): one "whose instant is known" is dropped, and
// has no number. What ended stays ended.
func turnInstant(b *bench) {
	now := b.calendar()
	first, second := planned(now, "03:00"), planned(now.Add(time.Hour), "03:00")
	first.Result, first.Ended = schedule.Skipped, now
	b.turn(func(_ time.Time, a *schedule.Agenda) { a.New = []schedule.RunRow{first} })
	var second2 *schedule.RunRow
	b.turn(func(_ time.Time, a *schedule.Agenda) {
		a.New = []schedule.RunRow{second, planned(now, "04:00")}
		second2 = &a.New[0]
	})
	if second2.Number != 0 {
		b.Errorf("the second run of an instant has the number %d", second2.Number)
	}
	rs, err := b.Runs(b.Context(), schedule.RunFilter{Job: sweepJob})
	if err != nil || len(rs) != 2 || rs[0].Instant != "04:00" || rs[1].Result != schedule.Skipped || !rs[1].At.Equal(now) {
		b.Errorf("there are %+v, %v", rs, err)
	}
}

// "Its error is returned as it is, and nothing is stored".
func turnError(b *bench) {
	now := b.calendar()
	b.turn(func(_ time.Time, a *schedule.Agenda) { a.New = []schedule.RunRow{planned(now, "1")} })
	err := b.Turn(b.Context(), sweepJob, func(now time.Time, a *schedule.Agenda) error {
		a.State.Fence, a.State.First = 7, now
		a.Open[0].Result, a.Open[0].Ended = schedule.OK, now
		a.New = []schedule.RunRow{planned(now, "2")}
		return errRefused
	})
	if err != errRefused { //nolint:errorlint // as it is
		b.Errorf("got %v, want the callback's own error", err)
	}
	if a := b.agenda(); a.State.Fence != 0 || len(a.Open) != 1 || a.Open[0].Instant != "1" {
		b.Errorf("stored was %+v", a)
	}
}

// R4: "the row of a job is locked against every other process", also when the store does not have
// the job yet. When many processes count at once, every count is kept.
func turnLocks(b *bench) {
	const each = 25
	var all sync.WaitGroup
	for _, s := range []Store{b.Store, b.again()} {
		for range 2 {
			all.Go(func() {
				for range each {
					err := s.Turn(b.Context(), sweepJob, func(_ time.Time, a *schedule.Agenda) error {
						a.State.Asked++
						return nil
					})
					if err != nil {
						b.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if got := b.agenda().State.Asked; got != 4*each {
		b.Errorf("counted %d times, the count is %d", 4*each, got)
	}
}

// "Turn is one transaction": a reader that sees the run also sees the job that planned it.
func turnOneTransaction(b *bench) {
	other := b.again()
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for over := false; !over; {
			select {
			case <-done:
				over = true // one more look
			default:
			}
			rs, err := other.Runs(b.Context(), schedule.RunFilter{})
			if err != nil {
				b.Error(err)
				return
			}
			board, err := other.Jobs(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			if len(rs) == 1 && len(board.Jobs) == 0 {
				b.Errorf("there is a run, and its job is not known")
				return
			}
		}
	})
	b.turn(func(now time.Time, a *schedule.Agenda) {
		a.State.First, a.New = now, []schedule.RunRow{planned(now, "1")}
	})
	close(done)
	watching.Wait()
}

// "now is the database's clock, read when the lock is had": of two turns the later one sees the
// later time.
func turnClock(b *bench) {
	var last time.Time
	other := b.again()
	for _, s := range []Store{b.Store, other, b.Store} {
		err := s.Turn(b.Context(), sweepJob, func(now time.Time, _ *schedule.Agenda) error {
			if now.Before(last) || now.Location() != time.UTC || now.Truncate(time.Microsecond) != now {
				b.Errorf("after %v came %v", last, now)
			}
			last = now
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	board, err := other.Jobs(b.Context())
	if d := board.Now.Sub(last); err != nil || d < 0 || d > time.Minute {
		b.Errorf("the board says %v, a turn before it %v (%v)", board.Now, last, err)
	}
}

// The end of one lease and the beginning of another are one turn, whichever of the runs was
// recorded first.
func turnHandOver(b *bench) {
	b.turn(func(now time.Time, a *schedule.Agenda) {
		held := planned(now, "held")
		held.Began, held.Attempt, held.Holder, held.Until = now, 1, "one", now
		a.New = []schedule.RunRow{planned(now, "before"), held, planned(now, "after")}
	})
	take := func(r *schedule.RunRow, now time.Time) {
		r.Began, r.Attempt, r.Holder, r.Until = now, 1, "two", now
	}
	b.turn(func(now time.Time, a *schedule.Agenda) {
		take(&a.Open[0], now)
		a.Open[1].Until, a.Open[1].Result, a.Open[1].Ended = time.Time{}, schedule.Failed, now
	})
	b.turn(func(now time.Time, a *schedule.Agenda) {
		a.Open[0].Until, a.Open[0].Result, a.Open[0].Ended = time.Time{}, schedule.OK, now
		take(&a.Open[1], now)
	})
	if open := b.agenda().Open; len(open) != 1 || open[0].Instant != "after" || open[0].Holder != "two" {
		b.Errorf("open are %+v", open)
	}
}

// X6: "Paused returns the pause that a job is under: its own, else that of everything", and the
// agenda tells of it.
func turnHalt(b *bench) {
	paused := func(want string) {
		b.Helper()
		m, err := b.Paused(b.Context(), sweepJob)
		if err != nil || m.Why != want || m.Is() != (want != "") {
			b.Errorf("the pause is %+v, %v; want %q", m, err, want)
		}
	}
	ctx := b.Context()
	paused("")
	b.turn(func(now time.Time, a *schedule.Agenda) { a.State.First = now })
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error {
			return schedule.Pause(ctx, b.Store, schedule.Everything, saga.Actor{Name: "ann", Reason: "fire"})
		}, "fire"},
		{func() error { return schedule.Pause(ctx, b.Store, sweepJob, saga.Actor{Name: "bob", Reason: "a bug"}) }, "a bug"},
		{func() error { return schedule.Unpause(ctx, b.Store, sweepJob) }, "fire"},
		{func() error { return schedule.Unpause(ctx, b.Store, schedule.Everything) }, ""},
	} {
		if err := step.do(); err != nil {
			b.Fatal(err)
		}
		paused(step.want)
		if m := b.agenda().Halt; (step.want != "") != m.Is() {
			b.Errorf("after %q the agenda's halt is %+v", step.want, m)
		}
	}
	board, err := b.Jobs(ctx)
	if err != nil || board.Halt.Is() || len(board.Jobs) != 1 {
		b.Errorf("the board is %+v, %v: everything is no job", board, err)
	}
}

// Values that a database refuses are made fit for it: what a job says at its end never keeps it
// from ending.
func turnOdd(b *bench) {
	odd := "\x00\xff" + strings.Repeat("é", 5000)
	b.turn(func(now time.Time, a *schedule.Agenda) {
		r := planned(now, odd)
		r.Ask, r.By, r.Why, r.Holder, r.Error, r.Before, r.After, r.Plan, r.Note = odd, odd, odd, odd, odd, odd, odd, odd, odd
		a.New = []schedule.RunRow{r}
		a.State.Paused = schedule.Mark{At: now, By: odd, Why: odd}
		a.State.Watermark, a.State.Schedule, a.State.Zone, a.State.Good.Instant = odd, odd, odd, odd
		a.State.Described = now.AddDate(20_000, 0, 0)
	})
	a := b.agenda()
	if len(a.Open) != 1 || !strings.HasSuffix(a.Open[0].After, strings.Repeat("é", 5000)) || !strings.HasSuffix(a.State.Watermark, strings.Repeat("é", 5000)) {
		b.Errorf("a cursor was cut")
	}
	b.turn(func(now time.Time, a *schedule.Agenda) { a.Open[0].Result, a.Open[0].Ended = schedule.Skipped, now })
	if n := len(b.agenda().Open); n != 0 {
		b.Errorf("%d runs are still open", n)
	}
}

// "Forget deletes the job's runs that ended before this time", and nothing that is open or another
// job's.
func turnForget(b *bench) {
	now := b.calendar()
	ended := func(instant string, ago time.Duration) schedule.RunRow {
		r := planned(now.Add(-48*time.Hour), instant)
		r.Result, r.Ended = schedule.Skipped, now.Add(-ago)
		return r
	}
	add := func(_ time.Time, a *schedule.Agenda) error {
		a.New = []schedule.RunRow{ended("old", 2*time.Hour), planned(now.Add(-48*time.Hour), "open"), ended("new", time.Minute)}
		return nil
	}
	for _, job := range []string{sweepJob, "another"} {
		if err := b.Turn(b.Context(), job, add); err != nil {
			b.Fatal(err)
		}
	}
	b.turn(func(_ time.Time, a *schedule.Agenda) { a.Forget = now.Add(-time.Hour) })
	rs, err := b.Runs(b.Context(), schedule.RunFilter{Job: sweepJob})
	if err != nil || instants(rs) != "new open" {
		b.Errorf("there are %s, %v", instants(rs), err)
	}
	if rs, err := b.Runs(b.Context(), schedule.RunFilter{Job: "another"}); err != nil || len(rs) != 3 {
		b.Errorf("of the other job there are %s, %v", instants(rs), err)
	}
}

func instants(rs []schedule.RunRow) string {
	var all []string
	for _, r := range rs {
		all = append(all, r.Instant)
	}
	return strings.Join(all, " ")
}
