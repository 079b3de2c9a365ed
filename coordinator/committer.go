package coordinator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// committer writes whatever is waiting as one batch. Works hand their records in and wait for the answer to
// their own. There is no timer: a writer that is free takes what is queued, so one work alone waits for
// nobody, and a thousand share a transaction.
//
// An error from the ledger says that nothing is known of the batch. The committer then appends the very same
// records again until there is an answer, and decides nothing meanwhile.
type committer struct {
	ledger   ledger.Ledger
	clock    *ledgerClock
	listener *Listener
	log      logrus.FieldLogger
	ctx      context.Context // its own: a caller that goes away takes nothing back
	maxBatch int
	writers  int

	mu     sync.Mutex
	queue  []*commit
	active int // writers under way
}

// commit is one record on its way.
type commit struct {
	token  saga.Token
	entry  ledger.Entry
	answer ledger.Answer
	err    error // the committer was told to give up; nothing is known
	done   chan struct{}
}

// errUnknown is answered when the committer has to end without knowing what became of a record.
var errUnknown = errors.New("the coordinator stopped before the ledger answered; the record may be stored")

// append stores one record and returns the ledger's answer to it.
func (c *committer) append(token saga.Token, e ledger.Entry) (ledger.Answer, error) {
	op := &commit{token: token, entry: e, done: make(chan struct{})}
	c.submit(op)
	<-op.done
	return op.answer, op.err
}

// submit queues op and returns; op.done is closed when its answer is known.
func (c *committer) submit(op *commit) {
	c.mu.Lock()
	c.queue = append(c.queue, op)
	idle := c.active < c.writers
	if idle {
		c.active++
	}
	c.mu.Unlock()
	if idle {
		go c.drain()
	}
}

// drain writes batches until nothing is queued.
func (c *committer) drain() {
	for {
		batch := c.next()
		if batch == nil {
			return
		}
		c.write(batch)
		for _, op := range batch {
			close(op.done)
		}
	}
}

// next takes the longest run of queued records that one call may carry: one session, one record per work.
func (c *committer) next() []*commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.active--
		return nil
	}
	n := 1
	for n < len(c.queue) && n < c.maxBatch && c.queue[n].token == c.queue[0].token {
		n++
	}
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	return batch
}

// write appends one batch, again and again until the ledger has answered.
func (c *committer) write(batch []*commit) {
	entries := make([]ledger.Entry, len(batch))
	for i, op := range batch {
		entries[i] = op.entry
	}
	const first = 10 * time.Millisecond
	for wait := first; ; wait = min(2*wait, time.Second) {
		sent := time.Now()
		answers, err := c.ledger.Append(c.ctx, batch[0].token, entries)
		switch {
		case err == nil:
			c.deliver(batch, answers, sent)
			return
		case errors.Is(err, ledger.ErrDatabaseChanged):
			for _, op := range batch {
				op.answer = ledger.Answer{Result: ledger.Missing}
			}
			return
		case sleep(c.ctx, wait) != nil:
			for _, op := range batch {
				op.err = errors.Join(errUnknown, err)
			}
			return
		}
		if wait == first {
			c.log.WithError(err).WithField("records", len(batch)).Warn("the ledger did not answer; the same records are appended again until it does")
		}
	}
}

func (c *committer) deliver(batch []*commit, answers []ledger.Answer, sent time.Time) {
	received := time.Now()
	var at time.Time
	for i, op := range batch {
		op.answer = answers[i]
		if a := answers[i]; a.Result == ledger.Appended && a.At.After(at) {
			at = a.At
		}
	}
	c.clock.heard(at, sent, received)
	c.listener.committed(len(batch), received.Sub(sent))
}
