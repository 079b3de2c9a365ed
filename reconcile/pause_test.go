package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
)

// halted is a job that is paused in the middle of its looks.
type halted struct {
	*job
	looked map[string]bool // keys somebody asked about
	at     int             // the pause comes when so many were looked at
}

var errHalted = errors.New("paused by anna")

func (w *world) halted(t *testing.T, at int) *halted {
	t.Helper()
	h := &halted{looked: map[string]bool{}, at: at}
	w.onLook = func(key string) {
		defer w.lock()()
		h.looked[key] = true
	}
	h.job = w.job(t, func(c *settings) {
		many(c)
		c.Workers = 8
		c.sweep.Proceed = func(context.Context) error {
			defer w.lock()()
			if len(h.looked) >= h.at {
				return errHalted
			}
			return nil
		}
	})
	return h
}

// perBatch is how many keys are looked at between two questions whether to go on.
const perBatch = 500

// A pause in the middle of planning is obeyed before the next batch of looks, and there is no
// plan.
func TestPauseWhilePlanning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 2*perBatch + 100 {
			w.sold(keyOf(n))
		}
		h := w.halted(t, 1)
		if _, err := h.Plan(t.Context()); !errors.Is(err, errHalted) {
			t.Errorf("it went on: %v", err)
		}
		if len(h.looked) != perBatch {
			t.Errorf("%d keys were looked at, and the pause came at the first", len(h.looked))
		}
		if _, err := h.store.Latest(t.Context(), "orders"); !errors.Is(err, plan.ErrNotFound) {
			t.Errorf("there is a plan: %v", err)
		}
	})
}

// A pause in the middle of a rebuild is obeyed before anything more is recorded, and before the
// next batch of looks.
func TestPauseWhileRebuilding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stands               func(*world, string)
		at, looked, recorded int
	}{
		"while the first batch is looked at":  {lost, 1, perBatch, 0},
		"while the second batch is looked at": {lost, perBatch + 1, 2 * perBatch, perBatch},
		"where there is nothing to record":    {(*world).sold, 1, perBatch, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				for n := range 2*perBatch + 100 {
					c.stands(w, keyOf(n))
				}
				h := w.halted(t, c.at)
				if _, err := h.Rebuild(t.Context(), time.Time{}, anna); !errors.Is(err, errHalted) {
					t.Errorf("it went on: %v", err)
				}
				if len(h.looked) != c.looked || len(w.works) != c.recorded {
					t.Errorf("%d keys were looked at, and %d recorded; want %d and %d", len(h.looked), len(w.works), c.looked, c.recorded)
				}
			})
		})
	}
}
