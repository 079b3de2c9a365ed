package storetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

var turnCases = []testCase{
	{name: "the job is locked", run: turnLocks, breaks: broken{"turn-locks": func(s Store) Store { return turnOverwriter{s} }}},
	{name: "one transaction", run: turnOneTransaction, breaks: broken{"turn-one-transaction": func(s Store) Store { return piecemeal{s} }}},
	{name: "odd values", run: turnOdd},
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
