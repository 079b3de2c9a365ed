package machine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// tester is what the desk needs of a test, be it Go's or rapid's.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// noon is when every story begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// order is the work that the tests are about.
var order = saga.ID{Saga: "order-to-invoice", Work: "shop:order:10492"}

// thing is what the steps of the tests make.
type thing struct {
	ID string `json:"id"`
}

func (t thing) ExternalID() string { return t.ID }

// structure returns the structure of a definition written one step a line: its name, how it is safe
// to repeat, and options. It goes through Define, so no test works on a definition a user could not
// have. A step that does not say undo says NoUndo, and one that says undo without find or lookup
// says UndoMaybe.
//
//	invoice keyed=1h lookup undo settle=10s
//
// See parseWait for those that only wait.
func structure(t tester, lines string) *program.Spec {
	t.Helper()
	spec, err := define(order.Saga, 1, lines)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func define(name string, version int, lines string) (*program.Spec, error) {
	var steps []saga.Step[string]
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		a, err := parseWait(words)
		if a == nil && err == nil {
			a, err = parseStep(words)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		steps = append(steps, a)
	}
	d, err := saga.Define(name, version, steps...)
	if err != nil {
		return nil, err
	}
	return d.Spec(), nil
}

// parseWait returns a step that only waits, or the deadline; nil when the line is about another.
//
//	cooling-off delay=336h
//	ship-day until
//	rendered await=48h review callback=submit on=render.done find poll=1h
//	deadline 720h compensate
func parseWait(words []string) (saga.Step[string], error) {
	if len(words) < 2 {
		return nil, nil
	}
	name, value, _ := strings.Cut(words[1], "=")
	switch {
	case words[0] == "deadline":
		d, err := time.ParseDuration(words[1])
		return saga.Deadline[string](d, saga.Consequence(words[2])), err
	case name == "delay":
		d, err := time.ParseDuration(value)
		a := saga.Delay[string](words[0], d)
		if slices.Contains(words, "when") {
			a.When(func(saga.Call[string]) bool { return true })
		}
		if slices.Contains(words, "pivot") {
			a.Pivot()
		}
		return a, err
	case name == "await":
		return parseAwait(words, value)
	case name == "approve":
		return parseApprove(words, value)
	case name == "until":
		return saga.Until(words[0], func(saga.Call[string]) time.Time { return time.Time{} }), nil
	default:
		return nil, nil
	}
}

func parseAwait(words []string, within string) (saga.Step[string], error) {
	a := saga.Await(words[0], func(saga.Call[string], saga.Message) (thing, error) { return thing{}, nil })
	then := saga.Compensate
	if slices.Contains(words, "review") {
		then = saga.AskPerson
	}
	length, err := time.ParseDuration(within)
	a.Within(length, then)
	for _, word := range words[2:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "callback":
			a.Callback(value)
		case "on":
			a.On(value, func(saga.Call[string]) string { return "" })
			if again := slices.Contains(words, "once"); again {
				a.Once()
			} else {
				a.EachRun()
			}
		case "when":
			a.When(func(saga.Call[string]) bool { return true })
		case "pivot":
			a.Pivot()
		case "find":
			a.Find(func(context.Context, saga.Call[string]) (saga.Finding[thing], error) {
				return saga.NotFound[thing](), nil
			})
		case "poll":
			every, bad := time.ParseDuration(value)
			err = errors.Join(err, bad)
			a.Poll(every)
		}
	}
	return a, err
}

// parseApprove reads an approval: pay approve=72h by=finance votes=2 ask remind=4h escalate=24h:cfo not-starter
func parseApprove(words []string, within string) (saga.Step[string], error) {
	a := saga.Approve[string](words[0])
	var all []error
	length := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		all = append(all, err)
		return d
	}
	a.Within(length(within))
	for _, word := range words[2:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "by":
			a.By(strings.Split(value, ",")...)
		case "votes":
			n, err := strconv.Atoi(value)
			all = append(all, err)
			a.Votes(n)
		case "ask":
			ask, err := parseStep([]string{"ask", cmp.Or(value, "keyed") + "=720h", "attempts=100"})
			all = append(all, err)
			a.Ask(ask)
		case "remind":
			a.Remind(length(value))
		case "escalate":
			after, role, _ := strings.Cut(value, ":")
			a.Escalate(length(after), role)
		case "not-starter":
			a.NotStarter()
		}
	}
	return a, errors.Join(all...)
}

