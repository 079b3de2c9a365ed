package saga

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
)

// TakeOver is put among the steps of a definition whose work another program did, until since: a script, a job, a person. Every step
// that has a [Action.Find] is asked for before its first request ([Action.FindFirst]), so that what the other program made is adopted and
// not made again. It may be at work until it is stopped, and what it sent last may appear later: so nothing is asked before since, and the
// step's Settle, are over, and an instance that comes to such a step earlier waits.
//
//	saga.TakeOver[Order](time.Date(2026, 12, 1, 22, 0, 0, 0, time.UTC)), // when the old script is stopped
//
// Take it out when no instance begins any more for what the other program may have done. A definition may do so under its version.
//
// A step that cannot be asked for must be [Action.Idempotent], or have a [Action.When] that says whether it is done for what was there
// before ([Call.WasThere]).
func TakeOver[In any](since time.Time) Step[In] {
	return takeOver[In]{since.UTC().Truncate(time.Millisecond)}
}

type takeOver[In any] struct{ since time.Time }

func (t takeOver[In]) part(d *Definition[In], _ In) {
	d.spec.TakenOver = t.since
	d.faults.whenf(t.since.IsZero(), "TakeOver needs the time at which the other program was stopped")
}

// takeOver has every step asked for first that can be, and says what is wrong with the others.
func (d *Definition[In]) takeOver() (faults []string) {
	if d.spec.TakenOver.IsZero() {
		return nil
	}
	for i := range d.spec.Steps {
		s := &d.spec.Steps[i]
		switch {
		case s.Waits() || s.Asks != nil:
		case s.Find:
			s.FindFirst = true
		case s.Repeat != program.RepeatIdempotent && !s.Conditional:
			faults = append(faults, fmt.Sprintf("step %q: the other program may have done it, and nothing can tell: say Find, or When with WasThere (see TakeOver)", s.Name))
		}
	}
	return faults
}
