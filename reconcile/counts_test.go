package reconcile_test

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// A listener that counts, for a page of metrics. Its functions are called from many goroutines.
func ExampleListener() {
	var mu sync.Mutex
	verdicts := map[reconcile.Verdict]int{}
	o := reconcile.Options{Listener: &reconcile.Listener{
		Judged: func(d *reconcile.Delivery) {
			mu.Lock()
			defer mu.Unlock()
			verdicts[d.Outcome]++
		},
	}}
	o.Listener.Judged(&reconcile.Delivery{Outcome: reconcile.Applied}) // a hearer does
	fmt.Println(verdicts)
	// Output: map[applied:1]
}

// counts is what a processor did, by its listener.
type counts struct {
	mu       sync.Mutex
	verdicts map[reconcile.Verdict]int64
	last     figures
}

// figures are counts at one moment.
type figures struct{ deferred, blocked, lost int64 }

func (c *counts) listener() *reconcile.Listener {
	add := func(n *int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		*n++
	}
	return &reconcile.Listener{
		Judged: func(d *reconcile.Delivery) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.verdicts == nil {
				c.verdicts = map[reconcile.Verdict]int64{}
			}
			c.verdicts[d.Outcome]++
		},
		Deferred: func(reconcile.Object, time.Duration) { add(&c.last.deferred) },
		Blocked:  func(reconcile.Object, string) { add(&c.last.blocked) },
		Lost:     func(reconcile.Object) { add(&c.last.lost) },
	}
}

func (c *counts) now() (map[reconcile.Verdict]int64, figures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.verdicts), c.last
}
