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
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// lined returns the lines that say message.
func (l *lines) lined(t *testing.T, message string) (out []map[string]any) {
	t.Helper()
	for _, line := range l.all(t) {
		if line["msg"] == message {
			out = append(out, line)
		}
	}
	return out
}

// Adoption 7.9: "panics in actions: no stack, nowhere". The log has the whole stack once, the
// ledger the first of it.
func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w, out := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{explode: true})}, &lines{}
		o := quick()
		o.Log = out.logger()
		p := boot(t, l, w, config{opts: o})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		got := out.lined(t, "a step panicked")
		if len(got) != 1 || got[0]["work"] != "o1" || got[0]["step"] != "customer" || got[0]["attempt"] != 1.0 || !strings.Contains(fmt.Sprint(got[0]["stack"]), "world_test.go") {
			t.Errorf("logged %v", got)
		}
		for _, r := range p.records.of("o1") {
			if r.Kind == machine.KindUnknown && !strings.Contains(r.Said(), "panic: the action blew up; at ") {
				t.Errorf("recorded %q", r.Said())
			}
		}
	})
}

// "A result over the limit is an event at the step that made it, never a silent loss at a later
// one": the listener is told, the log warns with the step and the size, and the summary says so at
// that step.
func TestAResultOverTheLimitIsAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := memory.New(nil), &lines{}
		var told atomic.Int32
		o := quick()
		o.Log = out.logger()
		o.Listener = &coordinator.Listener{Recorded: func(r coordinator.Record) {
			if r.ID.Work == "o1" && r.Step == "quote" && r.Kind == "done" && r.Dropped {
				told.Add(1)
			}
		}}
		p := boot(t, l, &world{}, config{opts: o, program: func(*process) saga.Program {
			d, err := saga.Define(orderSaga, 1,
				saga.Do("quote", func(context.Context, saga.Call[order]) (thing, error) {
					return thing{ID: "q1", Memo: strings.Repeat("x", program.MaxOutput)}, nil
				}).Idempotent().NoUndo("it costs nothing"))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}})
		synctest.Wait()
		p.begin("o1")
		s := p.await("o1")
		pass(time.Second)
		const want = "the result is not kept: it has 655"
		if step := s.Steps["quote"]; !step.Done || step.ExternalID != "q1" || !strings.HasPrefix(step.Error, want) {
			t.Errorf("the summary says %+v", step)
		}
		if got := out.lined(t, "a result was not kept"); len(got) != 1 || got[0]["step"] != "quote" || got[0]["level"] != "warning" || !strings.HasPrefix(fmt.Sprint(got[0]["error"]), want) {
			t.Errorf("logged %v", got)
		}
		if told.Load() != 1 {
			t.Errorf("the listener was told %d times", told.Load())
		}
	})
}

// machine/F3: what was too large to be kept is given by hand, and the step that asked for it goes on; the id that was kept stays. Of a step that may have happened the result can
// be said with that it did.
func TestAResultIsGivenByHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var read []thing
		p := boot(t, memory.New(nil), &world{}, config{opts: quick(), program: func(*process) saga.Program {
			d, err := saga.Define(orderSaga, 1,
				saga.Do("quote", func(context.Context, saga.Call[order]) (thing, error) {
					return thing{ID: "q1", Memo: strings.Repeat("x", program.MaxOutput)}, nil
				}).Idempotent().NoUndo("it costs nothing"),
				saga.Do("mail", func(context.Context, saga.Call[order]) (thing, error) {
					return thing{}, errors.New("the line went dead")
				}).AtMostOnce().NoUndo("it is read"),
				saga.Do("use", func(_ context.Context, c saga.Call[order]) (thing, error) {
					read = []thing{saga.ResultOf[thing](c, "quote"), saga.ResultOf[thing](c, "mail")}
					return thing{ID: c.ExternalID("quote")}, nil
				}).AtMostOnce().NoUndo("it costs nothing"))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}})
		p.begin("o1")
		p.want("o1", saga.Review, saga.ReasonInDoubt)
		given := func(step, id, output string) error {
			v := coordinator.Happened(id)
			v.Output = []byte(output)
			return p.Resolve(t.Context(), idOf("o1"), step, v, anna)
		}
		for _, bad := range []string{"{", `"` + strings.Repeat("x", program.MaxOutput) + `"`} {
			if err := given("mail", "m1", bad); err == nil {
				t.Errorf("a result of %.10s was taken", bad)
			}
		}
		steps := []func() error{
			func() error { return given("mail", "m1", `{"ID":"m1","Memo":"sent"}`) },
			func() error { return given("quote", "q9", `{"ID":"q9","Memo":"short"}`) },
			func() error { return p.Retry(t.Context(), idOf("o1"), anna) },
		}
		for i, say := range steps {
			if err := say(); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
			pass(time.Second)
		}
		s := p.want("o1", saga.Completed, "")
		if len(read) != 2 || read[0].Memo != "short" || read[1].Memo != "sent" || s.Steps["use"].ExternalID != "q1" || s.Steps["mail"].ExternalID != "m1" {
			t.Errorf("it read %+v, %+v", read, s.Steps)
		}
		if err := given("quote", "", `{"ID":"q2"}`); err == nil {
			t.Error("a result that is known was given again")
		}
	})
}
