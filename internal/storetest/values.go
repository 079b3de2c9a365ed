package storetest

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var valueCases = []testCase{
	{name: "a bad value fails no other", run: valuesBad},
	{name: "bad values of an entry", run: valuesEntry},
}

// odd are values no database column was made for.
func odd() []intake.Event {
	change := []func(*intake.Event){
		func(e *intake.Event) { e.Topic = "a\x00b" },
		func(e *intake.Event) { e.ID = "\xff\xfe" },
		func(e *intake.Event) { e.Object.ID = "id\x00\xc3" },
		func(e *intake.Event) { e.Object.Tenant = strings.Repeat("t", 10_000) },
		func(e *intake.Event) { e.Topic = strings.Repeat("é", 1<<20) },
		func(e *intake.Event) { e.Body = json.RawMessage("not json \x00 \xff at all") },
		func(e *intake.Event) { e.Body = json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`) },
		func(e *intake.Event) { e.At = time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(e *intake.Event) { e.At = time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(e *intake.Event) { e.Received = time.Time{} },
		func(e *intake.Event) {
			e.Version = intake.Version{Epoch: math.MaxInt64, N: math.MinInt64, Step: math.MaxInt64}
		},
		func(e *intake.Event) {
			e.Payload, e.Disposition, e.Why = "no such", "no such", strings.Repeat("\x00", 9000)
		},
		func(e *intake.Event) { e.Object = intake.Object{} },
		func(e *intake.Event) { e.Topic = `{"quoted\\", NULL}` },
	}
	es := events(len(change))
	for i := range es {
		change[i](&es[i])
	}
	return es
}

// Values that a database refuses are made fit for it. Their sender gets the same answer as others,
// and the events beside them are stored, too.
func valuesBad(b *bench) {
	bad, good := odd(), event("good")
	var wg sync.WaitGroup
	for _, e := range append(bad, good) {
		wg.Go(func() {
			if err := b.Accept(b.Context(), []intake.Event{e}); err != nil {
				b.Errorf("%.80q: %v", e.Object, err)
			}
		})
	}
	wg.Wait()
	if err := b.Accept(b.Context(), append(bad, good)); err != nil {
		b.Errorf("all of them in one call: %v", err)
	}
	ds := b.all()
	if len(ds) != len(bad)+1 {
		b.Fatalf("%d deliveries of %d", len(ds), len(bad)+1)
	}
	for _, d := range ds {
		if d.Copies != 2 {
			b.Errorf("%d copies of %.80q, want 2", d.Copies, d.ID)
		}
	}
	b.judgeAs(intake.Stale)
	for _, d := range b.all() {
		if d.Judged.IsZero() {
			b.Errorf("%.80q was not judged", d.Object)
		}
	}
}

// What a callback leaves in one entry never fails the others of its batch.
func valuesEntry(b *bench) {
	b.accept(events(2)...)
	n, err := b.Judge(b.Context(), 10, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		for i := range ds {
			ds[i].Outcome, ds[i].Because = "\x00", "a\x00\xff"
		}
		e := es[ds[0].Object]
		e.LastError, e.Blocked, e.Holder = "panic: \x00\xff", strings.Repeat("\xf0", 10_000), "\x00"
		e.Body = json.RawMessage("\xff\x00")
		e.Due = now.AddDate(20_000, 0, 0)
		parked := ds[0].Event
		parked.Body, parked.At, parked.Why = json.RawMessage("{\xff"), e.Due, "\x00"
		e.Parked = []intake.Event{parked}
		return nil
	})
	if err != nil || n != 2 {
		b.Fatalf("%d were judged, %v", n, err)
	}
	if e := b.known(object("0000")); e.Blocked == "" || len(e.Parked) != 1 {
		b.Errorf("it came back as %+v", e)
	}
	b.accept(event("long"))
	b.judgeAs(intake.Disposition(strings.Repeat("ä", 10_000)))
	counts, err := b.Counts(b.Context())
	if err != nil || len(counts) != 2 {
		b.Errorf("counted are %+v, %v", counts, err)
	}
	if n, err := b.Replay(b.Context(), intake.DeliveryFilter{}, "once more"); err != nil || n != 3 {
		b.Errorf("replayed are %d, %v", n, err)
	}
	b.counts(`[shop "" 3]`)
	err = b.Update(b.Context(), object("0000"), func(time.Time, *intake.Entry) error { return errOnlyAsking })
	if !errors.Is(err, errOnlyAsking) {
		b.Errorf("it cannot be read again: %v", err)
	}
}
