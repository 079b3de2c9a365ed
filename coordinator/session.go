package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// session is this process's lease on the ledger. It is trusted only until a margin before its end, counted
// from before the renewal was sent, on our own monotonic clock.
type session struct {
	token  saga.Token
	alone  bool // opening proved every other process gone
	margin time.Duration

	mu      sync.Mutex
	expires time.Time // local
	void    error     // why it ended
	ended   chan struct{}

	// idle ends with the session, or before it when the process stops: whoever only waits stops waiting.
	idle    context.Context
	quiesce context.CancelFunc
}

// errNoLease is why nothing may be armed.
var errNoLease = errors.New("this process holds no lease it can trust")

func newSession(l ledger.Lease, sent time.Time, margin time.Duration) *session {
	s := &session{token: l.Token, alone: l.Alone, margin: margin, expires: sent.Add(l.TTL), ended: make(chan struct{})}
	s.idle, s.quiesce = context.WithCancel(context.Background())
	return s
}

// trusted reports whether something may be armed or sent on this lease now.
func (s *session) trusted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.void != nil {
		return fmt.Errorf("%w: %w", errNoLease, s.void)
	}
	if time.Until(s.expires) <= s.margin {
		return fmt.Errorf("%w: it was not renewed in time", errNoLease)
	}
	return nil
}

func (s *session) renewed(sent time.Time, ttl time.Duration) {
	s.mu.Lock()
	s.expires = sent.Add(ttl)
	s.mu.Unlock()
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
	return true
}

// openSession opens a session, however long the ledger takes to answer.
func (c *Coordinator) openSession(ctx context.Context) (*session, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		sent := time.Now()
		l, err := c.ledger.OpenSession(ctx, c.opts.Lease, c.opts.Label, c.known())
		if err == nil {
			c.clock.heard(l.At, sent, time.Now())
			s := newSession(l, sent, c.opts.Margin)
			c.current.Store(s)
			c.tell.sessionOpened(s.token)
			return s, nil
		}
		if final(err) || sleep(ctx, wait) != nil {
			return nil, fmt.Errorf("open a session: %w", err)
		}
		c.opts.Log.WithError(err).Warn("no session yet; trying again")
	}
}

// final reports errors that trying again cannot mend.
func final(err error) bool {
	for _, e := range []error{ledger.ErrLocked, ledger.ErrReadOnly, ledger.ErrSchema, ledger.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// keepSession renews the lease until ctx or the session ends, and ends the session when the ledger says that
// it is dead or the database is another one. Everything else is tried again: the local deadline counts on.
func (c *Coordinator) keepSession(ctx context.Context, s *session) {
	every := c.opts.Lease / 3
	var stray map[int64]bool // works that the last renewal named
	for sleepUntil(ctx, s.ended, every) {
		sent := time.Now()
		ctx, cancel := context.WithTimeout(ctx, c.opts.Lease/3) // a call that hangs must not cost the lease
		l, err := c.ledger.Renew(ctx, s.token, ledger.Renewal{TTL: c.opts.Lease, Knows: c.known(), InHand: c.inHand()})
		if err == nil {
			stray = c.giveBack(ctx, s, l.Stray, stray)
		}
		cancel()
		switch {
		case err == nil:
			s.renewed(sent, l.TTL)
			c.clock.heard(l.At, sent, time.Now())
			every = c.opts.Lease / 3
		case errors.Is(err, ledger.ErrSessionDead), errors.Is(err, ledger.ErrDatabaseChanged):
			c.loseSession(s, err)
			return
		default:
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

// sleepUntil waits for d and reports true, or false when ctx or ended came first.
func sleepUntil(ctx context.Context, ended <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-ended:
	}
	return false
}
