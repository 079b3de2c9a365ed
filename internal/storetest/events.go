package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// object is an order of the one shop there is.
func object(id string) intake.Object {
	return intake.Object{Source: "shop", Type: "order", ID: id}
}

// event is the one event there is about an order, unless the test changes it.
func event(id string) intake.Event {
	now := time.Now().UTC().Truncate(time.Microsecond)
	body := fmt.Sprintf(`{"id": %q, "total": "10.00"}`, id)
	return intake.Event{
		Object:      object(id),
		Topic:       "order.updated",
		ID:          "evt_" + id,
		Dedupe:      intake.DigestOf("evt", id),
		Payload:     intake.Whole,
		Version:     intake.At(now.Truncate(time.Second), time.Second),
		Body:        json.RawMessage(body),
		Fingerprint: intake.DigestOf(body),
		At:          now.Add(-time.Second),
		Received:    now,
		Secret:      "new",
	}
}

// events are events about n orders.
func events(n int) []intake.Event {
	es := make([]intake.Event, n)
	for i := range es {
		es[i] = event(fmt.Sprintf("%04d", i))
	}
	return es
}

func (b *bench) accept(es ...intake.Event) {
	b.Helper()
	if err := b.Accept(b.Context(), es); err != nil {
		b.Fatalf("accept: %v", err)
	}
}

// all lists every delivery, the oldest first.
func (b *bench) all() []intake.Delivery {
	b.Helper()
	ds, err := b.Deliveries(b.Context(), intake.DeliveryFilter{Limit: 100_000})
	if err != nil {
		b.Fatalf("list deliveries: %v", err)
	}
	for i, j := 0, len(ds)-1; i < j; i, j = i+1, j-1 {
		ds[i], ds[j] = ds[j], ds[i]
	}
	return ds
}

// judgeAs gives every unjudged delivery one outcome and leaves the entries alone.
func (b *bench) judgeAs(v intake.Disposition) int {
	b.Helper()
	n, err := b.Judge(b.Context(), 100_000, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
		for i := range ds {
			ds[i].Outcome, ds[i].Because = v, "the test says so"
		}
		return nil
	})
	if err != nil {
		b.Fatalf("judge: %v", err)
	}
	return n
}

// put changes an entry.
func (b *bench) put(o intake.Object, change func(*intake.Entry)) {
	b.Helper()
	err := b.Update(b.Context(), o, func(_ time.Time, e *intake.Entry) error {
		change(e)
		return nil
	})
	if err != nil {
		b.Fatalf("update %s: %v", o, err)
	}
}

// known returns an entry that must be there.
func (b *bench) known(o intake.Object) intake.Entry {
	b.Helper()
	e, err := b.Entry(b.Context(), o)
	if err != nil || e == nil {
		b.Fatalf("entry of %s: %v, %v", o, e, err)
	}
	return *e
}
