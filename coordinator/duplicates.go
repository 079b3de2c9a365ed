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
	mu     sync.Mutex
	counts map[duplicateKey]*ledger.Duplicate
}

type duplicateKey struct {
	id     saga.ID
	source string
}

func newDuplicateCounter() *duplicateCounter {
	return &duplicateCounter{counts: map[duplicateKey]*ledger.Duplicate{}}
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

// flush adds what was gathered to the ledger. After an error nobody knows whether the counts are in; they are
// dropped rather than counted twice, and the loss is logged.
func (d *duplicateCounter) flush(ctx context.Context, l ledger.Ledger, log logrus.FieldLogger) {
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
