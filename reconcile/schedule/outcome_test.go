package schedule_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// An error, a panic, or no result is a failed run, whatever else the job says, and only ok is a
// good one.
func TestOnlyOKIsGood(t *testing.T) {
	t.Parallel()
	full := schedule.Outcome{Before: "a", After: "b", Seen: 1, Planned: 2, Applied: 3, OverLimit: 4, Errors: 5, Calls: 6, Plan: "p", Note: "n"}
	for _, c := range []struct {
		name  string
		says  schedule.Result
		fault error
		want  schedule.Result
	}{
		{"ok", schedule.OK, nil, schedule.OK},
		{"partial", schedule.Partial, nil, schedule.Partial},
		{"refused", schedule.Refused, nil, schedule.Refused},
		{"failed", schedule.Failed, nil, schedule.Failed},
		{"ok with an error", schedule.OK, errors.New("the shop is away"), schedule.Failed},
		{"nothing said", "", nil, schedule.Failed},
		{"a word nobody knows", "fine", nil, schedule.Failed},
		{"skipped", schedule.Skipped, nil, schedule.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, "2026-06-15T10:04:30Z", func(s *stage) {
				j := s.job("*/5 * * * *", "", 0)
				j.Work = func(context.Context, *schedule.Run) (schedule.Outcome, error) {
					out := full
					out.Result = c.says
					return out, c.fault
				}
				s.run(j)
				s.until("2026-06-15T10:05:01Z")
				r, want := s.last(), full
				if want.Result = c.want; r.Outcome != want {
					t.Errorf("recorded is %+v", r.Outcome)
				}
				if (r.Error != "") != (c.want == schedule.Failed && c.says != schedule.Failed) {
					t.Errorf("its error is %q", r.Error)
				}
				st := s.board()
				if good := !st.Good.Ended.IsZero(); good != (c.want == schedule.OK) || good != (st.Failures == 0) || good != (st.Watermark == "b") {
					t.Errorf("the job is %+v", st)
				}
			})
		})
	}
}

// That no run ended well for longer than so many periods is told once, with the reason, and
// that all is well again, too. A pause that somebody forgot is told like any other reason.
func TestFreshness(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		var fault error
		j := s.job("*/5 * * * *", "", 0)
		j.Work = func(context.Context, *schedule.Run) (schedule.Outcome, error) {
			var err error
			s.locked(func() { err = fault })
			return schedule.Outcome{Result: schedule.OK}, err
		}
		s.run(j)
		s.until("2026-06-15T10:06:00Z")
		s.locked(func() { fault = errors.New("the shop is away") })
		s.until("2026-06-15T10:19:00Z")
		if len(s.told()) != 0 {
			t.Errorf("too early: %q", s.told())
		}
		s.until("2026-06-15T11:00:30Z")
		if len(s.told()) != 1 || s.told()[0] != "sweep: no run ended well since 2026-06-15 10:05:00 UTC, 3 did otherwise" {
			t.Errorf("told: %q", s.told())
		}
		s.locked(func() { fault = nil })
		s.until("2026-06-15T11:06:00Z")
		if len(s.told()) != 2 || s.told()[1] != "sweep: " {
			t.Errorf("told: %q", s.told())
		}
		if err := schedule.Pause(s.Context(), s, "sweep", saga.Actor{Name: "ann", Reason: "lunch"}); err != nil {
			t.Fatal(err)
		}
		s.until("2026-06-15T12:00:00Z")
		if len(s.told()) != 3 || !strings.Contains(s.told()[2], "ann paused it on 2026-06-15 11:06:00 UTC: lunch") {
			t.Errorf("told: %q", s.told())
		}
	})
}

// Periods are those of the schedule: what runs on weekdays is fresh on Monday morning.
func TestStale(t *testing.T) {
	t.Parallel()
	friday := at(t, "2026-06-12T09:00:00Z")
	job := schedule.JobState{
		Name: "sweep", Schedule: "0 9 * * 1-5", Fresh: 1, First: friday.AddDate(0, -1, 0),
		Good: schedule.Good{Instant: "x", At: friday, Ended: friday.Add(10 * time.Minute)},
	}
	never := job
	never.Good = schedule.Good{}
	for _, c := range []struct {
		name  string
		now   string
		job   schedule.JobState
		stale bool
	}{
		{"Sunday", "2026-06-14T12:00:00Z", job, false},
		{"Monday, while it runs", "2026-06-15T09:05:00Z", job, false},
		{"Monday, too late", "2026-06-15T09:11:00Z", job, true},
		{"never well, just described", "2026-05-12T09:00:01Z", never, false},
		{"never well", "2026-05-20T09:00:00Z", never, true},
		{"not watched", "2027-06-15T09:11:00Z", schedule.JobState{Name: "x", Schedule: "@daily", Fresh: -1, First: friday}, false},
		{"nobody described it", "2027-06-15T09:11:00Z", schedule.JobState{Name: "x"}, false},
	} {
		if why := schedule.Stale(at(t, c.now), &c.job); (why != "") != c.stale {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// New reports every fault at once.
func TestFaults(t *testing.T) {
	t.Parallel()
	work := func(context.Context, *schedule.Run) (schedule.Outcome, error) { return schedule.Outcome{}, nil }
	_, err := schedule.New(memory.New(nil), []schedule.Job{
		{Name: "a", Schedule: "@daily", Work: work},
		{Name: "a", Schedule: "@daily", Work: work},
		{Name: "no good name", Schedule: "@every 1s", Zone: "Vienna", Overlap: "all", CatchUp: time.Second, Timeout: -1, Lease: 1},
		{Name: "b", Schedule: "@daily", Overlap: schedule.BufferAll, CatchUp: time.Hour, Timeout: 2 * time.Hour, Work: work},
	}, &schedule.Options{Poll: -1})
	for _, want := range []string{
		"Poll is negative", `two jobs are called "a"`, "its name", "at least 10s", `zone "Vienna"`, "Overlap", "CatchUp", "what waits longer than CatchUp", "Timeout", "Lease", "no Work",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if _, err := schedule.New(memory.New(nil), nil, nil); err == nil {
		t.Error("a runner of nothing")
	}
}

// Runs that ended long ago are forgotten, and their instants do not come again.
func TestOldRunsAreForgotten(t *testing.T) {
	bubble(t, "2026-06-15T23:30:00Z", func(s *stage) {
		j := s.job("@daily", "", 0)
		r, err := schedule.New(s, []schedule.Job{j}, &schedule.Options{Keep: 72 * time.Hour, Poll: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(s.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = r.Run(ctx)
		}()
		s.until("2026-06-25T12:00:00Z")
		stop()
		<-done
		s.want("2026-06-23T00:00:00Z ok", "2026-06-24T00:00:00Z ok", "2026-06-25T00:00:00Z ok")
		if n := len(s.called()); n != 10 {
			t.Errorf("%d runs in ten days", n)
		}
	})
}
