package inbox_test

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// A listener that counts, for a page of metrics. Its functions are called from many goroutines.
func ExampleListener() {
	var mu sync.Mutex
	dispositions := map[string]int{}
	o := inbox.Options{Listener: &inbox.Listener{
		Judged: func(d inbox.Delivery) {
			mu.Lock()
			defer mu.Unlock()
			dispositions[d.Disposition]++
		},
	}}
	o.Listener.Judged(inbox.Delivery{Disposition: "applied"}) // a processor does
	fmt.Println(dispositions)
	// Output: map[applied:1]
}

// counts is what a processor did, by its listener.
type counts struct {
	mu           sync.Mutex
	dispositions map[intake.Disposition]int64
	last         figures
}

// figures are counts at one moment.
type figures struct{ deferred, blocked, lost int64 }

func (c *counts) listener() *inbox.Listener {
	add := func(n *int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		*n++
	}
	return &inbox.Listener{
		Judged: func(d inbox.Delivery) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.dispositions == nil {
				c.dispositions = map[intake.Disposition]int64{}
			}
			c.dispositions[intake.Disposition(d.Disposition)]++
		},
		Deferred: func(inbox.Object, time.Duration) { add(&c.last.deferred) },
		Blocked:  func(inbox.Object, string) { add(&c.last.blocked) },
		Lost:     func(inbox.Object) { add(&c.last.lost) },
	}
}

func (c *counts) now() (map[intake.Disposition]int64, figures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.dispositions), c.last
}
