package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/amends-dev/amends/bench/workload"
)

const (
	queueLength = 4096 // more than any load keeps in flight
	maxBatch    = 512
)

// state is where a saga's row stands, with the numbers the tables store.
type state int16

const (
	running   state = 0
	completed state = 2
)

// A transition is the start of a saga (seq 0) or the end of a step.
type transition struct {
	id    int64
	work  string
	seq   int16 // 0 for the start, then 1 for each step's end
	state state
	doc   []byte // the results of all steps so far, as JSON

	duplicate bool // set by the table: the work was known before
	err       error
	written   chan struct{}
}

// A table makes a batch of transitions durable in one commit.
type table interface {
	write(batch []*transition) error
	close() error
}

// engine runs sagas over a table with group commit.
type engine struct {
	table   table
	steps   *workload.Steps
	queue   chan *transition
	writers sync.WaitGroup
	ids     atomic.Int64
}

var _ workload.Engine = (*engine)(nil)

func newEngine(t table, steps *workload.Steps, writers int) *engine {
	e := &engine{table: t, steps: steps, queue: make(chan *transition, queueLength)}
	for range writers {
		e.writers.Go(e.writeBatches)
	}
	return e
}

// writeBatches takes what is waiting and writes it, until the queue is closed.
func (e *engine) writeBatches() {
	batch := make([]*transition, 0, maxBatch)
	for first := range e.queue {
		batch = drain(append(batch[:0], first), e.queue)
		err := e.table.write(batch)
		for _, t := range batch {
			t.err = err
			t.written <- struct{}{}
		}
	}
}

// drain fills the batch with what is queued now and never waits.
func drain(batch []*transition, queue <-chan *transition) []*transition {
	for len(batch) < maxBatch {
		select {
		case t, open := <-queue:
			if !open {
				return batch
			}
			batch = append(batch, t)
		default:
			return batch
		}
	}
	return batch
}

// write queues a transition and returns when it is durable.
func (e *engine) write(t *transition) error {
	e.queue <- t
	<-t.written
	return t.err
}

// ErrDuplicate is returned by Run for a saga whose work is already recorded.
var ErrDuplicate = errors.New("the work is already recorded")

// Run implements [workload.Engine].
func (e *engine) Run(_ context.Context, s workload.Saga) error {
	t := &transition{id: e.ids.Add(1), work: s.Work, written: make(chan struct{}, 1)}
	if err := e.write(t); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if t.duplicate {
		return ErrDuplicate
	}
	t.doc = make([]byte, 0, 256)
	for step, name := range workload.StepNames {
		t.doc = appendResult(t.doc, name, e.steps.Do(s.Number, step))
		t.seq++
		if step == workload.StepCount-1 {
			t.state = completed
		}
		if err := e.write(t); err != nil {
			return fmt.Errorf("step %s: %w", name, err)
		}
	}
	return nil
}

// appendResult adds one step's result to a JSON list.
func appendResult(doc []byte, step, externalID string) []byte {
	if len(doc) == 0 {
		doc = append(doc, '[')
	} else {
		doc[len(doc)-1] = ','
	}
	doc = append(append(doc, `{"n":"`...), step...)
	doc = append(append(doc, `","x":"`...), externalID...)
	return append(doc, `"}]`...)
}

// Close implements [workload.Engine].
func (e *engine) Close() error {
	close(e.queue)
	e.writers.Wait()
	return e.table.close()
}
