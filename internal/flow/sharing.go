package flow

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/machine"
)

// How a destination's limit is divided among processes, as one of them does it.

// sharing is what this process has of a destination's limit.
type sharing struct {
	gone   func(token string) bool                        // a session is dead for ever
	found  func(token string) (until time.Time, all bool) // what a dead session had under way here
	divide func(f func(s share) (changed share, ok bool)) // in the background

	runs    []string      // definitions that send there
	settles time.Duration // the longest that what is sent may be at work, from being armed on
	share   share         // as it was stored last
	owner   machine.Token // the session that has the parts
	parts   []int         // that it uses
	mine    Limit         // what they come to
	holds   int           // slots that requests without an answer may hold
	yields  time.Time     // when those have settled that held more, before parts were to be given up
	again   *time.Timer   // looks at the share when a part becomes free
	leaving bool          // the process stops
}

// sends notes a definition with a step that talks to the destination: how long an attempt or a lookup of it may last, and how long from
// then on it may be at work; 0: nothing stays of it.
func (d *Destination) sends(definition string, timeout, stays time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.longest, d.settles = max(d.longest, timeout), max(d.settles, stays)
	if !slices.Contains(d.runs, definition) {
		d.runs = append(d.runs, definition)
		slices.Sort(d.runs)
	}
}

// limited reports whether there is a limit to share.
func (d *Destination) limited() bool { return d.limit != Limit{} }

// has reports whether this process has a part of the limit, if there is one.
func (d *Destination) has() bool { return !d.limited() || len(d.parts) > 0 && d.owner == d.who() }

// awaits reports whether it is not known yet which part this process has.
func (d *Destination) awaits() bool {
	if !d.limited() {
		return false
	}
	_, known := d.share.Sessions[d.who().String()]
	return !known
}

// member is this process's view of the share.
func (d *Destination) member() member {
	m := member{now: d.now(), token: d.who().String(), parts: d.limit.partsOf(), dead: d.gone, found: d.found}
	sum := sha256.Sum256([]byte(strings.Join(d.runs, " ")))
	if m.runs = fmt.Sprintf("%x", sum[:6]); d.limit.Concurrent > 0 {
		m.settle, m.until = d.settles, d.settled
	}
	if n := d.unanswered(); d.mine.Concurrent > 0 && n > 0 && 2*n >= d.mine.Concurrent {
		m.held = n
	}
	return m
}

// shares takes over what was stored of the share.
func (d *Destination) shares(s share) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = s
	d.apportion()
	d.serve()
}

// apportion has the share changed if it is to be.
func (d *Destination) apportion() {
	if !d.limited() || d.who() == 0 {
		return
	}
	t, changed := d.divided(d.share)
	d.lookAgain(&t)
	if changed {
		d.divide(func(s share) (share, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.divided(s)
		})
	}
}

// beat looks at the share again: a session may have died, or it may be another's turn.
func (d *Destination) beat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apportion()
}

// divided is the stored share as this process wants it to be, and whether that is a change. What it
// has too much it stops using at once, and gives up when nothing that it sent there is at work any
// more.
func (d *Destination) divided(s share) (share, bool) {
	m := d.member()
	if d.leaving || d.who() == 0 {
		return s, false
	}
	t, joined := s.joined(m)
	owned := t.owned(m.token, m.parts)
	keep := min(len(owned), t.fair(m))
	d.use(t, owned[:keep])
	given, taken := false, false
	switch {
	case keep == len(owned):
		t, taken = t.taken(m)
	case d.limit.Concurrent == 0 || d.running <= d.mine.Concurrent && (d.settling <= d.holds || !m.now.Earliest.Before(d.yields)):
		t, given = t.given(m, keep)
	}
	return t, joined || given || taken
}

// use is told which parts of the limit this process may use from now on.
func (d *Destination) use(s share, owned []int) {
	now := d.now().Earliest
	if d.owner != d.who() {
		d.owner, d.parts = d.who(), nil
	}
	if slices.Equal(owned, d.parts) {
		return
	}
	tokens := 0.0
	if d.rate != nil && len(d.parts) > 0 {
		tokens = d.rate.Tokens()
	}
	for _, k := range owned {
		if !slices.Contains(d.parts, k) {
			tokens += d.limit.saved(k, s.Parts[k].ReleasedAt, now)
		}
	}
	if holds := d.limit.held(owned); holds < d.holds {
		d.yields = d.settled
	}
	d.holds = d.limit.held(owned)
	if d.parts, d.mine = slices.Clone(owned), d.limit.portion(owned); d.limit.PerSecond > 0 {
		d.rate = rate.NewLimiter(rate.Limit(d.mine.PerSecond), d.mine.Burst)
		d.rate.AllowN(time.Now(), d.mine.Burst-max(0, min(d.mine.Burst, int(tokens))))
	}
}

// saved is how many sends a part has saved since its last user left it.
func (l Limit) saved(k int, left, now time.Time) float64 {
	part := l.portion([]int{k})
	return min(float64(part.Burst), max(0, now.Sub(left).Seconds()*part.PerSecond))
}

// depart gives up this process's part for good.
func (d *Destination) depart(s share) (share, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaving = true
	m := d.member()
	t, changed := s.left(m, d.running == 0)
	return t, changed
}

// Linger keeps the slot of an attempt without an answer until its request cannot be at work any
// more.
func (d *Destination) Linger(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limit.Concurrent > 0 {
		d.settling++
		d.settled = Latest(d.settled, d.now().Latest.Add(time.Until(until)).Truncate(rounded).Add(rounded))
		d.apportion() // all are told until when
		time.AfterFunc(time.Until(until), d.settle)
	}
}

// rounded is how exactly others are told until when what has no answer may be at work, so that they are not told of each.
const rounded = 2 * time.Second

func (d *Destination) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settling--
	d.serve()
}

// lookAgain looks at the share when the next of its parts becomes free.
func (d *Destination) lookAgain(s *share) {
	if d.again != nil {
		d.again.Stop()
	}
	now, wait := d.now().Earliest, never
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Session == "" && p.AvailableAt.After(now) {
			wait = min(wait, p.AvailableAt.Sub(now))
		}
	}
	if wait < never {
		d.again = time.AfterFunc(wait+time.Millisecond, d.beat)
	}
}
