package amendsotel

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

func record(work, step string) *coordinator.Record {
	return &coordinator.Record{
		ID: saga.ID{Saga: "s", Work: work}, Step: step, Direction: saga.Forward, Attempt: 1,
		Dispatched: step, DispatchedDirection: saga.Forward, DispatchedAttempt: 1,
	}
}

// However many instances are taken over by other processes, and however many steps they have, what is
// kept of them is bounded; and what is told last is there.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := memory{most: 100, of: make(map[saga.ID]*known)}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	for i := range 1000 {
		work := fmt.Sprint(i)
		for _, step := range []string{"one", "two", "three"} {
			r := record(work, step)
			m.begun(r)
			if began, _, _ := m.ended(r); began.number != 1 {
				t.Fatalf("%s of %s, the latest, is not known", step, work)
			}
			m.made(r, span)
			r.Attempt = 2
			if _, previous, _ := m.ended(r); !previous.Equal(span) {
				t.Fatalf("the span of %s of %s, the latest, is not known", step, work)
			}
		}
		held := 0
		for _, k := range m.of {
			held += k.size()
		}
		if held != m.held || held > m.most {
			t.Fatalf("after %d instances %d attempts are kept, counted as %d; at most %d may be", i, held, m.held, m.most)
		}
	}
	if len(m.of) < 15 {
		t.Errorf("only %d instances are kept", len(m.of))
	}
	for id := range m.of {
		m.forget(id)
	}
	m.forget(saga.ID{Saga: "s", Work: "unknown"})
	if m.held != 0 {
		t.Errorf("%d are held when all instances have ended", m.held)
	}
}
