package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
)

// session is this process's lease on the ledger. It is trusted only until a margin before its end,
// counted from before the renewal was sent, on our own monotonic clock.
type session struct {
	token  machine.Token
	alone  bool // opening proved every other process gone
	margin time.Duration
	opened time.Time

	mu      sync.Mutex
	expires time.Time // local
	void    error     // why it ended
	ended   chan struct{}
	told    chan struct{} // closed when it is known what is to be obeyed

	// over ends with the lease, by our own clock: from then on others may take what was armed under it for
	// lost, so nothing of it is awaited any more. A session that ended for another reason awaits what
	// it sent for as long as its lease would have gone on.
	over  context.Context
	lapse context.CancelFunc
	clock *time.Timer // of the lease's end

	// idle ends with the session, or before it when the process stops: whatever only waits stops
	// waiting.
	idle    context.Context
	quiesce context.CancelFunc

	returns returns
}

// Token, Alone and Idle are what [flow.Session] asks.
func (s *session) Token() machine.Token  { return s.token }
func (s *session) Alone() bool           { return s.alone }
func (s *session) Idle() context.Context { return s.idle }

// errNoLease is why nothing may be armed.
var errNoLease = errors.New("this process holds no lease it can trust")

// errUntold is why nothing may be armed at the beginning of a session.
var errUntold = errors.New("this process has not read yet what is paused")

// errExpired is why a session ended that could not be renewed.
var errExpired = errors.New("the lease is over: the ledger did not renew it in time")

func newSession(l ledger.Lease, sent time.Time, margin time.Duration) *session {
	s := &session{token: l.Token, alone: l.Alone, margin: margin, opened: sent, expires: sent.Add(l.TTL), ended: make(chan struct{}), told: make(chan struct{})}
	s.idle, s.quiesce = context.WithCancel(context.Background())
	s.over, s.lapse = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = time.AfterFunc(l.TTL, s.lapses)
	return s
}

// lapses ends over when the lease is, and else looks again when it will be.
func (s *session) lapses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); passed(now, s.expires) {
		s.lapse()
	} else {
		s.clock.Reset(s.expires.Sub(now))
	}
}

// trusted reports whether something may be armed or sent on this lease now.
func (s *session) trusted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.void != nil {
		return fmt.Errorf("%w: %w", errNoLease, s.void)
	}
	if passed(time.Now(), s.expires.Add(-s.margin)) {
		return fmt.Errorf("%w: it was not renewed in time", errNoLease)
	}
	select {
	case <-s.told:
		return nil
	default:
		return errUntold
	}
}

// Obeys notes that what every process of the ledger obeys was read.
func (s *session) Obeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.told:
	default:
		close(s.told)
	}
}

// passed reports whether t has come by the monotonic clock or by the time of day. The monotonic
// clock stands still while a machine is suspended, and the lease and the deadline go on.
func passed(now, t time.Time) bool {
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}

// left is how long the lease goes on for.
func (s *session) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.expires)
}

// renewed notes how long the lease goes on. It reports false when the lease was over before that was heard, by our own clock: what was
// armed under it is given up already, and nothing could be awaited under it any more.
func (s *session) renewed(sent time.Time, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expires = sent.Add(ttl)
	return s.over.Err() == nil
}

// end voids the session. What is armed under it stays armed; nothing new is.
func (s *session) end(why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.void != nil {
		return false
	}
	s.void = why
	close(s.ended)
	s.quiesce()
	if errors.Is(why, errStopping) { // nothing is awaited any more
		s.clock.Stop()
		s.lapse()
	}
	return true
}

// Why is the reason for which the session ended, or nil.
func (s *session) Why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.void
}

// openSession opens a session, however long the ledger takes to answer. What trying again cannot
// mend ends the first attempt of a process; later it may be a fail-over that passes a standby, and
// is tried again as everything else.
func (c *Coordinator) openSession(ctx context.Context, first bool) (*session, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		sent := time.Now()
		l, err := c.ledger.OpenSession(ctx, c.opts.Lease, c.opts.Label, c.known())
		if err == nil {
			c.outage.opened()
			c.clock.heard(l.At, sent, time.Now())
			s := newSession(l, sent, c.opts.Margin+c.clock.skew)
			context.AfterFunc(s.over, func() { c.endAttempts(s) })
			c.current.Store(s)
			c.flow.Opened(s)
			c.tell.sessionOpened(&l)
			return s, nil
		}
		if first && final(err) {
			return nil, fmt.Errorf("open a session: %w", err)
		}
		if ctx.Err() == nil { // a process that is told to stop gives up by itself
			c.outage.failed(callOpen, err)
		}
		if nap.For(ctx, wait) != nil {
			return nil, fmt.Errorf("open a session: %w", err)
		}
	}
}

// endAttempts stops waiting for what was sent under a session whose lease is over.
func (c *Coordinator) endAttempts(s *session) {
	for _, w := range c.hand.all() {
		if w.s == s {
			w.abandon()
		}
	}
}

// final reports errors that trying again cannot mend.
func final(err error) bool {
	return slices.ContainsFunc([]error{ledger.ErrLocked, ledger.ErrReadOnly, ledger.ErrSchema, ledger.ErrUnsupported, ledger.ErrBehind},
		func(one error) bool { return errors.Is(err, one) })
}

// keepSession renews the lease until ctx or the session ends. It ends the session when the ledger
// says that it is dead, that the database is another one or of a schema this program does not know;
// when the lease is over by our own clock; and when records or claims have not been answered for a
// lease, so that other processes take the works over. Everything else is tried again.
func (c *Coordinator) keepSession(ctx context.Context, s *session) {
	every := c.opts.Lease / 30 // the first soon: it tells which sessions have left their parts of limits
	var stray map[int64]bool   // what the last renewal named
	for nap.Until(ctx, s.ended, min(every, s.left())) == nil {
		if s.left() <= 0 {
			c.loseSession(s, errExpired)
			return
		}
		if c.outage.unanswered(s.opened) > c.opts.Lease {
			c.loseSession(s, errUnanswered)
			return
		}
		sent, sharers := time.Now(), c.flow.Sharers()
		l, err := c.ledger.Renew(ctx, s.token, ledger.Renewal{TTL: c.opts.Lease, Knows: c.known(), InHand: c.hand.numbers()})
		switch {
		case err == nil:
			c.outage.answered(callRenew)
			if !s.renewed(sent, l.TTL) {
				c.loseSession(s, errExpired)
				return
			}
			c.clock.heard(l.At, sent, time.Now())
			c.flow.Heard(s, l.Controls)
			c.flow.Lives(sharers, l.Live)
			stray = c.strays(s, l.Stray, stray)
			every = c.opts.Lease / 3
		case errors.Is(err, ledger.ErrSessionDead), errors.Is(err, ledger.ErrDatabaseChanged), errors.Is(err, ledger.ErrSchema):
			c.loseSession(s, err)
			return
		case ctx.Err() == nil:
			c.outage.failed(callRenew, err)
			every = c.opts.Lease / 15 // ask again soon: the answer may just have been lost
		}
	}
}

// loseSession voids s, once.
func (c *Coordinator) loseSession(s *session, why error) {
	if s.end(why) {
		c.tell.sessionLost(s.token, why)
	}
}
