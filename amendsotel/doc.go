// Package amendsotel is traces by OpenTelemetry: one span for each attempt of a step.
//
//	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
//	defer tracers.Shutdown(context.Background())
//	c, err := coordinator.New(db, &coordinator.Options{
//		Listener: coordinator.Tee(amendsprom.New(reg), amendsotel.New(tracers, nil)),
//	})
//	if err != nil {
//		return err
//	}
//	log.Println("its trace:", amendsotel.TraceID(saga.ID{Saga: "order-to-invoice", Work: "order:4711"}, ""))
//
// # Spans
//
// An instance may wait for days, and go through many processes. So no span is open for it: that of
// an attempt is made when the attempt has ended, from the record that dispatched it to the record of
// its outcome, by the ledger's clock. An attempt whose process died has one, too, made by the process
// that records the loss; where that does not know the begin, the span has no length and
// amends.start_unknown. What ends a wait, decides an approval, brings an instance to a person or back
// has a span without length, named after the kind of the record: order-to-invoice sent-to-review.
//
// Spans have amends.saga, amends.work_id, amends.revision, amends.step, amends.direction and
// amends.status, where the instance stands then, and amends.review_reason. Those of attempts have
// amends.attempt, amends.outcome, amends.key, amends.external_id, and where it failed error.type and
// amends.error. An attempt that was refused, is unknown or lost, or met a fault has the status error;
// one that was not sent had no effect, and has none. Each links to the attempt before it, and an undo
// to what it undoes, where this process made their spans: see amends.link.
//
// # Traces
//
// There is one trace for each instance and revision. Its id derives from the two, see [TraceID]: every
// process has the same, and so has a person who knows the work id. It has no root span: there is no
// time at which one could be made that would be right. All spans name the same parent, which is not
// there; viewers call that a missing root, and show the spans side by side.
//
// # Mistakes people make
//
//   - To wrap TraceIDRatioBased in ParentBased. The parent that is not there counts as sampled, so
//     that ParentBased takes all. TraceIDRatioBased alone takes or leaves whole traces, and every
//     process takes the same ones.
//   - To use WithSyncer in production. A listener must not block: use WithBatcher.
//   - To end without a Shutdown of the TracerProvider: what the batcher holds is lost, and that is
//     what the last attempts did.
//   - To look for the spans of an HTTP client in the trace. An action begins them before its attempt
//     has a span: have it use [Context], and they are in the trace, beside that span.
//   - To take traces for the history. Those of a process that was killed are lost, and samplers leave
//     some out. The ledger has all: amends show.
//   - To forget that traces leave the ledger. Bodies are in none, but what a destination says of an
//     error may hold a person's data, and nothing erases it there: see Options.HideTexts.
//   - To set Options.Listener to one of two listeners. [coordinator.Tee] makes one of them.
package amendsotel
