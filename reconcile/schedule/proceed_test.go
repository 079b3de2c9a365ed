package schedule_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// mute is a store that keeps leases, and cannot say who is paused.
type mute struct {
	schedule.Store

	on atomic.Bool
}

func (m *mute) Paused(ctx context.Context, job string) (schedule.Mark, error) {
	if m.on.Load() {
		return schedule.Mark{}, errSevered
	}
	return m.Store.Paused(ctx, job)
}

// When the database cannot be asked whether the job is paused, the work may not go on. That is
// no pause and no lost lease: the run has failed, and says why. The next one, with a database that
// answers, does its work.
func TestNoAnswerIsNoLeave(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		store := &mute{Store: s.DB}
		var first error
		acted := 0
		j := s.job("*/5 * * * *", "", 0)
		j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			s.note(r)
			for n := range 4 {
				store.on.Store(n == 2 && len(s.called()) == 1)
				if err := r.Proceed(ctx); err != nil {
					first = err
					return schedule.Outcome{Result: schedule.OK}, err
				}
				acted++
			}
			return schedule.Outcome{Result: schedule.OK}, nil
		}
		s.runOn(store, j)
		s.until("2026-06-15T10:06:00Z")
		if !errors.Is(first, errSevered) || errors.Is(first, schedule.ErrPaused) || errors.Is(first, schedule.ErrLost) || acted != 2 {
			t.Errorf("%d actions, and then the work was told: %v", acted, first)
		}
		if r := s.last(); r.Result != schedule.Failed || !strings.Contains(r.Error, "ask whether job sweep is paused") {
			t.Errorf("the run is %+v", r)
		}
		s.until("2026-06-15T10:11:00Z")
		s.want("2026-06-15T10:05:00Z failed", "2026-06-15T10:10:00Z ok")
	})
}
