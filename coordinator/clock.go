package coordinator

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/machine"
)

// ledgerClock tells the database's time from what it answered last and our own monotonic clock.
// Only rates are trusted: what time of day this machine believes in has no part in any decision.
//
// A database whose clock steps is not believed at once. One that ran ahead would call attempts
// settled that are still on their way: nothing is settled by its new time until every attempt that
// was under way has settled by our own clock. One that stepped back is believed, which only makes
// waits longer.
type ledgerClock struct {
	log  logrus.FieldLogger
	skew time.Duration // how far apart the clocks are of the nodes that answer

	mu      sync.Mutex
	settled time.Duration // within this time every attempt has ended and settled
	basis   reading       // what settled is asked of
	ahead   reading       // runs ahead of it, and is not believed yet
	since   time.Time     // when that was heard first
}

// reading is the database's clock at some moment between sent and received.
type reading struct{ at, sent, received time.Time }

// earliest and latest bound what the database's clock shows now.
func (r reading) earliest(now time.Time) time.Time { return r.at.Add(now.Sub(r.received)) }
func (r reading) latest(now time.Time) time.Time   { return r.at.Add(now.Sub(r.sent)) }

// widened bounds the clock of whichever node answers next, where m bounds the one that answered
// last.
func (c *ledgerClock) widened(m machine.Moment) machine.Moment {
	return machine.Moment{Earliest: m.Earliest.Add(-c.skew), Latest: m.Latest.Add(c.skew)}
}

// clockMargin is by how much an answer may differ from what was expected before the clock counts as
// stepped: clocks that are being slewed run up to a thousandth fast or slow.
func clockMargin(elapsed time.Duration) time.Duration { return time.Second + elapsed/1000 }

// settles says that attempts of a step take at most so long to end and to settle.
func (c *ledgerClock) settles(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = max(c.settled, d)
}

// settling is within which time every attempt has ended and settled.
func (c *ledgerClock) settling() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled
}

// heard takes the database's clock out of the answer to a call that reads it. Times of records do
// not count: they keep the order of their chain, and run ahead of a clock that was set back.
func (c *ledgerClock) heard(at, sent, received time.Time) {
	if at.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := reading{at, sent, received}
	if c.basis.at.IsZero() {
		c.basis = r
		return
	}
	if !sent.After(c.basis.sent) || !sent.After(c.ahead.sent) {
		return // an older answer
	}
	margin := c.skew + clockMargin(received.Sub(c.basis.received))
	switch ahead, behind := at.Sub(c.basis.latest(received)), c.basis.earliest(sent).Sub(at); {
	case ahead > margin:
		c.runsAhead(r, ahead)
		return
	case behind > margin:
		c.log.WithField("by", behind.String()).Warn("the ledger's clock stepped back; what is due in the ledger waits for that much longer")
	case !c.ahead.at.IsZero():
		c.log.Warn("the ledger's clock stepped back to where it was expected")
	}
	c.basis, c.ahead, c.since = r, reading{}, time.Time{}
}

// runsAhead keeps a time that runs ahead of ours from being used, until nothing can be on its way
// any more.
func (c *ledgerClock) runsAhead(r reading, by time.Duration) {
	if c.since.IsZero() || r.at.Sub(c.ahead.latest(r.received)) > c.skew+clockMargin(r.received.Sub(c.ahead.received)) {
		c.since = r.received
		c.log.WithField("by", by.String()).WithField("used_in", c.settled.String()).
			Warn("the ledger's clock ran ahead; its time is not used before every attempt under way has settled")
	}
	c.ahead = r
	if r.sent.Sub(c.since) > c.settled {
		c.basis, c.ahead, c.since = r, reading{}, time.Time{}
	}
}

// known reports whether the database's clock was heard of.
func (c *ledgerClock) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.basis.at.IsZero()
}

// now bounds the database's clock at this moment.
func (c *ledgerClock) now() machine.Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	m := machine.Moment{Earliest: c.basis.earliest(now), Latest: c.basis.latest(now)}
	if !c.ahead.at.IsZero() {
		m.Latest = latest(m.Latest, c.ahead.latest(now))
	}
	return c.widened(m)
}

// doubted reports whether the database's clock ran ahead and is not believed yet.
func (c *ledgerClock) doubted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ahead.at.IsZero()
}

// expects reports whether a time is not ahead of what the clock that is believed shows, nor of another
// time and what has gone by since.
func (c *ledgerClock) expects(r, since reading) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.basis.at.IsZero() {
		return true
	}
	most := latest(c.basis.latest(r.received), since.latest(r.received))
	return !r.at.After(most.Add(c.skew + clockMargin(r.received.Sub(c.basis.received))))
}

// chainClock is the time by one chain and our own clock. A clock of the ledger that steps meanwhile
// neither freezes what is in hand nor settles it too early.
type chainClock struct {
	tail   reading   // when the latest record was written
	sure   reading   // the latest of which the time was to be expected
	jumped time.Time // since when, by our own clock, the tail is ahead of that; zero: it is not
	armed  reading   // when the latest attempt was armed, if that was here
}

// wrote takes the time of a record that was stored.
func (c *chainClock) wrote(l *ledgerClock, r *machine.Record, sent, received time.Time) {
	at := reading{r.At, sent, received}
	c.follow(at, l.expects(at, c.sure))
	if r.Dispatch != nil {
		c.armed = at
	}
}

// read takes the time of the latest record of a chain that was read. While the ledger's clock is not
// believed, nor is that.
func (c *chainClock) read(l *ledgerClock, at reading) { c.follow(at, !l.doubted()) }

func (c *chainClock) follow(at reading, expected bool) {
	switch c.tail = at; {
	case expected:
		c.sure, c.jumped = at, time.Time{}
	case c.jumped.IsZero():
		c.jumped = at.received
	}
}

// bound is what l says, bounded: it is not before the latest record and the time gone by since, by
// the clock of whichever node wrote that, and nothing that we armed is settled before our own clock
// says so, too. After the time within which every attempt has ended and settled, it is. So long a
// record is no proof of a time that was not to be expected: another process may have armed what is
// still on its way.
func (c *chainClock) bound(l *ledgerClock) machine.Moment {
	now, m := time.Now(), l.now()
	if !c.tail.at.IsZero() {
		proof := c.tail
		if !c.jumped.IsZero() && (now.Sub(c.jumped) <= l.settling() || l.doubted()) && !l.expects(reading{c.tail.earliest(now), now, now}, c.sure) {
			proof = c.sure
		}
		tail := l.widened(machine.Moment{Earliest: proof.earliest(now), Latest: c.tail.latest(now)})
		m.Earliest = latest(m.Earliest, tail.Earliest)
		m.Latest = latest(m.Latest, tail.Latest)
	}
	if most := c.armed.earliest(now); now.Sub(c.armed.received) <= l.settling() && most.Before(m.Earliest) {
		m.Earliest = most
	}
	return m
}
