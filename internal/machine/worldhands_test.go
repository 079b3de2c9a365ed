package machine

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/saga"
)

// What people do by hand in the random world.

// hand lets a person pause the work, let it go on, or have a step tried again, whatever the work
// does. It reports whether one did.
func (w *world) hand() bool {
	switch {
	case w.chance(3, "a pause"):
		w.say(Signal{Kind: SignalPause, Actor: "anna"})
	case w.chance(2, "a resume"):
		w.say(Signal{Kind: SignalResume, Actor: "anna"})
	case w.chance(3, "a retry"):
		return w.triesAgain()
	default:
		return false
	}
	return true
}

// triesAgain posts a retry of the step at issue, or of another attempt than its latest.
func (w *world) triesAgain() bool {
	ss, dir := w.st.Issue(w.spec)
	if ss == nil {
		return false
	}
	v := saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts}
	if w.chance(20, "of an older attempt") {
		v.Attempt--
	}
	w.say(Signal{Kind: SignalRetry, Actor: "anna", Resolution: v})
	return true
}

// leaves posts, of a step at issue that a person looked for and did not find, that it did not
// happen and will not. It reports whether one did.
func (w *world) leaves(ss *StepState, dir saga.Direction) bool {
	if dir != saga.Forward || w.st.Compensating || !w.chance(20, "it will not happen") {
		return false
	}
	s := &w.spec.Steps[w.spec.Index(ss.Name)]
	if slices.ContainsFunc(w.dest.things[ss.Name], func(o object) bool { return s.OncePerInstance() || o.says == content(w.st.Input) }) {
		return false
	}
	if w.dest.onTheWay(ss.Name) {
		w.hasty[ss.Name] = true
	}
	w.reissue[ss.Name]++ // a later revision does it
	w.say(Signal{Kind: SignalSkip, Actor: "anna", Resolution: saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.effort(dir).Attempts}})
	return true
}

// looksAtPaused lets a person look at a work that is paused, and let it go on.
func (w *world) looksAtPaused() {
	if !w.quiet && !w.chance(50, "it goes on") {
		w.pass(w.span(time.Hour, "paused"))
		w.feedSafe(Event{})
		return
	}
	w.say(Signal{Kind: SignalResume, Actor: "anna"})
}
