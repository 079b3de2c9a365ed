package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var inboxCases = []testCase{
	{name: "everything comes back", run: inboxRoundTrip},
	{name: "stored when answered", run: inboxStored, breaks: broken{"commit-first": func(s Store) Store { return hasty{s} }}},
	{name: "a copy is counted", run: inboxCopy, breaks: broken{"duplicate-once": func(s Store) Store { return copyDoubler{s} }}},
	{name: "a conflict is kept", run: inboxConflict, breaks: broken{"content-compared": func(s Store) Store { return contentBlind{s} }}},
	{name: "what changes by itself is no conflict", run: inboxVolatile},
	{name: "sources are apart", run: inboxApart},
	{name: "copies within a call", run: inboxOneCall},
	{name: "known before the gate", run: inboxKnownBefore},
	{name: "all or none", run: inboxAllOrNone},
	{name: "a context that is over", run: inboxDeadline},
}

// An event comes back as it was given.
func inboxRoundTrip(b *bench) {
	full := event("1")
	full.Object.Tenant, full.Deleted, full.Why = "eu", true, "because"
	full.Version.Epoch = 7
	bare := intake.Event{Object: object("2"), Dedupe: intake.DigestOf("2"), Payload: intake.Thin, Received: full.Received}
	before := b.calendar()
	b.accept(full, bare)
	ds := b.all()
	if len(ds) != 2 {
		b.Fatalf("%d deliveries, want 2", len(ds))
	}
	for i, want := range []intake.Event{full, bare} {
		d := ds[i]
		if !reflect.DeepEqual(d.Event, want) {
			b.Errorf("event %d came back as\n%+v, it was\n%+v", i, d.Event, want)
		}
		if d.Number == 0 || d.Copies != 1 || d.Last.Before(before) || !d.Judged.IsZero() || d.Outcome != "" || d.Because != "" {
			b.Errorf("delivery %d: %+v", i, d)
		}
		if one, err := b.Delivery(b.Context(), d.Number); err != nil || !reflect.DeepEqual(one, d) {
			b.Errorf("by its number it is %+v, %v", one, err)
		}
	}
}

// "has them on disk when it returns": another process finds them.
func inboxStored(b *bench) {
	s := b.raw
	if b.harness.Again != nil {
		s = b.again()
	}
	b.accept(events(3)...)
	if ds, err := s.Deliveries(b.Context(), intake.DeliveryFilter{}); err != nil || len(ds) != 3 {
		b.Errorf("%d deliveries of 3 (%v)", len(ds), err)
	}
}

// "Of two with the same source and dedupe digest the first is kept; the other raises its count of
// copies".
func inboxCopy(b *bench) {
	e := event("1")
	b.accept(e)
	first := b.calendar()
	b.until(b.calendar, first)
	again := e
	again.Received = e.Received.Add(time.Minute)
	again.Topic = "order.paid" // how it was delivered is not what it says
	b.accept(again)
	b.accept(again)
	ds := b.all()
	if len(ds) != 1 || ds[0].Copies != 3 || !ds[0].Last.After(first) {
		b.Fatalf("%+v, want one delivery of 3 copies, seen last after %v", ds, first)
	}
	if !reflect.DeepEqual(ds[0].Event, e) {
		b.Errorf("a copy changed the first: %+v", ds[0].Event)
	}
}

// "and when its body differs is kept beside it with the disposition Conflict, to be judged as a
// hint" (C2).
func inboxConflict(b *bench) {
	e := event("1")
	other := e
	other.Body = json.RawMessage(`{"id": "1", "total": "99.00"}`)
	other.Fingerprint = intake.DigestOf("another")
	b.accept(e)
	b.accept(other)
	b.accept(other)
	b.accept(e)
	ds := b.all()
	if len(ds) != 2 {
		b.Fatalf("%d deliveries, want the event and the one in conflict with it", len(ds))
	}
	if d := ds[0]; d.Disposition != "" || d.Copies != 2 || string(d.Body) != string(e.Body) {
		b.Errorf("the first is %+v", d)
	}
	if d := ds[1]; d.Disposition != intake.Conflict || !d.Judged.IsZero() || d.Copies != 2 || string(d.Body) != string(other.Body) {
		b.Errorf("the one in conflict is %+v", d)
	}
	if n := b.judgeAs(intake.Applied); n != 2 {
		b.Errorf("%d were judged, want both", n)
	}
	known := e // a conflict that is known to be malformed is a conflict all the same
	known.Body, known.Fingerprint, known.Disposition = json.RawMessage(`{`), intake.Digest{}, intake.Malformed
	b.accept(known)
	if ds := b.all(); len(ds) != 3 || ds[2].Disposition != intake.Conflict || !ds[2].Judged.IsZero() {
		b.Errorf("a malformed delivery of a known event is %+v", ds[len(ds)-1])
	}
}

