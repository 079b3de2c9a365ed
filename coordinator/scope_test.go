package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A pause of a destination, a saga or everything is obeyed at the send gate by every
// process within a poll, and holds undos, too. What is held takes a person's word. When it is
// resumed everything goes on.
func TestAPauseIsObeyedByEveryProcess(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]coordinator.Scope{
		"a destination": coordinator.OfDestination("books"), "a saga": coordinator.OfSaga("invoices"), "everything": coordinator.Everything(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { pauses(t, scope) })
		})
	}
}

func pauses(t *testing.T, scope coordinator.Scope) { //nolint:thelper // it is the test itself, once for each case
	l, sent := memory.New(nil), &diary{}
	send := func(_ context.Context, c saga.Call[order]) (thing, error) {
		<-time.After(300 * time.Millisecond) // what is armed and has not passed its gate is held, too
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		sent.note("books")
		if c.Step == "post" && c.Work[0] == 'r' {
			return thing{}, saga.Permanent(errors.New("refused"))
		}
		return thing{ID: c.Work}, nil
	}
	undo := func(_ context.Context, c saga.Call[order], _ *thing) error {
		if err := c.Sending(); err != nil {
			return err
		}
		sent.note("books")
		return nil
	}
	d, err := saga.Define("invoices", 1,
		saga.Do("invoice", send).Idempotent().UndoMaybe(undo).To("books"),
		saga.Do("post", send).Idempotent().UndoMaybe(undo).To("books").Pivot())
	if err != nil {
		t.Fatal(err)
	}
	var ps []*process
	var logged lines
	for range 3 {
		ps = append(ps, several(t, l, config{opts: coordinator.Options{MaxWorks: 30, Log: logged.logger()}}, d))
	}
	synctest.Wait()
	n := 0
	begin := func(times int) {
		for range times {
			n++
			for i, kind := range []string{"o", "r"} { // some are refused, and undone
				if _, err := ps[(n+i)%3].Start(t.Context(), "invoices", fmt.Sprintf("%s%05d", kind, n), order{Total: n}, nil); err != nil {
					t.Fatal(err)
				}
			}
			pass(100 * time.Millisecond)
		}
	}
	begin(20)
	op := coordinator.NewOperator(l)
	if err := op.PauseScope(t.Context(), scope, anna); err != nil {
		t.Fatal(err)
	}
	pass(quick().Poll + 100*time.Millisecond)
	before := len(sent.of("books"))
	begin(50)
	pass(10 * time.Minute)
	if got := len(sent.of("books")); got != before {
		t.Fatalf("%d requests while %s is paused", got-before, scope)
	}
	if err := op.Cancel(t.Context(), saga.ID{Saga: "invoices", Work: fmt.Sprintf("o%05d", n)}, anna); err != nil {
		t.Fatal(err)
	}
	pass(2 * quick().Poll)
	if got := in(t, l, "invoices")[saga.Compensated]; got == 0 {
		t.Error("what is held does not take a cancel")
	}
	ben := saga.Actor{Name: "ben", Reason: "it is over"}
	if err := op.ResumeScope(t.Context(), scope, ben); err != nil {
		t.Fatal(err)
	}
	acts, err := op.Acts(t.Context(), scope, 10)
	if err != nil || len(acts) != 2 || acts[0].Paused || acts[0].By != ben || !acts[1].Paused || acts[1].By != anna {
		t.Errorf("%+v, %v", acts, err)
	}
	pass(10 * time.Minute)
	if got := in(t, l, "invoices"); got[saga.Completed] != n-1 || got[saga.Compensated] != n+1 {
		t.Errorf("of %d: %v", 2*n, got)
	}
	if err := op.ResumeScope(t.Context(), scope, anna); !errors.Is(err, coordinator.ErrNotPaused) {
		t.Errorf("resumed twice: %v", err)
	}
	for _, p := range ps {
		if err := p.halt(); err != nil {
			t.Error(err)
		}
	}
	said := map[string]int{}
	for _, line := range logged.all(t) {
		if msg, _ := line["msg"].(string); strings.HasPrefix(msg, "a person ") {
			said[strings.Fields(msg)[2]]++
			if line["scope"] != scope.String() && line["destination"] != scope.String() {
				t.Errorf("%v", line)
			}
		}
	}
	if said["paused"] != 3 || said["resumed"] != 3 {
		t.Errorf("each process logs it once: %v", said)
	}
}

// A process that begins while something is paused sends nothing before it knows,
// however long the ledger takes to say so. When it is resumed everything goes on.
func TestAPauseIsKnownBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	for _, scope := range []coordinator.Scope{coordinator.OfDestination("books"), coordinator.OfSaga("invoices"), coordinator.Everything()} {
		t.Run(scope.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, sent := memory.New(nil), &diary{}
				d, err := saga.Define("invoices", 1, saga.Do("invoice", func(_ context.Context, c saga.Call[order]) (thing, error) {
					if err := c.Sending(); err != nil {
						return thing{}, err
					}
					sent.note("books")
					return thing{ID: c.Work}, nil
				}).Idempotent().NoUndo("none").To("books"))
				if err != nil {
					t.Fatal(err)
				}
				if err := coordinator.NewOperator(l).PauseScope(t.Context(), scope, anna); err != nil {
					t.Fatal(err)
				}
				p := several(t, l, config{faults: []ledgertest.Fault{ledgertest.FailBetween(1, 5, ledgertest.Controls)}}, d)
				for i := range 10 {
					if _, err := p.Start(t.Context(), "invoices", fmt.Sprintf("o%05d", i), order{Total: i}, nil); err != nil {
						t.Fatal(err)
					}
					pass(10 * time.Millisecond)
				}
				pass(time.Minute)
				if n := len(sent.of("books")); n > 0 {
					t.Errorf("%d requests while %s is paused", n, scope)
				}
				if err := coordinator.NewOperator(l).ResumeScope(t.Context(), scope, anna); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				if n := len(sent.of("books")); n != 10 {
					t.Errorf("%d requests after", n)
				}
			})
		})
	}
}
