package coordinator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
)

// returns is the works that are on their way back into the ledger, of one session.
type returns struct {
	mu    sync.Mutex
	queue []ledger.Return
	batch []ledger.Return // under way
	busy  bool
	again map[int64]bool // are to be claimed when they are back
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
	for batch, _ := s.returns.next(); len(batch) > 0; {
		if !c.deliver(s, batch) {
			return
		}
		wanted := false
		if batch, wanted = s.returns.next(); wanted {
			c.wake()
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
		if nap.For(s.idle, wait) != nil {
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

// next takes what is queued. An empty batch ends the delivery. wanted reports whether any that are back now are to be claimed.
func (r *returns) next() (batch []ledger.Return, wanted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.batch {
		if n := r.batch[i].Number; r.again[n] && !isIn(r.queue, n) {
			delete(r.again, n)
			wanted = true
		}
	}
	r.batch = slices.Clone(r.queue[:min(len(r.queue), ledger.MaxStray)])
	r.queue = slices.Delete(r.queue, 0, len(r.batch))
	r.busy = len(r.batch) > 0
	return r.batch, wanted
}

// has reports whether a work is on its way that a claim has given. It is not taken in hand, because it would be released there. It is
// claimed again when it is back: once more, where its return may have taken effect before that claim.
func (r *returns) has(number int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	queued, sent := isIn(r.queue, number), isIn(r.batch, number)
	if !queued && !sent {
		return false
	}
	if r.again == nil {
		r.again = make(map[int64]bool)
	}
	if r.again[number] = true; !queued {
		r.queue = append(r.queue, ledger.Return{Number: number})
	}
	return true
}

func isIn(works []ledger.Return, number int64) bool {
	return slices.ContainsFunc(works, func(w ledger.Return) bool { return w.Number == number })
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
