package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
)

// mail is what came from outside, and what waits for it.
type mail struct {
	waits    []ledger.Wait
	messages []message // in the order in which they came
}

type message struct {
	program.Message
	ledger.Kept

	expires time.Time
	used    []ledger.Wait // by which waits, one in each saga
}

// Await makes waits findable. "One that is there already stays as it is".
func (db *DB) Await(ctx context.Context, waits []ledger.Wait) error {
	return db.do(ctx, func(time.Time) error {
		for i := range waits {
			if err := valid.Wait(&waits[i]); err != nil {
				return ownError{err}
			}
		}
		db.mail.await(waits)
		return nil
	}, "make %d waits findable", len(waits))
}

func (m *mail) await(waits []ledger.Wait) {
	for _, w := range waits {
		if w.Ended = false; !slices.Contains(m.waits, w) {
			m.waits = append(m.waits, w)
		}
	}
}

// Waits returns what was made findable under a name and a key, "oldest first".
func (db *DB) Waits(ctx context.Context, name, key string) ([]ledger.Wait, error) {
	return in(ctx, db, func(time.Time) (waits []ledger.Wait, err error) {
		for _, w := range db.mail.waits {
			if w.Name == name && w.Key == key {
				of := db.byID[w.ID]
				w.Ended = of != nil && of.head.Status.Terminal()
				waits = append(waits, w)
			}
		}
		return waits, nil
	}, "look what waits for message %q", name)
}

// Unwait removes waits.
func (db *DB) Unwait(ctx context.Context, waits []ledger.Wait) error {
	return db.do(ctx, func(time.Time) error {
		for _, w := range waits {
			db.mail.waits = slices.DeleteFunc(db.mail.waits, w.Same)
		}
		return nil
	}, "remove %d waits", len(waits))
}

// Keep stores a message, "and forgets a few whose time is over".
func (db *DB) Keep(ctx context.Context, m program.Message, keep time.Duration) (ledger.Kept, error) {
	return in(ctx, db, func(now time.Time) (ledger.Kept, error) {
		if err := valid.Message(&m); err != nil {
			return ledger.Kept{}, ownError{err}
		}
		db.mail.messages = slices.DeleteFunc(db.mail.messages, func(o message) bool { return !o.expires.After(now) })
		for _, o := range db.mail.messages {
			if o.Name == m.Name && o.ID == m.ID {
				kept := o.Kept
				kept.Again = true
				kept.Other = o.Key != m.Key || string(o.Body) != string(m.Body)
				return kept, nil
			}
		}
		m.Body = slices.Clone(m.Body)
		o := message{Message: m, Kept: ledger.Kept{At: now}, expires: now.Add(keep)}
		db.mail.messages = append(db.mail.messages, o)
		return o.Kept, nil
	}, "keep message %q", m.Name)
}

// Messages returns those "that are stored and not used in a saga, oldest first".
func (db *DB) Messages(ctx context.Context, name, key, saga string) ([]program.Message, error) {
	return in(ctx, db, func(now time.Time) (ms []program.Message, err error) {
		for _, o := range db.mail.messages {
			if o.Name == name && o.Key == key && o.by(saga) == nil && o.expires.After(now) {
				m := o.Message
				m.Body = slices.Clone(m.Body)
				ms = append(ms, m)
			}
		}
		return ms, nil
	}, "look for messages %q", name)
}

// by is the wait of a saga that uses it, or nil.
func (m *message) by(saga string) *ledger.Wait {
	for i := range m.used {
		if m.used[i].ID.Saga == saga {
			return &m.used[i]
		}
	}
	return nil
}

// Use notes that a wait uses a message: "in each saga one wait uses a message, the first that says so".
func (db *DB) Use(ctx context.Context, name, id string, w ledger.Wait) (bool, error) {
	return in(ctx, db, func(time.Time) (bool, error) {
		for i := range db.mail.messages {
			o := &db.mail.messages[i]
			if o.Name != name || o.ID != id {
				continue
			}
			if by := o.by(w.ID.Saga); by != nil {
				return by.ID == w.ID && by.Step == w.Step && by.StepKey == w.StepKey, nil
			}
			o.used = append(slices.Clip(o.used), w)
			return true, nil
		}
		return true, nil // its time is over
	}, "use message %q", name)
}

// Uses returns the waits that use a message, "in the order of saga".
func (db *DB) Uses(ctx context.Context, name, id string) ([]ledger.Wait, error) {
	return in(ctx, db, func(time.Time) (uses []ledger.Wait, err error) {
		for _, o := range db.mail.messages {
			if o.Name == name && o.ID == id {
				for _, w := range o.used {
					uses = append(uses, ledger.Wait{ID: w.ID, Step: w.Step, StepKey: w.StepKey})
				}
			}
		}
		slices.SortFunc(uses, func(a, b ledger.Wait) int { return cmp.Compare(a.ID.Saga, b.ID.Saga) })
		return uses, nil
	}, "look what uses message %q", name)
}

// Shared returns a few names and keys "by which several works of a saga wait at this time".
func (db *DB) Shared(ctx context.Context) ([]ledger.Shared, error) {
	return in(ctx, db, func(time.Time) ([]ledger.Shared, error) {
		works := make(map[ledger.Shared]map[saga.ID]bool)
		var all []ledger.Shared
		for _, w := range db.mail.waits {
			k := ledger.Shared{Saga: w.ID.Saga, Name: w.Name, Key: w.Key}
			if of := db.byID[w.ID]; w.Name == "" || of == nil || of.head.Status != saga.Waiting || works[k][w.ID] {
				continue
			}
			if works[k] == nil {
				works[k] = make(map[saga.ID]bool)
			}
			if works[k][w.ID] = true; len(works[k]) == 2 {
				all = append(all, k)
			}
		}
		slices.SortFunc(all, func(a, b ledger.Shared) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Saga, b.Saga))
		})
		return all[:min(len(all), ledger.MaxShared)], nil
	}, "look what waits for one message")
}