func parseStep(words []string) (*saga.Action[string, thing], error) {
	a := saga.Do(words[0], func(context.Context, saga.Call[string]) (thing, error) { return thing{}, nil })
	find := func(context.Context, saga.Call[string]) (saga.Finding[thing], error) {
		return saga.NotFound[thing](), nil
	}
	var retry saga.Retry
	if !slices.Contains(words, "undo") && !slices.Contains(words, "undo-maybe") {
		a.NoUndo("nothing to undo")
	}
	if slices.Contains(words, "update") {
		a.Update(func(context.Context, saga.Call[string], string) (thing, error) { return thing{}, nil })
	} else if !slices.Contains(words, "once") && !slices.Contains(words, "at-most-once") && words[0] != "ask" {
		a.EachRun() // what the machine does with it is the same as with an Update
	}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		var d time.Duration
		var err error
		switch name {
		case "keyed", "timeout", "settle", "within", "initial", "max":
			d, err = time.ParseDuration(value)
		case "attempts":
			retry.Attempts, err = strconv.Atoi(value)
		}
		if err != nil {
			return nil, err
		}
		switch name {
		case "idempotent":
			a.Idempotent()
		case "keyed":
			a.Keyed(d)
		case "find", "lookup": // a lookup stands beside another word about repeating
			a.Find(find)
		case "first":
			a.FindFirst()
		case "update":
		case "at-most-once":
			a.AtMostOnce()
		case "once":
			a.Once()
		case "undo":
			if slices.Contains(words, "find") || slices.Contains(words, "lookup") {
				a.Undo(func(context.Context, saga.Call[string], thing) error { return nil })
				continue
			}
			fallthrough // nothing could tell it what the step made
		case "undo-maybe":
			a.UndoMaybe(func(context.Context, saga.Call[string], *thing) error { return nil })
		case "no-undo":
		case "pivot":
			a.Pivot()
		case "when":
			a.When(func(saga.Call[string]) bool { return true })
		case "to":
			a.To(value)
		case "timeout":
			a.Timeout(d)
		case "settle":
			a.Settle(d)
		case "within":
			retry.Within = d
		case "initial":
			retry.Initial = d
		case "max":
			retry.Max = d
		case "compensate":
			retry.Compensate = true
		case "attempts":
		default:
			return nil, fmt.Errorf("unknown word %q", w)
		}
	}
	return a.Retry(retry), nil
}

// desk drives one work as a coordinator over a ledger without faults does: it decides, appends,
// folds. Every decision is checked against R3, R4 and C13 on the way.
type desk struct {
	t     tester
	spec  *program.Spec
	next  *program.Spec // the definition's next version, when there is one
	st    *State
	chain []Record
	now   time.Time     // the database's clock
	lag   time.Duration // what this process knows of it is this much too early, and too late
	most  int           // crashes before a step is poison; 0: the default
	busy  bool          // no send slot is to be had
	over  bool
	sigs  int64

	secret string  // of new callback tokens
	polled *Polled // when the answer was asked for
	last   Decision
	tally  tally
}

func newDesk(t tester, lines string) *desk {
	t.Helper()
	return &desk{t: t, spec: structure(t, lines), st: &State{ID: order}, now: noon}
}

// begin returns a desk whose work was just started.
func begin(t tester, lines string) *desk {
	t.Helper()
	d := newDesk(t, lines)
	d.start()
	return d
}

func (d *desk) event(ev Event) Event {
	ev.Now = Moment{Earliest: d.now.Add(-d.lag), Latest: d.now.Add(d.lag)}
	ev.Slot, ev.Over, ev.Newest, ev.MaxCrashes, ev.Secret, ev.Polled = !d.busy, d.over, d.next, d.most, d.secret, d.polled
	return ev
}

// try decides about ev and stores what was decided. What the machine wants at once, in a record of
// its own, follows: an undo's slot behind the record that turned the work (C13), and what a
// revision begins (V4). It returns the machine's error.
func (d *desk) try(ev Event) error {
	d.t.Helper()
	for range 5 {
		before := d.st.Compensating
		if err := d.once(ev); err != nil {
			return err
		}
		turned := !before && d.st.Compensating && !d.busy && d.last.Do.Do == Slot
		if !turned && !d.again() {
			return nil
		}
		ev = Event{}
	}
	d.t.Fatalf("the machine does not come to a rest: %s", d.last.Do)
	return nil
}

