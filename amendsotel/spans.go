package amendsotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

const scope = "github.com/amends-dev/amends/amendsotel" // the instrumentation's name

// Options tunes [New]. The zero value is ready to use.
type Options struct {
	// HideTexts leaves out what destinations say: the texts of errors, and external ids. They may hold
	// a person's data, and nothing erases a trace.
	HideTexts bool
	// Attempts is of how many attempts it is kept when they began and which spans they have, for the
	// instances that have not ended. Beyond that, instances are forgotten: their attempts that are under
	// way have amends.start_unknown, and links are missing. Default: 65536, which is about 20 MB.
	Attempts int
}

// New returns a listener that makes the spans of what this process records. tracers must not block
// when a span ends.
func New(tracers trace.TracerProvider, o *Options) *coordinator.Listener {
	s := spans{tracer: tracers.Tracer(scope), memory: memory{most: 1 << 16, of: make(map[saga.ID]*known)}}
	if o != nil {
		s.mute = o.HideTexts
		if o.Attempts > 0 {
			s.memory.most = o.Attempts
		}
	}
	return &coordinator.Listener{Recorded: s.recorded}
}

// spans makes spans.
type spans struct {
	tracer trace.Tracer
	mute   bool
	memory memory
}

func (s *spans) recorded(r coordinator.Record) {
	switch kind := machine.Kind(r.Kind); {
	case kind == machine.KindForgotten: // the numbers of attempts come again
		s.memory.forget(r.ID)
	case r.Attempt > 0 && ends(kind):
		s.attempt(&r)
	case turns(kind), r.From != "" && (r.From == saga.Review) != (r.To == saga.Review):
		s.mark(&r)
	}
	switch {
	case r.Dispatched != "":
		s.memory.begun(&r)
	case r.To.Terminal():
		s.memory.forget(r.ID)
	}
}

// ends reports whether a record of a kind says how an attempt ended.
func ends(k machine.Kind) bool {
	switch k { //nolint:exhaustive // all others say something else
	case machine.KindDone, machine.KindNotSent:
		return true
	default:
		return fails(k)
	}
}

// fails reports whether a record of a kind says that an attempt failed, and may have had an effect
// or cannot have one.
func fails(k machine.Kind) bool {
	switch k { //nolint:exhaustive // all others say something else
	case machine.KindRefused, machine.KindUnknown, machine.KindLost, machine.KindFault:
		return true
	default:
		return false
	}
}

// turns reports whether a record of a kind ends a wait, decides an approval, or is about a review.
func turns(k machine.Kind) bool {
	switch k { //nolint:exhaustive // all others say something else
	case machine.KindOver, machine.KindAnswered, machine.KindAnsweredNo, machine.KindUnanswered, machine.KindApproved, machine.KindRejected,
		machine.KindParked, machine.KindResolved, machine.KindRetried, machine.KindSkipped:
		return true
	default:
		return false
	}
}

// attempt makes the span of an attempt that has ended.
func (s *spans) attempt(r *coordinator.Record) {
	began, previous, undone := s.memory.ended(r)
	from := began.at
	attributes := append(about(r), attribute.Int("amends.attempt", r.Attempt), attribute.String("amends.outcome", r.Kind))
	if from.IsZero() {
		from = r.At
		attributes = append(attributes, attribute.Bool("amends.start_unknown", true))
	}
	attributes = given(attributes, "amends.key", began.key)
	failed := machine.Kind(r.Kind) != machine.KindDone
	if failed {
		attributes = append(attributes, attribute.String("error.type", r.Kind))
	}
	if !s.mute {
		attributes = given(attributes, "amends.external_id", r.ExternalID)
		attributes = given(attributes, "amends.error", r.Error)
	}
	var links []trace.Link
	for _, l := range []trace.Link{linked(previous, "previous attempt"), linked(undone, "undone")} {
		if l.SpanContext.IsValid() {
			links = append(links, l)
		}
	}
	span := s.start(r, name(r), from, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...), trace.WithLinks(links...))
	if fails(machine.Kind(r.Kind)) {
		text := r.Error
		if s.mute {
			text = r.Kind
		}
		span.SetStatus(codes.Error, text)
	}
	end := r.At
	if end.Before(from) { // the ledger's clock went back
		end = from
	}
	span.End(trace.WithTimestamp(end))
	s.memory.made(r, span.SpanContext())
}

// mark makes a span without length, for what is no attempt.
func (s *spans) mark(r *coordinator.Record) {
	s.start(r, r.ID.Saga+" "+r.Kind, r.At, trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(about(r)...)).End(trace.WithTimestamp(r.At))
}

// start begins a span in the trace of the instance.
func (s *spans) start(r *coordinator.Record, name string, at time.Time, with ...trace.SpanStartOption) trace.Span {
	_, span := s.tracer.Start(Context(context.Background(), r.ID, r.Revision), name, append(with, trace.WithTimestamp(at))...)
	return span
}

// about is what every span has.
func about(r *coordinator.Record) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("amends.saga", r.ID.Saga), attribute.String("amends.work_id", r.ID.Work), attribute.String("amends.status", string(r.To)),
	}
	all = given(all, "amends.revision", r.Revision)
	all = given(all, "amends.step", r.Step)
	all = given(all, "amends.direction", string(r.Direction))
	return given(all, "amends.review_reason", string(r.Reason))
}

// given is all, with what has a value.
func given(all []attribute.KeyValue, key, value string) []attribute.KeyValue {
	if value == "" {
		return all
	}
	return append(all, attribute.String(key, value))
}

func linked(to trace.SpanContext, why string) trace.Link {
	return trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("amends.link", why)}}
}

func name(r *coordinator.Record) string {
	if r.Direction == saga.Undo {
		return r.ID.Saga + " undo of " + r.Step
	}
	return r.ID.Saga + " " + r.Step
}
