package coordinator

import (
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/ledger"
)

// returns is the works that are on their way back into the ledger, of one session.
type returns struct {
	mu    sync.Mutex
	queue []ledger.Return
	busy  bool
}

// giveBack gives works back that are ours on record and not in hand. It does not wait for the ledger. What is not
// given back before the session ends is free with its end.
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
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			err := c.ledger.GiveBack(s.idle, s.token, batch)
			if err == nil {
				c.outage.answered(callBack)
				if slices.ContainsFunc(batch, func(r ledger.Return) bool { return r.Due.IsZero() }) {
					c.wake() // what is due now may have room here
				}
				break
			}
			if sleep(s.idle, wait) != nil {
				return
			}
			c.outage.failed(callBack, err)
		}
	}
}

// next takes what is queued. An empty batch ends the delivery.
func (r *returns) next() []ledger.Return {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := slices.Clone(r.queue[:min(len(r.queue), ledger.MaxStray)])
	r.queue = slices.Delete(r.queue, 0, len(batch))
	r.busy = len(batch) > 0
	return batch
}

// strays gives back what two renewals in a row have named as ours on record, and what is not in hand: a claim whose
// answer was lost has given it to us, a start landed late, or its chain cannot be read. It returns what is named for
// the first time.
func (c *Coordinator) strays(s *session, stray []ledger.Head, before map[int64]bool) map[int64]bool {
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
