package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
)

// committer writes whatever is waiting as one batch. Works hand their records in and wait for the
// answer to their own. There is no timer: a writer that is free takes what is queued, so one work
// alone waits for nothing, and a thousand share a transaction.
//
// An error from the ledger says that nothing is known of the batch. The committer then appends the
// very same records again until there is an answer, and decides nothing meanwhile.
type committer struct {
	ledger   ledger.Ledger
	tell     *teller
	outage   *outage
	ctx      context.Context // its own: a caller that goes away takes nothing back that was sent
	maxBatch int             // records of one call, and
	maxBytes int             // bytes of all but its first
	writers  int

	mu     sync.Mutex
	queue  []*commit
	active int // writers under way

	unused sync.Pool // of *commit: a work that waits for its action holds none
}

// commit is one record on its way.
type commit struct {
	token  machine.Token
	entry  ledger.Entry
	answer ledger.Answer
	err    error         // there is no answer
	done   chan struct{} // is sent one when that is known; it never blocks
}

// batchBytes is how much one transaction carries at most, beside its first record: more than a few
// snapshots of the largest works, and less than a database takes as one parameter.
const batchBytes = 8 << 20

// size is about how many bytes the record takes on its way.
func (op *commit) size() int {
	r := &op.entry.Record
	return 512 + len(r.Body) + len(r.Snapshot) + len(r.Error) + len(r.Note) + len(r.Why) + len(r.Cause)
}

var (
	// errUnknown is answered when the committer has to end without knowing what became of a record.
	errUnknown = errors.New("the coordinator stopped before the ledger answered; the record may be stored")
	// errWithdrawn is answered when nothing of a record was sent.
	errWithdrawn = errors.New("the caller has gone; nothing was stored")
)

// append stores one record and returns the ledger's answer to it. When gone is closed first, what
// was not sent yet is withdrawn.
func (c *committer) append(gone <-chan struct{}, token machine.Token, e *ledger.Entry) (ledger.Answer, error) {
	op, _ := c.unused.Get().(*commit)
	if op == nil {
		op = &commit{done: make(chan struct{}, 1)}
	}
	op.token, op.entry = token, *e
	c.submit(op)
	select {
	case <-op.done:
	case <-gone:
		c.withdraw(op)
		<-op.done
	}
	a, err := op.answer, op.err
	*op = commit{done: op.done}
	c.unused.Put(op)
	return a, err
}

// submit queues op and returns; op.done tells when its answer is known.
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

// withdraw takes op out of the queue, unless it is on its way.
func (c *committer) withdraw(op *commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.queue, op); at >= 0 {
		c.queue = slices.Delete(c.queue, at, at+1)
		op.err = errWithdrawn
		op.done <- struct{}{}
	}
}

// drain writes batches until nothing is queued.
func (c *committer) drain() {
	var entries []ledger.Entry // one list for batch after batch
	for {
		batch := c.next()
		if batch == nil {
			return
		}
		entries = c.write(batch, entries)
		for _, op := range batch {
			if op.answer.Result == ledger.Blocked && op.entry.Record.Seq > 1 { // the others did not wait for it
				c.again(op)
				continue
			}
			op.done <- struct{}{}
		}
	}
}

// again submits a record once more that could not be stored, unless the committer has to end.
func (c *committer) again(op *commit) {
	if c.ctx.Err() != nil {
		op.err = errors.Join(errUnknown, op.answer.Err)
		op.done <- struct{}{}
		return
	}
	pause := blockedPause
	if errors.Is(op.answer.Err, ledger.ErrKeys) {
		pause = longestPause
		c.outage.log.WithError(op.answer.Err).WithField("work", op.entry.ID.Work).Warn("a record cannot be sealed; it is stored once it can")
	}
	op.answer = ledger.Answer{}
	time.AfterFunc(pause, func() { c.submit(op) })
}

// next takes the longest run of queued records that one call may carry: one session, one record per
// work. The queue keeps nothing of them.
func (c *committer) next() []*commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.queue = nil
		c.active--
		return nil
	}
	n, bytes := 1, 0
	for ; n < len(c.queue) && n < c.maxBatch && c.queue[n].token == c.queue[0].token; n++ {
		if bytes += c.queue[n].size(); bytes > c.maxBytes {
			break
		}
	}
	batch := slices.Clone(c.queue[:n])
	c.queue = slices.Delete(c.queue, 0, n)
	return batch
}

// write appends one batch, and returns the list that it took for that when it can be used again: a call that was given up may still read it.
func (c *committer) write(batch []*commit, entries []ledger.Entry) []ledger.Entry {
	entries = entries[:0]
	for _, op := range batch {
		entries = append(entries, op.entry)
	}
	defer c.outage.ask()()
	if !c.send(batch, entries) {
		return nil
	}
	clear(entries)
	return entries
}

// send appends a batch until it is answered, and reports whether its first call was. One that takes longer than a call may take goes on in
// halves.
func (c *committer) send(batch []*commit, entries []ledger.Entry) (first bool) {
	first = true
	for wait := 10 * time.Millisecond; ; wait, first = min(2*wait, time.Second), false {
		sent := time.Now()
		answers, err := c.ledger.Append(c.ctx, batch[0].token, entries)
		switch {
		case err == nil:
			c.outage.answered(callAppend)
			c.tell.committed(len(batch), time.Since(sent))
			for i, op := range batch {
				op.answer = answers[i]
			}
			return first
		case errors.Is(err, ledger.ErrDatabaseChanged):
			for _, op := range batch {
				op.answer = ledger.Answer{Result: ledger.Missing}
			}
			return false
		case nap.For(c.ctx, wait) != nil:
			for _, op := range batch {
				op.err = errors.Join(errUnknown, err)
			}
			return false
		}
		c.outage.failed(callAppend, err)
		if half := len(batch) / 2; half > 0 && errors.Is(err, context.DeadlineExceeded) {
			c.send(batch[:half], entries[:half])
			c.send(batch[half:], entries[half:])
			return false
		}
	}
}
