package coordinator_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// "Compensations, then what is furthest along, then first come" holds for works that
// were turned away from a long line, too: what comes while they wait in the ledger does not go
// before them, however much more comes than can be sent.
func TestAWorkThatWasTurnedAwayKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: func(a arrival) fault {
			return map[string]fault{"invoice": {slow: time.Second}}[a.step]
		}}
		o := quick()
		o.MaxWorks, o.Hold, o.Destinations = 16, 2*time.Second, map[string]coordinator.Limit{"books": {Concurrent: 1}}
		p := boot(t, l, w, config{opts: o})
		synctest.Wait()
		const works = 200
		for i := range works { // two a second, and one a second can be sent
			p.begin(fmt.Sprintf("o%03d", i))
			pass(500 * time.Millisecond)
		}
		pass(5 * time.Minute)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		var order []string
		for _, a := range w.arrivals {
			if a.step == "invoice" && !slices.Contains(order, a.work) {
				order = append(order, a.work)
			}
		}
		if len(order) != works {
			t.Fatalf("%d of %d works had their turn", len(order), works)
		}
		late := 0
		for i, work := range order {
			overtaken := 0
			for _, other := range order[:i] {
				if other > work {
					overtaken++
				}
			}
			if overtaken > 2*o.MaxWorks {
				late++
			}
		}
		t.Logf("%d of %d were overtaken more than %d times", late, works, 2*o.MaxWorks)
		if late > works/10 {
			t.Errorf("%d of %d works were overtaken by more than %d that came later; the process has %d in hand at most", late, works, 2*o.MaxWorks, o.MaxWorks)
		}
		p.kill()
	})
}

// An attempt that hangs is waited for once, and not once more by each work that comes
// meanwhile: when it is over they all go on.
func TestAHangIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: func(a arrival) fault {
			return fault{drop: a.work == "hangs", slow: 10 * time.Millisecond}
		}}
		p := boot(t, l, w, config{
			opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}}},
			tune: tuning{timeout: time.Minute, retry: saga.Retry{Initial: 10 * time.Minute, Max: 10 * time.Minute}},
		})
		synctest.Wait()
		p.begin("warm")
		p.want("warm", saga.Completed, "")
		p.begin("hangs")
		pass(55 * time.Second)
		for i := range 50 {
			p.begin(fmt.Sprintf("o%02d", i))
		}
		begun := time.Now()
		for i := range 50 {
			p.want(fmt.Sprintf("o%02d", i), saga.Completed, "")
		}
		t.Logf("it took %s", time.Since(begun))
		if took := time.Since(begun); took > 3*time.Minute {
			t.Errorf("fifty works behind one request that hung for five more seconds were done after %s", took)
		}
		p.kill()
	})
}
