package memory_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// nodes are the clocks of a database of several nodes, one of which answers.
type nodes struct {
	apart  time.Duration // between the fastest and the slowest
	answer atomic.Int32  // 0 the slowest, 1 one that is right, 2 the fastest
}

func (n *nodes) now() time.Time {
	return time.Now().Add(time.Duration(n.answer.Load()-1) * n.apart / 2)
}

// "With nodes ±1 s apart an instance was taken from a live holder after 0.84 s of a 2 s
// lease". Whichever node grants the lease, and whichever looks, nothing is taken over before the
// lease has been over by the right time.
func TestNoNodesClockEndsALeaseEarly(t *testing.T) {
	t.Parallel()
	const lease, skew = 2 * time.Second, 2 * time.Second
	for grants := range int32(3) {
		for looks := range int32(3) {
			synctest.Test(t, func(t *testing.T) {
				n := &nodes{apart: skew}
				l := memory.New(&memory.Options{Now: n.now, Limits: ledger.Limits{Skew: skew}})
				other, err := l.OpenSession(t.Context(), time.Hour, "other", nil)
				if err != nil {
					t.Fatal(err)
				}
				n.answer.Store(grants)
				granted := time.Now()
				holder, err := l.OpenSession(t.Context(), lease, "holder", nil)
				if err != nil {
					t.Fatal(err)
				}
				id := saga.ID{Saga: "order-to-invoice", Work: "w"}
				r := machine.Record{Kind: machine.KindStarted, Version: 1, Status: saga.Running}
				r.Seal(id, machine.Salt{}, 0, machine.Hash{}, holder.Token)
				if as, err := l.Append(t.Context(), holder.Token, []ledger.Entry{{ID: id, Record: r, Schedule: &ledger.Schedule{Hold: true}}}); err != nil || as[0].Result != ledger.Appended {
					t.Fatalf("start: %+v, %v", as, err)
				}
				n.answer.Store(looks)
				for {
					got, err := l.Claim(t.Context(), other.Token, ledger.Claim{Limit: 1, Known: []ledger.Version{{Saga: id.Saga, Version: 1}}})
					if err != nil {
						t.Fatal(err)
					}
					if len(got.Instances) == 0 {
						<-time.After(10 * time.Millisecond)
						continue
					}
					if after := time.Since(granted); after < lease || after > lease+2*skew {
						t.Errorf("granted by node %d, taken over by node %d after %s of a lease of %s", grants, looks, after, lease)
					}
					return
				}
			})
		}
	}
}
