package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// The end of a wait comes in time whatever its destination does, and is a review where nothing could be asked (machine/A15). Meanwhile
// people see what they may decide.
func TestTheEndComesInTime(t *testing.T) {
	t.Parallel()
	unsent := func(n *atomic.Int64, err error) action {
		return func(context.Context, saga.Call[order]) (thing, error) { n.Add(1); return thing{}, err }
	}
	for _, away := range []string{"paused", "failing", "limited", "busy"} {
		for _, kind := range []string{"await", "approve"} {
			t.Run(away+" "+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var down atomic.Bool
					var asked, undone atomic.Int64
					wrong := saga.NotSent(errors.New("connection refused"))
					if away == "limited" {
						wrong = saga.HoldBack(saga.RetryAfter(20*time.Hour, saga.NotSent(errors.New("too many requests"))))
					}
					l := memory.New(nil)
					ends := func(find bool) []saga.Step[order] {
						book := saga.Do("book", func(_ context.Context, c saga.Call[order]) (thing, error) { return thing{ID: "b-" + c.Work}, nil }).
							Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { undone.Add(1); return nil }).To("other")
						charge := saga.Do("charge", func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "c"}, nil }).Idempotent().NoUndo("x").Pivot().To("other")
						if find {
							return []saga.Step[order]{book, saga.Await("ends", func(saga.Call[order], saga.Message) (thing, error) { return thing{ID: "x"}, nil }).
								On("done", ofWork).EachRun().Within(time.Hour, saga.Compensate).
								Find(func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
									if down.Load() {
										return saga.CannotTell[thing](), wrong
									}
									return saga.NotFound[thing](), nil
								}).Poll(20 * time.Minute).To("away"), charge}
						}
						return []saga.Step[order]{book, saga.Approve[order]("ends").By("finance").Within(time.Hour).
							Ask(saga.Do("ask", func(ctx context.Context, c saga.Call[order]) (thing, error) {
								if !down.Load() {
									return thing{}, nil
								}
								return unsent(&asked, wrong)(ctx, c)
							}).Keyed(90 * day).NoID().NoUndo("a question").To("away")), charge}
					}
					p := several(t, l, config{opts: coordinator.Options{Destinations: busyLimit(away)}}, mustDefine(t, "pay", ends(kind == "await")))
					pass(time.Second)
					if down.Store(away != "busy"); away == "paused" {
						if err := p.PauseScope(t.Context(), coordinator.OfDestination("away"), anna); err != nil {
							t.Fatal(err)
						}
					}
					const n = 24
					p.starts("pay", n)
					pass(30 * time.Minute)
					if kind == "approve" {
						if listed := approvals(t, l); listed != n {
							t.Errorf("people are shown %d of %d", listed, n)
						}
					}
					pass(31*time.Minute + 11*time.Minute)
					got := in(t, l, "pay")
					if away == "busy" { // it is slow, and asked: what was asked is undone
						if got[saga.Compensated] < n/2 || got[saga.Compensated]+got[saga.Review] != n {
							t.Errorf("a slow destination: %v", got)
						}
						return
					}
					if got[saga.Review] != n || undone.Load() != 0 {
						t.Errorf("12 minutes behind the end there are %v, undone %d", got, undone.Load())
						for id := range 3 {
							sum, _ := p.Show(t.Context(), saga.ID{Saga: "pay", Work: fmt.Sprintf("w%05d", id)})
							t.Log(sum.Status, sum.Reason, sum.Next)
						}
					}
				})
			})
		}
	}
}

func busyLimit(away string) map[string]coordinator.Limit {
	if away != "busy" {
		return nil
	}
	return map[string]coordinator.Limit{"away": {PerSecond: 1}, "other": {}}
}

func mustDefine(t *testing.T, name string, steps []saga.Step[order]) saga.Program {
	t.Helper()
	d, err := saga.Define(name, 1, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func approvals(t *testing.T, l ledger.Ledger) (n int) {
	t.Helper()
	for _, err := range coordinator.NewOperator(l).Approvals(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// What a lookup found several of is answered, and no resolution is taken that would do nothing.
func TestSeveralAreAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		d, err := saga.Define("job", 1, saga.Await("done", func(saga.Call[order], saga.Message) (thing, error) { return thing{ID: "x"}, nil }).
			On("done", ofWork).EachRun().Within(time.Hour, saga.Compensate).
			Find(func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
				return saga.Found(thing{ID: "a"}, thing{ID: "b"}), nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, l, config{}, d)
		pass(time.Second)
		p.starts("job", 1)
		pass(3 * time.Hour)
		id := saga.ID{Saga: "job", Work: "w00000"}
		err = p.Resolve(t.Context(), id, "done", saga.Resolution{Happened: true, ExternalID: "a"}, anna)
		if !errors.Is(err, coordinator.ErrOtherStep) || !strings.Contains(err.Error(), `["a" "b"]`) || !strings.Contains(err.Error(), "amends show") {
			t.Errorf("a resolution: %v", err)
		}
		if err := p.CompleteStep(t.Context(), id, "", []byte("{}"), anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if got := in(t, l, "job"); got[saga.Completed] != 1 {
			t.Errorf("it is answered, and there are %v", got)
		}
	})
}

// machine/A15: the end of a wait comes in time also for a lookup that stands in the line of this process, behind an action that does not return.
func TestTheEndComesInTheLineOfAProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, hangs := memory.New(nil), make(chan struct{})
		wait := mustDefine(t, "pay", []saga.Step[order]{
			saga.Await("ends", func(saga.Call[order], saga.Message) (thing, error) { return thing{ID: "x"}, nil }).On("done", ofWork).EachRun().Within(15*time.Minute, saga.Compensate).
				Find(func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
					return saga.NotFound[thing](), nil
				}).Poll(10 * time.Minute).To("away"),
		})
		hog := mustDefine(t, "hog", []saga.Step[order]{
			saga.Do("hog", func(context.Context, saga.Call[order]) (thing, error) { <-hangs; return thing{ID: "h"}, nil }).Idempotent().UndoMaybe(undoNothing).To("away").Timeout(time.Hour),
		})
		p := several(t, l, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"away": {Concurrent: 1}}}}, wait, hog)
		pass(time.Second)
		p.starts("pay", 1)
		p.starts("hog", 1)
		pass(30 * time.Minute)
		if got := in(t, l, "pay"); got[saga.Review] != 1 {
			t.Errorf("15 minutes behind its end there are %v", got)
		}
		close(hangs)
		pass(time.Minute)
		p.kill()
	})
}
