package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
)

// Sweep.Timeout "bounds one call": a provider that takes a question and never answers spoils one
// key, not the night.
func TestALookThatIsNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		w.changed(keyOf(1), "11.00")
		w.changed(keyOf(2), "11.00")
		j := w.job(t, func(c *settings) {
			get := c.sweep.Source.Get
			c.sweep.Timeout = 10 * time.Second
			c.sweep.Source.Get = func(ctx context.Context, id string) (*scan.Listed, error) {
				if id == idOf(keyOf(1)) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return get(ctx, id)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // the job's
		defer cancel()
		if r, err := j.Run(ctx); err != nil || r.Applied != 1 || r.Failed != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A few objects beside each other that cannot be asked for (archived, of another account: 403) keep
// no other from its turn, night after night.
func TestFiveNeighboursStopEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		for n := range 5 {
			w.changed(keyOf(n), "11.00")
			w.getFails[keyOf(n)] = errors.New("403")
		}
		w.changed(keyOf(100), "12.00")
		j := w.job(t, nil)
		var r reconcile.Report
		var err error
		for range 3 {
			r, err = j.Run(t.Context())
			w.pass(24 * time.Hour)
		}
		if len(w.delivered) != 1 {
			t.Errorf("after three nights: %v; %+v, %v", w.delivered, r, err)
		}
	})
}
