package coordinator

import (
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/machine"
)

// How a destination's health is found out here, and obeyed.

// condition is what this process has seen of a destination, and how it changes what all processes
// know.
type condition struct {
	now    func() machine.Moment
	who    func() machine.Token                             // the session of this process; 0: none
	change func(f func(h health) (changed health, ok bool)) // in the background

	health  health
	failed  map[int64]bool // instances that failed since one was served
	worked  time.Time      // ledger time: when this process last saw one served
	longest time.Duration  // the longest attempt there
	meter   meter
	before  float64       // sends a second in the busiest minute before it was not healthy any more
	bound   *rate.Limiter // after an outage of a destination without a limit; nil: none
	surge   surge         // since the bound was set
}

// surge tells how much comes to a destination beside what its bound lets through.
type surge struct {
	since        time.Time
	sent, turned int // works turned away
}

// surgeFor is how long as much has to come as a bound lets through for it to be raised.
const surgeFor = 10 * time.Minute

// severalFailed is how many instances have to fail, and for how long none may have been served, for
// a destination to be failing: one alone may be at fault itself, and a destination that fails now
// and then serves others between.
const (
	severalFailed = 3
	unservedFor   = 2 * time.Second
)

// obey takes over what is known of the destination's health. It returns the states that it had and
// has.
func (d *destination) obey(h health) (was, is string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	h = h.believed(now)
	was, is = d.health.state(now), h.state(now)
	if h.ServedAt.After(d.health.ServedAt) { // by another process, maybe
		clear(d.failed)
	}
	d.health = h
	switch {
	case was == healthy && is != healthy && d.bound == nil:
		d.before = d.meter.busiest(time.Now())
	case was != healthy && is == healthy && d.limit == (Limit{}):
		// twice the rate before, until nothing waits for it any more
		d.bound, d.surge = rate.NewLimiter(rate.Limit(max(1, 2*d.before)), 1), surge{since: time.Now()}
	}
	d.serve()
	return was, is
}

// swell doubles the bound when about as much has come for some time as it lets through, or more:
// after an outage at night what waits would never become less.
func (d *destination) swell() {
	now := time.Now()
	if d.bound == nil || now.Sub(d.surge.since) < surgeFor {
		return
	}
	if d.surge.turned > d.surge.sent*3/4 {
		d.bound.SetLimit(2 * d.bound.Limit())
	}
	d.surge = surge{since: now}
}

// shut says how long the destination is closed to this process, at least; 0 when it is open.
func (d *destination) shut() time.Duration {
	wait := max(0, time.Until(d.heldBack))
	switch {
	case d.awaits():
		return max(wait, d.hold) // not for longer than a work may wait in line
	case !d.has():
		return max(wait, never) // another process has the limit, or another's part of it
	}
	now := d.now()
	if d.health.state(now) == healthy || d.health.probing(now, d.who()) && d.busy == 0 {
		return wait
	}
	if changes := d.health.changes(now); !changes.IsZero() {
		return max(wait, changes.Sub(now.Earliest), askEvery)
	}
	return max(wait, never)
}

// findsOut reports whether the destination is closed to this process, but for whichever work is the
// probe.
func (d *destination) findsOut() bool {
	return d.has() && time.Until(d.heldBack) <= 0 && d.health.mayProbe(d.now())
}

// asideFor is how long a work stays away at most from a destination that fails, and failed it
// before.
const asideFor = 15 * time.Minute

// aside is how long such a work stays away: about as long as it takes to probe with each of its
// kind, so that most probes are made by others. If it is the work that is at fault, one of them is
// served. It is no longer than the destination has been failing: what a short outage failed comes
// back as soon after it as the outage was long.
func (d *destination) aside() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.health.FailingSince.IsZero() {
		return 0
	}
	wait := d.health.wait()
	failing := d.now().Latest.Sub(d.health.FailingSince)
	most := min(asideFor, time.Duration(len(d.failed))*wait, max(wait, failing))
	return most/2 + rand.N(most/2+1)
}

