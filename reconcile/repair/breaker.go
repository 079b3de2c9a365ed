package repair

import (
	"fmt"

	"github.com/amends-dev/amends/reconcile/drift"
)

// breaker ends a run whose actions fail one after the other, or too often. It counts what is told to it, in that
// order.
type breaker struct {
	row, most int    // so many failures one after the other, and more than so many of the window, are too many
	last      []bool // which of the latest outcomes were failures, as a ring
	next      int
	inARow    int
	failures  int    // in the window
	probe     bool   // the run before was ended by its breaker: the first outcome of this one decides
	why       string // it is open
}

func newBreaker(b *drift.Bounds, probe bool) breaker {
	return breaker{row: b.Row, most: int(b.Rate * float64(b.Window)), last: make([]bool, b.Window), probe: probe}
}

// newLookBreaker is for looks, which break nothing: a few objects beside each other that nobody may see keep no other from
// its turn. It takes four times as many failures one after the other to say that a system answers nobody.
func newLookBreaker(b *drift.Bounds) breaker {
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