// Two deliveries of an event say the same when their fingerprints do, whatever changes by itself.
// Events without a fingerprint are compared by their bodies.
func inboxVolatile(b *bench) {
	e := event("1")
	retried := e
	retried.Body = json.RawMessage(`{"id": "1", "total": "10.00", "attempt": 2}`)
	b.accept(e)
	b.accept(retried)
	thin := event("2")
	thin.Payload, thin.Fingerprint = intake.Thin, intake.Digest{}
	other := thin
	other.Body = json.RawMessage(`{"id": "2", "more": true}`)
	b.accept(thin)
	b.accept(other)
	ds := b.all()
	if len(ds) != 3 || ds[0].Copies != 2 || string(ds[0].Body) != string(e.Body) || ds[2].Disposition != intake.Conflict {
		b.Errorf("got %+v", ds)
	}
}

// The same dedupe digest of another source is another event. H1: of another tenant of the source it
// is a copy, because the receiver makes the tenant part of the digest wherever it is one that it
// may believe.
func inboxApart(b *bench) {
	e := event("1")
	tenant, source := e, e
	tenant.Object.Tenant = "eu"
	source.Object.Source = "books"
	b.accept(e, tenant, source)
	if ds := b.all(); len(ds) != 2 || ds[0].Copies != 2 || ds[1].Disposition != "" {
		b.Errorf("got %+v, want two events and a copy", ds)
	}
}

// Copies and conflicts within one call are what they are between calls.
func inboxOneCall(b *bench) {
	e, next := event("1"), event("2")
	other := e
	other.Fingerprint = intake.DigestOf("another")
	b.accept(e, next, e, other, other, e)
	ds := b.all()
	if len(ds) != 3 {
		b.Fatalf("%d deliveries, want 3: %+v", len(ds), ds)
	}
	copies := map[intake.Digest]int{}
	for _, d := range ds {
		copies[d.Fingerprint] = d.Copies
		if (d.Fingerprint == other.Fingerprint) != (d.Disposition == intake.Conflict) {
			b.Errorf("disposition %q of %+v", d.Disposition, d)
		}
	}
	if copies[e.Fingerprint] != 3 || copies[other.Fingerprint] != 2 || copies[next.Fingerprint] != 1 {
		b.Errorf("copies %v, want 3 and 2 and 1", copies)
	}
}

// "Disposition is set when the door already knows that nothing will come of the event; it is stored
// with its Why and is not judged again".
func inboxKnownBefore(b *bench) {
	for _, v := range []intake.Disposition{intake.Malformed, intake.Unknown, intake.Ignored} {
		e := event(string(v))
		e.Disposition, e.Why = v, "the door says so"
		b.accept(e)
	}
	for _, d := range b.all() {
		if d.Judged.IsZero() || string(d.Outcome) != d.Object.ID || d.Because != "the door says so" || d.Disposition != d.Outcome {
			b.Errorf("got %+v", d)
		}
	}
	if n := b.judgeAs(intake.Applied); n != 0 {
		b.Errorf("%d of them were judged", n)
	}
}

// "Accept stores events, all or none." One without a digest could not be told from its copies.
func inboxAllOrNone(b *bench) {
	bad := event("2")
	bad.Dedupe = intake.Digest{}
	if err := b.Accept(b.Context(), []intake.Event{event("1"), bad, event("3")}); err == nil {
		b.Error("an event without a dedupe digest was accepted")
	}
	if err := b.Accept(b.Context(), nil); err != nil {
		b.Errorf("accept nothing: %v", err)
	}
	if ds := b.all(); len(ds) != 0 {
		b.Errorf("stored %+v", ds)
	}
}

// A context that is over is answered with its error, and nothing is stored.
func inboxDeadline(b *bench) {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if err := b.Accept(ctx, events(1)); !errors.Is(err, context.Canceled) {
		b.Errorf("got %v, want the context's error", err)
	}
	b.accept(event("later"))
	if ds := b.all(); len(ds) != 1 {
		b.Errorf("%d deliveries, want the later one alone", len(ds))
	}
}
