package coordinator

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/ledger"
)

// absent are the works that wait in the ledger for their turns at a destination, for as long as its line was estimated
// to take. When it turns out to be shorter they are asked back, in the order of the line.
type absent struct {
	until   map[int64]time.Time // by the ledger's number
	order   []rank
	awaited map[int64]bool // those that were asked back and have not come
	asked   time.Time      // when the last of them were
}

// mostAbsent is how many are remembered; what is beyond it comes when its estimate is over.
const mostAbsent = 10_000

// sentAway remembers a work that has been given back into the ledger because of the line.
func (d *destination) sentAway(r rank, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := &d.absent; len(a.order) < mostAbsent {
		a.until[r.number] = until
		a.order = slices.Insert(a.order, place(a.order, r, func(o rank) rank { return o }), r)
	}
	d.serve()
}

// came forgets a work that is in hand again, for whatever reason: it stands in line, or wants no turn any more.
func (d *destination) came(number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.absent.until, number)
	delete(d.absent.awaited, number)
}

// askBack asks works back for which there is room in line by now: for as many as it serves within the time that a work
// may wait, and for one at least. What was asked back and has not come within that time is not awaited any more. It
// says after which time to look again, or 0 when a change of the line is the next occasion.
func (d *destination) askBack() (again time.Duration) {
	now, a := time.Now(), &d.absent
	if now.Sub(a.asked) >= d.hold {
		clear(a.awaited)
	}
	switch room := d.places() - len(d.line) - len(a.awaited); {
	case len(a.order) == 0:
		return 0
	case d.heldBack.After(now):
		return d.heldBack.Sub(now)
	case room <= 0:
		return max(0, d.hold-now.Sub(a.asked))
	default:
		if numbers := a.take(room, now); len(numbers) > 0 {
			a.asked = now
			d.back(numbers)
		}
		return d.hold
	}
}

// take takes the first so many of those that have not come, and would not come by themselves now.
func (a *absent) take(n int, now time.Time) (numbers []int64) {
	for len(a.order) > 0 && len(numbers) < n {
		number := a.order[0].number
		if a.until[number].After(now) {
			numbers = append(numbers, number)
			a.awaited[number] = true
		}
		delete(a.until, number)
		a.order = a.order[1:]
	}
	return numbers
}

// places is how long the line may be for its last to have a turn within the time that a work may wait.
func (d *destination) places() int {
	each := d.each()
	switch left := d.hold - (d.wait(0) - each); {
	case left <= each:
		return 1
	case each == 0:
		return d.room
	default:
		return min(d.room, int(left/each))
	}
}

// askBack makes works due now that wait in the ledger for their turns at a destination, and looks for them. It is asked
// once: who does not hear of it comes when the estimate is over.
func (c *Coordinator) askBack(numbers []int64) {
	s := c.current.Load()
	if s == nil || c.isStopping() {
		return
	}
	back := make([]ledger.Return, len(numbers))
	for i, n := range numbers {
		back[i].Number = n
	}
	go func() {
		for slices.ContainsFunc(numbers, s.returns.has) && sleep(s.idle, 10*time.Millisecond) == nil {
		} // what is not in the ledger yet cannot be due there
		if c.ledger.GiveBack(c.life, 0, back) == nil {
			c.wake()
		}
	}()
}

// came tells every line that a work is in hand again.
func (c *Coordinator) came(number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.destinations {
		d.came(number)
	}
}
