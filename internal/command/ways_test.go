package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// Blocked counts nothing.
func (w *ways) Blocked(context.Context, string, string, int64) error { return nil }

// ways is one work whose records the machine decides, over a ledger of nothing else: what a person is offered is what show prints of it,
// and what is done about it is what the commands do.
type ways struct {
	stores.DB // nil: nothing else is asked

	t     *testing.T
	spec  *program.Spec
	next  *program.Spec // the newer version of the definition; nil: there is none
	st    *machine.State
	chain []machine.Record
	unread,
	said []machine.Signal
	now   time.Time
	last  machine.Decision
	asked *machine.Polled // when the answer was asked for
	step  *behaviour      // of the step that the case is about; all others do what they should
}

// behaviour is what the destination, the people and the program do about one step.
type behaviour struct {
	act    []program.Outcome // the last one for ever; none: its process dies each time
	undo   []program.Outcome
	look   program.Evidence
	asked  string // the program fails with it, when it is asked
	reject bool   // people say no
}

var waysID = saga.ID{Saga: "ways", Work: "order:1"}

func (w *ways) Load(context.Context, []saga.ID) ([]ledger.Chain, error) {
	return []ledger.Chain{{Instance: w.head(), Records: w.chain, Signals: w.unread, At: w.now}}, nil
}

func (w *ways) List(context.Context, ledger.Filter) (ledger.Page, error) {
	return ledger.Page{Instances: []ledger.Instance{w.head()}}, nil
}

func (w *ways) head() ledger.Instance {
	return ledger.Instance{
		Number: 1, ID: waysID, Version: w.st.Version, Revision: w.st.Revision, Status: w.st.Status, Reason: w.st.Reason, Posted: int64(len(w.said)),
	}
}

func (w *ways) History(context.Context, saga.ID) ([]machine.Record, error) { return w.chain, nil }

func (w *ways) Signals(context.Context, saga.ID) ([]machine.Signal, error) {
	return slices.Clone(w.said), nil
}

func (w *ways) Post(_ context.Context, _ saga.ID, s machine.Signal) (ledger.Posted, error) {
	s.ID, s.At = int64(len(w.said))+1, w.now
	w.said, w.unread = append(w.said, s), append(w.unread, s)
	return ledger.Posted{Number: s.ID, At: s.At}, nil
}

func (w *ways) Duplicates(context.Context, ledger.Filter) ([]ledger.Duplicate, error) {
	return nil, nil
}

func (w *ways) Sessions(context.Context) ([]ledger.Session, error) {
	all := []ledger.Version{{Saga: waysID.Saga, Version: 1}, {Saga: waysID.Saga, Version: 2}}
	return []ledger.Session{{Knows: all}}, nil
}

func (w *ways) Definitions(context.Context) ([]ledger.Definition, error) {
	all := []ledger.Definition{{Spec: *w.spec}}
	if w.next != nil && w.next.Version != w.spec.Version {
		all = append(all, ledger.Definition{Spec: *w.next})
	}
	return all, nil
}

// fork is the same work for another future.
func (w *ways) fork() *ways {
	c := *w
	c.chain, c.said, c.unread = slices.Clone(w.chain), slices.Clone(w.said), slices.Clone(w.unread)
	st, err := machine.Fold(waysID, c.chain)
	if err != nil {
		w.t.Fatal(err)
	}
	c.st = st
	return &c
}

// feed has the machine decide on an event, and stores what it says.
func (w *ways) feed(ev machine.Event) {
	w.t.Helper()
	if w.next != nil && w.next.Version == w.st.Version {
		w.spec = w.next
	}
	ev.Now, ev.Slot, ev.MaxCrashes, ev.Newest = machine.Moment{Earliest: w.now, Latest: w.now}, true, 2, w.next
	ev.Polled = w.asked
	dec, err := machine.Decide(w.spec, w.st, ev)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.story())
	}
	if w.last = dec; dec.Record == nil {
		return
	}
	w.store(dec.Record)
}

