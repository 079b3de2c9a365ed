package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// Of the instants that were done, missed, skipped, failed or go on, the missing ones are asked for, once; what is run for them says nothing
// of whether the job is late, and its cursor is not the newest.
func TestBackfill(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		broken := map[string]bool{"2026-06-15T10:10:00Z": true}
		var ran []string
		j := schedule.Job{Name: "sweep", Schedule: "*/5 * * * *", CatchUp: 10 * time.Minute, Work: func(_ context.Context, r *schedule.Run) (schedule.Outcome, error) {
			all, err := r.Instants()
			if err != nil {
				return schedule.Outcome{}, err
			}
			for _, one := range all {
				if broken[one.Key] {
					return schedule.Outcome{}, errors.New("no")
				}
				ran = append(ran, one.Key)
			}
			return schedule.Outcome{Result: schedule.OK, After: r.Instant}, nil
		}}
		stop := s.run(j)
		s.until("2026-06-15T10:11:00Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:10:00Z failed")
		stop()
		s.until("2026-06-15T10:41:00Z") // 15 to 30 are longer ago than it makes up for, 35 and 40 are one run
		s.run(j)
		s.pass(time.Minute)
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:10:00Z failed", "2026-06-15T10:30:00Z skipped for 4", "2026-06-15T10:40:00Z ok for 2")

		from, to := at(t, "2026-06-15T09:50:00Z"), at(t, "2026-06-15T12:00:00Z")
		ask := func(dry bool) (keys []string) {
			rows, err := schedule.Backfill(s.Context(), s.DB, "sweep", from, to, ann, dry)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				keys = append(keys, r.Instant)
			}
			return keys
		}
		missing := []string{
			"2026-06-15T09:50:00Z", "2026-06-15T09:55:00Z", "2026-06-15T10:00:00Z", "2026-06-15T10:10:00Z again:2",
			"2026-06-15T10:15:00Z", "2026-06-15T10:20:00Z", "2026-06-15T10:25:00Z", "2026-06-15T10:30:00Z again:2",
		}
		if got := ask(true); !slices.Equal(got, missing) {
			t.Errorf("it would ask for %q, want %q", got, missing)
		}
		ran = nil
		if got := ask(false); !slices.Equal(got, missing) {
			t.Errorf("asked for %q, want %q", got, missing)
		}
		s.pass(time.Minute)
		if want := []string{
			"2026-06-15T09:50:00Z", "2026-06-15T09:55:00Z", "2026-06-15T10:00:00Z", "2026-06-15T10:15:00Z",
			"2026-06-15T10:20:00Z", "2026-06-15T10:25:00Z", "2026-06-15T10:30:00Z",
		}; !slices.Equal(ran, want) {
			t.Errorf("ran for %q, want %q", ran, want)
		}
		board, err := s.Jobs(s.Context())
		if err != nil || board.Jobs[0].Good.Instant != "2026-06-15T10:40:00Z" || board.Jobs[0].Watermark != "2026-06-15T10:40:00Z" || board.Jobs[0].Failures != 0 {
			t.Errorf("the job is %+v, %v", board.Jobs, err)
		}
		delete(broken, "2026-06-15T10:10:00Z")
		if got := ask(false); !slices.Equal(got, []string{"2026-06-15T10:10:00Z again:3"}) {
			t.Errorf("what has ended well is asked for again: %q", got)
		}
		s.pass(time.Minute)
		if got := ask(false); len(got) != 0 {
			t.Errorf("nothing is missing, and it asks for %q", got)
		}
		if _, err := schedule.Backfill(s.Context(), s.DB, "sweep", from.AddDate(0, -1, 0), to, ann, true); !errors.Is(err, schedule.ErrTooMany) {
			t.Errorf("a month of every five minutes: %v", err)
		}
	})
}

// A run that is late stands for every instant that was missed, in a night in which the clocks change, too: the hour that they leap over at
// the leap, the one that comes twice once.
func TestInstantsAcrossSummerTime(t *testing.T) {
	for zone, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"leap":  {"2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z", []string{"2026-03-28T02:30:00 Europe/Vienna", "2026-03-29T03:00:00 Europe/Vienna", "2026-03-30T02:30:00 Europe/Vienna"}},
		"twice": {"2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", []string{"2026-10-25T02:30:00 Europe/Vienna", "2026-10-26T02:30:00 Europe/Vienna"}},
	} {
		t.Run(zone, func(t *testing.T) {
			bubble(t, c.from, func(s *stage) {
				var got []string
				j := schedule.Job{Name: "nightly", Schedule: "30 2 * * *", Zone: "Europe/Vienna", CatchUp: 96 * time.Hour, Work: func(_ context.Context, r *schedule.Run) (schedule.Outcome, error) {
					all, err := r.Instants()
					if err != nil {
						return schedule.Outcome{}, err
					}
					for _, one := range all {
						got = append(got, one.Key)
					}
					return schedule.Outcome{Result: schedule.OK, Note: fmt.Sprint(len(got))}, nil
				}}
				s.run(j)()
				s.until(c.to)
				s.run(j)
				s.pass(time.Minute)
				if !slices.Equal(got, c.want) {
					t.Errorf("it ran for %q, want %q", got, c.want)
				}
			})
		})
	}
}

// What is backfilled keeps nothing from running that is due, and where it fails the job is not late for that.
func TestABackfillHoldsNothingUp(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := schedule.Job{Name: "sweep", Schedule: "*/5 * * * *", Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			if r.By != "" {
				return schedule.Outcome{}, errors.Join(rest(ctx, 2*time.Minute), errors.New("no"))
			}
			return schedule.Outcome{Result: schedule.OK}, nil
		}}
		s.run(j)
		s.until("2026-06-15T10:06:00Z")
		if rows, err := schedule.Backfill(s.Context(), s.DB, "sweep", at(t, "2026-06-15T08:00:00Z"), at(t, "2026-06-15T09:55:00Z"), ann, false); err != nil || len(rows) != 24 {
			t.Fatal(len(rows), err)
		}
		s.until("2026-06-15T10:23:00Z")
		runs, err := s.Runs(s.Context(), schedule.RunFilter{Job: "sweep", Result: schedule.OK})
		if err != nil || len(runs) != 4 {
			t.Errorf("of the four that were due ran %d, %v", len(runs), err)
		}
		if board, err := s.Jobs(s.Context()); err != nil || board.Jobs[0].Failures != 0 || board.Jobs[0].Good.Instant != "2026-06-15T10:20:00Z" {
			t.Errorf("the job is %+v, %v", board.Jobs, err)
		}
	})
}

// A late run whose schedule has changed since does not know which instants it missed, so it fails; one of a single instant has its own.
func TestInstantsOfAnotherSchedule(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		var got []string
		work := func(_ context.Context, r *schedule.Run) (schedule.Outcome, error) {
			all, err := r.Instants()
			for _, one := range all {
				got = append(got, one.Key)
			}
			return schedule.Outcome{Result: schedule.OK}, err
		}
		j := schedule.Job{Name: "sweep", Schedule: "*/5 * * * *", Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			<-ctx.Done() // it is given to the next process
			return schedule.Outcome{}, ctx.Err()
		}}
		stop := s.run(j)
		s.until("2026-06-15T10:06:00Z")
		stop()
		s.run(schedule.Job{Name: "sweep", Schedule: "2 * * * *", Zone: "Europe/Vienna", Work: work})
		s.pass(time.Minute)
		s.want("2026-06-15T10:05:00Z ok")
		if !slices.Equal(got, []string{"2026-06-15T10:05:00Z"}) {
			t.Errorf("it ran for %q", got)
		}
	})
}
