package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// hangs is a saga of one step, of which the orders hang whose names begin with bad; the others take a tenth of a second.
func hangs(t *testing.T, good, hung *atomic.Int64) saga.Program {
	t.Helper()
	d, err := saga.Define("o", 1, saga.Do("make", func(ctx context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		if strings.HasPrefix(c.Work, "bad") {
			hung.Add(1)
			<-ctx.Done()
			return thing{}, ctx.Err()
		}
		<-time.After(100 * time.Millisecond)
		good.Add(1)
		return thing{ID: c.Work}, nil
	}).Idempotent().NoUndo("the test does not look").To("books"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Rule: what hangs keeps a limit from no other: of one order a second, where one in twenty hangs with the default timeout and settle
// time and four are borne, nine in ten of the others are served that would be served without them. An order that hangs is tried again
// all the same.
func TestOrdersThatHangHoldUpNoOther(t *testing.T) {
	t.Parallel()
	served := func(t *testing.T, seed uint64, hang bool) (n int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			l, r := memory.New(nil), rand.New(rand.NewPCG(seed, 0))
			var good, hung atomic.Int64
			p := several(t, l, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 4}}}}, hangs(t, &good, &hung))
			pass(time.Second)
			bad := int64(0)
			for i := range 1200 {
				name := fmt.Sprintf("good%d", i)
				if r.IntN(20) == 0 {
					if name = fmt.Sprintf("bad%d", i); !hang {
						continue
					}
					bad++
				}
				if _, err := p.Start(t.Context(), "o", name, order{}, nil); err != nil {
					t.Fatal(err)
				}
				pass(time.Duration(r.IntN(2000)) * time.Millisecond)
			}
			pass(time.Minute)
			n = good.Load()
			if tries := hung.Load(); bad > 0 && tries <= bad {
				t.Errorf("%d that hang were tried %d times", bad, tries)
			}
		})
		return n
	}
	for _, seed := range seeds() {
		t.Run(fmt.Sprintf("AMENDS_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			if with, without := served(t, seed, true), served(t, seed, false); 10*with < 9*without {
				t.Errorf("%d were served, and %d if none hangs", with, without)
			}
		})
	}
}

// Rule: an action that ends its goroutine, as t.FailNow of a test does, is as one that panicked, and its instance goes on.
func TestAnActionThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		p := boot(t, memory.New(nil), &world{}, config{program: func(*process) saga.Program {
			return flat(t, func(context.Context, saga.Call[order]) (thing, error) {
				if tries++; tries == 1 {
					runtime.Goexit()
				}
				return thing{ID: "inv_1"}, nil
			})
		}})
		synctest.Wait()
		begin(t, p, 1)
		p.want("o00001", saga.Completed, "")
		if rs := p.records.of("o00001"); tries != 2 || !slices.ContainsFunc(rs, func(r machine.Record) bool { return strings.Contains(r.Error, "Goexit") }) {
			t.Errorf("%d tries: %+v", tries, rs)
		}
	})
}
