package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// The side of the waiting work: it is findable by messages before it waits, and by a token from the record on that
// arms its request.

// mail repeats a call that is about what comes from outside, until there is an answer. It reports false when the work is to be let
// go.
func (w *work) mail(do func(context.Context) error) bool {
	over := w.c.outage.ask()
	defer over()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := do(w.c.life)
		if err == nil {
			w.c.outage.answered(callLoad)
			return true
		}
		w.c.outage.failed(callLoad, err)
		if errors.Is(err, ledger.ErrInvalid) || nap.For(w.s.idle, wait) != nil {
			return false
		}
	}
}

// findable is what has to be findable when r is stored: the answer to the request that it arms, and what was asked for.
func (w *work) findable(r *machine.Record) []ledger.Wait {
	d := r.Dispatch
	if d == nil || w.c.secrets.byID[d.SecretID] == nil { // it has no token, or its secret is gone: the attempt says so
		return w.awaits
	}
	return slices.Concat(w.awaits, []ledger.Wait{w.byToken(d.SecretID, d.Key, w.spec().AnswerTo(d.Step).Name)})
}

func (w *work) byToken(secret, key, step string) ledger.Wait {
	return ledger.Wait{Key: digestOf(w.c.secrets.token(secret, key)), ID: w.id, Step: step, StepKey: key}
}

// askKeys asks the definition by which messages a step is answered, makes it findable by them, and then looks for what came
// before. The callback's token is made findable again by the record that follows: a fail-over may have forgotten it, and a lost ledger
// has.
func (w *work) askKeys(s *program.StepSpec, cmd machine.Command, a *machine.Asked) bool {
	keys, err := w.program.Keys(w.st.Invocation(cmd))
	if err != nil {
		a.Error = err.Error()
		return true
	}
	a.On, w.awaits = keys, nil
	if ss := w.st.Step(s.Name); ss.StaysAnswered(s, keys) {
		return true
	} else if ss != nil {
		for _, held := range ss.Answering().HeldAnswers { // the first that is not declined
			sig := &machine.Signal{Kind: machine.SignalAnswer, Resolution: saga.Resolution{Step: s.Name, StepKey: waitKey(w.st, s.Name)}, Said: machine.Said{Message: held.Name, MessageKey: held.Key, MessageID: held.ID, Body: held.Body}}
			read, ok := w.read(sig)
			if !ok {
				return false
			}
			if read.Left != "" {
				read = &machine.Read{Declined: read.Left}
			}
			if a.Read, a.Error = read, read.Fault; read.Declined == "" {
				break
			}
		}
	}
	if asked := w.st.Step(s.Answer.Callback); asked != nil {
		key, secret := asked.Forward.Key, asked.Answering().Secret
		if key == "" {
			key = machine.StepKey(machine.RootKey(w.id.Saga, w.id.Work, w.st.Revision), asked.Name, saga.Forward, asked.Forward.Reissue)
		}
		for id := range w.c.secrets.byID { // after a lost ledger: whichever it was made with
			if secret == "" || secret == id {
				w.awaits = append(w.awaits, w.byToken(id, key, s.Name))
			}
		}
	}
	if len(keys) == 0 {
		return true
	}
	waits := w.waitsOn(s.Name, keys)
	return w.mail(func(ctx context.Context) error { return w.c.ledger.Await(ctx, waits) }) &&
		w.mail(func(ctx context.Context) error { return w.collect(ctx, s.Name, keys) })
}

// waitsOn are the waits of a step for messages, in the revision that the work has.
func (w *work) waitsOn(step string, keys []program.MessageKey) (waits []ledger.Wait) {
	for _, k := range keys {
		waits = append(waits, ledger.Wait{Name: k.Name, Key: k.Key, ID: w.id, Step: step, StepKey: waitKey(w.st, step)})
	}
	return waits
}

// waitKey names a wait for messages: no two revisions have one.
func waitKey(st *machine.State, step string) string {
	return machine.StepKey(machine.RootKey(st.ID.Saga, st.ID.Work, st.Revision), step, saga.Forward, 0)
}

