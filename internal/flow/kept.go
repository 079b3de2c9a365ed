package flow

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
)

// kept is this process's copy of the controls of one kind, each a value that is changed by
// compare-and-set, and its own changes to them that are on their way.
type kept[T any] struct {
	*controls
	kind ledger.ControlKind
	obey func(name string, v T) // it was read or stored; values of one name come in the order of their versions

	// Guarded by the controls.
	values  map[string]stored[T]
	unread  map[string]bool                  // those that were known under the last session, and were not read under this one yet
	changes map[string][]func(v T) (T, bool) // of one control: the one under way, and those behind it
}

// stored is a value, and the version at which it was read.
type stored[T any] struct {
	version int64
	value   T
}

func newKept[T any](k *controls, kind ledger.ControlKind, obey func(string, T)) *kept[T] {
	return &kept[T]{controls: k, kind: kind, obey: obey, values: map[string]stored[T]{}, unread: map[string]bool{}, changes: map[string][]func(T) (T, bool){}}
}

// opened forgets what was read under the last session. The controls are locked.
func (k *kept[T]) opened() {
	for name := range k.values {
		k.unread[name] = true
	}
	clear(k.values)
}

// gone tells of those that are not there any more, once all were read: the database went back
// behind them. The controls are locked.
func (k *kept[T]) gone() (tell []func()) {
	var none T
	for name := range k.unread {
		tell = append(tell, func() { k.obey(name, none) })
	}
	clear(k.unread)
	return tell
}

// take takes a control of the kind that was read or stored, unless a newer version is known. The
// controls are locked.
func (k *kept[T]) take(c *ledger.Control) (tell func()) {
	var v T
	delete(k.unread, c.Name)
	if k.values[c.Name].version >= c.Version {
		return nil
	}
	if len(c.Body) > 0 && json.Unmarshal(c.Body, &v) != nil {
		return nil // a newer program's: what it means is not known here, and it counts as it was
	}
	k.values[c.Name] = stored[T]{c.Version, v}
	return func() { k.obey(c.Name, v) }
}

// of returns what is known of one.
func (k *kept[T]) of(name string) stored[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[name]
}

// mostChanges is how many changes of one control wait for each other. What led to one beyond it is
// seen again.
const mostChanges = 4

// change stores a change in the background and in order: f says what the value is to be, or that
// nothing is to be changed any more.
func (k *kept[T]) change(s Session, name string, f func(v T) (T, bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s == nil || len(k.changes[name]) == mostChanges {
		return
	}
	if k.changes[name] = append(k.changes[name], f); len(k.changes[name]) == 1 {
		go k.storeAll(s, name)
	}
}

// storeAll stores the changes of a control until there are no more.
func (k *kept[T]) storeAll(s Session, name string) {
	for more := true; more; {
		k.mu.Lock()
		f := k.changes[name][0]
		k.mu.Unlock()
		k.store(s.Idle(), s, name, f)
		k.mu.Lock()
		k.changes[name] = k.changes[name][1:]
		more = len(k.changes[name]) > 0
		k.mu.Unlock()
	}
}

// store stores a change, decided again as often as another's comes first, until ctx ends.
func (k *kept[T]) store(ctx context.Context, s Session, name string, f func(v T) (T, bool)) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		known := k.of(name)
		v, changed := f(known.value)
		if !changed || k.set(ctx, s, name, known.version, v) || nap.For(ctx, wait) != nil {
			return
		}
	}
}

// set stores a value over a version. It reports whether the matter is settled: stored, or void with
// the session.
func (k *kept[T]) set(ctx context.Context, s Session, name string, over int64, v T) bool {
	body, err := json.Marshal(v)
	if err != nil {
		return true // what is kept always marshals
	}
	c := ledger.Control{Kind: k.kind, Name: name, Version: over, Body: body, Nonce: rand.Int64()}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		stored, err := k.ledger.SetControl(ctx, s.Token(), c)
		switch {
		case err == nil:
			k.asked(nil)
			k.controls.take(s, []ledger.Control{stored})
			return true
		case errors.Is(err, ledger.ErrChanged):
			k.reread(ctx, s)
			return false
		case errors.Is(err, ledger.ErrSessionDead), errors.Is(err, ledger.ErrDatabaseChanged), errors.Is(err, ledger.ErrInvalid), nap.For(ctx, wait) != nil:
			return true
		}
		k.asked(err) // the same again: it may have been stored
	}
}
