package flow

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/saga"
)

// controls is this process's copy of what every process of the ledger obeys: the health of
// destinations, the shares of their limits, and pauses. It is read when a session is opened, and
// again when a claim or a renewal tells of another version.
type controls struct {
	ledger Ledger
	asked  func(error) // how each call was answered; nil: well
	health *kept[Health]
	shares *kept[share]
	tells  told

	telling sync.Mutex // what is obeyed is told in the order in which it was taken

	mu      sync.Mutex
	session Session       // what was read under another one counts no more
	newest  int64         // version that was read
	read    chan struct{} // closed and replaced when one was read
	pauses  map[string]pause
	reading bool // under the session
	again   bool // they are to be read once more
}

// pause is a scope that a person has paused, at the version at which it was read.
type pause struct {
	version int64
	by      *saga.Actor // nil: it is over
	at      time.Time   // when that was said
}

// told is who is told of what there is to obey, without a lock of the controls.
type told struct {
	health func(destination string, h Health)
	share  func(destination string, s share)
	paused func(scope string, by *saga.Actor) // by a person; nil: resumed
	read   func()                             // all was read
}

// What a person can pause beside a destination, by the names of their controls.
const Everything = "all"

// OfSaga names the pause of a saga.
func OfSaga(name string) string { return "saga:" + name }

func newControls(l Ledger, heard func(error), tells told) *controls {
	k := &controls{ledger: l, asked: heard, tells: tells, pauses: map[string]pause{}, read: make(chan struct{})}
	k.health, k.shares = newKept(k, ledger.ControlDestination, tells.health), newKept(k, ledger.ControlShare, tells.share)
	return k
}

// heard is told of the newest version that there is. It reads the controls in the background when
// that is another one than was read.
func (k *controls) heard(s Session, version int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s == k.session && version != k.newest {
		k.readAgain()
	}
}

// upTo waits until a version of which it was told is obeyed, or the session ends.
func (k *controls) upTo(s Session, version int64) {
	for {
		k.mu.Lock()
		obeyed, read := s != k.session || k.newest >= version, k.read
		k.mu.Unlock()
		if obeyed {
			return
		}
		select {
		case <-read:
		case <-s.Idle().Done():
			return
		}
	}
}

// opened reads the controls under a new session, whatever was read before: the database may be
// another one. Until then the session is not trusted: what is paused is not known.
func (k *controls) opened(s Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.health.opened()
	k.shares.opened()
	clear(k.pauses)
	k.session, k.reading = s, false
	k.readAgain()
}

// readAgain reads the controls in the background, and once more when they are being read already.
func (k *controls) readAgain() {
	if k.again = true; !k.reading {
		k.reading = true
		go k.readAll(k.session)
	}
}

// readAll reads the controls until nothing else is told of, or the session ends.
func (k *controls) readAll(s Session) {
	for wait := 10 * time.Millisecond; k.wanted(s); wait = min(2*wait, time.Second) {
		all, newest, err := k.ledger.Controls(s.Idle())
		switch {
		case err == nil:
			k.asked(nil)
			k.install(s, all, newest)
		case nap.For(s.Idle(), wait) != nil:
			return // nothing is heard under it any more
		default:
			k.asked(err)
			k.mu.Lock()
			k.again = true
			k.mu.Unlock()
		}
	}
}

// wanted reports whether the controls are to be read under a session, and notes that they are being
// read now.
func (k *controls) wanted(s Session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != k.session {
		return false
	}
	k.reading, k.again = k.again, false
	return k.reading
}

// install takes what was read.
func (k *controls) install(s Session, all []ledger.Control, newest int64) {
	k.take(s, all)
	k.telling.Lock()
	for _, tell := range k.readUpTo(s, newest) {
		tell()
	}
	k.telling.Unlock()
	s.Obeys()
	k.tells.read()
}

// readUpTo notes that all was read, and says what there is to tell of what is gone.
func (k *controls) readUpTo(s Session, newest int64) []func() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != k.session {
		return nil
	}
	k.newest = newest
	close(k.read)
	k.read = make(chan struct{})
	return append(k.health.gone(), k.shares.gone()...)
}

// take takes controls that were read or stored under a session, but for those of which a newer
// version is known.
func (k *controls) take(s Session, all []ledger.Control) {
	k.telling.Lock()
	defer k.telling.Unlock()
	for _, tell := range k.taken(s, all) {
		tell()
	}
}

// taken says what there is to tell of controls that were taken.
func (k *controls) taken(s Session, all []ledger.Control) (tell []func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != k.session {
		return nil
	}
	for i := range all {
		switch c := &all[i]; {
		case c.Kind == ledger.ControlPause && k.pauses[c.Name].version < c.Version:
			was, by := k.pauses[c.Name].by, PausedBy(c)
			k.pauses[c.Name] = pause{c.Version, by, c.At}
			if was != nil || by != nil {
				tell = append(tell, func() { k.tells.paused(c.Name, by) })
			}
		case c.Kind == ledger.ControlDestination:
			tell = append(tell, k.health.take(c))
		case c.Kind == ledger.ControlShare:
			tell = append(tell, k.shares.take(c))
		}
	}
	return slices.DeleteFunc(tell, func(f func()) bool { return f == nil })
}

// reread reads what another process has changed.
func (k *controls) reread(ctx context.Context, s Session) {
	if all, newest, err := k.ledger.Controls(ctx); err == nil { // else it is tried again
		k.install(s, all, newest)
	}
}

// holds returns the pause that a saga's works are under, by its name, and who wants it so; nil when
// they are under none.
func (k *controls) holds(saga string) (scope string, by *saga.Actor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pauses) == 0 {
		return "", nil
	}
	for _, name := range []string{Everything, OfSaga(saga)} {
		if p := k.pauses[name]; p.by != nil {
			return name, p.by
		}
	}
	return "", nil
}

// heldUntil is until when a saga's works were last held: now, while they are; zero when they never were. Since
// when is not known.
func (k *controls) heldUntil(saga string, now time.Time) (until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pauses) == 0 {
		return until
	}
	for _, name := range []string{Everything, OfSaga(saga)} {
		switch p := k.pauses[name]; {
		case p.by != nil:
			return now
		case p.at.After(until):
			until = p.at
		}
	}
	return until
}
