package amendsotel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/amends-dev/amends/amendsotel"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// An instance with a retry and an undo has a span for each attempt, all in one trace, with the times
// of the attempts and a link to what came before.
func TestAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watched()
		p := boot(t, memory.New(nil), w, shop(t))
		p.start(t, "odd", "7")
		p.wait(t, "odd", saga.Compensated)
		p.stop()
		var got []string
		spans := w.GetSpans()
		for i := range spans {
			s := &spans[i]
			got = append(got, fmt.Sprintf("%s %s %s %s %s id=%s key=%t error=%s/%s", s.Name, of(s, "amends.attempt"), of(s, "amends.outcome"), s.Status.Code,
				s.EndTime.Sub(s.StartTime), of(s, "amends.external_id"), of(s, "amends.key") != "", of(s, "error.type"), s.Status.Description))
			if s.SpanContext.TraceID() != amendsotel.TraceID(saga.ID{Saga: invoicing, Work: "odd"}, "7") || of(s, "amends.revision") != "7" {
				t.Errorf("%s is in the trace %s, at revision %q", s.Name, s.SpanContext.TraceID(), of(s, "amends.revision"))
			}
			if !s.Parent.IsRemote() || s.SpanKind != trace.SpanKindClient || of(s, "amends.start_unknown") != "" {
				t.Errorf("%s has the parent %v and is a %s", s.Name, s.Parent, s.SpanKind)
			}
			if text := fmt.Sprint(s.Attributes, s.Events, s.Status); strings.Contains(text, secret) {
				t.Errorf("a body is in a trace: %s", text)
			}
		}
		want := []string{
			"order-to-invoice invoice 1 unknown Error 2s id= key=true error=unknown/EOF",
			"order-to-invoice invoice 2 done Unset 2s id=inv_1 key=true error=/",
			"order-to-invoice mail 1 refused Error 0s id= key=true error=refused/no such address",
			"order-to-invoice undo of invoice 1 done Unset 1s id= key=true error=/",
		}
		if !slices.Equal(got, want) {
			t.Fatalf("made\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		links(t, &spans[0])
		links(t, &spans[1], "previous attempt", &spans[0])
		links(t, &spans[2])
		links(t, &spans[3], "undone", &spans[1])
		if !spans[1].StartTime.After(spans[0].EndTime) || spans[2].StartTime.Before(spans[1].EndTime) || spans[3].StartTime.Before(spans[2].EndTime) {
			t.Error("the spans are not one after the other")
		}
	})
}

// links checks that s has these links: a reason and a span each.
func links(t *testing.T, s *tracetest.SpanStub, want ...any) {
	t.Helper()
	var got []any
	for _, l := range s.Links {
		got = append(got, l.Attributes[0].Value.Emit(), l.SpanContext.SpanID())
	}
	for i, w := range want {
		if to, is := w.(*tracetest.SpanStub); is {
			want[i] = to.SpanContext.SpanID()
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s links to %v, want %v", s.Name, got, want)
	}
}

// While an instance waits for ten days no span is open, and all are complete when it has ended: those
// of attempts, and one for the end of the wait.
func TestTenDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := watched()
		p := boot(t, memory.New(nil), w, shop(t, saga.Delay[string]("cooling-off", 10*day)))
		begun := time.Now()
		p.start(t, "fine", "")
		<-time.After(5 * day)
		if open, _ := w.opened(); open != 0 || len(w.GetSpans()) != 2 {
			t.Errorf("%d spans are open during the wait, and %d have ended", open, len(w.GetSpans()))
		}
		p.wait(t, "fine", saga.Completed)
		p.stop()
		var names []string
		for _, s := range w.GetSpans() {
			names = append(names, s.Name)
			if s.EndTime.Before(s.StartTime) || s.EndTime.Sub(s.StartTime) > 2*time.Second || s.SpanContext.TraceID() != w.GetSpans()[0].SpanContext.TraceID() {
				t.Errorf("%s: from %s to %s in the trace %s", s.Name, s.StartTime, s.EndTime, s.SpanContext.TraceID())
			}
		}
		want := []string{invoicing + " invoice", invoicing + " invoice", invoicing + " wait-over", invoicing + " mail"}
		if !slices.Equal(names, want) {
			t.Fatalf("made %q, want %q", names, want)
		}
		over := w.GetSpans()[2]
		if over.SpanKind != trace.SpanKindInternal || over.EndTime != over.StartTime || over.StartTime.Sub(begun) < 10*day || of(&over, "amends.step") != "cooling-off" {
			t.Errorf("the end of the wait is %+v", over)
		}
		if open, longest := w.opened(); open != 0 || longest != 0 {
			t.Errorf("%d spans are open at the end; one was for %s", open, longest)
		}
	})
}

