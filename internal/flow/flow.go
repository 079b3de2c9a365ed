// Package flow decides what may be sent to which destination when: the slots of a limit and how processes share it, the line for
// them, what counts as an outage and who finds out that it is over, and what a person has paused. What every process of a ledger
// obeys is kept there as controls; the rest is this process's own. Whether and what is sent is the coordinator's business.
package flow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Ledger is what is asked of a ledger.
type Ledger interface {
	// Controls reads all, and the version of the newest.
	Controls(ctx context.Context) (all []ledger.Control, newest int64, err error)
	// SetControl sets one over the version that it names, under a session.
	SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error)
}

// Session is the lease of this process.
type Session interface {
	Token() machine.Token
	Alone() bool           // every other process was gone when it was opened
	Why() error            // it ended; nil: it goes on
	Idle() context.Context // ends with it, and when the process stops
	Obeys()                // what every process obeys is known under it
}

// Config is what a flow works with.
type Config struct {
	Ledger Ledger
	Asked  func(err error) // how each call of the ledger was answered; nil: well
	Now    func() machine.Moment
	Limits map[string]Limit
	Hold   time.Duration                      // the longest wait in line
	Room   int                                // the longest line
	Recall func(destination string, all bool) // one of those that failed there before is to be due now, or each
	Wake   func()                             // there is room in a line, and works wait in the ledger

	Changed func(destination, was, is string, h Health) // a destination's health was read
	Paused  func(scope string, by *saga.Actor)          // a person paused a saga or everything; nil: resumed it
}

// Flow is what one process knows of destinations and pauses.
type Flow struct {
	config   Config
	controls *controls
	session  atomic.Pointer[held]            // the latest; nil: there was none
	gone     atomic.Pointer[map[string]bool] // sessions that shared a limit with this one and are dead

	mu           sync.Mutex
	destinations map[string]*Destination

	finding sync.Mutex
	finds   map[string]*find // of sessions that are dead
}

// find is what a dead session had under way, in the chains that this process has claimed.
type find struct {
	until map[string]time.Time // by destination
	all   bool                 // nothing of it is left to be claimed, that this process could
	lost  bool                 // a chain could not be read
}

type held struct{ Session }

// New makes a flow that knows the destinations with limits.
func New(c Config) *Flow {
	f := &Flow{config: c, destinations: map[string]*Destination{}, finds: map[string]*find{}}
	f.controls = newControls(c.Ledger, c.Asked, told{f.obey, f.part, c.Paused, f.beat})
	for name, limit := range c.Limits {
		f.destinations[name] = f.newDestination(name, limit)
	}
	return f
}

func (f *Flow) newDestination(name string, l Limit) *Destination {
	now := func() Session { // of which one is nil
		if h := f.session.Load(); h != nil {
			return h.Session
		}
		return nil
	}
	return newDestination(name, l, f.config.Hold, f.config.Room, f.config.Wake, condition{
		now: f.config.Now,
		who: func() machine.Token {
			if s := now(); s != nil && s.Why() == nil {
				return s.Token()
			}
			return 0
		},
		recall: func(all bool) { f.config.Recall(name, all) },
		change: func(g func(Health) (Health, bool)) { f.controls.health.change(now(), name, g) },
	}, sharing{
		found: func(token string) (time.Time, bool) { return f.found(name, token) },
		gone: func(token string) bool {
			s, gone := now(), f.gone.Load()
			return s != nil && s.Alone() && token != s.Token().String() || gone != nil && (*gone)[token]
		},
		divide: func(g func(share) (share, bool)) { f.controls.shares.change(now(), name, g) },
	})
}

// Sends notes a definition with a step that talks to a destination: how long an attempt or a lookup may last, and how long from then on
// it may be at work; 0: nothing stays of it.
func (f *Flow) Sends(destination, definition string, timeout, stays time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.destinations[destination]
	if d == nil {
		d = f.newDestination(destination, Limit{})
		f.destinations[destination] = d
	}
	d.sends(definition, timeout, stays)
}

// Destination returns a destination, or nil when no step that is known here names it.
func (f *Flow) Destination(name string) *Destination {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.destinations[name]
}

