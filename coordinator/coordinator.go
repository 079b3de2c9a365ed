package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/flow"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Coordinator runs sagas over a ledger. Make one with [New], register definitions, and let
// [Coordinator.Run] block for as long as the process lives. All methods are safe for concurrent
// use.
type Coordinator struct {
	*Operator
	ledger    ledger.Ledger // every call has an end of its own
	opts      Options
	tell      *teller
	outage    *outage
	rests     *rests
	clock     *ledgerClock
	starts    *committer // starts wait for each other's keys, so they have a lane of their own
	contended *committer // and those that a transaction still holds up have another
	appends   *committer
	hand      *hand
	flow      *flow.Flow
	secrets   secrets
	life      context.Context // of everything that must not end with its caller
	give      context.CancelFunc

	current    atomic.Pointer[session] // nil until Run has opened one
	stopping   chan struct{}           // closed when Run is told to stop
	left       chan struct{}           // closed when what is under way is left behind
	woken      chan struct{}           // there may be something to claim at once
	ran        atomic.Bool
	duplicates *duplicateCounter
	sayings    sync.Map // by their work ids, the batches of which this process has said a part

	mu         sync.Mutex
	programs   map[ledger.Version]saga.Program
	newest     map[string]saga.Program
	starting   map[saga.ID]*starting
	startBytes int
}

// New returns a coordinator over l. It starts nothing: works begin to move in [Coordinator.Run].
// opts may be nil; every fault in it is reported at once.
func New(l ledger.Ledger, opts *Options) (*Coordinator, error) {
	o := opts.withDefaults()
	limits := l.Limits()
	if err := o.validate(limits.Skew); err != nil {
		return nil, err
	}
	life, give := context.WithCancel(context.Background())
	c := &Coordinator{
		Operator: NewOperator(l), ledger: calls{l, o.Lease}, opts: o, outage: newOutage(o.Log), clock: &ledgerClock{log: o.Log, skew: limits.Skew},
		life: life, give: give, stopping: make(chan struct{}), left: make(chan struct{}), woken: make(chan struct{}, 1),
		secrets:    newSecrets(o.CallbackSecrets),
		duplicates: newDuplicateCounter(),
		rests:      newRests(),
		programs:   map[ledger.Version]saga.Program{},
		newest:     map[string]saga.Program{},
		starting:   map[saga.ID]*starting{},
	}
	c.Operator.programs, c.Operator.posted, c.Operator.counts = c.programFor, c.heard, c.countBlocked
	c.hand = newHand(&o, c.wake)
	c.tell = &teller{o.Log, o.Listener, o.hook}
	c.flow = c.newFlow()
	lane := func(writers, maxBatch int) *committer {
		return &committer{
			ledger: c.ledger, tell: c.tell, outage: c.outage, ctx: life, writers: writers,
			maxBatch: atMost(maxBatch, limits.Records), maxBytes: atMost(batchBytes, limits.Bytes),
		}
	}
	ours, err := c.batches()
	if err != nil {
		return nil, err
	}
	c.own(ours)
	c.starts, c.contended, c.appends = lane(max(1, o.Writers/2), o.MaxBatch), lane(1, 1), lane(o.Writers, o.MaxBatch)
	return c, nil
}

// Ledger returns the ledger that c was made over.
func (c *Coordinator) Ledger() ledger.Ledger { return c.Operator.ledger }

// newFlow gives a line no more than a quarter of the places in hand, so that others find room beside it.
func (c *Coordinator) newFlow() *flow.Flow {
	limits := make(map[string]flow.Limit, len(c.opts.Destinations))
	for name, l := range c.opts.Destinations {
		limits[name] = flow.Limit(l)
	}
	return flow.New(flow.Config{
		Ledger: c.ledger, Now: c.clock.now, Limits: limits, Hold: c.opts.Hold, Room: c.opts.MaxWorks / 4,
		Asked: func(err error) {
			if err != nil {
				c.outage.failed(callControls, err)
			} else {
				c.outage.answered(callControls)
			}
		},
		Wake: func() {
			if c.hand.room() > 0 { // else a work that leaves the hand makes room for a claim
				c.wake()
			}
		},
		Recall: func(name string, all bool) {
			if all {
				c.recall(c.current.Load(), name)
			} else {
				c.recallOne(c.current.Load(), name)
			}
		},
		Changed: c.tellHealth, Paused: c.tellPause,
	})
}

