package command

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// anything is what a person can say to a work, and the choice that it has to be.
type anything struct {
	is machine.Choice
	by func(*coordinator.Operator) error
}

// all is everything that can be said to the work, of a step where it names one.
func (w *ways) all(step string) []anything {
	ctx, by := w.t.Context(), saga.Actor{Name: "anna", Reason: "to see"}
	type op = *coordinator.Operator
	plain := func(verb string, do func(op) error) anything { return anything{machine.Choice{Verb: verb}, do} }
	resolve := func(says machine.Saying, v saga.Resolution) anything {
		return anything{machine.Choice{Verb: machine.VerbResolve, Step: step, Says: says}, func(o op) error { return o.Resolve(ctx, waysID, step, v, by) }}
	}
	return []anything{
		plain(machine.VerbRetry, func(o op) error { return o.Retry(ctx, waysID, by) }),
		plain(machine.VerbSkip, func(o op) error { return o.Skip(ctx, waysID, "", nil, by) }),
		plain(machine.VerbPause, func(o op) error { return o.Pause(ctx, waysID, by) }),
		plain(machine.VerbResume, func(o op) error { return o.Resume(ctx, waysID, by) }),
		plain(machine.VerbWake, func(o op) error { return o.Wake(ctx, waysID, by) }),
		plain(machine.VerbComplete, func(o op) error { return o.CompleteStep(ctx, waysID, "", []byte("{}"), by) }),
		plain(machine.VerbFail, func(o op) error { return o.FailStep(ctx, waysID, "", by) }),
		plain(machine.VerbExtend, func(o op) error { return o.Extend(ctx, waysID, "", w.now.Add(24*time.Hour), by) }),
		plain(machine.VerbCancel, func(o op) error { return o.Cancel(ctx, waysID, by) }),
		plain(machine.VerbUndo, func(o op) error { return o.Undo(ctx, waysID, "", by) }),
		plain(machine.VerbRerun, func(o op) error { _, err := o.Rerun(ctx, waysID, "a ticket", by); return err }),
		resolve(machine.SayHappened, coordinator.Happened("y_1")), resolve(machine.SayHappenedNoID, coordinator.Happened("")),
		resolve(machine.SayDidNotHappen, coordinator.DidNotHappen()),
		{machine.Choice{Verb: machine.VerbResolve, Says: machine.SayKeep}, func(o op) error { return o.Keep(ctx, waysID, by) }},
	}
}

// agreed are the standings that were looked at.
var agreed sync.Map

// agrees says everything there is to the work as it stands: what is a choice is taken, and what is none is refused.
func (w *ways) agrees() {
	w.t.Helper()
	at := w.standing() + fmt.Sprint(w.last.Do.Do, w.st.PendingRevision != nil, w.st.Withdrawn, w.st.Adopting)
	if _, before := agreed.LoadOrStore(at, true); before || len(w.unread) > 0 {
		return
	}
	step := "x"
	if ss, _ := w.st.Issue(w.spec); ss != nil {
		step = ss.Name
	}
	choices := slices.Concat(machine.Choices(w.spec, w.st, w.now), machine.Besides(w.spec, w.st, w.now))
	for _, s := range w.all(step) {
		err := s.by(coordinator.NewOperator(w.fork()))
		offered := slices.ContainsFunc(choices, func(c machine.Choice) bool {
			id := s.is.Says == machine.SayHappened && c.Says == machine.SayHappenedNoID // what happened may have one
			return c.Verb == s.is.Verb && c.Step == s.is.Step && (c.Says == s.is.Says || id || c.Verb == machine.VerbUndo)
		})
		if offered != (err == nil) {
			w.t.Errorf("%s %s: among the choices %t, and it is answered with: %v\n%s%s", s.is.Verb, s.is.Says, offered, err, at, w.story())
		}
	}
}

// While a work is held, the result of a step that was skipped can be said, and what follows is about that step.
func TestTheResultOfASkippedStepIsOffered(t *testing.T) {
	t.Parallel()
	w := begun(t, defined(t, 1, doing("idempotent", "behind"), "behind", false), &behaviour{act: failing(saga.Refused)})
	w.until(false, nil)
	for _, line := range [][]string{{"skip", "--no-result", "--reason", "not needed"}, {"pause", "--reason", "the next one asks for it"}} {
		for w.last.Do.Do == machine.Act {
			w.feed(machine.Event{Outcome: &program.Outcome{Class: saga.Unsent}})
		}
		if err := w.run(line[0], line[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	all := w.offered()
	i := slices.IndexFunc(all, func(c desk.Choice) bool { return c.Button == "Give its result" })
	if i < 0 || !strings.Contains(strings.Join(all[i].Then, " "), `this result of step "x"`) {
		t.Fatalf("it is offered %+v", all)
	}
	if err := w.take(&all[i]); err != nil || string(w.st.Step("x").Output) != `{"id":"x_8"}` {
		t.Errorf("%v, and the step has %s", err, w.st.Step("x").Output)
	}
}
