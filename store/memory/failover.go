package memory

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/saga"
)

// Backup is what a database held at one moment.
type Backup struct{ state }

// Backup copies what db holds now, as a standby or a backup has it.
func (db *DB) Backup() *Backup {
	db.mu.Lock()
	defer db.mu.Unlock()
	return &Backup{db.snapshot()}
}

// FailOver puts b in the place of what db holds, under another identity: a fail-over to a standby
// that had not received everything, or a restore. What was stored since b is forgotten. Sessions
// opened before are told [ledger.ErrDatabaseChanged].
func (db *DB) FailOver(b *Backup) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.state, db.identity = b.snapshot(), identity()
}

// same reports whether this is the database session t was opened on.
func (db *DB) same(t machine.Token) error {
	if opened, ok := db.opened[t]; ok && opened != db.identity {
		return fmt.Errorf("%w: it was %s, now it is %s", ledger.ErrDatabaseChanged, opened, db.identity)
	}
	return nil
}

// changed is when the database became another one after tail was written, zero when it did not.
func (db *DB) changed(tail *machine.Record) time.Time {
	since, opened := db.begun[db.identity], db.opened[tail.Session]
	switch {
	case len(db.begun) < 2:
		return time.Time{}
	case tail.Session == 0 && tail.At.Before(since), opened != "" && opened != db.identity:
		return since
	default:
		return time.Time{}
	}
}

// snapshot shares nothing with s that either of them changes.
func (s state) snapshot() state {
	c := state{
		sessions:    make(map[machine.Token]*session, len(s.sessions)),
		byID:        make(map[saga.ID]*work, len(s.byID)),
		duplicates:  maps.Clone(s.duplicates),
		blocked:     maps.Clone(s.blocked),
		definitions: maps.Clone(s.definitions),
		controls:    maps.Clone(s.controls),
		acts:        slices.Clone(s.acts),
		requests:    maps.Clone(s.requests),
		version:     s.version,
		mail:        mail{slices.Clone(s.mail.waits), slices.Clone(s.mail.messages)},
		inboxState:  s.inboxState.snapshot(),
		planned:     s.planned.snapshot(),
		sweeps:      s.sweeps.snapshot(),
		runs:        runs{jobs: maps.Clone(s.runs.jobs), rows: slices.Clone(s.runs.rows), last: maps.Clone(s.runs.last)},
	}
	for t, old := range s.sessions {
		lease := *old
		c.sessions[t] = &lease
	}
	for _, old := range s.works {
		w := &work{head: old.head, leaves: old.leaves, records: slices.Clone(old.records), signals: slices.Clone(old.signals), read: maps.Clone(old.read)}
		c.works = append(c.works, w)
		c.byID[w.head.ID] = w
	}
	return c
}

func (b inboxState) snapshot() inboxState {
	c := b
	c.rows, c.heard = copyValues(b.rows, copyDelivery), copyValues(b.heard, func(k *known) known { return *k })
	c.pending, c.entries, c.agenda = slices.Clone(b.pending), maps.Clone(b.entries), slices.Clone(b.agenda)
	return c
}

func (p planned) snapshot() planned {
	c := p
	c.last = maps.Clone(p.last)
	c.plans, c.approved, c.drifts = copyValues(p.plans, copyStored), maps.Clone(p.approved), maps.Clone(p.drifts)
	return c
}

func (s sweeps) snapshot() sweeps {
	c := sweeps{positions: maps.Clone(s.positions), sightings: make(map[listing][]scan.Sighting, len(s.sightings))}
	for l, rows := range s.sightings {
		c.sightings[l] = slices.Clone(rows)
	}
	return c
}

// copyStored copies what changes in a plan that is stored: its findings come, go and are acted on.
func copyStored(p *planState) planState {
	c := *p
	c.keys, c.rows = slices.Clone(p.keys), copyValues(p.rows, func(r *plan.Row) plan.Row { return *r })
	return c
}

// copyValues copies a map and what it points to.
func copyValues[K comparable, V any](m map[K]*V, one func(*V) V) map[K]*V {
	c := make(map[K]*V, len(m))
	for k, v := range m {
		copied := one(v)
		c[k] = &copied
	}
	return c
}
