package amendsotel

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/saga"
)

// TraceID is the trace of an instance at a revision of its source object; the revision is empty
// where it has none. It is the same for every process, for links from elsewhere.
func TraceID(id saga.ID, revision string) trace.TraceID {
	h := sha256.New()
	var n [8]byte
	for _, part := range []string{"amends/trace/1", id.Saga, id.Work, revision} { // with their lengths: ("ab", "c") is not ("a", "bc")
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return trace.TraceID(h.Sum(nil)[:len(trace.TraceID{})])
}

// Context returns ctx with the trace of an instance, so that spans that begin with it are in that
// trace. It is for actions, whose HTTP client makes spans of its own:
//
//	ctx = amendsotel.Context(ctx, saga.ID{Saga: c.Saga, Work: c.Work}, c.Revision)
func Context(ctx context.Context, id saga.ID, revision string) context.Context {
	of := TraceID(id, revision)
	parent := sha256.Sum256(of[:])
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: of, SpanID: trace.SpanID(parent[:len(trace.SpanID{})]), TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}
