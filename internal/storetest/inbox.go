package storetest

import (
	"context"
	"errors"

	"github.com/amends-dev/amends/internal/intake"
)

var inboxCases = []testCase{
	{name: "stored when answered", run: inboxStored, breaks: broken{"commit-first": func(s Store) Store { return hasty{s} }}},
	{name: "copies within a call", run: inboxOneCall},
	{name: "a context that is over", run: inboxDeadline},
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
