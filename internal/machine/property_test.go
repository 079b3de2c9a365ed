package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Random definitions meet random faults at a destination that counts. What must hold are the
// invariants of the protocol, whatever happens:
//
//	I1   AtMostOnce: effects ≤ 1 + reissues that a person authorised
//	I2   Idempotent, Keyed: distinct effects per key ≤ 1
//	I4   compensated: what every compensable step made is gone, and stays gone when the network is empty
//	I9   the content at the destination never goes back to an older one; a completed work shows the newest it began,
//	     once for each step
//	I13  nothing forward once compensating, no undo behind the pivot unasked
//	I15  an undo is skipped only for the reasons of C3
//
// over all revisions and fail-overs. And once faults stop, the work ends, on the newest version of
// its source object that was heard (liveness). rapid prints the seed of a failure.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.live(rapid.IntRange(5, 120).Draw(t, "faulty rounds"))
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
	said    []Signal        // everything that was said to the work
	unread  []Signal        // what survived a fail-over that forgot the records which had consumed it
	hasty   map[string]bool // steps about which a person spoke before everything had settled, and was wrong
	reissue map[string]int  // by a person's word
	source  source
	diary   []string // everything that was ever recorded, to be read when something is broken
	liar    bool     // lookups answer as they like
	lags    bool     // effects arrive, or are visible, later than a settle time
	taken   string   // the newest revision that waited when a person cancelled the work, or left it as it stood
}

func newWorld(t *rapid.T) *world { return newWorldOf(t, drawDefinition(t)) }

func newWorldOf(t *rapid.T, lines string) *world {
	spec, err := define(order.Saga, 1, lines)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, hasty: map[string]bool{}, reissue: map[string]int{}}
	w.desk = &desk{t: t, spec: spec, st: &State{ID: order}, now: noon}
	w.dest = newDestination(func() time.Time { return w.now }, func(step, words string) {
		if !w.hasty[step] && !w.liar && !w.lags {
			w.brokenf("I9: %s: %s", step, words)
		}
	})
	w.feed(Event{Start: &Start{Revision: "1", Input: w.source.change()}})
	return w
}

// chance draws whether something happens. What rapid shrinks to is that it does not.
func (w *world) chance(percent int, what string) bool {
	return !w.quiet && rapid.IntRange(1, 100).Draw(w.t, what) > 100-percent
}

func (w *world) span(most time.Duration, what string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(most/time.Millisecond)).Draw(w.t, what)) * time.Millisecond
}

