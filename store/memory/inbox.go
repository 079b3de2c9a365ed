package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
)

var (
	_ intake.Inbox  = (*DB)(nil)
	_ intake.Gate   = (*DB)(nil)
	_ intake.Reader = (*DB)(nil)
)

// inbox is what was delivered, and what is known of the objects.
type inboxState struct {
	last    int64 // the number of the newest delivery
	rows    map[int64]*intake.Delivery
	pending []int64 // numbers of deliveries that are not judged yet, the oldest first
	heard   map[event]*known
	entries map[intake.Object]*intake.Entry // never changed in place
	agenda  agenda                          // when each entry can be leased
}

func newInbox() inboxState {
	return inboxState{
		rows:    map[int64]*intake.Delivery{},
		heard:   map[event]*known{},
		entries: map[intake.Object]*intake.Entry{},
	}
}

// event is what makes two deliveries one.
type event struct {
	source  string
	dedupe  intake.Digest
	content intake.Digest // zero for the first of its dedupe digest, set for one that conflicts with it
}

// known recognises copies of an event. It outlives the delivery's row.
type known struct {
	number  int64
	content intake.Digest
	last    time.Time
}

// Accept stores events, "all or none".
func (db *DB) Accept(ctx context.Context, events []intake.Event) error {
	for i := range events {
		if events[i].Dedupe.IsZero() {
			return fmt.Errorf("accept event %d of %d (%s): it has no dedupe digest, so a copy of it could not be told from another event", i+1, len(events), events[i].Object)
		}
	}
	return db.do(ctx, func(now time.Time) error {
		for i := range events {
			db.accept(&events[i], now)
		}
		return nil
	}, "accept %d events", len(events))
}

func (db *DB) accept(e *intake.Event, now time.Time) {
	key, content := event{source: e.Object.Source, dedupe: e.Dedupe}, contentOf(e)
	stored := *e
	m := db.heard[key]
	if m != nil && m.content != content { // "when its body differs [it] is kept beside it with the disposition Conflict"
		key.content, stored.Disposition = content, intake.Conflict
		m = db.heard[key]
	}
	if m == nil {
		db.heard[key] = &known{number: db.insert(&stored, now), content: content, last: now}
		return
	}
	m.last = later(m.last, now) // the clock may have gone back
	db.block(ledger.ByReceiver, e.Object.Source, 1, now)
	if d := db.rows[m.number]; d != nil { // "the other raises its count of copies"
		d.Copies++
		d.Last = later(d.Last, now)
	}
}

// contentOf digests what two deliveries of one event have in common.
func contentOf(e *intake.Event) intake.Digest {
	if !e.Fingerprint.IsZero() {
		return intake.DigestOf(e.Object.Type, e.Object.ID, string(e.Fingerprint[:]))
	}
	return intake.DigestOf(e.Object.Type, e.Object.ID, string(e.Body))
}

func (db *DB) insert(e *intake.Event, now time.Time) int64 {
	db.last++
	d := &intake.Delivery{Number: db.last, Event: copyEvent(e), Copies: 1, Last: now}
	if v := e.Disposition; v == "" || v == intake.Conflict {
		db.pending = append(db.pending, d.Number)
	} else { // "stored with its Why and is not judged again"
		d.Judged, d.Outcome, d.Because = now, v, e.Why
	}
	db.rows[d.Number] = d
	return d.Number
}

func copyEvent(e *intake.Event) intake.Event {
	c := *e
	c.Body = bytes.Clone(e.Body)
	return c
}

func copyDelivery(d *intake.Delivery) intake.Delivery {
	c := *d
	c.Event = copyEvent(&d.Event)
	return c
}

func copyEntry(e *intake.Entry) *intake.Entry {
	c := *e
	c.Body = bytes.Clone(e.Body)
	c.Parked = slices.Clone(e.Parked)
	for i := range c.Parked {
		c.Parked[i] = copyEvent(&c.Parked[i])
	}
	return &c
}
