package machine

import (
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// tally counts, without the fold, how often each AtMostOnce step may have been sent, and how often
// it was allowed: once, once more for each person's word that it did not happen (a skip is one),
// and once more for each undo. It is held against every record that any test of this package stores:
// the price of the promise is that no lookup, no revision, no fail-over and no way
// back counts. What a fail-over forgets stays counted.
type tally struct {
	sends   map[string]int
	allowed map[string]int
}

// count takes one record in. broken is called when a step may have been sent once too often.
func (c *tally) count(spec *program.Spec, r *Record, broken func(format string, args ...any)) {
	if c.sends == nil {
		c.sends, c.allowed = map[string]int{}, map[string]int{}
	}
	switch {
	case r.Kind == KindAdopted: // the ledger was lost, and what was sent before is what the adoption says
		c.sends[r.Step], c.allowed[r.Step] = 0, 0
		if r.ErrorClass != saga.Unsent && r.ErrorClass != saga.Refused {
			c.sends[r.Step] = 1
		}
	case r.Direction == saga.Forward && (r.Kind == KindNotSent || r.Kind == KindFault || r.Kind == KindRefused && r.ErrorClass == saga.Refused):
		c.sends[r.Step]-- // it provably was not
	case r.Kind == KindSkipped, r.Kind == KindResolved && (r.Direction == saga.Undo || r.ErrorClass == saga.Unsent):
		c.allowed[r.Step]++
	case r.Direction == saga.Undo && r.Kind == KindDone:
		c.allowed[r.Step]++
	}
	a := r.Dispatch
	if a == nil || a.Direction != saga.Forward {
		return
	}
	c.sends[a.Step]++
	s := &spec.Steps[spec.Index(a.Step)]
	if s.Repeat == program.RepeatAtMostOnce && c.sends[a.Step] > 1+c.allowed[a.Step] {
		broken("I1: record %d sends %s, and it may have been sent %d times before; %d are allowed", r.Seq, a.Step, c.sends[a.Step]-1, 1+c.allowed[a.Step])
	}
}
