// Package memory is the readable reference of every role that a database has: one mutex, a few
// maps. It follows the contracts sentence by sentence, so where a SQL database surprises, compare
// it with this one.
//
// It forgets everything when the process ends. Use it for tests (its clock can be set, and it works
// inside a testing/synctest bubble), for trying a saga out, and for reading.
package memory

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// Options sets what a test may want to decide. The zero value is ready to use.
type Options struct {
	// Now is the database's clock, the only one it ever reads. Default: time.Now.
	Now func() time.Time
	// Limits are what the ledger says of itself. Where Now is the clock of one of several nodes,
	// Skew says how far apart they are. Default: none; one clock, and a fail-over forgets.
	Limits ledger.Limits
}

// DB is a database in memory: a ledger, and all that a reconciler keeps.
type DB struct {
	now    func() time.Time
	limits ledger.Limits

	mu       sync.Mutex // guards everything below
	closed   bool
	identity string                   // who the "database" is
	opened   map[machine.Token]string // on which database each session was opened
	begun    map[string]time.Time     // when the first session was opened on each
	state
}

// state is what a database would hold.
type state struct {
	sessions    map[machine.Token]*session
	works       []*work // works[i] has number i+1
	byID        map[saga.ID]*work
	duplicates  map[counter]ledger.Duplicate
	blocked     map[ledger.BlockedDay]int64 // by all but the count, which is none
	definitions map[ledger.Version]ledger.Definition
	controls    map[control]ledger.Control
	acts        []ledger.Act              // acts[i] has number i+1
	requests    map[string]ledger.Request // by key
	version     int64                     // the newest of the controls

	mail mail
	inboxState
	planned planned
	sweeps  sweeps
	runs    runs // of jobs
}

type session struct {
	label                    string
	opened, renewed, expires time.Time
	dead                     bool
	knows                    []ledger.Version
}

type work struct {
	head    ledger.Instance
	leaves  time.Time        // when it leaves the line in which it waits for a destination
	records []machine.Record // records[i] has seq i+1
	signals []machine.Signal
	read    map[int64]bool // signals that a record has consumed
}

type counter struct {
	id     saga.ID
	source string
	name   ledger.Counter
}

var errClosed = errors.New("the database is closed")

var (
	_ ledger.Ledger = (*DB)(nil)
)

// New returns an empty database. Nil options mean the defaults.
func New(o *Options) *DB {
	db := &DB{
		now:      time.Now,
		limits:   ledger.Limits{Forgets: true},
		identity: identity(),
		opened:   make(map[machine.Token]string),
		begun:    make(map[string]time.Time),
		state:    newState(),
	}
	if o != nil && o.Now != nil {
		db.now = o.Now
	}
	if o != nil && o.Limits != (ledger.Limits{}) {
		db.limits = o.Limits
	}
	return db
}

func newState() state {
	return state{
		sessions:    make(map[machine.Token]*session),
		byID:        make(map[saga.ID]*work),
		requests:    make(map[string]ledger.Request),
		duplicates:  make(map[counter]ledger.Duplicate),
		blocked:     make(map[ledger.BlockedDay]int64),
		definitions: make(map[ledger.Version]ledger.Definition),
		controls:    make(map[control]ledger.Control),
		inboxState:  newInbox(),
		planned:     newPlanned(),
		sweeps:      newSweeps(),
		runs:        runs{jobs: make(map[string]schedule.JobState)},
	}
}

// Limits says "what the ledger can bear".
func (db *DB) Limits() ledger.Limits { return db.limits }

// Close ends the use of db. Every later call fails, as on a closed database.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.closed = true
	return nil
}

// in runs one method with db locked and the clock read: every method sees one moment, as a
// statement does. Its error begins with what was to be done.
func in[T any](ctx context.Context, db *DB, method func(now time.Time) (T, error), what string, args ...any) (got T, err error) {
	if err = ctx.Err(); err == nil {
		db.mu.Lock()
		defer db.mu.Unlock()
		if err = errClosed; !db.closed {
			// Microseconds, in UTC and without a monotonic part: what a database would give back.
			got, err = method(db.now().UTC().Truncate(time.Microsecond))
		}
	}
	if own, ok := errors.AsType[ownError](err); ok {
		return got, own.error
	}
	if err != nil {
		return got, fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
	}
	return got, nil
}

// do is in for a method that returns no more than an error.
func (db *DB) do(ctx context.Context, method func(now time.Time) error, what string, args ...any) error {
	_, err := in(ctx, db, func(now time.Time) (struct{}, error) { return struct{}{}, method(now) }, what, args...)
	return err
}

// ownError goes out in its own words: a callback of the caller returned it, or it says by itself what is wrong.
type ownError struct{ error }

// OpenSession begins a lease under a fresh random token.
func (db *DB) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return in(ctx, db, func(now time.Time) (ledger.Lease, error) {
		t := machine.Token(random())
		for db.sessions[t] != nil || t == 0 { // zero stands for no session
			t = machine.Token(random())
		}
		db.sessions[t] = &session{label: label, opened: now, renewed: now, expires: now.Add(ttl), knows: slices.Clone(knows)}
		db.opened[t] = db.identity
		if _, known := db.begun[db.identity]; !known {
			db.begun[db.identity] = now
		}
		return ledger.Lease{Token: t, At: now, TTL: ttl, Database: db.identity, Live: db.unburied(), Controls: db.version}, nil
	}, "open session")
}