func (w *ways) store(r *machine.Record) {
	w.t.Helper()
	r.Seal(waysID, machine.Salt{}, w.st.Seq, w.st.TailHash, 7)
	r.At = w.now
	if err := w.st.Apply(r); err != nil {
		w.t.Fatalf("%v\n%s", err, w.story())
	}
	w.chain = append(w.chain, *r)
}

func (w *ways) story() string {
	var b strings.Builder
	for i := range w.chain {
		r := &w.chain[i]
		fmt.Fprintf(&b, "  %d %s %s %s %d %q: %s %s\n", r.Seq, r.Kind, r.Step, r.Direction, r.Attempt, r.Said(), r.Status, r.Reason)
	}
	return b.String()
}

// until lets the work go on until it rests, or stop says so. What waits for people or an answer rests; its time passes where past.
func (w *ways) until(past bool, stop func() bool) {
	w.t.Helper()
	for range 500 {
		w.agrees()
		switch do := w.last.Do; {
		case do.Do == machine.Rest || stop != nil && stop():
			return
		case do.Do == machine.Wait && w.st.Status == saga.Waiting && !past:
			return
		case do.Do == machine.Wait:
			if do.Until.After(w.now) {
				w.now = do.Until
			}
			if w.st.Due.After(w.now) {
				w.now = w.st.Due
			}
			w.feed(machine.Event{})
		default:
			w.answer(do)
		}
	}
	w.t.Fatalf("it does not come to a rest:\n%s", w.story())
}

// answer does what the machine asks for.
func (w *ways) answer(do machine.Command) {
	at := &behaviour{act: []program.Outcome{done(do.Step)}, undo: []program.Outcome{{Class: program.Succeeded}}, look: program.Evidence{Answer: program.AnswerNotFound}}
	if do.Step == "x" {
		at = w.step
	}
	switch do.Do {
	case machine.Act:
		outcomes := at.act
		if do.Direction == saga.Undo {
			outcomes = at.undo
		}
		w.now = w.now.Add(time.Second)
		if len(outcomes) == 0 { // its process dies
			w.feed(machine.Event{Over: true})
			return
		}
		ss := w.st.Step(do.Step)
		n := ss.Forward.Attempts
		if do.Direction == saga.Undo {
			n = ss.Undo.Attempts
		}
		o := outcomes[min(n, len(outcomes))-1]
		w.feed(machine.Event{Outcome: &o})
	case machine.Look:
		f := at.look
		w.asked = &machine.Polled{Step: do.Step, At: w.now}
		f.Step = do.Step
		w.now = w.now.Add(time.Second)
		w.feed(machine.Event{Evidence: &f})
	case machine.Ask:
		w.feed(machine.Event{Asked: w.asks(do.Step, at)})
	case machine.Slot:
		w.feed(machine.Event{})
	default:
		w.t.Fatalf("what is %s?", do)
	}
}

func (w *ways) asks(step string, at *behaviour) *machine.Asked {
	a, yes := &machine.Asked{Step: step, Error: at.asked}, true
	switch s := &w.spec.Steps[w.spec.Index(step)]; {
	case w.st.AsksWhen(s):
		a.Applies = &yes
	case s.WaitsForAnswer():
		a.On = []program.MessageKey{{Name: "paid", Key: "1"}}
	case s.Wait == program.WaitVotes:
		a.Shown = &machine.Shown{Document: json.RawMessage(`{"cents":5}`), Asked: true}
	default:
		a.Until = w.now.Add(time.Hour)
	}
	return a
}

func done(id string) program.Outcome {
	return program.Outcome{Class: program.Succeeded, ExternalID: id, Output: json.RawMessage(`{"id":"` + id + `"}`)}
}

// run is a command line about the work. What was posted is read at once, as by the process that has the work.
func (w *ways) run(verb string, flags ...string) error {
	w.t.Helper()
	var out, wrong bytes.Buffer
	env := func(name string) string { return map[string]string{"AMENDS_ACTOR": "anna"}[name] }
	args := append([]string{verb, waysID.Work, "--saga", waysID.Saga}, flags...)
	posted := len(w.said)
	if status := Run(w.t.Context(), &Line{Args: args, Env: env, In: strings.NewReader(""), Out: &out, Err: &wrong, DB: w}); status != 0 {
		return fmt.Errorf("amends %s is refused with %d: %s", strings.Join(args, " "), status, wrong.String())
	}
	if len(w.said) == posted {
		return fmt.Errorf("amends %s says nothing: %s", strings.Join(args, " "), out.String())
	}
	return w.read(args)
}

