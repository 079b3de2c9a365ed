package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What is asked of a destination, and of a definition.

// look asks the destination about a step in doubt. Nothing is learned when a signal comes before
// the lookup could be sent. It reports false when the work is to be let go: the next holder asks
// again.
func (w *work) look(cmd machine.Command) (machine.Event, bool) {
	s := w.stepSpec(cmd.Step)
	if d := w.destination(cmd.Step); d != nil {
		if cmd.Until = w.ends(); s.WaitsForAnswer() && w.st.Deadline.After(w.now().Earliest) && w.st.Deadline.Before(cmd.Until) {
			cmd.Until = w.st.Deadline
		}
		if got, ok := w.stand(d, cmd); !got {
			if f := w.unput(d, s); f != nil {
				w.back = nil
				return machine.Event{Evidence: f}, true
			}
			return machine.Event{}, ok
		}
		begun := time.Now()
		defer func() { d.Release(w.asked, time.Since(begun)) }()
	}
	inv, def := w.st.Invocation(cmd), w.program
	inv.Brief, inv.Decoded = w.brief(cmd.Step), &w.input
	f, err := within(w.s.idle, s.Timeout, func(ctx context.Context) (program.Evidence, error) {
		f := def.Look(ctx, inv)
		w.logPanic(inv, f.Stack)
		return f, nil
	})
	if err != nil {
		f = program.Evidence{Answer: program.AnswerUnclear, Error: "the lookup did not answer in time"}
	}
	f.Step = cmd.Step
	if s.WaitsForAnswer() {
		w.polled = &machine.Polled{Step: s.Name, At: w.now().Latest}
	}
	if d := w.destination(cmd.Step); d != nil && f.Answer == program.AnswerUnclear && f.Stack == "" && w.s.idle.Err() == nil {
		f.Outage = w.heed(d, cmd, f.RetryAfter, flow.Failure{Busy: f.HoldBack, Away: f.Unreachable, Why: f.Error})
	}
	if ss := w.st.Step(cmd.Step); f.Answer == program.AnswerFound && !s.WaitsForAnswer() && !w.st.Compensating && ss != nil && ss.Forward.Attempts > 0 {
		w.c.duplicates.block(ledger.ByLookup, w.spec().Destination(cmd.Step))
	}
	return machine.Event{Evidence: &f}, w.s.idle.Err() == nil
}

// unput is what is learned when the last lookup of a wait cannot be put: its destination is paused or fails, or the line does not move
// (machine/A15). nil: it stands in line.
func (w *work) unput(d *flow.Destination, s *program.StepSpec) *program.Evidence {
	ss, now := w.st.Step(s.Name), w.now().Earliest
	if !s.WaitsForAnswer() || now.Before(ss.WaitsUntil) || w.s.idle.Err() != nil {
		return nil
	}
	if d.Paused() == nil && d.Failing().IsZero() && now.Before(ss.WaitsUntil.Add(lastLook)) {
		return nil
	}
	return &program.Evidence{Step: s.Name, Answer: program.AnswerUnclear, Unput: true}
}

// ask asks the definition until when the work waits, or for what. It reports false when the work is to be let go.
func (w *work) ask(cmd machine.Command) (machine.Event, bool) {
	a := &machine.Asked{Step: cmd.Step}
	if w.st.AsksWhen(w.stepSpec(cmd.Step)) {
		yes, err := w.program.Applies(w.st.Invocation(cmd))
		if a.Applies = &yes; err != nil {
			a.Error = err.Error()
		}
		return machine.Event{Asked: a}, w.s.idle.Err() == nil
	}
	if w.stepSpec(cmd.Step).Wait == program.WaitVotes {
		doc, asked, err := w.program.Shown(w.st.Invocation(cmd))
		if a.Shown = (&machine.Shown{Document: doc, Asked: asked}); err != nil {
			a.Error = err.Error()
		}
		return machine.Event{Asked: a}, w.s.idle.Err() == nil
	}
	if s := w.stepSpec(cmd.Step); s.WaitsForAnswer() {
		ok := w.askKeys(s, cmd, a)
		return machine.Event{Asked: a}, ok && w.s.idle.Err() == nil
	}
	at, err := w.program.When(w.st.Invocation(cmd))
	switch now := w.now().Latest; {
	case err != nil:
		a.Error = err.Error()
	case at.Sub(now) > saga.MaxWait:
		a.Error = fmt.Sprintf("step %q waits until %s, which is more than 100 years from now", cmd.Step, at.UTC().Format(time.RFC3339))
	default:
		a.Until = at
	}
	return machine.Event{Asked: a}, w.s.idle.Err() == nil
}