// Two processes make spans in the same trace, and a revision has another one.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, first, second := memory.New(nil), watched(), watched()
		d := func() saga.Program { return shop(t, saga.Delay[string]("cooling-off", day)) }
		p := boot(t, db, first, d())
		p.start(t, "fine", "1")
		<-time.After(time.Hour)
		p.stop()
		p = boot(t, db, second, d())
		p.wait(t, "fine", saga.Completed)
		id := saga.ID{Saga: invoicing, Work: "fine"}
		for _, w := range []*watch{first, second} {
			if len(w.GetSpans()) != 2 {
				t.Errorf("one of the two made %d spans", len(w.GetSpans()))
			}
			for _, s := range w.GetSpans() {
				if s.SpanContext.TraceID() != amendsotel.TraceID(id, "1") {
					t.Errorf("%s is in another trace", s.Name)
				}
			}
		}
		second.Reset()
		p.start(t, "fine", "2")
		<-time.After(2 * day)
		p.stop()
		for _, s := range second.GetSpans() {
			if s.SpanContext.TraceID() != amendsotel.TraceID(id, "2") {
				t.Errorf("%s of revision 2 is in another trace", s.Name)
			}
		}
		if len(second.GetSpans()) == 0 || amendsotel.TraceID(id, "1") == amendsotel.TraceID(id, "2") {
			t.Error("revision 2 has no trace of its own")
		}
	})
}

// A process whose session was lost, and that opens another, knows when the attempt began of which it
// could not await the outcome.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, begin := watched(), time.Now()
		p := boot(t, ledgertest.Faulty(memory.New(nil), ledgertest.FailBetween(2, 40, ledgertest.Renew)), w, hanging(t))
		p.start(t, "slow", "")
		p.wait(t, "slow", saga.Completed)
		p.stop()
		<-time.After(hang)
		spans := w.GetSpans()
		s := &spans[0]
		if of(s, "amends.outcome") != "unknown" || of(s, "amends.start_unknown") != "" || s.Status.Code != codes.Error {
			t.Errorf("the attempt is %+v", s)
		}
		// It was dispatched when the session was open, at once or at the next look, and it ends with the lease.
		if !s.StartTime.Before(begin.Add(lease)) || s.EndTime.Sub(begin) < lease || s.EndTime.Sub(s.StartTime) < lease/4 {
			t.Errorf("the attempt is from %s to %s", s.StartTime, s.EndTime)
		}
		links(t, &spans[1], "previous attempt", s)
	})
}

// Of an attempt whose process died the process that takes over makes the span, in the same trace, and
// says that it does not know the begin.
func TestProcessDied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, first, second := memory.New(nil), watched(), watched()
		dead := boot(t, ledgertest.Faulty(db, ledgertest.CrashBefore(2, ledgertest.Renew)), first, hanging(t))
		dead.start(t, "slow", "")
		<-time.After(lease/2 + 10*time.Second) // it has it in hand by now: it looks once a minute, and lives for two thirds of a lease
		p := boot(t, db, second, hanging(t))
		p.wait(t, "slow", saga.Completed)
		p.stop()
		dead.bury()
		<-time.After(hang)
		spans := second.GetSpans()
		if len(first.GetSpans()) != 0 || len(spans) != 2 {
			t.Fatalf("the one that died made %d spans, the other one %d", len(first.GetSpans()), len(spans))
		}
		s := &spans[0]
		if of(s, "amends.outcome") != "lost" || of(s, "amends.start_unknown") != "true" || s.Status.Code != codes.Error || s.EndTime != s.StartTime {
			t.Errorf("the lost attempt is %+v", s)
		}
		links(t, &spans[1], "previous attempt", s)
		if s.SpanContext.TraceID() != amendsotel.TraceID(saga.ID{Saga: invoicing, Work: "slow"}, "") {
			t.Error("it is in another trace")
		}
	})
}

// teller tells a listener of records of attempts.
type teller struct {
	l  *coordinator.Listener
	at time.Time
}

func (tl teller) tell(work, kind, step string, number int, dispatched string, next int) {
	r := coordinator.Record{
		ID: saga.ID{Saga: "s", Work: work}, At: tl.at, Kind: kind, From: saga.Running, To: saga.Running, Step: step, Attempt: number,
		Dispatched: dispatched, DispatchedAttempt: next,
	}
	if step != "" {
		r.Direction = saga.Forward
	}
	if dispatched != "" {
		r.DispatchedDirection, r.Key = saga.Forward, "key of "+dispatched
	}
	if kind == "failed" {
		r.Kind, r.Error, r.ExternalID = "refused", "no such customer: Ann", "inv_1"
	}
	tl.l.Recorded(r)
}