// read has the machine read what was posted.
func (w *ways) read(args []string) error {
	s := w.unread[0]
	w.unread = w.unread[1:]
	ev := machine.Event{Signal: &s}
	if s.Kind == machine.SignalAnswer && s.Failed == "" {
		ev.Read = &machine.Read{Evidence: program.Evidence{Answer: program.AnswerFound, ExternalID: "x_9", Output: json.RawMessage(`{"id":"x_9"}`)}}
	}
	n := len(w.chain)
	if w.feed(ev); len(w.chain) == n {
		return fmt.Errorf("amends %s leaves no record", strings.Join(args, " "))
	}
	if r := &w.chain[n]; r.Kind == machine.KindNoted && !r.Status.Terminal() {
		return fmt.Errorf("amends %s is only noted: %s", strings.Join(args, " "), r.Said())
	}
	return nil
}

// take does what a person is offered, with an example of what only a person can say.
func (w *ways) take(c *desk.Choice) error {
	w.t.Helper()
	var flags []string
	for _, f := range c.Flags {
		switch {
		case f.Name == "by":
			flags = append(flags, "--by", (time.Until(w.now) + 24*time.Hour).Round(time.Second).String())
		case f.Example == "JSON":
			flags = append(flags, "--"+f.Name, `{"id":"x_8"}`)
		case f.Example != "":
			flags = append(flags, "--"+f.Name, f.Example)
		case f.Value != "":
			flags = append(flags, "--"+f.Name, f.Value)
		default:
			flags = append(flags, "--"+f.Name)
		}
	}
	if at, _ := w.st.Issue(w.spec); c.Verb == "approve" || c.Verb == "reject" {
		flags = append(flags, "--shown", at.Ballot().Digest, "--reason", "seen")
	}
	return w.run(c.Verb, flags...)
}

// offered are the choices that show prints, and those that it has besides.
func (w *ways) offered() []desk.Choice {
	w.t.Helper()
	i, err := desk.New(w, "").Show(w.t.Context(), &desk.ShowIn{Which: desk.Which{Saga: waysID.Saga, Work: waysID.Work}})
	if err != nil {
		w.t.Fatal(err)
	}
	return append(i.Choices, i.Also...)
}

// standing is where the work stands, and what is at issue: what a choice has to change.
func (w *ways) standing() string {
	ss, dir := w.st.Issue(w.spec)
	if ss == nil {
		return fmt.Sprint(w.st.Status, w.st.Reason)
	}
	f, u, votes := ss.Forward, ss.Undo, 0
	if ss.Ballot() != nil {
		votes = len(ss.Ballot().Votes)
	}
	return fmt.Sprintln(w.st.Status, w.st.Reason, w.st.Compensating, ss.Name, dir, f.Phase, f.Reissue, f.NeedsReview, u.Phase, u.Reissue, u.NeedsReview, ss.WaitsUntil, votes)
}

// wayOut reports whether the work comes to an end by at most so many choices, although the destination, or the program, does what it did.
func (w *ways) wayOut(most int) bool {
	w.t.Helper()
	switch {
	case w.st.Status.Terminal():
		return true
	case most > 0 && w.st.Reason == saga.ReasonPoison && w.step.asked != "": // what a program gets wrong may need another one
		then := w.fork()
		then.step = &behaviour{look: w.step.look}
		if then.run("retry", "--reason", "it is mended") != nil {
			break
		} else if then.until(true, nil); then.wayOut(most - 1) {
			return true
		}
	}
	if most == 0 {
		return false
	}
	all := w.offered()
	for _, c := range all {
		if c.Verb == "pause" || c.Verb == "retry" && len(all) > 1 { // there and back
			continue
		}
		then := w.fork()
		if then.take(&c) != nil {
			continue
		}
		if then.until(false, nil); then.wayOut(most - 1) {
			return true
		}
	}
	return false
}
