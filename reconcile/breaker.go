package reconcile

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/plan"
)

// breaker ends a run whose actions fail one after the other, or too often. It counts what is told
// to it, in that order.
type breaker struct {
	row, most int    // so many failures one after the other, and more than so many of the window, are too many
	last      []bool // which of the latest outcomes were failures, as a ring
	next      int
	inARow    int
	failures  int    // in the window
	probe     bool   // the run before was ended by its breaker: the first outcome of this one decides
	why       string // it is open
}

func newBreaker(b *plan.Bounds, probe bool) breaker {
	return breaker{row: b.Row, most: int(b.Rate * float64(b.Window)), last: make([]bool, b.Window), probe: probe}
}

// newLookBreaker is for looks, which break nothing: a few objects beside each other that may not be
// read keep no other from its turn. It takes four times as many failures one after the other to say
// that a system is down.
func newLookBreaker(b *plan.Bounds) breaker {
	return breaker{row: 4 * b.Row, most: b.Window, last: make([]bool, b.Window)}
}

// note takes in one outcome.
func (b *breaker) note(failed bool) {
	if b.last[b.next] {
		b.failures--
	}
	b.last[b.next] = failed
	b.next = (b.next + 1) % len(b.last)
	if !failed {
		b.inARow, b.probe = 0, false
		return
	}
	b.failures++
	b.inARow++
	switch {
	case b.why != "":
	case b.probe:
		b.why = "the run before this one ended for its failures, and the first action of this one failed as well"
	case b.inARow >= b.row:
		b.why = fmt.Sprintf("%d actions failed one after the other", b.inARow)
	case b.failures > b.most:
		b.why = fmt.Sprintf("%d of the last %d actions failed", b.failures, len(b.last))
	}
}

// open reports whether nothing more may be tried.
func (b *breaker) open() bool { return b.why != "" }

// A plan with more than trialFrom actions of one kind begins with trialSize of them, one by one.
// Each is read back.
const (
	trialFrom = 50
	trialSize = 5
)

// kind is what actions have in common that succeed or fail for one reason.
type kind struct {
	class plan.Class
	do    plan.Verb
}

func kindOf(row *plan.Row) kind { return kind{row.Class, row.Action} }

// trialsOf returns how many actions of each kind are to be tried, for kinds that a plan has many
// actions of.
func trialsOf(p *plan.Plan, withheld map[plan.Risk]bool) map[kind]int {
	many := map[kind]int64{}
	for _, t := range p.Classes {
		if t.Action.Acts() && !withheld[t.Risk] { // one kind may be of two risks
			many[kind{t.Class, t.Action}] += t.Count
		}
	}
	trials := map[kind]int{}
	for k, n := range many {
		if n > trialFrom {
			trials[k] = trialSize
		}
	}
	return trials
}

// try does one action alone and reads back what came of it. Where that is not as it should be,
// nothing more of its kind is done. An action that was superseded or failed proves nothing, and the
// next one takes its turn.
func (a *applying) try(ctx context.Context, k kind, row *plan.Row) error {
	if err := a.run(ctx, []*plan.Row{row}); err != nil || row.Outcome != plan.Applied {
		return err
	}
	wrong, err := a.readBack(ctx, row.Key)
	if err != nil {
		return err
	}
	a.trials[k]--
	if wrong != "" {
		a.stopped[k] = wrong
	}
	return nil
}
