package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// process is one processor that can be crashed: at its n-th boundary everything it does comes to
// nothing from then on. A boundary is before and behind every transaction, in the middle of every
// callback of one, and before and behind every call of the source and of the user's function.
type process struct {
	processor *inbox.Processor
	left      atomic.Int64 // boundaries until the crash; never reached when it begins below zero
	dead      atomic.Bool
	crash     context.CancelFunc
	over      <-chan struct{} // it was crashed or told to stop
	done      chan struct{}   // nothing of it moves any more
}

var errDead = errors.New("this process has crashed")

// start runs a process that crashes at its n-th boundary, or never if n is 0.
func start(ctx context.Context, s *scene, n int64) *process {
	p := &process{done: make(chan struct{})}
	p.left.Store(n)
	ctx, p.crash = context.WithCancel(ctx)
	p.over = ctx.Done()
	var sources []*inbox.Source
	for _, k := range kinds() {
		policy := k.policy
		policy.Settle, policy.Park, policy.Volatile = cmp.Or(s.settle, settle), 20*s.settle, []string{"seen"}
		sources = append(sources, &inbox.Source{
			Name: k.name, Saga: "order-to-invoice", Policy: policy, Limits: inbox.Limits{PerSecond: 200},
			Fetch: func(ctx context.Context, o intake.Object) (f inbox.Fetched, err error) {
				err = p.around(func() (err error) { f, err = s.world.fetch(ctx, o); return err })
				return f, err
			},
			Decide: func(c inbox.Snapshot) (saga.Change, error) { return saga.Change{Input: c.Body}, nil },
			Apply: func(ctx context.Context, ch saga.Change) error {
				c := inbox.Snapshot{Revision: ch.Revision, Deleted: ch.Want == saga.WantWithdrawn, Cause: ch.Cause}
				c.Object, _ = intake.ParseObject(ch.ID.Work)
				c.Body, _ = ch.Input.(json.RawMessage)
				return p.around(func() error { return s.works.start(ctx, &c) })
			},
		})
	}
	h, err := inbox.New(&crashable{p: p, gate: s.gate}, sources, &inbox.Options{Workers: 32, Lease: 30 * time.Second, Poll: s.poll, Listener: s.told.listener()})
	if err != nil {
		panic(err)
	}
	p.processor = h
	go func() {
		defer close(p.done)
		if err := h.Run(ctx); err != nil {
			panic(err)
		}
	}()
	return p
}

// boundary is where a crash may come.
func (p *process) boundary() error {
	if p.left.Add(-1) == 0 {
		p.dead.Store(true)
		p.crash()
	}
	if p.dead.Load() {
		return errDead
	}
	return nil
}

// around calls f between two boundaries. What f did stays done when the second is where the process
// dies.
func (p *process) around(f func() error) error {
	if err := p.boundary(); err != nil {
		return err
	}
	err := f()
	return errors.Join(p.boundary(), err)
}

// crashable is the store as a process sees it.
type crashable struct {
	p            *process
	gate         intake.Gate
	intake.Inbox // what comes in is the mail's
}

func (c *crashable) Judge(ctx context.Context, limit int, decide func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error) (n int, err error) {
	err = c.p.around(func() error {
		n, err = c.gate.Judge(ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
			return errors.Join(decide(now, ds, es), c.p.boundary())
		})
		return err
	})
	return n, err
}

