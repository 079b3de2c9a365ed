package coordinator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/saga"
)

// claimBatch is how many works are claimed at once: one claimer per process and about a hundred
// works per statement gave the best rate of all the shapes measured.
const claimBatch = 100

// claimer claims works for one session.
type claimer struct {
	c    *Coordinator
	s    *session
	wait func() // set while a claim has no answer
	// failed: the latest had none, or was not made on a lease in question.
	failed bool
	owed   int // places of earlier claims of which new works have not had their quarter
	empty  int // so many claims in a row gave nothing
}

// quietAfter is behind how many claims that gave nothing a process looks half as often, while others can tell what they have for it.
const quietAfter = 20

// pause is how long after a claim the next one comes by itself.
func (k *claimer) pause() time.Duration {
	if s, ok := k.c.Operator.ledger.(ledger.Stirrer); ok && s.Hears() && k.empty > quietAfter {
		return 2 * k.c.opts.Poll
	}
	return k.c.opts.Poll
}

// answered ends the wait for the answer of a claim.
func (k *claimer) answered() {
	if k.wait != nil {
		k.wait()
		k.wait = nil
	}
}

// claim takes over what is due or orphaned, and wakes works in hand that have an unread signal. It
// reports whether there may be more.
func (k *claimer) claim() (more bool) {
	c, s := k.c, k.s
	if k.failed = true; s.trusted() != nil {
		return false // a lease in question claims nothing; it is renewed or ends by itself
	}
	limit := c.hand.room()
	if k.wait == nil {
		k.wait = c.outage.ask()
	}
	k.owed += limit
	share := k.owed / 4
	k.owed -= 4 * share
	rooms, dead := c.rooms(limit), c.flow.Dead()
	got, err := c.ledger.Claim(s.idle, s.token, ledger.Claim{Limit: limit, Fresh: share, Rooms: rooms, Known: c.known()})
	switch {
	case errors.Is(err, ledger.ErrSessionDead), errors.Is(err, ledger.ErrDatabaseChanged):
		c.loseSession(s, err)
		return false
	case err != nil:
		if s.idle.Err() == nil {
			c.outage.failed(callClaim, err)
		}
		return false
	}
	k.answered()
	k.failed = false
	c.outage.answered(callClaim)
	c.flow.Heard(s, got.Controls)
	heads := got.Instances
	if k.empty++; len(heads) > 0 {
		k.empty = 0
	}
	var fresh []ledger.Instance
	for i := range heads {
		switch w := c.hand.given(heads[i].ID, s); {
		case heads[i].Status == saga.Adopting: // it is being adopted, and due when that is over
		case w == nil && s.returns.has(heads[i].Number): // it is claimed again when it is back
		case w == nil:
			fresh = append(fresh, heads[i])
		case w.s != s: // it is on its way out of our hands, and ours again on record
			c.giveBack(s, ledger.Return{Number: heads[i].Number, Due: c.clock.now().Earliest.Add(c.opts.Poll)})
		case heads[i].Posted > heads[i].Consumed:
			w.speak()
		}
	}
	if c.hand.claimed(limit, len(fresh)); len(fresh) > 0 {
		c.flow.UpTo(s, got.Controls) // a work may be due because of what a person has set
	}
	if len(fresh) == 0 && limit > 0 {
		c.flow.NothingWaits(rooms)
	}
	read := c.takeOver(s, fresh)
	if limit > 0 && len(heads) < limit { // nothing is left of what they had under way
		c.flow.Searched(dead, read == len(fresh))
	}
	return read > 0 && limit > 0 && len(fresh) >= limit && !c.isStopping()
}

// rooms says for how many works there is room in each line, of those that wait in the ledger.
func (c *Coordinator) rooms(limit int) map[string]int {
	rooms := c.flow.Rooms(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.newest { // what was paused and goes on
		if _, held := c.flow.Holds(name); held == nil {
			rooms[flow.OfSaga(name)], rooms[flow.Everything] = limit, limit
		}
	}
	return rooms
}

// known lists the definitions this process can run.
func (c *Coordinator) known() []ledger.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.programs))
}

// takeOver loads works that the ledger has given to this session, and sets them going. It returns
// how many chains could be read. They are ours on record already, so the loading is tried until it succeeds or the
// session ends; from the third time on one by one, so that a chain that cannot be read keeps no
// other from going on. Silence says nothing about a chain: who gave works back because of it would
// claim them again, sooner than others look for them.
func (c *Coordinator) takeOver(s *session, heads []ledger.Instance) (read int) {
	c.hand.expect(heads)
	defer c.hand.expect(nil)
	over := c.outage.ask()
	defer func() { over() }()
	for n, wait := len(heads), 10*time.Millisecond; len(heads) > 0; wait = min(2*wait, time.Second) {
		sent := time.Now()
		chains, err := c.ledger.Load(s.idle, identities(heads[:n]))
		silent := errors.Is(err, context.DeadlineExceeded)
		if !silent {
			over()
			over = c.outage.ask()
		}
		switch {
		case err == nil:
			c.outage.answered(callLoad)
			read += c.takeAll(s, chains, sent)
			heads = heads[n:]
		case nap.For(s.idle, wait) != nil:
			return read
		case n > 1 || silent:
			c.outage.failed(callLoad, err)
			if wait > 20*time.Millisecond {
				n = 1
			}
		default:
			c.leaveUnreadable(s, heads[0], err)
			heads = heads[1:]
		}
		n = min(n, len(heads))
	}
	return read
}

