package saga

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Random definitions meet random faults at a destination that counts. What must hold are the invariants of the
// protocol, whatever happens:
//
//	I1   AtMostOnce: effects ≤ 1 + reissues that a person authorised
//	I2   Idempotent, Keyed: distinct effects per key ≤ 1
//	I4   compensated: what every compensable step made is gone, and stays gone when the network is empty
//	I13  nothing forward once compensating, no undo behind the pivot unasked
//	I15  an undo is skipped only for the reasons of C3
//
// and once faults stop, the work ends or is in review (liveness). rapid prints the seed of a failure.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.live(rapid.IntRange(5, 80).Draw(t, "faulty rounds"))
		w.calm()
		w.verify()
	})
}

// world is a work, its destination, and everybody else.
type world struct {
	*desk
	t       *rapid.T
	dest    *destination
	quiet   bool
	late    []Signal        // answers that came after their attempt was closed
	hasty   map[string]bool // steps about which a person spoke before everything had settled, and was wrong
	reissue map[string]int  // by a person's word
	pivoted bool            // the pivot was done while the work went forward
}

func newWorld(t *rapid.T) *world {
	spec, err := define(order.Saga, 1, drawDefinition(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, hasty: map[string]bool{}, reissue: map[string]int{}}
	w.desk = &desk{t: t, spec: spec, st: &State{ID: order}, now: noon}
	w.dest = newDestination(func() time.Time { return w.now })
	w.start()
	return w
}

// chance draws whether something happens. What rapid shrinks to is that it does not.
func (w *world) chance(percent int, what string) bool {
	return !w.quiet && rapid.IntRange(1, 100).Draw(w.t, what) > 100-percent
}

func (w *world) span(most time.Duration, what string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(most/time.Millisecond)).Draw(w.t, what)) * time.Millisecond
}

