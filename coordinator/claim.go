package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// claimBatch is how many works are claimed at once: one claimer per process and about a hundred works per
// statement gave the best rate of all the shapes measured.
const claimBatch = 100

// claim takes over what is due or orphaned, and wakes held works that somebody has spoken to. It reports
// whether there may be more.
func (c *Coordinator) claim(ctx context.Context, s *session) (again bool, err error) {
	if s.trusted() != nil {
		return false, nil //nolint:nilerr // a lease in question claims nothing; it is renewed or ends by itself
	}
	limit := max(0, min(claimBatch, c.room()))
	heads, err := c.ledger.Claim(ctx, s.token, ledger.Claim{Limit: limit, Known: c.known()})
	if errors.Is(err, ledger.ErrSessionDead) || errors.Is(err, ledger.ErrDatabaseChanged) {
		c.loseSession(s, err)
		return false, nil
	}
	if err != nil { // the answer that was lost may have given us works: a renewal names them
		return false, err
	}
	var fresh []saga.ID
	for i := range heads {
		if heads[i].Status == saga.Paused { // whoever adopts it reads nothing before the end, and it is due then
			continue
		}
		switch w := c.reclaim(s, heads[i].ID); {
		case w == nil:
			fresh = append(fresh, heads[i].ID)
		case w.s == s && heads[i].Posted > heads[i].Consumed:
			w.speak()
		}
	}
	c.takeOver(s, fresh)
	return limit > 0 && len(fresh) >= limit, nil
}

// known lists the definitions this process can run.
func (c *Coordinator) known() []ledger.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	vs := make([]ledger.Version, 0, len(c.programs))
	for v := range c.programs {
		vs = append(vs, v)
	}
	return vs
}

// takeOver loads works that the ledger has given to this session, and sets them going. They are ours on
// record already, so the loading is tried until it succeeds or the session ends.
func (c *Coordinator) takeOver(s *session, ids []saga.ID) {
	if len(ids) == 0 {
		return
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		sent := time.Now()
		chains, err := c.ledger.Load(s.idle, ids)
		if err == nil {
			for i := range chains {
				c.clock.heard(chains[i].At, sent, time.Now())
				c.take(s, &chains[i])
			}
			return
		}
		if sleep(s.idle, wait) != nil {
			return
		}
	}
}

// take sets one loaded work going.
func (c *Coordinator) take(s *session, chain *ledger.Chain) {
	id := chain.Head.ID
	if chain.Head.Session != s.token {
		return // it has ended, or another session has it by now
	}
	st, err := saga.Fold(id, chain.Records)
	if err != nil {
		c.opts.Log.WithError(err).Error("a claimed chain does not fold; run amends check")
		return
	}
	if st.Adopting {
		return // whoever adopts it has it released
	}
	w := c.newWork(s, id, c.programFor(st))
	w.st, w.inHead = st, true
	w.known(chain.Head.Number)
	w.spoken.Store(len(chain.Signals) > 0)
	w.idle = commands(st, chain.Signals)
	if !c.keep(w) {
		return
	}
	c.tell.claimed(id)
	go func() { w.run(w.advance(saga.Event{Changed: chain.Changed, Unread: unread(st, chain)})) }()
}

// unread reports whether a signal is unread that was posted before the database became another one (F27).
func unread(st *saga.State, chain *ledger.Chain) bool {
	return slices.ContainsFunc(chain.Signals, func(s saga.Signal) bool { return s.At.Before(chain.Changed) && !st.Saw(s.ID) })
}

// commands picks the unread signals that are noted while nobody knows the work's definition (S11). Evidence, news of
// the source and the word that somebody knows it now are left for whoever does.
func commands(st *saga.State, signals []saga.Signal) (ids []int64) {
	for i := range signals {
		switch s := &signals[i]; {
		case st.Saw(s.ID), s.Kind == saga.SignalLate, s.Kind == saga.SignalResume, s.Revision != "":
		default:
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// giveBack releases works that a renewal has named twice as ours on record and not in hand: a claim whose answer was
// lost gave them to us, or a record that came late. It returns those that are named for the first time.
func (c *Coordinator) giveBack(ctx context.Context, s *session, stray []ledger.Head, before map[int64]bool) map[int64]bool {
	named := make(map[int64]bool, len(stray))
	var back []ledger.Return
	for i := range stray {
		switch h := &stray[i]; {
		case c.holding(h.ID) != nil:
		case before[h.Number]:
			back = append(back, ledger.Return{Number: h.Number})
		default:
			named[h.Number] = true
		}
	}
	if len(back) == 0 {
		return named
	}
	if err := c.ledger.GiveBack(ctx, s.token, back); err != nil {
		c.opts.Log.WithError(err).WithField("works", len(back)).Warn("works that are not in hand could not be given back; trying again")
		for _, r := range back {
			named[r.Number] = true
		}
	}
	return named
}

// inHand are the ledger's numbers of the works in hand.
func (c *Coordinator) inHand() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	numbers := make([]int64, 0, len(c.held))
	for _, w := range c.held {
		if n := w.number.Load(); n != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