// What another process dispatched has a span without length that says so, with no key and no link,
// also where this process dispatched an attempt before.
func TestAnothersAttempt(t *testing.T) {
	t.Parallel()
	w := watched()
	tl := teller{amendsotel.New(w.tracers, nil), time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
	tl.tell("a", "lost", "one", 1, "", 0)
	tl.tell("b", "dispatched", "", 0, "one", 1)
	tl.at = tl.at.Add(time.Hour)
	tl.tell("b", "lost", "one", 3, "one", 4)
	tl.at = tl.at.Add(-time.Minute) // the ledger's clock went back
	tl.tell("b", "done", "one", 4, "", 0)
	tl.tell("c", "dispatched", "", 0, "one", 1)
	tl.tell("c", "forgotten", "", 0, "", 0)
	tl.tell("c", "lost", "one", 1, "", 0)
	spans := w.GetSpans()
	for i, want := range []bool{true, true, false, true} {
		s := &spans[i]
		if (of(s, "amends.start_unknown") == "true") != want || (of(s, "amends.key") == "") != want || s.StartTime != s.EndTime {
			t.Errorf("span %d is %+v", i, s)
		}
	}
	links(t, &spans[1])
	links(t, &spans[2], "previous attempt", &spans[1])
}

// What brings an instance to a person and back has a span, and what is learned meanwhile has none.
func TestReviews(t *testing.T) {
	t.Parallel()
	w := watched()
	l := amendsotel.New(w.tracers, nil)
	for _, r := range []coordinator.Record{
		{Kind: "started", To: saga.Running},
		{Kind: "several", From: saga.Running, To: saga.Review, Reason: saga.ReasonInDoubt, Step: "one", Direction: saga.Forward, Attempt: 1},
		{Kind: "noted", From: saga.Review, To: saga.Review},
		{Kind: "cancelled", From: saga.Review, To: saga.Compensating},
		{Kind: "sent-to-review", From: saga.Compensating, To: saga.Review},
		{Kind: "resolved", From: saga.Review, To: saga.Compensating},
		{Kind: "approved", From: saga.Waiting, To: saga.Running},
		{Kind: "voted", From: saga.Waiting, To: saga.Waiting},
		{Kind: "noted", From: saga.Compensating, To: saga.Compensated},
	} {
		r.ID = saga.ID{Saga: "s", Work: "w"}
		l.Recorded(r)
	}
	var got []string
	for _, s := range w.GetSpans() {
		got = append(got, s.Name+" "+of(&s, "amends.review_reason"))
	}
	if want := []string{"s several in-doubt", "s cancelled ", "s sent-to-review ", "s resolved ", "s approved "}; !slices.Equal(got, want) {
		t.Errorf("made %q, want %q", got, want)
	}
}

// HideTexts keeps what destinations say out of traces.
func TestHideTexts(t *testing.T) {
	t.Parallel()
	for _, hide := range []bool{false, true} {
		w := watched()
		teller{l: amendsotel.New(w.tracers, &amendsotel.Options{HideTexts: hide})}.tell("a", "failed", "one", 1, "", 0)
		s := w.GetSpans()[0]
		if text := fmt.Sprint(s.Attributes, s.Status); strings.Contains(text, "Ann") == hide || strings.Contains(text, "inv_1") == hide || s.Status.Code != codes.Error {
			t.Errorf("with HideTexts %t: %s", hide, text)
		}
	}
}

// A sampler by ratio takes or leaves whole traces.
func TestSampling(t *testing.T) {
	t.Parallel()
	e := tracetest.NewInMemoryExporter()
	l := amendsotel.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(e), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(.5))), nil)
	for i := range 200 {
		for n := range 3 {
			teller{l: l}.tell(fmt.Sprint(i), "unknown", "one", n+1, "", 0)
		}
	}
	spans := make(map[trace.TraceID]int)
	for _, s := range e.GetSpans() {
		spans[s.SpanContext.TraceID()]++
	}
	if len(spans) < 60 || len(spans) > 140 {
		t.Errorf("%d of 200 traces were taken, want about a half", len(spans))
	}
	for id, n := range spans {
		if n != 3 {
			t.Errorf("the trace %s has %d of 3 spans", id, n)
		}
	}
}

// What an action's client begins with Context is in the trace of its instance.
func TestContext(t *testing.T) {
	t.Parallel()
	id := saga.ID{Saga: "order-to-invoice", Work: "order:4711"}
	w := watched()
	_, span := w.tracers.Tracer("client").Start(amendsotel.Context(t.Context(), id, "17"), "POST")
	span.End()
	if got := w.GetSpans()[0].SpanContext.TraceID(); got != amendsotel.TraceID(id, "17") {
		t.Errorf("the span of a client is in the trace %s", got)
	}
}
