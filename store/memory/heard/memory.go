// Package memory is the readable reference of the stores of package reconcile: one mutex, a few maps, no
// database. Where a SQL store surprises, compare it with this one.
//
// It forgets everything when the process ends. Use it for tests (its clock can be set, and it works inside a
// testing/synctest bubble), for trying something out, and for reading.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Options sets what a test may want to decide. The zero value is ready to use.
type Options struct {
	// Now is the store's clock, the only one it ever reads. Default: time.Now.
	Now func() time.Time
}

// Store keeps what was heard. It implements [reconcile.Inbox], [reconcile.Gate] and [reconcile.Reader].
type Store struct {
	now func() time.Time

	mu      sync.Mutex // guards everything below; who holds it is in the one transaction there is
	closed  bool
	last    int64 // the number of the newest delivery
	rows    map[int64]*reconcile.Delivery
	pending []int64 // numbers of deliveries that nobody has judged, the oldest first
	heard   map[event]*memory
	entries map[reconcile.Object]*reconcile.Entry
	agenda  agenda // when each entry can be claimed
	shelf   shelf
	travels travels
	runs    runs // of jobs
}

// event is what makes two deliveries one.
type event struct {
	source  string
	dedupe  reconcile.Digest
	content reconcile.Digest // zero for the first of its dedupe digest, set for one that conflicts with it
}

// memory recognises copies of an event. It outlives the delivery's row.
type memory struct {
	number  int64
	content reconcile.Digest
	last    time.Time
}

var errClosed = errors.New("the store is closed")

var (
	_ reconcile.Inbox  = (*Store)(nil)
	_ reconcile.Gate   = (*Store)(nil)
	_ reconcile.Reader = (*Store)(nil)
)

// New returns an empty store. Nil options mean the defaults.
func New(o *Options) *Store {
	s := &Store{
		now:     time.Now,
		rows:    map[int64]*reconcile.Delivery{},
		heard:   map[event]*memory{},
		entries: map[reconcile.Object]*reconcile.Entry{},
		shelf:   newShelf(),
		travels: newTravels(),
		runs:    runs{jobs: map[string]schedule.State{}},
	}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	return s
}

// Close ends the use of s. Every later call fails, as on a closed database.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// enter locks s for one method and reads the clock: every method sees one moment, as a statement does. The
// caller defers unlock when err is nil.
func (s *Store) enter(ctx context.Context) (now time.Time, unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return time.Time{}, nil, errClosed
	}
	// Microseconds, in UTC and without a monotonic part: what a database would give back.
	return s.now().UTC().Truncate(time.Microsecond), s.mu.Unlock, nil
}

// Accept stores events, "all or none".
func (s *Store) Accept(ctx context.Context, events []reconcile.Event) error {
	for i := range events {
		if events[i].Dedupe.IsZero() {
			return fmt.Errorf("accept event %d of %d (%s): it has no dedupe digest, so a copy of it could not be told from another event", i+1, len(events), events[i].Object)
		}
	}
	now, unlock, err := s.enter(ctx)
	if err != nil {
		return fmt.Errorf("accept %d events: %w", len(events), err)
	}
	defer unlock()
	for i := range events {
		s.accept(&events[i], now)
	}
	return nil
}

func (s *Store) accept(e *reconcile.Event, now time.Time) {
	key, content := event{source: e.Object.Source, dedupe: e.Dedupe}, contentOf(e)
	stored := *e
	m := s.heard[key]
	if m != nil && m.content != content { // "when its body differs [it] is kept beside it with the verdict Conflict"
		key.content, stored.Verdict = content, reconcile.Conflict
		m = s.heard[key]
	}
	if m == nil {
		s.heard[key] = &memory{number: s.insert(&stored, now), content: content, last: now}
		return
	}
	m.last = now
	if d := s.rows[m.number]; d != nil { // "the other raises its count of copies"
		d.Copies, d.Last = d.Copies+1, now
	}
}

// contentOf digests what two deliveries of one event have in common.
func contentOf(e *reconcile.Event) reconcile.Digest {
	if !e.Fingerprint.IsZero() {
		return reconcile.DigestOf(e.Object.Type, e.Object.ID, string(e.Fingerprint[:]))
	}
	return reconcile.DigestOf(e.Object.Type, e.Object.ID, string(e.Body))
}

func (s *Store) insert(e *reconcile.Event, now time.Time) int64 {
	s.last++
	d := &reconcile.Delivery{Number: s.last, Event: copyEvent(e), Copies: 1, Last: now}
	if v := e.Verdict; v == "" || v == reconcile.Conflict {
		s.pending = append(s.pending, d.Number)
	} else { // "stored with its Why and is not judged again"
		d.Judged, d.Outcome, d.Because = now, v, e.Why
	}
	s.rows[d.Number] = d
	return d.Number
}

func copyEvent(e *reconcile.Event) reconcile.Event {
	c := *e
	c.Body = bytes.Clone(e.Body)
	return c
}

func copyDelivery(d *reconcile.Delivery) reconcile.Delivery {
	c := *d
	c.Event = copyEvent(&d.Event)
	return c
}

func copyEntry(e *reconcile.Entry) *reconcile.Entry {
	c := *e
	c.Body = bytes.Clone(e.Body)
	c.Parked = slices.Clone(e.Parked)
	for i := range c.Parked {
		c.Parked[i] = copyEvent(&c.Parked[i])
	}
	return &c
}
