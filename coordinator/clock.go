package coordinator

import (
	"sync"
	"time"

	"github.com/amends-dev/amends/saga"
)

// ledgerClock tells the database's time from its last answer and our own monotonic clock. Only rates are
// trusted: what time of day this machine believes in has no part in any decision.
type ledgerClock struct {
	mu       sync.Mutex
	at       time.Time // the database's clock at some moment between sent and received
	sent     time.Time
	received time.Time
}

// heard takes the database's clock out of an answer.
func (c *ledgerClock) heard(at, sent, received time.Time) {
	if at.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.After(c.sent) {
		c.at, c.sent, c.received = at, sent, received
	}
}

// now bounds the database's clock at this moment.
func (c *ledgerClock) now() saga.Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	return saga.Moment{Earliest: c.at.Add(t.Sub(c.received)), Latest: c.at.Add(t.Sub(c.sent))}
}