// Register makes definitions runnable and stores their structure in the ledger. Older versions can
// stay registered beside newer ones: works keep the version they started with, new works get the
// newest. A definition whose structure changed under an unchanged version is refused with
// [ledger.ErrDefinitionChanged]: raise its version and keep the old one registered until its works are done.
func (c *Coordinator) Register(ctx context.Context, programs ...saga.Program) error {
	var faults []error
	for _, p := range programs {
		if err := c.register(ctx, p); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func (c *Coordinator) register(ctx context.Context, p saga.Program) error {
	spec := p.Spec()
	if spec.Saga == BatchSaga {
		return fmt.Errorf("register %s: the name is that of amends' own saga", spec.Saga)
	}
	if err := c.opts.reaches(spec); err != nil {
		return fmt.Errorf("register %s version %d: %w", spec.Saga, spec.Version, err)
	}
	if err := c.describe(ctx, spec); err != nil {
		return fmt.Errorf("register %s version %d: %w", spec.Saga, spec.Version, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs[ledger.Version{Saga: spec.Saga, Version: spec.Version}] = p
	if n := c.newest[spec.Saga]; n == nil || n.Spec().Version <= spec.Version {
		c.newest[spec.Saga] = p
	}
	for i := range spec.Steps {
		if spec.Steps[i].Waits() && !spec.Steps[i].Find {
			continue
		}
		stays := spec.Steps[i].Timeout + spec.Steps[i].Settle
		if spec.Steps[i].Waits() { // a lookup leaves nothing behind
			stays = 0
		} else {
			c.clock.settles(stays)
		}
		c.flow.Sends(spec.Destination(spec.Steps[i].Name), fmt.Sprintf("%s/%d", spec.Saga, spec.Version), spec.Steps[i].Timeout, stays)
	}
	return nil
}

// How often a definition is described before a process gives up: for less than a second where the
// ledger answers, and once more at most where it says nothing.
const (
	describeTries = 5
	describeFor   = 10 * time.Second
)

// describe stores a definition's structure. No process ends because one answer was lost: describing
// again says the same.
func (c *Coordinator) describe(ctx context.Context, spec *program.Spec) error {
	wait, began := 50*time.Millisecond, time.Now()
	for tries := 1; ; tries++ {
		err := c.ledger.Describe(ctx, spec)
		if err == nil {
			c.outage.answered(callDescribe)
			return nil
		}
		hopeless := errors.Is(err, ledger.ErrInvalid) || final(err)
		if errors.Is(err, ledger.ErrDefinitionChanged) {
			return errors.Join(err, c.changed(ctx, spec))
		}
		if hopeless || tries == describeTries || tries > 1 && time.Since(began) >= describeFor {
			return err
		}
		if ctx.Err() == nil {
			c.outage.failed(callDescribe, err)
		}
		if nap.For(ctx, wait) != nil {
			return err
		}
		wait *= 2
	}
}

// changed says which step of a definition differs first from what the ledger knows; nil: that cannot be read.
func (c *Coordinator) changed(ctx context.Context, spec *program.Spec) error {
	known, err := c.Operator.spec(ctx, &machine.State{ID: saga.ID{Saga: spec.Saga}, Version: spec.Version})
	if err != nil || known == nil {
		return nil //nolint:nilerr // what is wrong is said already
	}
	for i := range max(len(spec.Steps), len(known.Steps)) {
		switch {
		case i >= len(spec.Steps):
			return fmt.Errorf("step %q is gone", known.Steps[i].Name)
		case i >= len(known.Steps):
			return fmt.Errorf("step %q is new", spec.Steps[i].Name)
		case spec.Steps[i].Name != known.Steps[i].Name:
			return fmt.Errorf("step %d is %q, and was %q", i+1, spec.Steps[i].Name, known.Steps[i].Name)
		}
		is, was := program.Spec{Steps: spec.Steps[i : i+1]}, program.Spec{Steps: known.Steps[i : i+1]}
		if is.Structure() != was.Structure() {
			return fmt.Errorf("step %q changed: how it is safe to repeat, looked up, undone or answered, its condition, or the pivot", spec.Steps[i].Name)
		}
	}
	return nil
}

// run is Run for the coordinator alone.
func (c *Coordinator) run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("this coordinator has run already; make a new one")
	}
	defer c.give()
	if unused := c.flow.Unused(); len(unused) > 0 {
		c.opts.Log.WithField("destinations", unused).Warn("Options.Destinations names what no step of the registered sagas goes to; is a name misspelt?")
	}
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	go c.watching(watched)
	if l, ok := c.Operator.ledger.(ledger.Stirrer); ok {
		go l.Hear(watched, c.wake)
	}
	for first := true; ; first = false {
		s, err := c.openSession(ctx, first)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return errors.Join(err, c.drain()) // works of the last session may still have attempts under way
		}
		if stopped, err := c.runSession(ctx, s); stopped {
			return err
		}
		c.waitOut(ctx, s)
	}
}

// runSession works under s until the session or ctx ends. When ctx ends first it stops gracefully,
// under a lease that is still renewed, and reports that it has stopped.
func (c *Coordinator) runSession(ctx context.Context, s *session) (stopped bool, err error) {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, s.quiesce)() // also while a claim waits for a database that is away
	kept := make(chan struct{})
	go func() { defer close(kept); c.keepSession(background, s) }()
	c.serve(ctx, s)
	if stopped = ctx.Err() != nil; stopped {
		err = c.stop(background, s)
	}
	s.end(errStopping)
	cancel()
	<-kept
	return stopped, err
}