func identities(heads []ledger.Instance) []saga.ID {
	ids := make([]saga.ID, len(heads))
	for i := range heads {
		ids[i] = heads[i].ID
	}
	return ids
}

// leaveUnreadable gives a work back whose chain cannot be read here. Another process may be able
// to.
func (c *Coordinator) leaveUnreadable(s *session, h ledger.Instance, err error) {
	c.opts.Log.WithError(err).WithField("saga", h.ID.Saga).WithField("work", h.ID.Work).Error("a claimed chain cannot be read")
	c.giveBack(s, ledger.Return{Number: h.Number, Due: c.clock.now().Earliest.Add(2 * c.opts.Poll)})
}

// longestAway is how long a work is left alone that nothing can be done about here.
const longestAway = 10 * time.Minute

// takeAll sets the works of one load going, and returns how many of the chains could be read.
func (c *Coordinator) takeAll(s *session, chains []ledger.Chain, sent time.Time) (read int) {
	inFlight := armedBy(chains)
	for i := range chains {
		c.clock.heard(chains[i].At, sent, time.Now())
		if c.take(s, &chains[i], sent, inFlight) {
			read++
		}
	}
	return read
}

// armedBy counts, by the process that armed them, the attempts that are open in chains.
func armedBy(chains []ledger.Chain) map[machine.Token]int {
	n := map[machine.Token]int{}
	for i := range chains {
		if r := tail(&chains[i]); r.Dispatch != nil {
			n[r.Session]++
		}
	}
	return n
}

func tail(chain *ledger.Chain) *machine.Record { return &chain.Records[len(chain.Records)-1] }

// take sets one loaded work going, and reports whether its chain could be read, so that what another session sent for it is known. inFlight
// counts the attempts that were open beside its own.
func (c *Coordinator) take(s *session, chain *ledger.Chain, sent time.Time, inFlight map[machine.Token]int) bool {
	id := chain.Instance.ID
	if chain.Instance.Session != s.token {
		return false // it has ended, or another session has it by now
	}
	st, err := machine.Fold(id, chain.Records)
	if err != nil {
		c.opts.Log.WithError(err).Error("a claimed chain does not fold; run amends check")
		c.giveBack(s, ledger.Return{Number: chain.Instance.Number, Due: c.clock.now().Earliest.Add(longestAway)})
		return false
	}
	if st.Adopting {
		return false // it is released at the end of its adoption
	}
	w := c.newWork(s, id, c.programFor(st))
	if w.program == nil {
		return false // what a claim gives is known here, or was a moment ago; it is given back
	}
	w.loaded(st, chain, sent)
	c.underWay(w, tail(chain).Session)
	w.bystanders = max(0, inFlight[tail(chain).Session]-1)
	if w.spoken.Store(len(chain.Signals) > 0); len(chain.Signals) == 1 {
		w.told.Store(&chain.Signals[0])
	}
	if !c.hand.take(w) {
		return true // a start of the same work is asking the ledger: a renewal tells that nothing here has it in hand
	}
	c.tell.claimed(id)
	go func() { w.run(w.advance(machine.Event{Changed: chain.Changed, Unread: unread(st, chain)})) }()
	return true
}

// underWay tells until when what another session sent for a work may be at work: it counts there when that session is dead.
func (c *Coordinator) underWay(w *work, by machine.Token) {
	if by == 0 || by == w.s.token {
		return
	}
	for i := range w.st.Steps {
		ss := &w.st.Steps[i]
		for _, e := range []*machine.Effort{&ss.Forward, &ss.Undo} {
			until := e.OutcomeUnknownUntil
			if e.Phase == machine.Started {
				until = latest(until, e.Deadline)
			}
			if d := w.destination(ss.Name); d != nil && !until.IsZero() {
				c.flow.UnderWay(d.Name(), by.String(), until.Add(w.stepSpec(ss.Name).Settle))
			}
		}
	}
}

// unread reports whether what was forgotten may have consumed a signal: one that was posted before the
// database became another one is unread, or the database was restored (machine/F27).
func unread(st *machine.State, chain *ledger.Chain) bool {
	return chain.Restored || slices.ContainsFunc(chain.Signals, func(s machine.Signal) bool { return s.At.Before(chain.Changed) && !st.Saw(s.ID) })
}
