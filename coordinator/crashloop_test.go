package coordinator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A process that is killed every eight seconds, with six steps of half a second
// at a destination that takes one request at a time, and more works than it can finish. What is
// furthest along goes first, so that every life completes at least one; and in an hour of it, at
// night, no step that may be repeated is sent to a person. The race detector takes half a minute
// for the hour, so by day it is ten minutes.
func TestEveryLifeOfACrashLoopCompletesOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		program := func(p *process) saga.Program {
			var parts []saga.Step[order]
			for i := range 6 {
				parts = append(parts, saga.Do(fmt.Sprintf("step%d", i), func(_ context.Context, c saga.Call[order]) (thing, error) {
					<-time.After(500 * time.Millisecond)
					if p.isDead() {
						return thing{}, errDead
					}
					return thing{ID: c.Step + " of " + c.Work}, nil
				}).Idempotent().NoUndo("it stays").To("books").Timeout(2*time.Second).Settle(0))
			}
			d, err := saga.Define("sync", 1, parts...)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		cfg := config{program: program, opts: quick()}
		cfg.opts.Lease = 3 * time.Second
		cfg.opts.MaxWorks = 64
		cfg.opts.Destinations = map[string]coordinator.Limit{"books": {Concurrent: 1}}
		web := boot(t, l, &world{}, config{program: program, idle: true})
		web.starts("sync", 900)
		completed, length := 0, 10*time.Minute
		if pace.AtNight() {
			length = time.Hour
		}
		for life := range int(length / (8*time.Second + cfg.opts.Lease)) {
			p := boot(t, l, &world{}, cfg)
			pass(8 * time.Second)
			p.kill()
			n := in(t, l, "sync")[saga.Completed]
			if n == completed {
				t.Errorf("life %d completed none; %d are completed", life+1, n)
			}
			completed = n
			pass(cfg.opts.Lease)
		}
		count := in(t, l, "sync")
		t.Logf("%v after %s", count, length)
		if count[saga.Review] > 0 {
			t.Errorf("%d works wait for a person", count[saga.Review])
		}
		ledgertest.MustCheck(t, l)
	})
}

// What a crash left in flight is told of how many others stood beside it.
func TestACrashCountsTheBystanders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		hang := func(ctx context.Context, _ saga.Call[order]) (thing, error) {
			<-ctx.Done()
			return thing{}, ctx.Err()
		}
		d, err := saga.Define("sync", 1, saga.Do("make", hang).Idempotent().NoUndo("it stays").Timeout(20*time.Second).Settle(0))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, l, config{}, d)
		synctest.Wait()
		p.starts("sync", 5)
		synctest.Wait()
		p.kill()
		several(t, l, config{}, d)
		pass(25 * time.Second)
		for i := range 5 {
			rs, err := l.History(t.Context(), saga.ID{Saga: "sync", Work: fmt.Sprintf("w%05d", i)})
			if err != nil {
				t.Fatal(err)
			}
			st, err := machine.Fold(saga.ID{Saga: "sync", Work: fmt.Sprintf("w%05d", i)}, rs)
			if err != nil || len(st.Step("make").Forward.ConcurrentSteps) != 1 || st.Step("make").Forward.ConcurrentSteps[0] != 4 {
				t.Errorf("work %d: %+v, %v", i, st.Step("make").Forward, err)
			}
		}
	})
}
