package coordinator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

// returns is the works that are on their way back into the ledger, of one session.
type returns struct {
	mu    sync.Mutex
	queue []ledger.Return
	batch []ledger.Return // under way
	busy  bool
}

// giveBack gives works back that are ours on record and not in hand. It does not wait for the
// ledger. What is not given back before the session ends is free with its end.
func (c *Coordinator) giveBack(s *session, works ...ledger.Return) {
	s.returns.mu.Lock()
	defer s.returns.mu.Unlock()
	s.returns.queue = append(s.returns.queue, works...)
	if !s.returns.busy && len(s.returns.queue) > 0 {
		s.returns.busy = true
		go c.deliverReturns(s)
	}
}

func (c *Coordinator) deliverReturns(s *session) {
	for batch := s.returns.next(); len(batch) > 0; batch = s.returns.next() {
		if !c.deliver(s, batch) {
			return
		}
	}
}

// deliver gives works back, as often as that takes. It reports false when the session ended first.
func (c *Coordinator) deliver(s *session, batch []ledger.Return) bool {
	defer c.outage.ask()()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := c.ledger.GiveBack(s.idle, s.token, batch)
		if err == nil {
			c.outage.answered(callBack)
			return true
		}
		if sleep(s.idle, wait) != nil {
			return false
		}
		c.outage.failed(callBack, err)
	}
}

// deliverLast gives back what is on its way when the process stops, in one try: what is not given
// back is free with the session's end, but then due by its own record.
func (c *Coordinator) deliverLast(ctx context.Context, s *session) {
	s.returns.mu.Lock()
	left := slices.Concat(s.returns.batch, s.returns.queue)
	s.returns.mu.Unlock()
	for batch := range slices.Chunk(left, ledger.MaxStray) {
		if c.ledger.GiveBack(ctx, s.token, batch) != nil {
			return
		}
	}
}

// next takes what is queued. An empty batch ends the delivery.
func (r *returns) next() []ledger.Return {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch = slices.Clone(r.queue[:min(len(r.queue), ledger.MaxStray)])
	r.queue = slices.Delete(r.queue, 0, len(r.batch))
	r.busy = len(r.batch) > 0
	return r.batch
}

// has reports whether a work is on its way. What a claim answers of it meanwhile is not taken in
// hand, because it would be released there.
func (r *returns) has(number int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := func(w ledger.Return) bool { return w.Number == number }
	return slices.ContainsFunc(r.queue, is) || slices.ContainsFunc(r.batch, is)
}

// strays gives back what two renewals in a row have named as ours on record, and what is not in
// hand: a claim whose answer was lost has given it to us, or a start landed late. It returns what
// is named for the first time.
func (c *Coordinator) strays(s *session, stray []ledger.Instance, before map[int64]bool) map[int64]bool {
	named := make(map[int64]bool, len(stray))
	for i := range stray {
		switch h := &stray[i]; {
		case c.hand.holding(h.ID) != nil:
		case before[h.Number]:
			c.giveBack(s, ledger.Return{Number: h.Number})
		default:
			named[h.Number] = true
		}
	}
	return named
}