// drawDefinition draws a definition that Define accepts; more are kinds of steps that shall be
// drawn more often.
func drawDefinition(t *rapid.T, more ...string) string {
	n := rapid.IntRange(1, 4).Draw(t, "steps")
	pivot := rapid.IntRange(0, n).Draw(t, "pivot") // n: none
	unguardable := rapid.IntRange(0, n).Draw(t, "unguardable steps at the end")
	var lines strings.Builder
	for i := range n {
		kinds := append([]string{"idempotent", "idempotent lookup", "keyed=5m", "keyed=1h lookup", "find", "find", "at-most-once lookup"}, more...)
		if i >= n-unguardable {
			kinds = []string{"at-most-once"}
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		if kind == "find" || strings.HasSuffix(kind, "lookup") {
			kind += rapid.SampledFrom([]string{"", "", "", " first"}).Draw(t, "asks first")
		}
		fmt.Fprintf(&lines, "s%d %s timeout=%ds settle=%ds attempts=%d initial=%ds", i, kind,
			rapid.IntRange(1, 30).Draw(t, "timeout"), rapid.IntRange(0, 60).Draw(t, "settle"),
			rapid.IntRange(1, 5).Draw(t, "attempts"), rapid.IntRange(1, 20).Draw(t, "initial"))
		if rapid.Bool().Draw(t, "short of time") {
			lines.WriteString(" within=3m")
		}
		if !strings.Contains(kind, "at-most-once") {
			lines.WriteString(rapid.SampledFrom([]string{"", "", "", "", " once"}).Draw(t, "revisions"))
		}
		lines.WriteString(drawUndo(t, i, pivot))
		if i <= pivot && rapid.Bool().Draw(t, "compensates") {
			lines.WriteString(" compensate")
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}

// drawUndo draws what step i says about its undo.
func drawUndo(t *rapid.T, i, pivot int) string {
	says := []string{" no-undo", " undo", " undo-maybe"}
	switch {
	case i < pivot:
		says = []string{" no-undo", " undo", " undo", " undo-maybe"}
	case i == pivot:
		says = []string{" pivot no-undo", " pivot undo", " pivot undo-maybe"}
	}
	return rapid.SampledFrom(says).Draw(t, "undo")
}

// live runs the work for some rounds with faults.
func (w *world) live(rounds int) {
	for range rounds {
		w.round()
	}
}

// calm runs the work without faults, and with a person who looks into every review, until it ends,
// which must be soon. What the source said last is told again.
func (w *world) calm() {
	w.quiet, w.busy, w.lag = true, false, 0
	w.feedSafe(Event{})
	w.source.tellLast()
	for range 150 {
		if w.st.Status.Terminal() && len(w.source.news)+len(w.late)+len(w.unread) == 0 {
			return
		}
		w.round()
	}
	w.brokenf("liveness: after 150 calm rounds the work is %s %s, and the machine says %s", w.st.Status, w.st.Reason, w.last.Do)
}

// brokenf ends the test with everything that was ever recorded.
func (w *world) brokenf(format string, args ...any) {
	w.t.Fatalf("%s\n%s\n%s", fmt.Sprintf(format, args...), w.describe(), strings.Join(w.diary, "\n"))
}

func (w *world) describe() string { return string(dump(w.t, w.spec)) }

// round does what the machine said, or something else happens.
func (w *world) round() {
	w.dest.deliver()
	if w.chance(3, "a fail-over") && w.forgets() || w.open() == nil && w.others() {
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
	w.busy = w.busy || len(w.unread) > 0 // signals come first
	w.refold()
	if err := w.once(ev); err != nil { // a signal may come between the turn and its undo
		w.brokenf("%+v: %v", ev, err)
	}
	if w.last.Record != nil {
		w.diary = append(w.diary, show(w.tail()))
	}
}

// refold is what a process does that takes the work over: it folds what is stored, from the latest
// snapshot. R4: that is the state the work was left in.
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
	case len(w.unread) > 0:
		s := w.unread[0]
		w.unread = w.unread[1:]
		w.feedSafe(Event{Signal: &s, Same: s.Kind == SignalRevise && w.same(s.Input)})
	case len(w.late) > 0 && (w.quiet || w.chance(50, "a late answer")):
		s := w.late[0]
		w.late = w.late[1:]
		w.say(s)
	case len(w.source.news) > 0 && (w.quiet || w.chance(30, "news")):
		w.say(w.hear())
	case w.chance(10, "the source object changes"):
		w.source.moves(w)
		return false
	case w.chance(3, "a cancel"):
		waited := w.st.PendingRevision != nil
		if w.say(Signal{Kind: SignalCancel, Actor: "anna"}); waited && w.st.PendingRevision == nil {
			w.taken = w.st.NewestRevision
		}
	case w.hand():
	case w.chance(3, "a conflict"):
		w.say(Signal{Kind: SignalConflict})
	case w.chance(2, "the ledger takes nothing"):
		w.feedSafe(Event{Invalid: 2})
	default:
		return false
	}
	return true
}

func (w *world) say(s Signal) {
	w.sigs++
	s.ID, s.At = w.sigs, w.now
	w.said = append(w.said, s)
	w.feedSafe(Event{Signal: &s, Same: s.Kind == SignalRevise && w.same(s.Input)})
}

func (w *world) open() *StepState { return w.st.live() }

// act makes the attempt that was armed. Its request leaves before the deadline or never (saga/A1), and
// takes effect before the deadline if it is answered, else within the settle time after it (saga/A2).
func (w *world) act() {
	r, deadline := w.request()
	s := r.step
	fate := "answered"
	if !w.quiet {
		fate = rapid.SampledFrom([]string{"answered", "answered", "answered", "refused", "refused in part", "not sent", "at fault", "stopped",
			"answer lost", "late", "lost", "crash before", "crash behind", "crash with a late answer"}).Draw(w.t, "fate")
	}
	soon := w.now.Add(w.span(deadline.Sub(w.now)/2, "answer time"))
	r.half = s.Repeat == program.RepeatFind && r.dir == saga.Forward && !r.finish && strings.Contains(fate, "crash") && w.chance(30, "half-made")
	r.refuse = s.Repeat == program.RepeatKeyed && r.dir == saga.Forward && !r.finish && !w.quiet && w.chance(15, "refused under the key")
	r.arrives = soon
	switch fate {
	case "answered":
		var id string
		r.answered = func(got string) { id = got }
		w.send(r, soon)
		if id == refusedID {
			w.outcomeNow(program.Outcome{Class: saga.RefusedKey, Error: "refused"})
			return
		}
		o := program.Outcome{Class: program.Succeeded, ExternalID: id, Output: output(id)}
		if w.chance(15, "a result too large to keep") {
			o.Output, o.Dropped = nil, true
		}
		w.outcomeNow(o)
	case "refused":
		w.pass(soon.Sub(w.now))
		w.outcomeNow(program.Outcome{Class: saga.Refused, Error: "refused"})
	case "refused in part": // created, and then refused to be posted
		r.half = s.Repeat == program.RepeatFind && r.dir == saga.Forward && !r.finish
		w.send(r, soon)
		w.outcomeNow(program.Outcome{Class: saga.Refused, Maybe: true, Error: "refused"})
	case "not sent":
		w.outcomeNow(program.Outcome{Class: saga.Unsent, Error: "connection refused"})
	case "at fault":
		w.outcomeNow(program.Outcome{Class: saga.Fault, Error: "no such step"})
	case "stopped":
		w.outcomeNow(program.Outcome{Class: saga.Unsent, Error: "stopped", Shutdown: true})
	case "answer lost":
		w.send(r, soon)
		w.outcomeNow(program.Outcome{Class: saga.Unknown, Error: "cut", Outage: w.chance(50, "an outage")})
	case "late":
		r.arrives = deadline.Add(w.span(s.Settle, "late by") + w.beyond())
		w.send(r, soon)
		w.outcomeNow(program.Outcome{Class: saga.Unknown, Error: "time-out"})
	case "lost":
		w.pass(soon.Sub(w.now))
		w.outcomeNow(program.Outcome{Class: saga.Unknown, Error: "cut"})
	default:
		w.crashed(r, fate, deadline)
	}
}

// request is what the attempt that was just armed sends, and its deadline.
func (w *world) request() (request, time.Time) {
	cmd, arm, deadline := w.last.Do, w.tail().Dispatch, w.tail().Deadline()
	in := w.st.Invocation(cmd)
	r := request{step: &w.spec.Steps[w.spec.Index(cmd.Step)], dir: cmd.Direction, key: arm.Key, attempt: arm.Attempt}
	r.finish, r.says, r.settled = in.Unfinished != nil && cmd.Direction == saga.Forward, content(w.st.Input), deadline.Add(r.step.Settle)
	if r.dir == saga.Undo && !r.step.UndoWhenUnknown && !in.Undoing.Known() {
		w.brokenf("C6: the undo of %s takes no nil, and its result is not known", cmd.Step)
	}
	if in.Undoing != nil {
		r.id = in.Undoing.ExternalID
	}
	if in.Previous != nil {
		r.previous = in.Previous.ExternalID
	}
	return r, deadline
}

func (w *world) send(r request, until time.Time) {
	w.dest.network = append(w.dest.network, r)
	w.pass(until.Sub(w.now))
}

func (w *world) outcomeNow(o program.Outcome) { w.feedSafe(Event{Outcome: &o}) }

// crashed lets the attempt's process die. Somebody else looks at the chain, when its session is over
// or at the attempt's deadline, whichever comes first.
func (w *world) crashed(r request, fate string, deadline time.Time) {
	w.over = w.chance(50, "its session is over before the deadline")
	until, wait := deadline, 2*time.Second
	if w.over {
		until, wait = w.now.Add(w.span(deadline.Sub(w.now), "over after")), 0
	}
	w.leave(r, until, fate)
	if w.chance(60, "taken over later") {
		wait += w.span(time.Minute, "taken over after")
	}
	w.pass(until.Sub(w.now) + wait)
	w.feedSafe(Event{})
	w.over = false
}

// leave puts what a process sent before it died on its way. It is awaited until then, and takes
// effect within the settle time after it (saga/A2).
func (w *world) leave(r request, until time.Time, fate string) {
	if fate == "crash before" {
		return
	}
	r.settled = until.Add(r.step.Settle)
	r.arrives = w.now.Add(w.span(until.Sub(w.now)+r.step.Settle, "arrives after") + w.beyond())
	if fate == "crash with a late answer" {
		r.answered = func(id string) {
			if id == refusedID {
				return
			}
			w.late = append(w.late, Signal{Kind: SignalLate, Resolution: saga.Resolution{
				Step: r.step.Name, Direction: r.dir, Attempt: r.attempt, StepKey: r.key, Happened: true, ExternalID: id, Output: output(id),
			}})
		}
	}
	w.dest.network = append(w.dest.network, r)
}

// look asks the destination for the step, as honestly as saga/A3 says. C5 and F13: it is asked only when
// nothing is on the way any more.
func (w *world) look() {
	name := w.last.Do.Step
	s := &w.spec.Steps[w.spec.Index(name)]
	if w.dest.onTheWay(name) && !w.lags {
		w.brokenf("F13: a lookup of %s while something is on its way", name)
	}
	if w.liar && !w.quiet {
		w.lie(name)
		return
	}
	f := program.Evidence{Step: name, Answer: program.AnswerNotFound}
	seen := w.dest.shows(s, content(w.st.Input), func() bool { return w.chance(50, "seen early") })
	switch {
	case w.chance(20, "the lookup cannot tell"):
		f.Answer = program.AnswerUnclear
	case len(seen) > 1:
		f.Answer = program.AnswerSeveral
		for _, o := range seen {
			f.IDs = append(f.IDs, o.id)
		}
	case len(seen) == 1:
		f.Answer, f.ExternalID, f.Output = program.AnswerFound, seen[0].id, output(seen[0].id)
		if seen[0].half {
			f.Answer = program.AnswerUnfinished
		}
	}
	w.feedSafe(Event{Evidence: &f})
}

// rest lets a person look into the review.
func (w *world) rest() {
	if w.st.Status == saga.Paused {
		w.looksAtPaused()
		return
	}
	if w.st.Status != saga.Review {
		return
	}
	if w.open() != nil {
		w.pass(time.Minute + w.lag)
		w.feedSafe(Event{})
		return
	}
	ss, dir := w.st.Issue(w.spec)
	if w.st.Reason == saga.ReasonPoison && (ss == nil || ss.effort(dir).Phase == Done) {
		w.say(Signal{Kind: SignalWake})
		return
	}
	if ss == nil {
		w.brokenf("review %s, and no step is at issue", w.st.Reason)
	}
	if !w.chance(40, "in haste") {
		w.pass(3 * time.Minute) // until everything has settled
	}
	if w.st.Reason == saga.ReasonConflict && w.chance(40, "it stays as it is") {
		w.taken = w.st.NewestRevision
		w.say(Signal{Kind: SignalKeep, Actor: "anna"})
		return
	}
	if w.chance(25, "tried again") && w.triesAgain() || w.leaves(ss, dir) {
		return
	}
	w.resolutionOn(ss, dir)
}

// resolutionOn is an honest person's word: what is there now, and one of each. He undoes by hand
// what the machine could not.
func (w *world) resolutionOn(ss *StepState, dir saga.Direction) {
	s := &w.spec.Steps[w.spec.Index(ss.Name)]
	there := slices.DeleteFunc(slices.Clone(w.dest.things[ss.Name]), func(o object) bool { return !s.OncePerInstance() && o.says != content(w.st.Input) })
	v := saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts}
	switch {
	case dir == saga.Undo:
		w.dest.things[ss.Name] = nil
		v.Happened = true
	case len(there) > 0:
		there[0].half = false
		w.dest.keepOnly(ss.Name, there[0], s.OncePerInstance())
		v.Happened, v.ExternalID, v.Output = true, there[0].id, output(there[0].id)
	default:
		w.reissue[ss.Name]++
	}
	if w.dest.onTheWay(ss.Name) {
		w.hasty[ss.Name] = true
	}
	w.say(Signal{Kind: SignalResolve, Actor: "anna", Resolution: v})
}
