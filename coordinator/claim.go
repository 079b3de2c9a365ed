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
	heads, err := c.ledger.Claim(ctx, s.token, ledger.Claim{Limit: limit, Known: c.known(), Grace: c.opts.Grace, All: s.unsure})
	if errors.Is(err, ledger.ErrSessionDead) || errors.Is(err, ledger.ErrDatabaseChanged) {
		c.loseSession(s, err)
		return false, nil
	}
	s.unsure = err != nil // the answer that was lost may have given us works
	if err != nil {
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
	w.st, w.head, w.inHead = st, chain.Head.Number, true
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

// resumeKnown tells works that were parked because nobody knew their definition that this process does.
func (c *Coordinator) resumeKnown(ctx context.Context) {
	r, ok := c.ledger.(ledger.Reader)
	if !ok {
		return
	}
	for _, v := range c.known() {
		f := ledger.Filter{Saga: v.Saga, Status: saga.Review, Reason: saga.ReasonUnknownVersion}
		for {
			heads, err := r.List(ctx, f)
			if err != nil {
				c.opts.Log.WithError(err).Warn("works parked for an unknown version could not be listed")
				return
			}
			if len(heads) == 0 {
				break
			}
			c.postResumes(ctx, heads, v)
			f.After = heads[len(heads)-1].Number
		}
	}
}

func (c *Coordinator) postResumes(ctx context.Context, heads []ledger.Head, v ledger.Version) {
	for i := range heads {
		h := &heads[i]
		if h.Version != v.Version {
			continue
		}
		sig := saga.Signal{
			Kind: saga.SignalResume, Key: "resume:" + h.Updated.UTC().Format(time.RFC3339Nano), Actor: c.opts.Label,
			Reason: "this process knows the definition",
		}
		if err := c.ledger.Post(ctx, h.ID, sig); err != nil {
			c.opts.Log.WithError(err).WithField("work", h.ID.Work).Warn("a parked work could not be told that its definition is known")
		}
	}
}