// again reports whether the machine asked to be asked again at once.
func (d *desk) again() bool {
	return d.last.Do.Do == Wait && !d.last.Do.Until.After(d.now.Add(-d.lag))
}

// once is one decision, and the record of it.
func (d *desk) once(ev Event) error {
	d.t.Helper()
	if d.next != nil && d.next.Version == d.st.Version {
		d.spec = d.next
	}
	ev = d.event(ev)
	before := dump(d.t, d.st)
	dec, err := Decide(d.spec, d.st, ev)
	again, err2 := Decide(d.spec, d.st, ev)
	if !reflect.DeepEqual(dec, again) || (err == nil) != (err2 == nil) {
		d.t.Fatalf("R3: the same event was decided twice differently:\n%+v\n%+v", dec, again)
	}
	if after := dump(d.t, d.st); !bytes.Equal(before, after) {
		d.t.Fatalf("R3: deciding changed the state\nfrom %s\nto   %s", before, after)
	}
	if err != nil {
		if dec.Record != nil || dec.Do != (Command{}) {
			d.t.Fatalf("R2: an error and a decision: %+v", dec)
		}
		return err
	}
	if !d.st.Compensating && dec.Record != nil && dec.Record.Dispatch != nil && dec.Record.Dispatch.Direction == saga.Undo {
		d.t.Fatalf("C13: the record that turns arms an undo: %+v", dec.Record)
	}
	d.last = dec
	if dec.Record != nil {
		d.store(*dec.Record)
	}
	return nil
}

func (d *desk) store(r Record) {
	d.t.Helper()
	r.Seal(d.st.ID, Salt{}, d.st.Seq, d.st.TailHash, 7)
	r.At = d.now
	if strings.Contains(r.Said(), "panicked") || strings.Contains(r.Said(), errNotFitting.Error()) {
		d.t.Fatalf("M2: what cannot be, is: %+v", r)
	}
	if err := d.st.Apply(&r); err != nil {
		d.t.Fatalf("R4: a decided record does not fold: %v\n%+v", err, r)
	}
	d.chain = append(d.chain, r)
	d.tally.count(d.spec, &r, d.t.Fatalf)
}

// feed is try for events that fit.
func (d *desk) feed(ev Event) *desk {
	d.t.Helper()
	if err := d.try(ev); err != nil {
		d.t.Fatal(err)
	}
	return d
}

func (d *desk) start() *desk {
	d.t.Helper()
	return d.startAt("")
}

// startAt starts the work for a revision of its source object.
func (d *desk) startAt(revision string) *desk {
	d.t.Helper()
	return d.feed(Event{Start: &Start{Revision: revision, Input: json.RawMessage(`"3 lines"`)}})
}

func (d *desk) tick() *desk { d.t.Helper(); return d.feed(Event{}) }

func (d *desk) wait(dur time.Duration) *desk {
	d.t.Helper()
	d.now = d.now.Add(dur)
	return d.tick()
}

// due waits for as long as the machine said.
func (d *desk) due() *desk {
	d.t.Helper()
	if d.last.Do.Do != Wait {
		d.t.Fatalf("the machine does not wait: %s", d.last.Do)
	}
	d.now = later(d.now, later(d.last.Do.Until, d.st.Due).Add(d.lag))
	return d.tick()
}

func (d *desk) outcome(o program.Outcome) *desk { d.t.Helper(); return d.feed(Event{Outcome: &o}) }

func (d *desk) succeed(id string) *desk {
	d.t.Helper()
	return d.outcome(program.Outcome{Class: program.Succeeded, ExternalID: id, Output: output(id)})
}

// output is the result of a step that made id.
func output(id string) json.RawMessage {
	b, err := json.Marshal(thing{id})
	if err != nil {
		panic(err)
	}
	return b
}

func (d *desk) fail(c saga.Class) *desk {
	d.t.Helper()
	return d.outcome(program.Outcome{Class: c, Error: "it failed: " + string(c)})
}

// crash lets the process die with its attempt, and another take over at the attempt's deadline.
func (d *desk) crash() *desk {
	d.t.Helper()
	d.tick()
	return d.due()
}

// found answers the lookup that the machine asked for.
func (d *desk) found(kind Kind, ids ...string) *desk {
	d.t.Helper()
	if d.last.Do.Do != Look {
		d.t.Fatalf("the machine does not ask for a lookup: %s", d.last.Do)
	}
	f := program.Evidence{Step: d.last.Do.Step, Answer: program.Answer(kind), IDs: ids}
	if kind == KindFound || kind == KindUnfinished || kind == KindOther {
		f.ExternalID, f.Output, f.IDs = ids[0], output(ids[0]), nil
	}
	return d.feed(Event{Evidence: &f})
}

