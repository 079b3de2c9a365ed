package coordinator

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/amends-dev/amends/ledger"
)

// controls is this process's copy of what every process of the ledger obeys (K17): the health of destinations, and pauses. It is read
// when a session is opened, and again when a claim or a renewal tells of a newer version.
type controls struct {
	ledger ledger.Ledger
	outage *outage
	obey   func(name string, h health) // a destination's health was read or stored; it is told without a lock

	mu      sync.Mutex
	newest  int64 // version that was read
	health  map[string]control
	pauses  map[string]pause
	changes map[string][]func(health) (health, bool) // of a destination: the one under way, and those behind it
	reading bool
	again   bool // they are to be read once more
}

// pause is a scope that a person has paused, at the version at which it was read.
type pause struct {
	version int64
	by      *By // nil: it is over
}

// control is the health of one destination, and the version at which it was read.
type control struct {
	version int64
	health  health
}

func newControls(l ledger.Ledger, o *outage, obey func(string, health)) *controls {
	return &controls{ledger: l, outage: o, obey: obey, health: map[string]control{}, pauses: map[string]pause{}, changes: map[string][]func(health) (health, bool){}}
}

// heard is told of the newest version that there is. It reads the controls in the background when that is another one than
// was read.
func (k *controls) heard(s *session, version int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version != k.newest {
		k.readAgain(s)
	}
}

// opened reads the controls under a new session, whatever was read before: the database may be another one.
func (k *controls) opened(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.health)
	clear(k.pauses)
	k.readAgain(s)
}

// readAgain reads the controls in the background, and once more when they are being read already.
func (k *controls) readAgain(s *session) {
	if k.again = true; !k.reading {
		k.reading = true
		go k.read(s)
	}
}

// read reads the controls until nothing else is told of, or the session ends.
func (k *controls) read(s *session) {
	for wait := 10 * time.Millisecond; k.wanted(); wait = min(2*wait, time.Second) {
		all, newest, err := k.ledger.Controls(s.idle)
		switch {
		case err == nil:
			k.outage.answered(callControls)
			k.install(all, newest)
		case sleep(s.idle, wait) != nil:
			k.mu.Lock()
			k.reading = false
			k.mu.Unlock()
			return
		default:
			k.outage.failed(callControls, err)
			k.mu.Lock()
			k.again = true
			k.mu.Unlock()
		}
	}
}

// wanted reports whether the controls are to be read, and notes that they are being read now.
func (k *controls) wanted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading, k.again = k.again, false
	return k.reading
}

// install takes what was read.
func (k *controls) install(all []ledger.Control, newest int64) {
	k.take(all)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest = newest
}

// take takes controls that were read or stored, but for those of which a newer version is known.
func (k *controls) take(all []ledger.Control) {
	var names []string
	k.mu.Lock()
	for i := range all {
		c, h := &all[i], health{}
		if c.Kind == ledger.ControlPause && k.pauses[c.Name].version < c.Version {
			k.pauses[c.Name] = pause{c.Version, pausedBy(c)}
		}
		if c.Kind != ledger.ControlDestination || k.health[c.Name].version >= c.Version {
			continue
		}
		if len(c.Body) > 0 && json.Unmarshal(c.Body, &h) != nil {
			continue // a newer program's: what it means is not known here, and its destination counts as it was
		}
		k.health[c.Name] = control{c.Version, h}
		names = append(names, c.Name)
	}
	k.mu.Unlock()
	for _, name := range names {
		k.obey(name, k.of(name))
	}
}

// mostChanges is how many changes of one destination wait for each other. What led to one beyond it is seen again.
const mostChanges = 4

// change stores a change of a destination's health, in the background and in order: f says what it is to be, or that
// nothing is to be changed any more.
func (k *controls) change(s *session, name string, f func(h health) (health, bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s == nil || len(k.changes[name]) == mostChanges {
		return
	}
	if k.changes[name] = append(k.changes[name], f); len(k.changes[name]) == 1 {
		go k.storeAll(s, name)
	}
}

// storeAll stores the changes of a destination until there are no more.
func (k *controls) storeAll(s *session, name string) {
	for more := true; more; {
		k.mu.Lock()
		f := k.changes[name][0]
		k.mu.Unlock()
		k.store(s, name, f)
		k.mu.Lock()
		k.changes[name] = k.changes[name][1:]
		more = len(k.changes[name]) > 0
		k.mu.Unlock()
	}
}

// store stores a change, decided again as often as another's comes first.
func (k *controls) store(s *session, name string, f func(h health) (health, bool)) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		k.mu.Lock()
		known := k.health[name]
		k.mu.Unlock()
		h, changed := f(known.health)
		if !changed || k.set(s, name, known.version, h) || sleep(s.idle, wait) != nil {
			return
		}
	}
}

// set stores a destination's health over a version. It reports whether the matter is settled: stored, or void with the session.
func (k *controls) set(s *session, name string, over int64, h health) bool {
	body, err := json.Marshal(h)
	if err != nil {
		return true // a health always marshals
	}
	c := ledger.Control{Kind: ledger.ControlDestination, Name: name, Version: over, Body: body, Nonce: rand.Int64()} //nolint:gosec // it guards nothing
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		stored, err := k.ledger.SetControl(s.idle, s.token, c)
		switch {
		case err == nil:
			k.outage.answered(callControls)
			k.take([]ledger.Control{stored})
			return true
		case errors.Is(err, ledger.ErrChanged):
			k.reread(s)
			return false
		case errors.Is(err, ledger.ErrSessionDead), errors.Is(err, ledger.ErrDatabaseChanged), errors.Is(err, ledger.ErrInvalid), sleep(s.idle, wait) != nil:
			return true
		}
		k.outage.failed(callControls, err) // the same again: it may have been stored
	}
}

// reread reads what another process has changed.
func (k *controls) reread(s *session) {
	if all, newest, err := k.ledger.Controls(s.idle); err == nil { // else it is tried again
		k.install(all, newest)
	}
}

// holds returns the pause that a saga's works are under, by its name, and who wants it so; nil when they are under none.
func (k *controls) holds(saga string) (name string, by *By) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range []Scope{Everything(), OfSaga(saga)} {
		if p := k.pauses[s.name]; p.by != nil {
			return s.name, p.by
		}
	}
	return "", nil
}

// of returns what is known of a destination.
func (k *controls) of(name string) health {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.health[name].health
}
