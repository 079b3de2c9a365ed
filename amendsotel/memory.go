package amendsotel

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// effort is a step in one direction.
type effort struct {
	step      string
	direction saga.Direction
}

// attempt is one of an effort.
type attempt struct {
	effort

	number int
}

// dispatched is what the record that set an attempt in motion said.
type dispatched struct {
	attempt

	at  time.Time
	key string
}

// made is the span of the latest attempt of an effort.
type made struct {
	number int
	span   trace.SpanContext
}

// known is what this process knows of an instance.
type known struct {
	underWay dispatched // zero: nothing is
	latest   map[effort]made
}

// size is how many attempts k speaks of, and one for k itself.
func (k *known) size() int { return 2 + len(k.latest) }

// memory is what this process knows of instances that have not ended. Of those that ended in
// another process it never hears: it is bounded.
type memory struct {
	most int

	mu   sync.Mutex
	held int // the sum of the sizes
	of   map[saga.ID]*known
}

// begun keeps that r dispatched an attempt.
func (m *memory) begun(r *coordinator.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.get(r.ID).underWay = dispatched{attempt{effort{r.Dispatched, r.DispatchedDirection}, r.DispatchedAttempt}, r.At, r.Key}
}

// ended returns when the attempt that r tells the end of was dispatched, and the spans that its own
// links to. What is not known is zero.
func (m *memory) ended(r *coordinator.Record) (began dispatched, previous, undone trace.SpanContext) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, a := m.of[r.ID], attempt{effort{r.Step, r.Direction}, r.Attempt}
	if k == nil {
		return
	}
	if k.underWay.attempt == a { // otherwise another process has dispatched since
		began = k.underWay
	}
	k.underWay = dispatched{}
	if l := k.latest[a.effort]; l.number == a.number-1 {
		previous = l.span
	}
	if r.Direction == saga.Undo {
		undone = k.latest[effort{r.Step, saga.Forward}].span
	}
	return
}

// made keeps the span of the attempt that r tells the end of.
func (m *memory) made(r *coordinator.Record, span trace.SpanContext) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, e := m.get(r.ID), effort{r.Step, r.Direction}
	if _, there := k.latest[e]; !there {
		m.room(r.ID, 1)
		m.held++
	}
	k.latest[e] = made{r.Attempt, span}
}

// get is what is known of an instance; there is room for it.
func (m *memory) get(id saga.ID) *known {
	k := m.of[id]
	if k == nil {
		k = &known{latest: make(map[effort]made)}
		m.room(id, k.size())
		m.of[id] = k
		m.held += k.size()
	}
	return k
}

// room makes room for n more by forgetting other instances, whichever.
func (m *memory) room(but saga.ID, n int) {
	for id := range m.of {
		if m.held+n <= m.most {
			return
		}
		if id != but {
			m.drop(id)
		}
	}
}

// forget is for an instance that has ended, or whose past is not what this process saw.
func (m *memory) forget(id saga.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(id)
}

func (m *memory) drop(id saga.ID) {
	if k := m.of[id]; k != nil {
		m.held -= k.size()
		delete(m.of, id)
	}
}
