package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
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
	body    []byte // also once it is delivered: to compare with
}

// Await makes waits findable. "One that is there already stays as it is".
func (db *DB) Await(ctx context.Context, waits []ledger.Wait) error {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return fmt.Errorf("make %d waits findable: %w", len(waits), err)
	}
	defer unlock()
	for i := range waits {
		if err := valid.Wait(&waits[i]); err != nil {
			return err
		}
	}
	for _, w := range waits {
		if !slices.Contains(db.mail.waits, w) {
			db.mail.waits = append(db.mail.waits, w)
		}
	}
	return nil
}

// Waits returns what was made findable under a name and a key, "in the order of saga, work and step".
func (db *DB) Waits(ctx context.Context, name, key string) (waits []ledger.Wait, err error) {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("look what waits for message %q: %w", name, err)
	}
	defer unlock()
	for _, w := range db.mail.waits {
		if w.Name == name && w.Key == key {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b ledger.Wait) int {
		return cmp.Or(cmp.Compare(a.ID.Saga, b.ID.Saga), cmp.Compare(a.ID.Work, b.ID.Work), cmp.Compare(a.Step, b.Step), cmp.Compare(a.StepKey, b.StepKey))
	})
	return waits, nil
}

// Unwait removes waits.
func (db *DB) Unwait(ctx context.Context, waits []ledger.Wait) error {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return fmt.Errorf("remove %d waits: %w", len(waits), err)
	}
	defer unlock()
	for _, w := range waits {
		db.mail.waits = slices.DeleteFunc(db.mail.waits, func(o ledger.Wait) bool { return o == w })
	}
	return nil
}

// Keep stores a message, "and forgets a few whose time is over".
func (db *DB) Keep(ctx context.Context, m program.Message, keep time.Duration) (ledger.Kept, error) {
	now, unlock, err := db.enter(ctx)
	if err != nil {
		return ledger.Kept{}, fmt.Errorf("keep message %q: %w", m.Name, err)
	}
	defer unlock()
	if err := valid.Message(&m); err != nil {
		return ledger.Kept{}, err
	}
	db.mail.messages = slices.DeleteFunc(db.mail.messages, func(o message) bool { return !o.expires.After(now) })
	for _, o := range db.mail.messages {
		if o.Name == m.Name && o.ID == m.ID {
			kept := o.Kept
			kept.Other = o.Key != m.Key || string(o.body) != string(m.Body)
			return kept, nil
		}
	}
	m.Body = slices.Clone(m.Body)
	o := message{Message: m, Kept: ledger.Kept{At: now}, expires: now.Add(keep), body: m.Body}
	db.mail.messages = append(db.mail.messages, o)
	return o.Kept, nil
}

// Messages returns those "that are stored and not delivered, oldest first".
func (db *DB) Messages(ctx context.Context, name, key string) (ms []program.Message, err error) {
	now, unlock, err := db.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for messages %q: %w", name, err)
	}
	defer unlock()
	for _, o := range db.mail.messages {
		if o.Name == name && o.Key == key && !o.Delivered && o.expires.After(now) {
			m := o.Message
			m.Body = slices.Clone(m.Body)
			ms = append(ms, m)
		}
	}
	return ms, nil
}

// Delivered notes that a message has reached what waited for it.
func (db *DB) Delivered(ctx context.Context, name, id string) error {
	_, unlock, err := db.enter(ctx)
	if err != nil {
		return fmt.Errorf("note that message %q is delivered: %w", name, err)
	}
	defer unlock()
	for i := range db.mail.messages {
		if o := &db.mail.messages[i]; o.Name == name && o.ID == id {
			o.Delivered = true
		}
	}
	return nil
}