// serve claims and dispatches until ctx or the session ends.
func (c *Coordinator) serve(ctx context.Context, s *session) {
	select { // a claim before would find the session untrusted, and the next one is a poll later
	case <-s.told:
	case <-s.idle.Done():
	}
	flushed := time.Now()
	k := claimer{c: c, s: s}
	defer k.answered()
	for {
		if k.claim() {
			continue
		}
		if time.Since(flushed) >= flushEvery {
			flushed = time.Now()
			c.flushMeanwhile()
		}
		woken := c.woken
		if k.failed { // a process that has room asks again at once, and a ledger that is away is not helped by that
			woken = nil
		}
		if !c.rest(ctx, s, woken, k.pause()) {
			return
		}
	}
}

// rest waits for the next poll, or until there may be something to claim. It reports false when ctx
// or the session ended.
func (c *Coordinator) rest(ctx context.Context, s *session, woken <-chan struct{}, poll time.Duration) bool {
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-t.C:
	case <-woken:
	case <-ctx.Done():
		return false
	case <-s.ended:
		return false
	}
	return true
}

// wake lets the claiming loop look at once.
func (c *Coordinator) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// waitOut keeps a process whose session ended from opening another too soon. When the database went
// back, others may hold leases for a lease time that it has forgotten. While the ledger
// does not answer, it lets other processes claim the works first, once the lease is over.
func (c *Coordinator) waitOut(ctx context.Context, s *session) {
	switch why := s.Why(); {
	case errors.Is(why, ledger.ErrDatabaseChanged):
		_ = nap.For(ctx, c.opts.Lease)
	case errors.Is(why, errUnanswered):
		_ = nap.For(ctx, s.left()+2*c.opts.Poll)
	}
	for c.outage.unanswered(time.Time{}) > c.opts.Lease && nap.For(ctx, c.opts.Lease/15) == nil {
	}
}

// stop ends the works in hand and hands them over.
func (c *Coordinator) stop(ctx context.Context, s *session) error {
	err := c.drain()
	if s.Why() != nil {
		return err // others have its works by now, or had when its lease ended
	}
	last, cancel := context.WithTimeout(ctx, lastWord)
	c.flow.Depart(last, s)
	cancel()
	c.deliverLast(ctx, s)
	c.bury(ctx, s)
	return err
}

// bury ends the session in the ledger, so that its works are free at once. A connection that has
// gone silent costs one try: the next one takes another. A ledger that cannot be reached until the
// lease ends costs no more than the wait: by then the works are free in any case, so that the
// process has stopped well.
func (c *Coordinator) bury(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, s.left())
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := c.ledger.Bury(ctx, s.token)
		if err == nil {
			return
		}
		if nap.For(ctx, wait) != nil {
			c.opts.Log.WithError(err).Warn("stopped, and the ledger did not hear of it; other processes take the works over now that the lease is over")
			return
		}
	}
}

