package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Coordinator runs sagas over a ledger. Make one with [New], register definitions, and let [Coordinator.Run]
// block for as long as the process lives. All methods are safe for concurrent use.
type Coordinator struct {
	*Operator
	ledger  ledger.Ledger
	opts    Options
	tell    *Listener
	clock   *ledgerClock
	starts  *committer // starts wait for each other's keys, so they have a lane of their own
	appends *committer
	life    context.Context // of everything that must not end with its caller
	give    context.CancelFunc

	current    atomic.Pointer[session] // nil until Run has opened one
	stopping   chan struct{}           // closed when Run is told to stop
	spoken     chan struct{}           // somebody here has posted a signal to a work that is not in hand
	ran        atomic.Bool
	duplicates *duplicateCounter

	mu           sync.Mutex
	programs     map[ledger.Version]saga.Program
	newest       map[string]saga.Program
	destinations map[string]*destination
	held         map[saga.ID]*work
	running      sync.WaitGroup // the works in hand
}

// New returns a coordinator over l. It starts nothing: works begin to move in [Coordinator.Run]. opts may be
// nil; every fault in it is reported at once.
func New(l ledger.Ledger, opts *Options) (*Coordinator, error) {
	o := opts.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	life, give := context.WithCancel(context.Background())
	c := &Coordinator{
		Operator: NewOperator(l), ledger: l, opts: o, clock: &ledgerClock{}, life: life, give: give, stopping: make(chan struct{}),
		spoken:       make(chan struct{}, 1),
		duplicates:   newDuplicateCounter(),
		programs:     map[ledger.Version]saga.Program{},
		newest:       map[string]saga.Program{},
		destinations: map[string]*destination{},
		held:         map[saga.ID]*work{},
	}
	c.tell = Tee(logTo(o.Log), o.Listener)
	lane := func(writers int) *committer {
		return &committer{ledger: l, clock: c.clock, listener: c.tell, log: o.Log, ctx: life, maxBatch: o.MaxBatch, writers: writers}
	}
	c.starts, c.appends = lane(max(1, o.Writers/2)), lane(o.Writers)
	for name, limit := range o.Destinations {
		c.destinations[name] = newDestination(limit)
	}
	return c, nil
}

// Register makes definitions runnable and stores their structure in the ledger. Older versions can stay
// registered beside newer ones: works keep the version they started with, new works get the newest. A
// definition whose structure changed under an unchanged version is refused with
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
	if err := c.ledger.Describe(ctx, spec); err != nil {
		return fmt.Errorf("register %s version %d: %w", spec.Saga, spec.Version, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs[ledger.Version{Saga: spec.Saga, Version: spec.Version}] = p
	if n := c.newest[spec.Saga]; n == nil || n.Spec().Version <= spec.Version {
		c.newest[spec.Saga] = p
	}
	for i := range spec.Steps {
		if to := spec.Steps[i].To; to != "" && c.destinations[to] == nil {
			c.destinations[to] = newDestination(Limit{})
		}
	}
	return nil
}

// Run opens a session and works until ctx ends. Then it stops gracefully: nothing new is armed, attempts that
// have not passed their send gate are recorded as not sent, those that have are awaited for at most
// Options.Drain, and the session is buried so that other processes take over at once. It returns nil after a
// graceful stop, and an error when it cannot begin or had to leave attempts behind. A coordinator runs once.
func (c *Coordinator) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("this coordinator has run already; make a new one")
	}
	defer c.give()
	for {
		s, err := c.openSession(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return errors.Join(err, c.drain()) // works of the last session may still have attempts under way
		}
		if err = c.runSession(ctx, s); ctx.Err() != nil {
			return err
		}
		c.waitOutLease(ctx, s)
	}
}

// runSession works under s until ctx or the session ends. When ctx ends it stops gracefully, under a lease that
// is still renewed.
func (c *Coordinator) runSession(ctx context.Context, s *session) (err error) {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, s.quiesce)() // also while a claim waits for a database that is away
	kept := make(chan struct{})
	go func() { defer close(kept); c.keepSession(background, s) }()
	c.serve(ctx, s)
	if ctx.Err() != nil {
		err = c.stop(background, s)
	}
	s.end(errStopping)
	<-kept
	return err
}

