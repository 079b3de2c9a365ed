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

var ann = saga.Actor{Name: "ann", Reason: "to see"}

// What is asked for by hand goes the way of every run: it waits for the one at work, has the
// same lock and the same wrappers, and is recorded with who asked and why. What waits already is
// not asked for twice.
func TestByHand(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		for range 2 {
			s.run(s.job("*/5 * * * *", "", 2*time.Minute))
		}
		s.until("2026-06-15T10:06:00Z")
		first, err := schedule.Request(s.Context(), s, "sweep", "plan", ann)
		again, err2 := schedule.Request(s.Context(), s, "sweep", "plan", ann)
		_, err3 := schedule.Request(s.Context(), s, "sweep", "apply 4", ann)
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		if first.Number == 0 || again.Number != first.Number {
			t.Errorf("asked for twice, there are the runs %d and %d", first.Number, again.Number)
		}
		s.until("2026-06-15T10:09:30Z")
		s.want("2026-06-15T10:05:00Z ok", "manual:1 ok", "manual:2 running")
		s.until("2026-06-15T10:11:30Z")
		s.want("2026-06-15T10:05:00Z ok", "manual:1 ok", "manual:2 ok", "2026-06-15T10:10:00Z skipped")
		c := s.called()
		if len(c) != 3 || c[1].Ask != "plan" || c[1].By != "ann" || c[1].Why != "to see" || c[2].Ask != "apply 4" {
			t.Errorf("the calls are %+v", c)
		}
	})
}

// A person does not wait behind what merely waits.
func TestByHandGoesFirst(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 12*time.Minute)
		j.Overlap = schedule.BufferOne
		s.run(j)
		s.until("2026-06-15T10:11:00Z")
		if _, err := schedule.Request(s.Context(), s, "sweep", "plan", ann); err != nil {
			t.Fatal(err)
		}
		s.until("2026-06-15T10:18:00Z")
		s.want("2026-06-15T10:05:00Z ok", "2026-06-15T10:10:00Z waiting", "manual:1 running", "2026-06-15T10:15:00Z skipped")
	})
}

// What a person asks for otherwise than the schedule does says nothing about the schedule: a dry
// run is no good run.
func TestByHandIsNoGoodRun(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		s.run(s.job("0 3 * * *", "", 0))
		if _, err := schedule.Request(s.Context(), s, "sweep", "plan", ann); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		s.want("manual:1 ok")
		if g := s.board().Good; !g.Ended.IsZero() {
			t.Errorf("the last good run is %+v", g)
		}
		if _, err := schedule.Request(s.Context(), s, "sweep", "", ann); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		if g := s.board().Good; g.Instant != "manual:2" {
			t.Errorf("run by hand as by the schedule, the last good run is %+v", g)
		}
	})
}

// A panic and a timeout of what was asked for by hand end as those of any run: nothing goes past
// the wrappers.
func TestByHandHasTheWrappers(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("0 3 * * *", "", time.Hour)
		j.Timeout = time.Minute
		work := j.Work
		j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			if r.Ask == "panic" {
				panic("a bug")
			}
			return work(ctx, r)
		}
		s.run(j)
		for ask, want := range map[string]string{"panic": "panic: a bug", "plan": "it took longer than its timeout of 1m0s"} {
			if _, err := schedule.Request(s.Context(), s, "sweep", ask, ann); err != nil {
				t.Fatal(err)
			}
			s.pass(2 * time.Minute)
			if r := s.last(); r.Result != schedule.Failed || !strings.Contains(r.Error, want) {
				t.Errorf("%s ended %s: %s", ask, r.Result, r.Error)
			}
		}
	})
}

// schedule/S5: a pause, of the job or of everything, is obeyed between any two actions; nothing begins
// under it, by hand neither; and when it is over, one run makes up for what was missed.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, job := range []string{"sweep", schedule.Everything} {
		t.Run("of "+job, func(t *testing.T) {
			bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
				actions := 0
				j := s.job("*/5 * * * *", "", 0)
				j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
					for range 100 {
						if err := r.Proceed(ctx); err != nil {
							return schedule.Outcome{}, err
						}
						s.locked(func() { actions++ })
						if err := rest(ctx, time.Second); err != nil {
							return schedule.Outcome{}, err
						}
					}
					return schedule.Outcome{Result: schedule.OK}, nil
				}
				s.run(j)
				s.until("2026-06-15T10:05:10.5Z")
				did := actions
				if err := schedule.Pause(s.Context(), s, job, saga.Actor{Name: "ann", Reason: "it does harm"}); err != nil {
					t.Fatal(err)
				}
				s.until("2026-06-15T10:31:00Z")
				if did < 5 || actions > did {
					t.Errorf("%d actions before the pause, %d after it", did, actions)
				}
				s.want("2026-06-15T10:05:00Z stopped")
				if r := s.last(); !strings.Contains(r.Error, "ann, it does harm") {
					t.Errorf("it was stopped because: %s", r.Error)
				}
				if _, err := schedule.Request(s.Context(), s, "sweep", "plan", ann); !errors.Is(err, schedule.ErrPaused) {
					t.Errorf("a run by hand under a pause: %v", err)
				}
				if err := schedule.Unpause(s.Context(), s, job); err != nil {
					t.Fatal(err)
				}
				s.until("2026-06-15T10:34:00Z")
				s.want("2026-06-15T10:05:00Z stopped", "2026-06-15T10:30:00Z ok for 5")
			})
		})
	}
}

// Until a person has approved the job once, its runs are told that they may not change
// anything.
func TestApproval(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 0)
		j.Approved = false
		s.run(j)
		s.until("2026-06-15T10:06:00Z")
		if err := schedule.Approve(s.Context(), s, "sweep", saga.Actor{Name: "ann", Reason: "the plan of 10:05 is what we want"}); err != nil {
			t.Fatal(err)
		}
		s.until("2026-06-15T10:11:00Z")
		s.run(j) // a later deploy takes nothing back
		s.until("2026-06-15T10:16:00Z")
		c := s.called()
		if len(c) != 3 || c[0].Approved || !c[1].Approved || !c[2].Approved {
			t.Errorf("the calls are %+v", c)
		}
	})
}

// The functions for operators need the database alone, and who says nothing of himself is refused.
func TestOperatorsAreNamed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), memory.New(nil)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"pause nothing known": {schedule.Pause(ctx, s, "nightly", saga.Actor{Name: "ann", Reason: "why"}), "no such job"},
		"approve everything":  {schedule.Approve(ctx, s, schedule.Everything, saga.Actor{Name: "ann", Reason: "why"}), "by its name"},
		"nobody":              {schedule.Pause(ctx, s, schedule.Everything, saga.Actor{Reason: "why"}), "say who"},
		"no reason":           {schedule.Pause(ctx, s, schedule.Everything, saga.Actor{Name: "ann"}), "say why"},
		"unpause unknown":     {schedule.Unpause(ctx, s, "nightly"), "no such job"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, c.err, c.want)
		}
	}
	if _, err := schedule.Request(ctx, s, "nightly", "plan", ann); !errors.Is(err, schedule.ErrUnknown) {
		t.Errorf("a run of what nobody knows: %v", err)
	}
}