// drain takes nothing new, closes every send gate, and waits for what may already have been sent.
func (c *Coordinator) drain() error {
	c.hand.close(func() { close(c.stopping) })
	for _, w := range c.hand.all() {
		w.closeGate()
	}
	err := c.awaitWorks()
	c.flushDuplicates()
	return err
}

// lastWord is how long a work has to record that its attempt was abandoned.
const lastWord = time.Second

// awaitWorks waits for the works in hand. After Options.Drain it abandons their attempts, and says
// so.
func (c *Coordinator) awaitWorks() error {
	done := make(chan struct{})
	go func() { c.hand.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(c.opts.Drain):
	}
	close(c.left)
	left := c.hand.all()
	for _, w := range left {
		w.abandon()
	}
	select {
	case <-done:
	case <-time.After(lastWord):
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d works did not come to rest within %s of the stop; what they had under way is in doubt", len(left), c.opts.Drain)
}

// errStopping is why a stopping coordinator takes nothing new.
var errStopping = errors.New("the coordinator is stopping")

func (c *Coordinator) isStopping() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

// program returns what runs works of the given version, or nil.
func (c *Coordinator) program(v ledger.Version) saga.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[v]
}

// tellHealth tells how a destination's health changed, and has what waited for it come back.
func (c *Coordinator) tellHealth(name, was, is string, h flow.Health) {
	log := c.opts.Log.WithField("destination", name)
	switch {
	case was == is:
	case is == flow.Paused:
		log.WithField("actor", h.PausedBy).WithField("reason", h.PausedReason).Warn("a person paused the destination; what wants it waits")
	case was == flow.Paused:
		log.WithField("state", is).Info("a person resumed the destination")
	case is == flow.Healthy:
		if log.Info("the destination is back; what waited for it goes on"); was == flow.Failing {
			go c.recall(c.current.Load(), name)
		}
	case is == flow.Limited:
		log.WithField("until", h.LimitedUntil).WithField("error", h.LastError).Warn("the destination asks to be left alone; what wants it waits")
	case is == flow.Failing:
		log.WithField("since", h.FailureStartedAt).WithField("evidence", h.Evidence).WithField("error", h.LastError).WithField("next_try", h.Probe.Next).
			Warn("the destination fails; what wants it waits, and one attempt at a time finds out when it is back")
	}
}

// recall makes everything due now that waits because a destination failed: the destination has recovered.
func (c *Coordinator) recall(s *session, name string) {
	if s == nil {
		return
	}
	_ = waiting(s.idle, c.ledger, name, func(all []ledger.Return) error { // else each comes by itself, later
		c.giveBack(s, all...)
		return nil
	})
}

// recallOne has one of those be due now, whichever: none that is at fault itself is asked for ever.
func (c *Coordinator) recallOne(s *session, name string) {
	if s == nil {
		return
	}
	page, err := c.ledger.List(s.idle, ledger.Filter{WaitsFor: flow.RetryLine(name), Limit: 100})
	if err != nil {
		return
	}
	ours := slices.DeleteFunc(page.Instances, func(h ledger.Instance) bool {
		_, held := c.flow.Holds(h.ID.Saga)
		return held != nil || c.program(ledger.Version{Saga: h.ID.Saga, Version: h.Version}) == nil
	})
	if n := len(ours); n > 0 && c.ledger.GiveBack(s.idle, s.token, []ledger.Return{{Number: ours[rand.IntN(n)].Number}}) == nil {
		c.wake()
	}
}

// tellPause tells that a person paused a saga or everything, or resumed it.
func (c *Coordinator) tellPause(scope string, by *saga.Actor) {
	log := c.opts.Log.WithField("scope", scope)
	if by == nil {
		log.Info("a person resumed it; what waited goes on")
		return
	}
	log.WithField("actor", by.Name).WithField("reason", by.Reason).Warn("a person paused it; nothing of it is sent, going forward or back")
}