func (c *crashable) Lease(ctx context.Context, limit int, decide func(time.Time, *intake.Entry) error) (es []intake.Entry, err error) {
	err = c.p.around(func() error {
		es, err = c.gate.Lease(ctx, limit, func(now time.Time, e *intake.Entry) error {
			return errors.Join(decide(now, e), c.p.boundary())
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return es, nil
}

func (c *crashable) Update(ctx context.Context, o intake.Object, decide func(time.Time, *intake.Entry) error) error {
	return c.p.around(func() error {
		return c.gate.Update(ctx, o, func(now time.Time, e *intake.Entry) error {
			return errors.Join(decide(now, e), c.p.boundary())
		})
	})
}

func (c *crashable) Holder() string { return c.gate.Holder() }

func (c *crashable) Found(ctx context.Context, work string) (intake.Found, error) {
	return c.gate.Found(ctx, work)
}

func (c *crashable) Weigh(ctx context.Context, o intake.Object, id saga.ID, b intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	return c.p.around(func() error {
		return c.gate.Weigh(ctx, o, id, b, func(now time.Time, e *intake.Entry, t intake.Tally) error {
			return errors.Join(decide(now, e, t), c.p.boundary())
		})
	})
}

// flaky is the door: now and then it fails, before or after the events were stored.
type flaky struct {
	intake.Inbox
	chance *rand.Rand
}

var errDoor = errors.New("the door broke down")

func (f *flaky) Accept(ctx context.Context, events []intake.Event) error {
	n := f.chance.IntN(200)
	if n == 0 {
		return errDoor
	}
	return errors.Join(f.Inbox.Accept(ctx, events), map[bool]error{true: errDoor}[n == 1])
}

// nodes keeps two processes on one store alive and lets them crash.
type nodes struct {
	mu      sync.Mutex
	alive   [2]*process
	crashes int
}

// keep restarts node i whenever it has crashed, until ctx ends. Each life lasts for a random number
// of boundaries, until the world is calm.
func (n *nodes) keep(ctx context.Context, s *scene, i int, lives int) {
	chance := rand.New(rand.NewPCG(s.world.seed, uint64(10+i)))
	for life := 0; ctx.Err() == nil; life++ {
		var last int64
		if life < lives {
			last = 1 + chance.Int64N(int64(40*(life+1)))
		}
		p := start(ctx, s, last)
		n.mu.Lock()
		n.alive[i] = p
		n.mu.Unlock()
		<-p.over // what hangs in it may go on hanging
		defer func() { <-p.done }()
		if p.dead.Load() {
			n.mu.Lock()
			n.crashes++
			n.mu.Unlock()
			_ = pause(ctx, time.Duration(chance.IntN(60))*time.Second)
		}
	}
}

// wake tells a process that something was stored.
func (n *nodes) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.alive {
		if p != nil {
			p.processor.Sources()[0].Wake()
		}
	}
}

// tally counts what all processes told.
type tally struct {
	mu                   sync.Mutex
	dispositions         map[intake.Disposition]int64
	fetches, hints, lost int64
}

func (c *tally) listener() *inbox.Listener {
	count := func(add func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.dispositions == nil {
			c.dispositions = map[intake.Disposition]int64{}
		}
		add()
	}
	return &inbox.Listener{
		Judged: func(d inbox.Delivery) { count(func() { c.dispositions[intake.Disposition(d.Disposition)]++ }) },
		Fetched: func(_ intake.Object, hints int64, _ time.Duration, _ string, _ error) {
			count(func() { c.fetches, c.hints = c.fetches+1, c.hints+hints })
		},
		Lost: func(intake.Object) { count(func() { c.lost++ }) },
	}
}

// coalesced is how many hints cost no fetch of their own.
func (c *tally) coalesced() int64 { return max(c.hints-c.fetches, 0) }

// works is what the user's function starts: a chain of revisions for each object, kept like a
// saga's.
type works struct {
	mu       sync.Mutex
	chance   *rand.Rand
	calm     bool
	chains   map[intake.Object][]inbox.Snapshot
	repeated int // a revision was handed over that was there already
	broken   []string
}

// start takes a change over: a newer revision continues the chain, the newest again is a
// repetition, and an older one must never come. It fails, panics and is slow at times, before and
// after it has taken effect.
func (w *works) start(ctx context.Context, c *inbox.Snapshot) error {
	fault, took := w.draw()
	if err := pause(ctx, took); err != nil {
		return err
	}
	if fault == 1 {
		return errors.New("the coordinator is away")
	}
	w.take(c)
	switch fault {
	case 2:
		return errors.New("the answer was lost")
	case 3:
		panic("a bug in the user's function")
	}
	return nil
}

func (w *works) draw() (fault int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault, took = w.chance.IntN(60), time.Duration(w.chance.IntN(50))*time.Millisecond
	if w.calm {
		fault = 0
	}
	return fault, took
}

func (w *works) take(c *inbox.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	chain := w.chains[c.Object]
	if len(chain) > 0 {
		last := &chain[len(chain)-1]
		switch order := saga.CompareRevisions(c.Revision, last.Revision); {
		case order < 0:
			w.broken = append(w.broken, fmt.Sprintf("%s: revision %s (deleted %t) was handed over after %s (deleted %t)", c.Object, c.Revision, c.Deleted, last.Revision, last.Deleted))
			return
		case order == 0:
			if w.repeated++; c.Deleted != last.Deleted || fingerprint(c.Body) != fingerprint(last.Body) {
				w.broken = append(w.broken, fmt.Sprintf("%s: revision %s came with two contents: %s (deleted %t) and %s (deleted %t)", c.Object, c.Revision, last.Body, last.Deleted, c.Body, c.Deleted))
			}
			return
		}
	}
	w.chains[c.Object] = append(chain, *c)
}
