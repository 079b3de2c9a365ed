package coordinator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
)

// How a destination's limit is divided among processes, as one of them does it.

// sharing is what this process has of a destination's limit.
type sharing struct {
	gone   func(token string) bool                        // a session is dead for ever
	divide func(f func(s share) (changed share, ok bool)) // in the background

	runs    []string      // definitions that send there
	settles time.Duration // the longest settle time
	share   share         // as it was stored last
	owner   machine.Token // the session that has the parts
	parts   []int         // that it uses
	mine    Limit         // what they come to
	leaving bool          // the process stops
}

// sends notes a definition's step that talks to the destination.
func (d *destination) sends(spec *program.Spec, step *program.StepSpec) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.longest, d.settles = max(d.longest, step.Timeout), max(d.settles, step.Settle)
	if name := fmt.Sprintf("%s/%d", spec.Saga, spec.Version); !slices.Contains(d.runs, name) {
		d.runs = append(d.runs, name)
		slices.Sort(d.runs)
	}
}

// limited reports whether there is a limit to share.
func (d *destination) limited() bool { return d.limit != Limit{} }

// has reports whether this process has a part of the limit, if there is one.
func (d *destination) has() bool { return !d.limited() || len(d.parts) > 0 && d.owner == d.who() }

// awaits reports whether it is not known yet which part this process has.
func (d *destination) awaits() bool {
	_, known := d.share.Wants[d.who().String()]
	return d.limited() && !known
}

// member is this process's view of the share.
func (d *destination) member() member {
	m := member{now: d.now(), token: d.who().String(), parts: d.limit.partsOf(), dead: d.gone}
	sum := sha256.Sum256([]byte(strings.Join(d.runs, " ")))
	if m.runs = fmt.Sprintf("%x", sum[:6]); d.limit.Concurrent > 0 {
		m.settle = d.longest + d.settles
	}
	return m
}

// shares takes over what was stored of the share.
func (d *destination) shares(s share) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = s
	d.apportion()
	d.serve()
}

// apportion has the share changed if it is to be.
func (d *destination) apportion() {
	if !d.limited() || d.who() == 0 {
		return
	}
	if _, changed := d.divided(d.share); changed {
		d.divide(func(s share) (share, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.divided(s)
		})
	}
}

// beat looks at the share again: a session may have died, or it may be another's turn.
func (d *destination) beat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apportion()
}

// divided is the stored share as this process wants it to be, and whether that is a change. What it
// has too much it stops using at once, and gives up when nothing that it sent there is at work any
// more.
func (d *destination) divided(s share) (share, bool) {
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
	case d.limit.Concurrent == 0 || d.busy <= d.mine.Concurrent:
		t, given = t.given(m, keep)
	}
	return t, joined || given || taken
}

// use is told which parts of the limit this process may use from now on.
func (d *destination) use(s share, owned []int) {
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
			tokens += d.limit.saved(k, s.Parts[k].Left, now)
		}
	}
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
func (d *destination) depart(s share) (share, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaving = true
	m := d.member()
	t, changed := s.left(m, d.busy == 0)
	return t, changed
}

// linger keeps the slot of an attempt without an answer until its request cannot be at work any
// more.
func (d *destination) linger(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limit.Concurrent > 0 {
		d.busy++
		time.AfterFunc(time.Until(until), func() { d.release(rank{}, 0) })
	}
}

// part takes over what was stored of a destination's share.
func (c *Coordinator) part(name string, s share) {
	if d := c.destination(name); d != nil {
		d.shares(s)
	}
}

// limits are the destinations with a limit.
func (c *Coordinator) limits() (ds []*destination) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.destinations {
		if d.limited() && len(d.runs) > 0 {
			ds = append(ds, d)
		}
	}
	return ds
}

// sharers are the sessions that share a limit with this one, as far as is known.
func (c *Coordinator) sharers() (tokens []string) {
	for _, d := range c.limits() {
		for token := range c.controls.shares.of(d.name).value.Wants {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// lives is told which sessions live, and which were known before that was asked: those that do not
// live are dead for ever.
func (c *Coordinator) lives(sharers []string, live []machine.Token) {
	alive := map[string]bool{}
	for _, t := range live {
		alive[t.String()] = true
	}
	gone := map[string]bool{}
	for _, t := range sharers {
		gone[t] = !alive[t]
	}
	c.gone.Store(&gone)
	c.beat()
}

// beat has the shares of all limits looked at again.
func (c *Coordinator) beat() {
	for _, d := range c.limits() {
		d.beat()
	}
}

// depart gives this session's parts of all limits up, so that others need not wait until it would
// count as dead. A ledger that does not answer soon is not waited for: the end of the session says
// the same, later.
func (c *Coordinator) depart(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	for _, d := range c.limits() {
		c.controls.shares.store(ctx, s, d.name, d.depart)
	}
}
