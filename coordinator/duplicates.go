package coordinator

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// duplicateCounter gathers blocked duplicates and adds them to the ledger now and then, so that a storm of
// one key costs one statement a second and never touches the work's head.
type duplicateCounter struct {
	flushing chan struct{} // full during a flush: whoever has waited for its end finds his own count written

	mu     sync.Mutex
	counts map[duplicateKey]*ledger.Duplicate
}

// flushEvery is how often a running coordinator adds its counts to the ledger.
const flushEvery = time.Second

// flushWithin is how long one call may take. What it carried is lost when it takes longer, so it is generous.
const flushWithin = 15 * time.Second

type duplicateKey struct {
	id     saga.ID
	source string
}

func newDuplicateCounter() *duplicateCounter {
	return &duplicateCounter{flushing: make(chan struct{}, 1), counts: map[duplicateKey]*ledger.Duplicate{}}
}

func (d *duplicateCounter) count(id saga.ID, source string) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	k := duplicateKey{id, source}
	n := d.counts[k]
	if n == nil {
		n = &ledger.Duplicate{ID: id, Source: source, First: now}
		d.counts[k] = n
	}
	n.Count++
	n.Last = now
}

// countDuplicate counts a start that was answered from the ledger. A process that only starts works has nothing
// that flushes every second, and may end with its last start: there the count is in the ledger when Start returns.
func (c *Coordinator) countDuplicate(ctx context.Context, in intake) {
	c.duplicates.count(in.id, in.source)
	if c.ran.Load() {
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); c.flushDuplicates() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// flushDuplicates adds the counts to the ledger. It does not end with a caller or with the stop of Run: half a call
// is a count that nobody knows.
func (c *Coordinator) flushDuplicates() {
	c.duplicates.flush(c.life, c.ledger, c.opts.Log)
}

// flush adds what was gathered to the ledger. After an error nobody knows whether the counts are in; they are
// dropped rather than counted twice, and the loss is logged.
func (d *duplicateCounter) flush(ctx context.Context, l ledger.Ledger, log logrus.FieldLogger) {
	select {
	case d.flushing <- struct{}{}:
		defer func() { <-d.flushing }()
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	d.mu.Lock()
	counts := d.counts
	d.counts = map[duplicateKey]*ledger.Duplicate{}
	d.mu.Unlock()
	if len(counts) == 0 {
		return
	}
	ds := make([]ledger.Duplicate, 0, len(counts))
	for _, n := range counts {
		ds = append(ds, *n)
	}
	if err := l.Count(ctx, ds); err != nil {
		log.WithError(err).WithField("works", len(ds)).Warn("counts of blocked duplicates were lost; the duplicates were blocked all the same")
	}
}