// serve claims and dispatches until ctx or the session ends.
func (c *Coordinator) serve(ctx context.Context, s *session) {
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	for {
		again, err := c.claim(ctx, s)
		if err != nil && ctx.Err() == nil {
			c.opts.Log.WithError(err).Warn("claiming failed; trying again")
		}
		if again {
			continue
		}
		select {
		case <-flush.C:
			c.flushDuplicates()
		default:
		}
		if !c.rest(ctx, s) {
			return
		}
	}
}

// rest waits for the next poll, or until somebody here has spoken to a work. It reports false when ctx or the
// session ended.
func (c *Coordinator) rest(ctx context.Context, s *session) bool {
	t := time.NewTimer(c.opts.Poll)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.spoken:
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
	case c.spoken <- struct{}{}:
	default:
	}
}

// waitOutLease keeps a process whose session ended because the database went back from arming anything for a
// lease time: others may hold leases that the database has forgotten.
func (c *Coordinator) waitOutLease(ctx context.Context, s *session) {
	s.mu.Lock()
	changed := errors.Is(s.void, ledger.ErrDatabaseChanged)
	s.mu.Unlock()
	if changed {
		_ = sleep(ctx, c.opts.Lease)
	}
}

// stop ends the works in hand and hands them over.
func (c *Coordinator) stop(ctx context.Context, s *session) error {
	err := c.drain()
	ctx, cancel := context.WithTimeout(ctx, c.opts.Lease)
	defer cancel()
	if berr := c.ledger.Bury(ctx, s.token); berr != nil {
		err = errors.Join(err, fmt.Errorf("the session could not be buried; its works are taken over when its lease ends: %w", berr))
	}
	return err
}

// drain takes nothing new, closes every send gate, and waits for what may already have been sent.
func (c *Coordinator) drain() error {
	c.mu.Lock() // whoever takes a work in hand has done so before, or sees that it is too late
	close(c.stopping)
	c.mu.Unlock()
	for _, w := range c.works() {
		w.closeGate()
	}
	err := c.awaitWorks()
	c.flushDuplicates()
	return err
}

// lastWord is how long a work has to record that its attempt was abandoned.
const lastWord = time.Second

// awaitWorks waits for the works in hand. After Options.Drain it abandons their attempts, and says so.
func (c *Coordinator) awaitWorks() error {
	done := make(chan struct{})
	go func() { c.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(c.opts.Drain):
	}
	left := c.works()
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

func (c *Coordinator) works() []*work {
	c.mu.Lock()
	defer c.mu.Unlock()
	ws := make([]*work, 0, len(c.held))
	for _, w := range c.held {
		ws = append(ws, w)
	}
	return ws
}

// program returns what runs works of the given version, or nil.
func (c *Coordinator) program(v ledger.Version) saga.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[v]
}

// hold takes a work in hand, unless it is in hand already, there is no room, or the process stops.
func (c *Coordinator) hold(w *work) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.held[w.id]; taken || len(c.held) >= c.opts.MaxWorks || c.isStopping() {
		return false
	}
	c.held[w.id] = w
	c.running.Add(1)
	return true
}

// keep takes a claimed work in hand. The ledger has given it to us, so room is not asked for.
func (c *Coordinator) keep(w *work) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isStopping() {
		return false
	}
	if held := c.held[w.id]; held != nil {
		held.again = w.s
		return false
	}
	c.held[w.id] = w
	c.running.Add(1)
	return true
}

// reclaim returns the work that is in hand under id, or nil. The ledger has named it in a claim of s: should it
// be on its way out (its session was lost, it is being released, it is only the duplicate of a start), then it
// is ours to take up anew, and letGo sees to that.
func (c *Coordinator) reclaim(s *session, id saga.ID) *work {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.held[id]
	if w != nil {
		w.again = s
	}
	return w
}

// letGo is called by the work's goroutine when it ends.
func (c *Coordinator) letGo(w *work) {
	c.mu.Lock()
	delete(c.held, w.id)
	again := w.again
	c.mu.Unlock()
	close(w.gone)
	if again != nil {
		go c.takeOver(again, []saga.ID{w.id})
	}
	c.running.Done()
}

func (c *Coordinator) holding(id saga.ID) *work {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id]
}

// room is how many more works may be claimed.
func (c *Coordinator) room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opts.MaxWorks - len(c.held)
}

// destination returns the limits of a destination, or nil for a step that names none.
func (c *Coordinator) destination(name string) *destination {
	if name == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.destinations[name]
}
