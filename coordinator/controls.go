package coordinator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/ledger"
)

// controls is this process's copy of what every process of the ledger obeys (K17): the health of destinations, the shares of
// their limits, and pauses. It is read when a session is opened, and again when a claim or a renewal tells of another version.
type controls struct {
	ledger ledger.Ledger
	outage *outage
	health *kept[health]
	shares *kept[share]
	read   func() // all of them were read

	telling sync.Mutex // what is obeyed is told in the order in which it was taken

	mu      sync.Mutex
	newest  int64 // version that was read
	pauses  map[string]pause
	reading bool
	again   bool // they are to be read once more
}

// pause is a scope that a person has paused, at the version at which it was read.
type pause struct {
	version int64
	by      *By // nil: it is over
}

// newControls tells what there is to obey, and that all of it was read, without a lock of its own.
func newControls(l ledger.Ledger, o *outage, obey func(string, health), part func(string, share), read func()) *controls {
	k := &controls{ledger: l, outage: o, read: read, pauses: map[string]pause{}}
	k.health, k.shares = newKept(k, ledger.ControlDestination, obey), newKept(k, ledger.ControlShare, part)
	return k
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
	clear(k.health.values)
	clear(k.shares.values)
	clear(k.pauses)
	k.readAgain(s)
}

// readAgain reads the controls in the background, and once more when they are being read already.
func (k *controls) readAgain(s *session) {
	if k.again = true; !k.reading {
		k.reading = true
		go k.readAll(s)
	}
}

// readAll reads the controls until nothing else is told of, or the session ends.
func (k *controls) readAll(s *session) {
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
	k.newest = newest
	k.mu.Unlock()
	k.read()
}

// take takes controls that were read or stored, but for those of which a newer version is known.
func (k *controls) take(all []ledger.Control) {
	k.telling.Lock()
	defer k.telling.Unlock()
	for _, tell := range k.taken(all) {
		tell()
	}
}

// taken says what there is to tell of controls that were taken.
func (k *controls) taken(all []ledger.Control) (tell []func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range all {
		switch c := &all[i]; {
		case c.Kind == ledger.ControlPause && k.pauses[c.Name].version < c.Version:
			k.pauses[c.Name] = pause{c.Version, pausedBy(c)}
		case c.Kind == ledger.ControlDestination:
			tell = append(tell, k.health.take(c))
		case c.Kind == ledger.ControlShare:
			tell = append(tell, k.shares.take(c))
		}
	}
	return slices.DeleteFunc(tell, func(f func()) bool { return f == nil })
}

// reread reads what another process has changed.
func (k *controls) reread(ctx context.Context) {
	if all, newest, err := k.ledger.Controls(ctx); err == nil { // else it is tried again
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
