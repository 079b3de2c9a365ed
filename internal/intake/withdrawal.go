package intake

import (
	"cmp"
	"errors"
	"math"
	"time"
)

// Bound is inbox.WithdrawalBound: how much of a source may be withdrawn before a person is asked.
type Bound struct {
	Count   int64
	Percent float64
	Window  time.Duration
}

// WithDefaults fills in what zero stands for.
func (b Bound) WithDefaults() Bound {
	return Bound{Count: cmp.Or(b.Count, 10), Percent: cmp.Or(b.Percent, 10), Window: cmp.Or(b.Window, time.Hour)}
}

// Validate returns what is wrong.
func (b *Bound) Validate() error {
	if b.Count < -1 || !(b.Percent >= 0 && b.Percent <= 100) || b.Window < 0 { // NaN is no percentage either
		return errors.New("its Withdrawals have a Count below -1, a Percent that is not from 0 to 100, or a Window that is negative")
	}
	return nil
}

// Tally is what became of a source's objects lately.
type Tally struct {
	Undoes    bool  // the withdrawal would undo something; else nothing of the rest is told
	Held      bool  // withdrawals of the source are held
	Withdrawn int64 // objects whose withdrawal was let through within the window, and since a person decided
	Changed   int64 // objects that changed otherwise within the same time; no more than [Bound.Others] are counted
}

// Others is how many objects must have changed otherwise so that one more withdrawal is let through
// after so many; 0: however many.
func (b *Bound) Others(withdrawn int64) int64 {
	if withdrawn < b.Count {
		return 0
	}
	return int64(math.Ceil(float64(withdrawn+1) * (100 - b.Percent) / b.Percent))
}

// Weigh decides about the withdrawal that an accepted state asks for, and notes it in the entry. It
// reports whether it is let through.
func (e *Entry) Weigh(accepted int64, now time.Time, t Tally, b *Bound) bool {
	switch {
	case !t.Undoes:
	case t.Held || t.Changed < b.Others(t.Withdrawn):
		e.Held = accepted
		return false
	default:
		e.Let, e.Withdrawn, e.Changed = accepted, now, time.Time{}
	}
	return true
}

// Undelivered reports whether a delivery is owed that does not wait for a person.
func (e *Entry) Undelivered() bool { return e.Accepted > e.Delivered && e.Accepted != e.Held }

// deliver notes that a state was handed over.
func (e *Entry) deliver(r *Round, now time.Time) {
	if r.Deliver != nil || r.Held || r.Accepted <= e.Delivered {
		return
	}
	if e.Delivered = r.Accepted; e.Held <= e.Delivered {
		e.Held = 0
	}
	if !r.Withdraws {
		e.Changed = now
	}
}

// What a person decides about the withdrawals of a source that are held.
const (
	ActRelease = "release" // they are withdrawn, if that is still wanted
	ActDrop    = "drop"    // nothing is undone
)

// Holding is how many withdrawals of a source are held.
type Holding struct {
	Source string
	Count  int64
}