// collect brings the work the first message that came and is not used, and is an answer; what others say stays for others.
func (w *work) collect(ctx context.Context, step string, keys []program.MessageKey) error {
	for _, wait := range w.waitsOn(step, keys) {
		ms, err := w.c.ledger.Messages(ctx, wait.Name, wait.Key, w.id.Saga)
		if err != nil {
			return err
		}
		for i := range ms {
			sig := messageSignal(&ms[i], step, wait.StepKey)
			sig.Declined = readAnswer(w.program, w.st, step, &ms[i]).Declined
			if sig.Declined == "" { // it may have been declined before
				before, err := w.c.answers(ctx, &wait)
				if err != nil {
					return err
				}
				sig.Key += suffix(times(before, sig.Key))
			}
			if _, err := w.c.ledger.Post(ctx, w.id, sig); err != nil {
				return err
			}
			w.told.Store(&several)
			if w.spoken.Store(true); sig.Declined == "" {
				return nil
			}
		}
	}
	return nil
}

// times is how often an answer with this key came before.
func times(before []machine.Signal, key string) (n int) {
	for i := range before {
		if k := before[i].Key; k == key || strings.HasPrefix(k, key+":") {
			n++
		}
	}
	return n
}

// suffix is what the key of an answer ends with that came n times before.
func suffix(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(":%d", n)
}

// messageSignal is what a work is told of a message.
func messageSignal(m *program.Message, step, wait string) machine.Signal {
	return machine.Signal{
		Kind: machine.SignalAnswer, Key: fmt.Sprintf("message:%s:%s:%s", m.Name, m.ID, wait), Actor: "message " + m.Name,
		Resolution: saga.Resolution{Step: step, StepKey: wait}, Said: machine.Said{Message: m.Name, MessageKey: m.Key, MessageID: m.ID, Body: m.Body},
	}
}

// read has the definition read what may be the answer that a step waits for. A message that the work does not use is offered to the
// others that wait for it before that is on record, and what else is there is looked for (machine/A13). It reports false when the work is to
// be let go.
func (w *work) read(sig *machine.Signal) (*machine.Read, bool) {
	if ss := w.st.Step(sig.Step); sig.Kind == machine.SignalExtend && ss != nil && ss.Answering().WaitsFor != nil { // what came meanwhile is kept
		return nil, w.mail(func(ctx context.Context) error { return w.collect(ctx, sig.Step, ss.Answering().WaitsFor.On) })
	}
	if sig.Kind != machine.SignalAnswer || sig.Failed != "" {
		return nil, true
	}
	m := messageOf(sig)
	if m.Name == "" {
		r := readAnswer(w.program, w.st, sig.Step, m)
		w.logRead(sig.Step, r)
		return r, true
	}
	var r *machine.Read
	ok := w.mail(func(ctx context.Context) (err error) {
		r, err = w.readMessage(ctx, sig, m)
		return err
	})
	return r, ok
}

func (w *work) readMessage(ctx context.Context, sig *machine.Signal, m *program.Message) (*machine.Read, error) {
	wait := ledger.Wait{Name: m.Name, Key: m.Key, ID: w.id, Step: sig.Step, StepKey: sig.StepKey}
	ours := sig.StepKey == waitKey(w.st, sig.Step) && w.stepSpec(sig.Step).WaitsForAnswer()
	r := &machine.Read{Declined: sig.Declined}
	if ours && sig.Declined == "" {
		r = readAnswer(w.program, w.st, sig.Step, m)
		w.logRead(sig.Step, r)
	}
	live := ours && lives(w.st, sig.Step)
	if live && r.Fault != "" { // it is kept for this work, and is no more its own than before
		return r, nil
	}
	if live && r.Declined == "" {
		is, err := w.c.ledger.Use(ctx, m.Name, m.ID, wait)
		if is && err == nil {
			err = w.leaveHeld(ctx, sig.Step, m)
		}
		if is || err != nil {
			return r, err
		}
		r.Left = "is used by another instance"
	} else if err := w.leave(ctx, m, &wait, r, ours && gaveUp(w.st, sig.Step)); err != nil {
		return nil, err
	}
	if ss := w.st.Step(sig.Step); live && ss != nil && ss.Answering().WaitsFor != nil {
		return r, w.collect(ctx, sig.Step, ss.Answering().WaitsFor.On)
	}
	return r, nil
}