// drawDefinition draws a definition that Define accepts.
func drawDefinition(t *rapid.T) string {
	n := rapid.IntRange(1, 4).Draw(t, "steps")
	pivot := rapid.IntRange(0, n).Draw(t, "pivot") // n: none
	unguardable := rapid.IntRange(0, n).Draw(t, "unguardable steps at the end")
	var lines strings.Builder
	for i := range n {
		kinds := []string{"idempotent", "idempotent lookup", "keyed=5m", "keyed=1h lookup", "find", "find", "at-most-once lookup"}
		if i >= n-unguardable {
			kinds = []string{"at-most-once"}
		}
		fmt.Fprintf(&lines, "s%d %s timeout=%ds settle=%ds attempts=%d initial=%ds", i, rapid.SampledFrom(kinds).Draw(t, "kind"),
			rapid.IntRange(1, 30).Draw(t, "timeout"), rapid.IntRange(0, 60).Draw(t, "settle"),
			rapid.IntRange(1, 5).Draw(t, "attempts"), rapid.IntRange(1, 20).Draw(t, "initial"))
		if rapid.Bool().Draw(t, "short of time") {
			lines.WriteString(" within=3m")
		}
		switch {
		case i > pivot:
		case i == pivot:
			lines.WriteString(rapid.SampledFrom([]string{" pivot", " pivot undo", " pivot no-undo"}).Draw(t, "pivot's undo"))
		default:
			lines.WriteString(rapid.SampledFrom([]string{" undo", " undo", " undo", " no-undo"}).Draw(t, "undo"))
		}
		if i <= pivot && rapid.Bool().Draw(t, "gives up to review") {
			lines.WriteString(" give-up=review")
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}

// live runs the work for some rounds with faults.
func (w *world) live(rounds int) {
	for range rounds {
		if w.st.Status.Terminal() {
			return
		}
		w.round()
	}
}

// calm runs the work without faults until it ends or is in review, which must be soon.
func (w *world) calm() {
	w.quiet, w.busy, w.lag = true, false, 0
	w.feedSafe(Event{})
	for range 60 {
		if s := w.st.Status; s.Terminal() || s == Review && w.st.Reason != ReasonUnknownVersion {
			return
		}
		w.round()
	}
	w.t.Fatalf("liveness: after 60 calm rounds the work is %s, and the machine says %s", w.st.Status, w.last.Do)
}

// round does what the machine said, or something else happens.
func (w *world) round() {
	w.dest.deliver()
	if w.open() == nil && w.others() {
		return
	}
	switch cmd := w.last.Do; cmd.Do {
	case Act:
		w.act()
	case Look:
		w.look()
	case Slot:
		w.busy = w.chance(30, "still no slot")
		w.feedSafe(Event{})
	case Wait:
		w.pass(later(cmd.Until, w.st.Due).Sub(w.now) + w.lag)
		w.feedSafe(Event{})
	case Rest:
		w.rest()
	}
}

// feedSafe is feed with what a process knows of the clock drawn anew.
func (w *world) feedSafe(ev Event) {
	if !w.quiet {
		w.lag = w.span(2*time.Second, "clock")
		if w.chance(10, "no slot") {
			w.busy = true
		} else {
			w.busy = false
		}
	}
	w.refold()
	if err := w.once(ev); err != nil { // a signal may come between the turn and its undo
		w.t.Fatalf("%+v: %v", ev, err)
	}
	if p := w.spec.pivot(); p < len(w.spec.Steps) && !w.st.Turned {
		if ss := w.st.Step(w.spec.Steps[p].Name); ss != nil && ss.Forward.Phase == Done {
			w.pivoted = true
		}
	}
}

// refold is what a process does that takes the work over: it folds what is stored, from the latest snapshot.
// R4: that is the state the work was left in.
func (w *world) refold() {
	if !w.chance(20, "another process") {
		return
	}
	base := 0
	for i := range w.chain {
		if w.chain[i].Snapshot != nil && w.chance(80, "from the snapshot") {
			base = i
		}
	}
	st, err := Fold(order, w.chain[base:])
	if err != nil {
		w.t.Fatalf("R4: the chain does not fold: %v", err)
	}
	if got, want := string(dump(w.t, st)), string(dump(w.t, w.st)); got != want {
		w.t.Fatalf("R4: folded anew:\n%s\nlive:\n%s", got, want)
	}
	w.st = st
}

// pass lets time go by, and what is under way arrive on the way.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(max(d, 0))
	w.dest.deliver()
}

// others lets somebody else say something. It reports whether somebody did.
func (w *world) others() bool {
	switch {
	case len(w.late) > 0 && (w.quiet || w.chance(50, "a late answer")):
		s := w.late[0]
		w.late = w.late[1:]
		w.say(s)
	case w.chance(4, "a cancel"):
		w.say(Signal{Kind: SignalCancel, Actor: "anna"})
	case w.chance(3, "a conflict"):
		w.say(Signal{Kind: SignalConflict})
	case w.st.Reason != ReasonUnknownVersion && w.chance(3, "nobody knows the version"):
		w.last = Park(w.st, "nobody knows it")
		w.store(*w.last.Record)
	default:
		return false
	}
	return true
}

func (w *world) say(s Signal) {
	w.sigs++
	s.ID = w.sigs
	w.feedSafe(Event{Signal: &s})
}

func (w *world) open() *StepState { return w.st.live() }

// act makes the attempt that was armed. Its request leaves before the deadline or never (A1), and takes effect
// before the deadline if it is answered, else within the settle time after it (A2).
func (w *world) act() {
	cmd, arm := w.last.Do, w.tail().Arm
	s, deadline := &w.spec.Steps[w.spec.index(cmd.Step)], w.tail().Deadline()
	in := w.st.Invocation(cmd)
	r := request{step: s, dir: cmd.Direction, key: arm.Key, finish: in.Unfinished != nil && cmd.Direction == Forward}
	if in.Undoing != nil {
		r.id = in.Undoing.ExternalID
	}
	attempt := arm.Attempt
	r.settled = deadline.Add(s.Settle)
	fate := "answered"
	if !w.quiet {
		fate = rapid.SampledFrom([]string{"answered", "answered", "answered", "refused", "not sent", "at fault", "stopped",
			"answer lost", "late", "lost", "crash before", "crash behind", "crash with a late answer"}).Draw(w.t, "fate")
	}
	soon := w.now.Add(w.span(deadline.Sub(w.now)/2, "answer time"))
	r.half = s.Repeat == RepeatFind && cmd.Direction == Forward && !r.finish && strings.Contains(fate, "crash") && w.chance(30, "half-made")
	r.arrives = soon
	switch fate {
	case "answered":
		var id string
		r.answered = func(got string) { id = got }
		w.send(r, soon)
		w.outcomeNow(Outcome{Class: succeeded, ExternalID: id, Output: output(id)})
	case "refused":
		w.pass(soon.Sub(w.now))
		w.outcomeNow(Outcome{Class: Refused, Error: "refused"})
	case "not sent":
		w.outcomeNow(Outcome{Class: Unsent, Error: "connection refused"})
	case "at fault":
		w.outcomeNow(Outcome{Class: Fault, Error: "no such step"})
	case "stopped":
		w.outcomeNow(Outcome{Class: Unsent, Error: "stopped", Shutdown: true})
	case "answer lost":
		w.send(r, soon)
		w.outcomeNow(Outcome{Class: Unknown, Error: "cut"})
	case "late":
		r.arrives = deadline.Add(w.span(s.Settle, "late by"))
		w.send(r, soon)
		w.outcomeNow(Outcome{Class: Unknown, Error: "time-out"})
	case "lost":
		w.pass(soon.Sub(w.now))
		w.outcomeNow(Outcome{Class: Unknown, Error: "cut"})
	default:
		w.crashed(r, fate, deadline, attempt)
	}
}

func (w *world) send(r request, until time.Time) {
	w.dest.network = append(w.dest.network, r)
	w.pass(until.Sub(w.now))
}

func (w *world) outcomeNow(o Outcome) { w.feedSafe(Event{Outcome: &o}) }

// crashed lets the attempt's process die. Somebody else looks at the chain, now and then at once.
func (w *world) crashed(r request, fate string, deadline time.Time, attempt int) {
	if fate != "crash before" {
		r.arrives = w.now.Add(w.span(deadline.Sub(w.now)+r.step.Settle, "arrives after"))
		if fate == "crash with a late answer" {
			r.answered = func(id string) {
				w.late = append(w.late, Signal{Kind: SignalLate, Verdict: Verdict{
					Step: r.step.Name, Direction: r.dir, Attempt: attempt, Happened: true, ExternalID: id, Output: output(id),
				}})
			}
		}
		w.dest.network = append(w.dest.network, r)
	}
	w.alone = w.chance(30, "the dead process is proven dead")
	if !w.alone {
		w.pass(deadline.Sub(w.now) + 2*time.Second + w.span(time.Minute, "taken over after"))
	}
	w.feedSafe(Event{})
	w.alone = false
}

// look asks the destination for the step, as honestly as A3 says. C5 and F13: it is asked only when nothing is
// on the way any more.
func (w *world) look() {
	name := w.last.Do.Step
	s := &w.spec.Steps[w.spec.index(name)]
	if w.dest.onTheWay(name) {
		w.t.Fatalf("F13: a lookup of %s while something is on its way", name)
	}
	f := Evidence{Step: name, Kind: KindNotFound}
	seen := w.dest.shows(s, func() bool { return w.chance(50, "seen early") })
	switch {
	case w.chance(20, "the lookup cannot tell"):
		f.Kind = KindUnclear
	case len(seen) > 1:
		f.Kind = KindSeveral
		for _, o := range seen {
			f.IDs = append(f.IDs, o.id)
		}
	case len(seen) == 1:
		f.Kind, f.ExternalID, f.Output = KindFound, seen[0].id, output(seen[0].id)
		if seen[0].half {
			f.Kind = KindUnfinished
		}
	}
	w.feedSafe(Event{Evidence: &f})
}

// rest lets a person look into the review.
func (w *world) rest() {
	if w.st.Status != Review {
		return
	}
	if w.st.Reason == ReasonUnknownVersion {
		if w.open() != nil {
			w.pass(time.Minute + w.lag)
			w.feedSafe(Event{})
			return
		}
		w.say(Signal{Kind: SignalResume})
		return
	}
	ss, dir := w.st.Issue(w.spec)
	if ss == nil {
		w.t.Fatalf("review %s, and no step is at issue", w.st.Reason)
	}
	if !w.chance(40, "in haste") {
		w.pass(3 * time.Minute) // until everything has settled
	}
	w.verdictOn(ss, dir)
}

// verdictOn is an honest person's word: what is there now, and one of each. He undoes by hand what the machine
// could not.
func (w *world) verdictOn(ss *StepState, dir Direction) {
	there := w.dest.things[ss.Name]
	v := Verdict{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts}
	switch {
	case dir == Undo:
		w.dest.things[ss.Name] = nil
		v.Happened = true
	case len(there) > 0:
		w.dest.things[ss.Name] = there[:1]
		there[0].half = false
		v.Happened, v.ExternalID, v.Output = true, there[0].id, output(there[0].id)
	default:
		w.reissue[ss.Name]++
	}
	if w.dest.onTheWay(ss.Name) {
		w.hasty[ss.Name] = true
	}
	w.say(Signal{Kind: SignalResolve, Actor: "anna", Verdict: v})
}
