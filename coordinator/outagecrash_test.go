package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// incident is something that keeps four orders from the books for a minute.
type incident struct {
	name string
	away func(ctx context.Context) error // what a request is answered meanwhile
	acts func(op *coordinator.Operator, begins bool) error
}

var incidents = []incident{
	{"an outage", func(context.Context) error { return errors.New("500: the disk is full") }, nil},
	{"an outage behind the effect", func(context.Context) error { return &lostAnswerError{} }, nil},
	{"a limit", func(context.Context) error {
		return saga.HoldBack(saga.RetryAfter(time.Minute, saga.NotSent(errors.New("429"))))
	}, nil},
	{"a pause", func(context.Context) error { return errors.New("the books were asked while they were paused") }, func(op *coordinator.Operator, begins bool) error {
		if begins {
			return op.PauseScope(context.Background(), coordinator.OfDestination("order-to-invoice/invoice"), anna)
		}
		return op.ResumeScope(context.Background(), coordinator.OfDestination("order-to-invoice/invoice"), anna)
	}},
}

// Whichever of its calls about works and destinations a process dies at, before its effect, between
// effect and answer or behind it, an outage or a pause ends for the others as it does when nobody
// dies: every order is completed, once.
func TestEveryBoundaryOfAnOutage(t *testing.T) {
	t.Parallel()
	for i, in := range incidents {
		for j, b := range blows[:3] {
			if !pace.AtNight() && i%3 != j {
				continue
			}
			t.Run(in.name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				n := 1
				for hit := true; hit; n++ {
					synctest.Test(t, func(t *testing.T) { hit = in.tell(t, b, n) })
					if t.Failed() {
						t.Fatalf("at number %d", n)
					}
				}
				t.Logf("%d boundaries", n-2)
			})
		}
	}
}

// tell tells the incident once, with the blow at its number. It reports whether the blow fell.
func (in *incident) tell(t *testing.T, b blow, n int) (hit bool) {
	t.Helper()
	l, bk := memory.New(nil), &books{away: in.away, made: map[string]int{}}
	program := func(p *process) saga.Program { return invoices(p, bk) }
	dies := boot(t, l, &world{}, config{opts: calm(), program: program, faults: []ledgertest.Fault{
		b.call(n, ledgertest.Append, ledgertest.SetControl, ledgertest.GiveBack, ledgertest.Controls),
	}})
	lives := boot(t, l, &world{}, config{opts: calm(), program: program})
	synctest.Wait()
	op := coordinator.NewOperator(l)
	end := bk.leaves(time.Minute)
	if in.acts != nil {
		if err := in.acts(op, true); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
	}
	for i := range 4 { // by turns; whom the blow kills is not waited for
		p := []*process{dies, lives}[i%2]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := p.Start(ctx, "order-to-invoice", fmt.Sprintf("o%05d", i), order{Total: i}, nil); err != nil {
			begin(t, lives, i)
		}
		cancel()
	}
	pass(time.Until(end))
	if in.acts != nil {
		if n := bk.during(time.Time{}, end); n > 0 {
			t.Errorf("%d requests while the books were paused", n)
		}
		if err := in.acts(op, false); err != nil {
			t.Fatal(err)
		}
	}
	pass(5 * time.Minute)
	for i := range 4 {
		work := fmt.Sprintf("o%05d", i)
		if st := stateOf(t, l, work); st.Status != saga.Completed || bk.invoices()[work] != 1 {
			t.Errorf("%s is %s and has %d invoices", work, st.Status, bk.invoices()[work])
		}
	}
	ledgertest.MustCheck(t, l)
	hit = dies.isDead()
	dies.kill()
	if err := lives.halt(); err != nil {
		t.Error(err)
	}
	return hit
}
