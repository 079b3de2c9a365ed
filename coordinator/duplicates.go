package coordinator

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// duplicateCounter gathers blocked duplicates and stores them in the ledger now and then, so that a
// storm of one key costs one statement a second and never touches the work's head.
//
// What is stored is a total under a name of its own, not what has been added: after an error it is
// not known whether it is in, so the same total, or a greater one, is stored again. A name is used
// for an hour; then its totals need not be kept any more, and another process may fold it a day
// after it spoke last.
type duplicateCounter struct {
	flushing chan struct{} // full during a flush: who has waited for its end finds the own count written

	mu      sync.Mutex
	current *tally
	old     []*tally                    // what of them is not stored yet
	failed  bool                        // the latest flush did
	layers  map[ledger.BlockedDay]int64 // what is counted by day alone, of a layer and a source, and is not stored yet
}

// tally is what was counted under one name.
type tally struct {
	name   ledger.Counter
	drawn  time.Time
	totals map[duplicateKey]*total
}

// total is how often a start was sent again, and how much of that is known to be stored.
type total struct{ counted, stored int64 }

type duplicateKey struct {
	id     saga.ID
	source string
}

const (
	// flushEvery is how often a running coordinator stores its counts.
	flushEvery = time.Second
	// flushWithin is how long one call may take.
	flushWithin = 15 * time.Second
	// A name is replaced after tallyAge, or when more than tallySize totals are kept under it. What
	// could not be stored within tallyLimit is given up: by then others may soon take its silence
	// for an end.
	tallyAge   = time.Hour
	tallySize  = 10_000
	tallyLimit = ledger.CounterSilence / 2
)

func newDuplicateCounter() *duplicateCounter {
	return &duplicateCounter{flushing: make(chan struct{}, 1), current: newTally(), layers: map[ledger.BlockedDay]int64{}}
}

func newTally() *tally {
	return &tally{name: ledger.Counter(1 + rand.Int64N(1<<62)), drawn: time.Now(), totals: map[duplicateKey]*total{}}
}

// age is how long ago the name was drawn, by whichever clock says more: the one that stands still
// while a machine sleeps, or the one that people set.
func (t *tally) age() time.Duration {
	return max(time.Since(t.drawn), time.Now().Round(0).Sub(t.drawn.Round(0)))
}

// unstored are the totals that are not known to be stored.
func (t *tally) unstored() []ledger.Duplicate {
	var ds []ledger.Duplicate
	for k, n := range t.totals {
		if n.counted > n.stored {
			ds = append(ds, ledger.Duplicate{ID: k.id, Source: k.source, Count: n.counted})
		}
	}
	return ds
}

func (d *duplicateCounter) count(id saga.ID, source string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.current.totals) == 0 { // a name is as old as the first that it counted
		d.current = newTally()
	}
	k := duplicateKey{id, source[:min(len(source), ledger.MaxText)]} // as it is stored: of two that are one there, one total is
	n := d.current.totals[k]
	if n == nil {
		n = &total{}
		d.current.totals[k] = n
	}
	n.counted++
}

// block counts what a layer blocked of a source, by day alone.
func (d *duplicateCounter) block(by, source string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.layers[ledger.BlockedDay{By: by, Source: source}]++
}

// countBlocked counts it, as [Coordinator.countDuplicate] does.
func (c *Coordinator) countBlocked(ctx context.Context, by, source string) {
	c.duplicates.block(by, source)
	c.flushUnlessRun(ctx)
}

// countDuplicate counts a start that was answered from the ledger. A process that only starts works
// has nothing that flushes every second, and may end with its last start: there the count is in the
// ledger when Start returns.
func (c *Coordinator) countDuplicate(ctx context.Context, in intake) {
	c.duplicates.count(in.id, in.source)
	c.flushUnlessRun(ctx)
}

func (c *Coordinator) flushUnlessRun(ctx context.Context) {
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

// flushDuplicates stores the counts. It does not end with a caller or with the stop of Run.
func (c *Coordinator) flushDuplicates() {
	c.duplicates.flush(c.life, c.ledger, c.opts.Log)
}

// flushMeanwhile stores the counts beside its caller, unless that is under way: a ledger that does
// not answer holds up no claim, however often the counts have to be stored again.
func (c *Coordinator) flushMeanwhile() {
	d := c.duplicates
	select {
	case d.flushing <- struct{}{}:
		go func() {
			defer func() { <-d.flushing }()
			d.store(c.life, c.ledger, c.opts.Log)
		}()
	default:
	}
}

// flush stores what was gathered. It waits for the end of a flush that is under way.
func (d *duplicateCounter) flush(ctx context.Context, l ledger.Ledger, log logrus.FieldLogger) {
	select {
	case d.flushing <- struct{}{}:
		defer func() { <-d.flushing }()
		d.store(ctx, l, log)
	case <-ctx.Done():
	}
}

// store stores what was gathered, as the one that flushes.
func (d *duplicateCounter) store(ctx context.Context, l ledger.Ledger, log logrus.FieldLogger) {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	d.mu.Lock()
	layers := d.layers
	d.layers = map[ledger.BlockedDay]int64{}
	d.mu.Unlock()
	for of, n := range layers { // rather too few than too many: when it fails, they may be in
		_ = l.Blocked(ctx, of.By, of.Source, n)
	}
	for _, t := range d.tallies(log) {
		d.mu.Lock()
		ds := t.unstored()
		d.mu.Unlock()
		if len(ds) == 0 {
			continue
		}
		err := l.Count(ctx, t.name, ds)
		if first := d.stored(t, ds, err); first {
			log.WithError(err).WithField("works", len(ds)).
				Warn("counts of blocked duplicates are not known to be stored; they are stored again while this process runs, and the duplicates were blocked all the same")
		}
		if err != nil {
			return
		}
	}
}

// tallies are what a flush stores: the older ones first. A name that has served its time is
// replaced.
func (d *duplicateCounter) tallies(log logrus.FieldLogger) []*tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.current; len(t.totals) > 0 && (t.age() > tallyAge || len(t.totals) > tallySize) {
		d.old, d.current = append(d.old, t), newTally()
	}
	var left []*tally
	for _, t := range d.old {
		switch ds := t.unstored(); {
		case len(ds) == 0:
		case t.age() > tallyLimit:
			log.WithField("works", len(ds)).Warn("counts of blocked duplicates are lost: they could not be stored for half a day; the duplicates were blocked all the same")
		default:
			left = append(left, t)
		}
	}
	d.old = left
	return append(append([]*tally{}, left...), d.current)
}

// stored notes what the ledger has by now. It reports whether this is the first of several calls
// that failed.
func (d *duplicateCounter) stored(t *tally, ds []ledger.Duplicate, err error) (first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		first, d.failed = !d.failed, true
		return first
	}
	d.failed = false
	for _, n := range ds {
		t.totals[duplicateKey{n.ID, n.Source}].stored = n.Count
	}
	return false
}
