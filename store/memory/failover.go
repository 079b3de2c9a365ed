package memory

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Backup is what a ledger held at one moment.
type Backup struct{ state }

// Backup copies what l holds now, as a standby or a backup has it.
func (l *Ledger) Backup() *Backup {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Backup{l.snapshot()}
}

// FailOver puts b in the place of what l holds, under another identity: a fail-over to a standby that had not
// received everything, or a restore. What was stored since b is forgotten. Sessions opened before are told
// [ledger.ErrDatabaseChanged].
func (l *Ledger) FailOver(b *Backup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.identity = b.snapshot(), identity()
}

// same reports whether this is the database session t was opened on.
func (l *Ledger) same(t saga.Token) error {
	if opened, ok := l.opened[t]; ok && opened != l.identity {
		return fmt.Errorf("%w: it was %s, now it is %s", ledger.ErrDatabaseChanged, opened, l.identity)
	}
	return nil
}

// changed is when the database became another one after tail was written, zero when it did not.
func (l *Ledger) changed(tail *saga.Record) time.Time {
	since, opened := l.begun[l.identity], l.opened[tail.Session]
	switch {
	case len(l.begun) < 2:
		return time.Time{}
	case tail.Session == 0 && tail.At.Before(since), opened != "" && opened != l.identity:
		return since
	default:
		return time.Time{}
	}
}

// snapshot shares nothing with s that either of them changes.
func (s state) snapshot() state {
	c := state{
		sessions:    make(map[saga.Token]*session, len(s.sessions)),
		byID:        make(map[saga.ID]*work, len(s.byID)),
		signals:     s.signals,
		duplicates:  maps.Clone(s.duplicates),
		definitions: maps.Clone(s.definitions),
		controls:    maps.Clone(s.controls),
		acts:        slices.Clone(s.acts),
		version:     s.version,
	}
	for t, old := range s.sessions {
		lease := *old
		c.sessions[t] = &lease
	}
	for _, old := range s.works {
		w := &work{head: old.head, records: slices.Clone(old.records), signals: slices.Clone(old.signals), read: maps.Clone(old.read)}
		c.works = append(c.works, w)
		c.byID[w.head.ID] = w
	}
	return c
}