// Unused are the destinations that have a limit and that no step names, in order.
func (f *Flow) Unused() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, d := range f.destinations {
		if len(d.runs) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Opened reads the controls under a new session. It is not told to obey before they are known.
func (f *Flow) Opened(s Session) {
	f.session.Store(&held{s})
	f.controls.opened(s)
}

// Heard is told of the newest version of the controls that there is, and reads them in the background when it does not know it.
func (f *Flow) Heard(s Session, version int64) { f.controls.heard(s, version) }

// UpTo waits until a version of which it was told is obeyed, or the session ends.
func (f *Flow) UpTo(s Session, version int64) { f.controls.upTo(s, version) }

// Holds returns the pause that a saga's works are under, by the name of its scope, and who wants it so; nil when they are under none.
func (f *Flow) Holds(saga string) (scope string, by *saga.Actor) { return f.controls.holds(saga) }

// HeldUntil is until when a saga's works were last held: now, while they are; zero when they never were.
func (f *Flow) HeldUntil(saga string, now time.Time) time.Time {
	return f.controls.heldUntil(saga, now)
}

// Rooms says for how many works there is room in each line, of those that wait in the ledger, limit at most.
func (f *Flow) Rooms(limit int) map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	rooms := make(map[string]int, len(f.destinations))
	for name, d := range f.destinations {
		for _, k := range []kind{fresh, again} {
			if n := min(limit, d.offer(k)); n > 0 {
				rooms[lineOf(name, k)] = n
			}
		}
	}
	return rooms
}

// NothingWaits notes that nothing waits in the ledger in lines that had room.
func (f *Flow) NothingWaits(rooms map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, d := range f.destinations {
		for _, k := range []kind{fresh, again} {
			if rooms[lineOf(name, k)] > 0 {
				d.none(k)
			}
		}
	}
}

// obey takes over what is known of a destination's health.
func (f *Flow) obey(name string, h Health) {
	if d := f.Destination(name); d != nil {
		was, is := d.obey(h)
		f.config.Changed(name, was, is, h)
	}
}

// part takes over what was stored of a destination's share.
func (f *Flow) part(name string, s share) {
	if d := f.Destination(name); d != nil {
		d.shares(s)
	}
}

// limits are the destinations with a limit.
func (f *Flow) limits() (ds []*Destination) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.destinations {
		if d.limited() && len(d.runs) > 0 {
			ds = append(ds, d)
		}
	}
	return ds
}

// Sharers are the sessions that share a limit with this one, as far as is known.
func (f *Flow) Sharers() (tokens []string) {
	for _, d := range f.limits() {
		for token := range f.controls.shares.of(d.name).value.Sessions {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// Lives is told which sessions live, and which were known before that was asked: those that do not
// live are dead for ever.
func (f *Flow) Lives(sharers []string, live []machine.Token) {
	alive := map[string]bool{}
	for _, t := range live {
		alive[t.String()] = true
	}
	gone := map[string]bool{}
	for _, t := range sharers {
		gone[t] = !alive[t]
	}
	f.gone.Store(&gone)
	f.beat()
}

// Dead are the sessions that are known to be dead, and may have left requests at a destination with a limit.
func (f *Flow) Dead() (tokens []string) {
	for _, d := range f.limits() {
		s := f.controls.shares.of(d.name).value
		for token := range s.DeadSessions {
			tokens = append(tokens, token)
		}
		for token := range s.Sessions {
			if d.gone(token) {
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}

// UnderWay notes until when a request to a destination may be at work, in the ledger's time, which a session left that is dead: so a
// claimed chain says.
func (f *Flow) UnderWay(destination, token string, until time.Time) {
	f.finding.Lock()
	defer f.finding.Unlock()
	of := f.finds[token]
	if of == nil {
		of = &find{until: map[string]time.Time{}}
		f.finds[token] = of
	}
	of.until[destination] = Latest(of.until[destination], until)
}

// Searched notes that this process has claimed what it could of sessions that it knew to be dead before, and that [Flow.UnderWay] was
// told of all of it; read: every chain could be.
func (f *Flow) Searched(tokens []string, read bool) {
	if len(tokens) == 0 {
		return
	}
	f.finding.Lock()
	now := f.config.Now().Latest
	for token, of := range f.finds {
		goesOn := false
		for _, until := range of.until {
			goesOn = goesOn || until.After(now)
		}
		if !goesOn && !slices.Contains(tokens, token) {
			delete(f.finds, token)
		}
	}
	for _, token := range tokens {
		if f.finds[token] == nil {
			f.finds[token] = &find{until: map[string]time.Time{}}
		}
		f.finds[token].all = true
		f.finds[token].lost = f.finds[token].lost || !read
	}
	f.finding.Unlock()
	f.beat()
}

func (f *Flow) found(destination, token string) (until time.Time, all bool) {
	f.finding.Lock()
	defer f.finding.Unlock()
	of := f.finds[token]
	if of == nil {
		return time.Time{}, false
	}
	return of.until[destination], of.all && !of.lost
}

// beat has the shares of all limits looked at again.
func (f *Flow) beat() {
	for _, d := range f.limits() {
		d.beat()
	}
}

// Depart gives this session's parts of all limits up, so that others need not wait until it would
// count as dead. What the ledger does not answer before ctx ends is left: the end of the session says the same, later.
func (f *Flow) Depart(ctx context.Context, s Session) {
	for _, d := range f.limits() {
		f.controls.shares.store(ctx, s, d.name, d.depart)
	}
}

// ErrPaused is why an attempt may not send: a person holds its destination, its saga, or everything.
var ErrPaused = errors.New("paused")

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