// Renew extends a lease to r.TTL from now. "A session that is dead or has expired is not revived".
func (db *DB) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return in(ctx, db, func(now time.Time) (ledger.Lease, error) {
		if err := db.same(t); err != nil {
			return ledger.Lease{}, err
		}
		if !db.live(t, now) {
			return ledger.Lease{}, ledger.ErrSessionDead
		}
		s := db.sessions[t]
		db.leaveLines(now)
		s.renewed, s.expires, s.knows = now, now.Add(r.TTL), slices.Clone(r.Knows)
		return ledger.Lease{Token: t, At: now, TTL: r.TTL, Database: db.identity, Stray: db.stray(t, r.InHand), Live: db.unburied(), Controls: db.version}, nil
	}, "renew session %s", t)
}

// Bury marks a session dead. "Burying a dead session is not an error".
func (db *DB) Bury(ctx context.Context, t machine.Token) error {
	return db.do(ctx, func(now time.Time) error {
		if s := db.sessions[t]; s != nil && !s.dead {
			s.dead = true
			if s.expires.After(now) {
				s.expires = now
			}
		}
		return nil
	}, "bury session %s", t)
}

// live reports whether t may arm: not dead, and its lease ends after now.
func (db *DB) live(t machine.Token, now time.Time) bool {
	s := db.sessions[t]
	return s != nil && !s.dead && s.expires.After(now)
}

// unburied returns "the sessions that are not buried yet".
func (db *DB) unburied() (ts []machine.Token) {
	for t, s := range db.sessions {
		if !s.dead {
			ts = append(ts, t)
		}
	}
	return ts
}

// lost reports whether the holder of a work is gone.
func (db *DB) lost(t machine.Token) bool {
	s := db.sessions[t]
	return t != 0 && (s == nil || s.dead)
}

// Post inserts a signal and makes the work due "at the latest now". "A signal whose Key the work
// has already received changes nothing".
func (db *DB) Post(ctx context.Context, id saga.ID, s machine.Signal) (ledger.Posted, error) {
	return in(ctx, db, func(now time.Time) (posted ledger.Posted, err error) {
		if err := valid.Signal(&s); err != nil {
			return posted, err
		}
		w := db.byID[id]
		if w == nil {
			return posted, ledger.ErrNotFound
		}
		if w.head.Left() == ledger.LeftRemains {
			return posted, ledger.ErrForgotten
		}
		for _, known := range w.signals {
			if known.Key == s.Key {
				return posted, nil
			}
		}
		if s.ID != 0 && s.ID != w.head.Posted+1 {
			return posted, ledger.ErrChanged
		}
		s = copySignal(s)
		s.ID, s.At = w.head.Posted+1, now
		w.signals = append(w.signals, s)
		w.head.Posted++
		w.head.WaitsFor = ""                                                      // "a signal reaches a process whatever the destination's state"
		if h := &w.head; h.Session == 0 && (h.Due.IsZero() || h.Due.After(now)) { // a held work keeps its holder: Claim tells that holder
			h.Due = now
		}
		return ledger.Posted{Number: s.ID, At: now}, nil
	}, "post %s to %s", s.Kind, id)
}

// Describe stores a definition's structure or compares it with the stored one.
func (db *DB) Describe(ctx context.Context, spec *program.Spec) error {
	return db.do(ctx, func(now time.Time) error {
		d, err := definition(spec, now)
		if err != nil {
			return err
		}
		key := ledger.Version{Saga: spec.Saga, Version: spec.Version}
		known, ok := db.definitions[key]
		if !ok {
			db.definitions[key] = d
			return nil
		}
		if known.Structure != d.Structure {
			return fmt.Errorf("%w; raise the version", ledger.ErrDefinitionChanged)
		}
		d.First = known.First
		db.definitions[key] = d
		return nil
	}, "describe %s version %d", spec.Saga, spec.Version)
}

// Count stores what a counter has seen, stamped by the ledger's clock, and folds what is silent
// into the counter 0.
func (db *DB) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	return db.do(ctx, func(now time.Time) error {
		sums := make(map[counter]int64, len(totals))
		for _, d := range totals {
			sums[counter{d.ID, valid.Cut(d.Source), c}] += d.Count
		}
		for key, total := range sums {
			d, ok := db.duplicates[key]
			if !ok {
				d = ledger.Duplicate{ID: key.id, Source: key.source, First: now}
			}
			if total > d.Count {
				db.block(ledger.ByStart, key.source, total-d.Count, now)
				d.Count, d.Last = total, now
			}
			db.duplicates[key] = d
		}
		for key, d := range db.duplicates {
			if key.name == 0 || key.name == c || now.Sub(d.Last) <= ledger.CounterSilence {
				continue
			}
			delete(db.duplicates, key)
			key.name = 0
			db.duplicates[key] = join(db.duplicates[key], d)
		}
		return nil
	}, "count duplicates")
}

// join is what two counters of one work and source have seen together. The first may be none.
func join(a, b ledger.Duplicate) ledger.Duplicate {
	if a.Count == 0 {
		return b
	}
	a.Count += b.Count
	if b.First.Before(a.First) {
		a.First = b.First
	}
	if b.Last.After(a.Last) {
		a.Last = b.Last
	}
	return a
}

func identity() string { return fmt.Sprintf("memory-%016x", uint64(random())) }

func random() int64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return int64(binary.BigEndian.Uint64(b[:]))
}