func (d *desk) signal(s Signal) *desk {
	d.t.Helper()
	d.sigs++
	s.ID = d.sigs
	return d.feed(Event{Signal: &s})
}

func (d *desk) cancel() *desk { d.t.Helper(); return d.signal(Signal{Kind: SignalCancel}) }

// revise posts a newer version of the source object.
func (d *desk) revise(revision string) *desk { d.t.Helper(); return d.feed(d.news(revision, 1, false)) }

// same posts a newer version of the source object that says the same as the one before.
func (d *desk) same(revision string) *desk { d.t.Helper(); return d.feed(d.news(revision, 1, true)) }

func (d *desk) news(revision string, version int, same bool) Event {
	d.sigs++
	return Event{Same: same, Signal: &Signal{
		ID: d.sigs, Kind: SignalRevise, News: News{Revision: revision, Version: version, Input: inputOf(revision)},
	}}
}

// inputOf is what the source object is at a revision.
func inputOf(revision string) json.RawMessage {
	b, err := json.Marshal("as of " + revision)
	if err != nil {
		panic(err)
	}
	return b
}

// gone posts that the source cancelled the object.
func (d *desk) gone(revision string) *desk {
	d.t.Helper()
	return d.signal(Signal{Kind: SignalCancel, News: News{Revision: revision}})
}

// failover makes the database forget the latest n records. Signals survive.
func (d *desk) failover(n int) error {
	d.t.Helper()
	if err := d.rewind(n); err != nil {
		return err
	}
	return d.try(Event{Changed: d.now})
}

// rewind takes the latest n records away.
func (d *desk) rewind(n int) error {
	if n >= len(d.chain) {
		return fmt.Errorf("there are only %d records", len(d.chain))
	}
	d.chain = d.chain[:len(d.chain)-n]
	st, err := Fold(order, d.chain)
	d.st = st
	return err
}

// resolution posts a person's word on the step in review. An empty id says that it did not happen.
func (d *desk) resolution(id string) *desk {
	d.t.Helper()
	ss, dir := d.st.Issue(d.spec)
	if ss == nil {
		d.t.Fatal("no step is at issue")
	}
	return d.signal(Signal{Kind: SignalResolve, Actor: "anna", Resolution: saga.Resolution{
		Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts, Happened: id != "", ExternalID: id,
	}})
}

// wants checks the command and the status after the latest event.
func (d *desk) wants(cmd string, status saga.Status) *desk {
	d.t.Helper()
	if got := d.last.Do.String(); got != cmd && (d.last.Do.Do != Wait || cmd != "wait") {
		d.t.Fatalf("the machine says %q (%s), want %q", got, d.st.Status, cmd)
	}
	if d.last.Record == nil {
		return d // nothing was decided
	}
	if d.st.Status != status {
		d.t.Fatalf("the status is %s, want %s", d.st.Status, status)
	}
	return d
}

// review checks that the work was parked for why.
func (d *desk) review(why saga.Reason) *desk {
	d.t.Helper()
	if d.st.Status != saga.Review || d.st.Reason != why || d.last.Do.Do != Rest {
		d.t.Fatalf("the work is %s %s, and the machine says %q; want review %s", d.st.Status, d.st.Reason, d.last.Do, why)
	}
	if d.st.Note == "" {
		d.t.Fatal("a review without words")
	}
	return d
}

// tail is the latest record.
func (d *desk) tail() *Record { return &d.chain[len(d.chain)-1] }

// turning is the record that turned the work.
func (d *desk) turning() *Record {
	d.t.Helper()
	for i := range d.chain {
		if r := &d.chain[i]; r.Kind == KindCancelled || r.Status == saga.Compensating || r.Status == saga.Compensated {
			return r
		}
	}
	d.t.Fatal("the work never turned")
	return nil
}

// armed is the attempt that the latest record armed.
func (d *desk) armed() *Dispatch {
	d.t.Helper()
	if d.tail().Dispatch == nil {
		d.t.Fatalf("record %d (%s) arms nothing", d.tail().Seq, d.tail().Kind)
	}
	return d.tail().Dispatch
}

func (d *desk) key() string { d.t.Helper(); return d.armed().Key }

func dump(t tester, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