// paused says that a person holds the destination, or nil.
func (d *destination) paused() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.health.PausedBy == "" {
		return nil
	}
	return fmt.Errorf("%w by %s: %s", errPaused, d.health.PausedBy, d.health.PausedWhy)
}

// never is longer than a work may wait in line.
const never = 24 * time.Hour

// probes asks for the probe when it is to be had and a work stands in line for it, and gives it
// back when none does any more: another process may have one.
func (d *destination) probes() {
	now, who := d.now(), d.who()
	d.health = d.health.believed(now)
	wanted := len(d.line) > 0
	switch {
	case who == 0 || !d.has():
	case wanted && d.health.mayProbe(now):
		ends := now.Latest.Add(2*d.longest + 2*d.hold) // a lookup and an attempt, and what is between them
		d.change(func(h health) (health, bool) { return h.taken(who, ends), h.mayProbe(now) })
	case !wanted && d.busy == 0 && d.health.probing(now, who):
		d.health = d.health.unused() // at once, as for one that failed
		d.change(func(h health) (health, bool) { return h.unused(), h.Prober == who.String() })
	}
}

// answered notes that an instance was served.
func (d *destination) answered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.worked = now.Earliest
	clear(d.failed)
	tells := func(h *health) bool { return h.ends(now) || now.Earliest.Sub(h.ServedAt) > time.Minute }
	if tells(&d.health) {
		d.change(func(h health) (health, bool) { return h.served(now), tells(&h) })
	}
}

// failedBy notes that an attempt or a lookup of an instance failed there, although it reached the
// destination or tried to.
func (d *destination) failedBy(number int64, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, who := d.now(), d.who()
	if d.failed[number] = true; d.health.probing(now, who) {
		d.health = d.health.unused() // at once: a second attempt is not to leave before that is stored
		d.change(func(h health) (health, bool) { return h.failed(now, why), h.Prober == who.String() })
		return
	}
	if len(d.failed) >= severalFailed && now.Earliest.Sub(d.lastServed(now)) >= unservedFor && d.health.FailingSince.IsZero() {
		d.change(func(h health) (health, bool) { return h.failed(now, why), h.FailingSince.IsZero() })
	}
}

// outage reports whether nothing was served there since an instance failed last: that it fails
// again is not its fault.
func (d *destination) outage(since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.lastServed(d.now()).After(since)
}

// lastServed is when an instance was served there last, as far as is known.
func (d *destination) lastServed(now machine.Moment) time.Time {
	if d.worked.After(now.Latest) { // by a clock that was set back since
		d.worked = time.Time{}
	}
	return latest(d.worked, d.health.believed(now).ServedAt)
}

// meter counts sends by the minute.
type meter struct {
	minute time.Time
	n      int
	past   [10]int // full minutes, the latest first
}

func (m *meter) count(now time.Time) {
	m.advance(now)
	m.n++
}

// advance begins a new minute when one is over.
func (m *meter) advance(now time.Time) {
	if m.minute.IsZero() {
		m.minute = now
	}
	for n := 0; now.Sub(m.minute) >= time.Minute; n++ {
		if n == len(m.past) { // nothing was sent for long: the past is what it is
			m.minute = now
			return
		}
		copy(m.past[1:], m.past[:])
		m.past[0], m.n = m.n, 0
		m.minute = m.minute.Add(time.Minute)
	}
}

// busiest is the rate of the busiest minute of late, in sends a second. The minute that is not over
// counts for as long as it lasted, ten seconds at least: a process may have begun only now.
func (m *meter) busiest(now time.Time) float64 {
	m.advance(now)
	most := float64(m.n) / max(10, now.Sub(m.minute).Seconds())
	for _, n := range m.past {
		most = max(most, float64(n)/60)
	}
	return most
}
