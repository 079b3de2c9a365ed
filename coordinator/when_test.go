package coordinator_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// "machine/N1: the condition is asked once in a run", wherever the process dies: the step is done once or not at all, and history and summary say
// which. "machine/N2: a no skips the step".
func TestAConditionAcrossCrashes(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 6; n++ {
		for what, fault := range map[string]ledgertest.Fault{"before": ledgertest.CrashBefore(n, ledgertest.Append), "during": ledgertest.CrashDuring(n, ledgertest.Append)} {
			t.Run(fmt.Sprint(n, what), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					wrapped := map[string]int{}
					make1 := func(_ context.Context, c saga.Call[order]) (thing, error) {
						mu.Lock()
						defer mu.Unlock()
						if c.Step == "wrap" {
							wrapped[c.Key]++
						}
						return thing{ID: c.Step}, nil
					}
					d, err := saga.Define("gift", 1, saga.Do("pay", make1).Idempotent().UndoMaybe(undoNothing),
						saga.Do("wrap", make1).Idempotent().UndoMaybe(undoNothing).When(func(c saga.Call[order]) bool { return c.Input.Total > 10 }),
						saga.Delay[order]("ponder", time.Minute).When(func(c saga.Call[order]) bool { return c.Input.Total > 10 }),
						saga.Do("ship", make1).Idempotent().NoUndo("x").Pivot())
					if err != nil {
						t.Fatal(err)
					}
					l := memory.New(nil)
					faulty := ledgertest.Faulty(l, fault)
					p := several(t, faulty, config{}, d)
					pass(time.Second)
					for work, total := range map[string]int{"large": 20, "small": 5} {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						_, _ = p.Start(ctx, "gift", work, order{Total: total}, nil)
						cancel()
					}
					pass(time.Minute)
					p.kill()
					q := several(t, l, config{}, d)
					pass(time.Minute)
					for work, total := range map[string]int{"large": 20, "small": 5} {
						if _, err := q.Start(t.Context(), "gift", work, order{Total: total}, nil); err != nil {
							t.Fatal(err)
						}
					}
					pass(5 * time.Minute)
					for work, status := range map[string]string{"large": "done", "small": "skipped"} {
						sum, err := q.Show(t.Context(), saga.ID{Saga: "gift", Work: work})
						if err != nil || sum.Status != saga.Completed || sum.Steps["wrap"].Status != status || sum.Steps["ponder"].Status != status {
							t.Errorf("%s is %s, wrapped: %s, %v", work, sum.Status, sum.Steps["wrap"].Status, err)
						}
					}
					if len(wrapped) != 1 {
						t.Errorf("wrapped %v", wrapped)
					}
					q.kill()
				})
			})
		}
	}
}

func undoNothing(context.Context, saga.Call[order], *thing) error { return nil }

// "machine/N3: a newer version asks again": what it leaves out stays and is undone with all else. "machine/N4: a condition that fails is a fault of the
// program". A pivot that waits is one.
func TestAConditionOfANewerVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var undone atomic.Int64
		undo := func(context.Context, saga.Call[order], *thing) error { undone.Add(1); return nil }
		act := func(_ context.Context, c saga.Call[order]) (thing, error) { return thing{ID: c.Step}, nil }
		d, err := saga.Define("gift", 1,
			saga.Do("wrap", act).Idempotent().UndoMaybe(undo).When(func(c saga.Call[order]) bool {
				if c.Input.Total < 0 {
					panic("a bug")
				}
				return c.Input.Total > 10
			}),
			saga.Delay[order]("ponder", time.Hour).Pivot(),
			saga.Delay[order]("deliver", day))
		if err != nil {
			t.Fatal(err)
		}
		l := memory.New(nil)
		p := several(t, l, config{}, d)
		pass(time.Second)
		id := saga.ID{Saga: "gift", Work: "1"}
		begin := func(revision string, total int) {
			if err := d.Start(t.Context(), p.Coordinator, "1", order{Total: total}, saga.StartOptions{Revision: revision, Cause: "a test"}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		begin("1", 20)
		begin("2", 5)
		sum, err := p.Show(t.Context(), id)
		if w := sum.Steps["wrap"]; err != nil || sum.Revision != "2" || w.Status != "skipped" || w.ExternalID != "wrap" {
			t.Errorf("the newer version has %+v, %v", w, err)
		}
		begin("3", -1)
		if sum, _ := p.Show(t.Context(), id); sum.Status != saga.Review || sum.Reason != saga.ReasonPoison || !strings.Contains(sum.Note, "a bug") {
			t.Errorf("a condition that panics: %s %s %q", sum.Status, sum.Reason, sum.Note)
		}
		begin("4", 5)
		pass(2 * time.Hour)
		if err := p.Cancel(t.Context(), id, anna); err == nil {
			t.Error("a cancel is taken behind a pivot that waits")
		}
		if err := p.Withdraw(t.Context(), "gift", "1", "5", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if sum, _ := p.Show(t.Context(), id); sum.Status != saga.Compensated || undone.Load() != 1 {
			t.Errorf("withdrawn, it is %s, undone %d", sum.Status, undone.Load())
		}
		rs, err := l.History(t.Context(), id)
		out := 0
		for i := range rs {
			if rs[i].Kind == machine.KindLeftOut {
				out++
			}
		}
		if err != nil || out != 2 {
			t.Errorf("its history says %d times that it is left out (%v)", out, err)
		}
		p.kill()
	})
}
