package reconcile

import (
	"maps"
	"sync"
	"time"
)

// Counts is what a [Hearer] has done since it was made.
type Counts struct {
	Verdicts  map[Verdict]int64
	Fetches   int64 // times the sources were asked
	Hints     int64 // reasons to ask that those fetches answered
	Delivered int64 // times the user's function took a change over
	Failed    int64 // fetches and deliveries that were in vain
	Deferred  int64 // times a fetch had to wait for the source's rate
	Blocked   int64
	Lost      int64
	Panics    int64
}

// Coalesced is how many hints cost no fetch of their own.
func (c *Counts) Coalesced() int64 { return max(c.Hints-c.Fetches, 0) }

// Counts returns what h has done so far.
func (h *Hearer) Counts() Counts {
	h.counts.mu.Lock()
	defer h.counts.mu.Unlock()
	c := h.counts.Counts
	c.Verdicts = maps.Clone(c.Verdicts)
	return c
}

// counters is the listener that counts.
type counters struct {
	mu sync.Mutex
	Counts
}

func (c *counters) listener() *Listener {
	count := func(add func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		add()
	}
	c.Verdicts = map[Verdict]int64{}
	return &Listener{
		Judged: func(d *Delivery) { count(func() { c.Verdicts[d.Outcome]++ }) },
		Fetched: func(_ Object, hints int64, _ time.Duration, _ string, err error) {
			count(func() {
				c.Fetches++
				c.Hints += hints
				if err != nil {
					c.Failed++
				}
			})
		},
		Delivered: func(_ *Change, _ time.Duration, err error) {
			count(func() {
				if err != nil {
					c.Failed++
				} else {
					c.Delivered++
				}
			})
		},
		Deferred: func(Object, time.Duration) { count(func() { c.Deferred++ }) },
		Blocked:  func(Object, string) { count(func() { c.Blocked++ }) },
		Lost:     func(Object) { count(func() { c.Lost++ }) },
		Panicked: func(Object, string, string) { count(func() { c.Panics++ }) },
	}
}