// leaveHeld offers to others what a step holds because it could not be read, now that another message is its answer.
func (w *work) leaveHeld(ctx context.Context, step string, but *program.Message) (err error) {
	if ss := w.st.Step(step); ss != nil {
		for _, held := range ss.Answering().HeldAnswers {
			if held.Name != "" && held.ID != but.ID && err == nil {
				_, _, err = w.c.offer(ctx, &held, w.id, nil)
			}
		}
	}
	return err
}

// leave offers a message that the work does not use to the others that wait for it. One that comes when it was given up, and that no
// other can be meant by, is its own.
func (w *work) leave(ctx context.Context, m *program.Message, wait *ledger.Wait, r *machine.Read, given bool) error {
	uses, err := w.c.ledger.Uses(ctx, m.Name, m.ID)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(uses, func(u ledger.Wait) bool { return u.ID.Saga == w.id.Saga }); at >= 0 {
		if u := uses[at]; u.ID != w.id || u.Step != wait.Step || u.StepKey != wait.StepKey {
			r.Left = "is used by another instance"
		}
		return nil
	}
	ids, _, err := w.c.offer(ctx, m, w.id, nil)
	if err != nil || !given || r.Declined != "" {
		return err
	}
	own := false
	if len(ids) == 0 {
		named, err := w.c.named(ctx, m)
		if err != nil {
			return err
		}
		own = means(m, w.id, named)
	}
	if own {
		own, err = w.c.ledger.Use(ctx, m.Name, m.ID, *wait)
	}
	if !own {
		r.Left = "came when it was given up, and is left to what waits for it"
	}
	return err
}

// lives reports whether a step may be answered, and was not given up: what was takes nothing from the living.
func lives(st *machine.State, step string) bool {
	ss := st.Step(step)
	return st.Open(step) && (ss == nil || ss.Forward.NeedsReview != saga.ReasonUnanswered)
}

// gaveUp reports whether the step waited, and was given up or turned back.
func gaveUp(st *machine.State, step string) bool {
	ss := st.Step(step)
	return !lives(st, step) && (ss == nil || ss.Forward.Phase != machine.Done && ss.Forward.Phase != machine.Skipped)
}

// logRead tells where the definition panicked when it read an answer.
func (w *work) logRead(step string, r *machine.Read) {
	w.logPanic(&program.Invocation{Step: step, Direction: saga.Forward}, r.Stack)
}

func messageOf(sig *machine.Signal) *program.Message {
	return &program.Message{Name: sig.Message, Key: sig.Said.MessageKey, ID: sig.Said.MessageID, Body: sig.Body}
}

func readAnswer(p saga.Program, st *machine.State, step string, m *program.Message) *machine.Read {
	f, err := p.Read(st.Invocation(machine.Command{Do: machine.Ask, Step: step, Direction: saga.Forward}), *m)
	switch {
	case err != nil && f.Answer == program.AnswerUnclear:
		return &machine.Read{Evidence: f, Fault: err.Error()}
	case err != nil:
		return &machine.Read{Declined: err.Error()}
	}
	return &machine.Read{Evidence: f}
}

// asking are the waits for messages that stand.
func (w *work) asking() (waits []ledger.Wait) {
	for i := range w.st.Steps {
		if ss := &w.st.Steps[i]; ss.Outside != nil && ss.Outside.WaitsFor != nil && ss.Forward.Phase == machine.Waiting {
			waits = append(waits, w.waitsOn(ss.Name, ss.Outside.WaitsFor.On)...)
		}
	}
	return waits
}

// unwait removes the waits for messages that have ended since: what was answered, and what a newer version waits for again. What
// was given up stays findable, so that a late success is not dropped. One that is left behind is found to be over by who
// delivers a message.
func (w *work) unwait(before []ledger.Wait) {
	over := slices.DeleteFunc(before, func(o ledger.Wait) bool {
		ss := w.st.Step(o.Step)
		return o.StepKey == waitKey(w.st, o.Step) && ss.Forward.Phase != machine.Done
	})
	if len(over) > 0 {
		go func() { _ = w.c.ledger.Unwait(w.c.life, over) }()
	}
}
