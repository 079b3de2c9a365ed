package amendsotel_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/amendsotel"
	"github.com/amends-dev/amends/saga"
)

// The trace of an instance is the same for ever, whichever process and whichever version of this
// package says it; and what an action's client begins with Context is in it.
func TestTraceID(t *testing.T) {
	t.Parallel()
	id := saga.ID{Saga: "order-to-invoice", Work: "order:4711"}
	if got, want := amendsotel.TraceID(id, "17").String(), "03b22da966dfc95515ab2c663f4e68c0"; got != want {
		t.Errorf("the trace is %s, want %s", got, want)
	}
	seen := map[trace.TraceID]bool{}
	for _, of := range [][3]string{{"a", "bc", ""}, {"ab", "c", ""}, {"a", "b", "c"}, {"a", "bc", "1"}, {"a", "bc", "1+1"}} {
		seen[amendsotel.TraceID(saga.ID{Saga: of[0], Work: of[1]}, of[2])] = true
	}
	if len(seen) != 5 {
		t.Errorf("five instances have %d traces", len(seen))
	}
	in := trace.SpanContextFromContext(amendsotel.Context(t.Context(), id, "17"))
	if got := in.TraceID(); got != amendsotel.TraceID(id, "17") {
		t.Errorf("the span of a client would be in the trace %s", got)
	}
}
