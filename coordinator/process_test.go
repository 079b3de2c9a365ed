package coordinator_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

const orderSaga = "order-to-invoice"

func idOf(work string) saga.ID { return saga.ID{Saga: orderSaga, Work: work} }

// process is one running coordinator, with its own way to the ledger and to the world. Killing it
// takes both away at one moment: whatever its goroutines still do afterwards reaches nobody, as
// after kill -9.
type process struct {
	*coordinator.Coordinator
	t       testing.TB
	world   *world
	dead    chan struct{}
	once    sync.Once
	stop    context.CancelFunc
	ended   chan struct{}
	err     error // of Run, once ended is closed
	records *recorder
	store   ledger.Ledger // what the process has open, for those who only look
	calls   func() int    // of the ledger, so far

	remote *remote             // the world lies in another process
	doom   func(arrival) death // when its requests are its death; nil: never
	canary string
}

// death is when a process dies of a request.
type death int

const (
	lives       death = iota
	diesBefore        // it leaves
	diesBetween       // its effect and its answer
)

// config is how a process is made. The zero value is the canonical one.
type config struct {
	opts    coordinator.Options
	program func(*process) saga.Program // default: orders
	tune    tuning
	faults  []ledgertest.Fault
	idle    bool    // it does not run until launch
	hook    *hooked // between the process and its ledger
	doom    func(arrival) death
	canary  string // in everything a destination answers
}

// hooked lets a test stand in the way of single calls. A nil hook lets them pass.
type hooked struct {
	ledger.Ledger
	append func(context.Context, []ledger.Entry) error // before the call; an error is returned instead of an answer
	renew  func(context.Context) error
	claim  func([]ledger.Instance) // after the call
	load   func([]saga.ID)         // before the call
	open   func() error            // before the call
	count  func()                  // before the call
	named  func(ledger.Counter)    // before the call of Count
	forget func() error            // after the call of Count: an error is returned although it was stored
}

func (h *hooked) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	if h.count != nil {
		h.count()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.named != nil {
		h.named(c)
	}
	err := h.Ledger.Count(ctx, c, totals)
	if h.forget != nil && err == nil {
		err = h.forget()
	}
	return err
}

func (h *hooked) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	if h.open != nil {
		if err := h.open(); err != nil {
			return ledger.Lease{}, err
		}
	}
	return h.Ledger.OpenSession(ctx, ttl, label, knows)
}

func (h *hooked) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	if h.append != nil {
		if err := h.append(ctx, es); err != nil {
			return nil, err
		}
	}
	return h.Ledger.Append(ctx, t, es)
}

func (h *hooked) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	if h.renew != nil {
		if err := h.renew(ctx); err != nil {
			return ledger.Lease{}, err
		}
	}
	return h.Ledger.Renew(ctx, t, r)
}

func (h *hooked) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	got, err := h.Ledger.Claim(ctx, t, c)
	if h.claim != nil && err == nil {
		h.claim(got.Instances)
	}
	return got, err
}

func (h *hooked) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	if h.load != nil {
		h.load(ids)
	}
	return h.Ledger.Load(ctx, ids)
}

// quick are options under which everything happens within seconds of virtual time.
func quick() coordinator.Options {
	return coordinator.Options{Lease: 6 * time.Second, Poll: 500 * time.Millisecond, Hold: 5 * time.Second, Drain: 10 * time.Second}
}

// boot makes a process over l, registers its program and sets it running. The test ends it.
func boot(t testing.TB, l ledger.Ledger, w *world, cfg config) *process {
	t.Helper()
	p := &process{t: t, world: w, dead: make(chan struct{}), ended: make(chan struct{}), records: &recorder{}, doom: cfg.doom, canary: cfg.canary}
	o := cfg.opts
	if o.Lease == 0 {
		limits := o.Destinations
		o = quick()
		o.Destinations = limits
	}
	if len(o.Destinations) > 0 { // what a test does not limit has no limit
		limits := map[string]coordinator.Limit{"books": {}, "shop": {}, "post": {}}
		maps.Copy(limits, o.Destinations)
		o.Destinations = limits
	}
	if o.Log == nil {
		o.Log = silent()
	}
	p.records.listen(&o)
	way := l
	if cfg.hook != nil {
		cfg.hook.Ledger = l
		way = cfg.hook
	}
	faulty := ledgertest.Faulty(way, cfg.faults...)
	m := &mortal{Ledger: l, ledger: faulty, crashed: faulty.Crashed(), p: p}
	door := ledger.Ledger(m)
	if tx, ok := l.(ledger.TxStarter); ok {
		door = struct {
			*mortal
			ledger.TxStarter
		}{m, tx}
	}
	c, err := coordinator.New(door, &o)
	if err != nil {
		t.Fatal(err)
	}
	p.Coordinator, p.store, p.calls = c, l, func() int { return faulty.Calls() }
	program := cfg.program
	if program == nil {
		program = func(p *process) saga.Program { return orders(p, cfg.tune) }
	}
	if err := c.Register(t.Context(), program(p)); err != nil && !p.isDead() {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // its end is in the clean-up
	p.stop = cancel
	if cfg.idle {
		close(p.ended)
		return p
	}
	p.launch(ctx)
	t.Cleanup(func() { p.halt() })
	return p
}

func (p *process) launch(ctx context.Context) {
	go func() {
		defer close(p.ended)
		p.err = p.Run(ctx)
	}()
}

// halt stops the process gracefully and returns what Run said.
func (p *process) halt() error {
	p.stop()
	<-p.ended
	return p.err
}

// kill ends the process as kill -9 does. Its goroutines are told to stop so that they do not
// outlive the test; what they do meanwhile reaches nobody.
func (p *process) kill() {
	p.once.Do(func() { close(p.dead) })
	p.stop()
}

func (p *process) die() { p.once.Do(func() { close(p.dead) }) }

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// send is how actions reach the world: through the attempt's gate and this process's wire.
func (p *process) send(ctx context.Context, c saga.Call[order], dir saga.Direction, target string) (thing, error) {
	if p.remote != nil {
		return p.remote.send(ctx, c, dir, target)
	}
	if err := c.Sending(); err != nil {
		return thing{}, err
	}
	a := arrival{work: c.Work, step: c.Step, dir: dir, key: c.Key, attempt: c.Attempt, customer: c.Input.Customer, target: target, made: c.MadeKey}
	end := lives
	if p.doom != nil {
		end = p.doom(a)
	}
	if end == diesBefore {
		p.die()
	}
	if p.isDead() {
		return thing{}, errDead
	}
	answer, err := p.world.request(ctx, a)
	if end == diesBetween {
		p.die()
	}
	if p.isDead() {
		return thing{}, errDead
	}
	answer.Memo = p.canary
	return answer, err
}

// tuning is what the canonical saga lets a test choose. Zero fields keep what is written in orders.
type tuning struct {
	version         int
	timeout, settle time.Duration
	retry           saga.Retry
	identity        func(order) any
	delay           time.Duration // before the pivot; 0: none
}

// orders is the canonical saga: one step of each kind.
func orders(p *process, o tuning) saga.Program {
	if o.timeout == 0 {
		o.timeout = 4 * time.Second
	}
	if o.settle == 0 {
		o.settle = 3 * time.Second
	}
	if o.version == 0 {
		o.version = 1
	}
	forward := func(ctx context.Context, c saga.Call[order]) (thing, error) { return p.send(ctx, c, saga.Forward, "") }
	back := func(ctx context.Context, c saga.Call[order], made *thing) error {
		target := ""
		if made != nil {
			target = made.ID
		}
		_, err := p.send(ctx, c, saga.Undo, target)
		return err
	}
	void := func(ctx context.Context, c saga.Call[order], made thing) error { return back(ctx, c, &made) }
	find := func(ctx context.Context, c saga.Call[order]) (saga.Finding[thing], error) {
		if p.remote != nil {
			return p.remote.find(ctx, c)
		}
		if p.isDead() {
			return saga.Finding[thing]{}, errDead
		}
		if p.world.asked != nil {
			if err := p.world.asked(c.Step, c.Work); err != nil {
				return saga.Finding[thing]{}, err
			}
		}
		found := p.world.find(c.Step, c.Work)
		for i := range found {
			found[i].Memo = p.canary
		}
		return saga.Found(found...), nil
	}
	step := func(name string) *saga.Action[order, thing] {
		return saga.Do(name, forward).Timeout(o.timeout).Settle(o.settle).Retry(o.retry)
	}
	parts := []saga.Step[order]{
		step("customer").Idempotent().NoUndo("customers outlive their orders").To("books"),
		step("invoice").Find(find).EachRun().Undo(void).To("books"),
		step("mark").Keyed(24 * time.Hour).EachRun().UndoMaybe(back).Pivot().To("shop"),
		step("receipt").AtMostOnce().NoUndo("the shop tells the customer").To("post"),
	}
	if o.delay > 0 {
		parts = slices.Insert(parts, 2, saga.Step[order](saga.Delay[order]("cooling-off", o.delay)))
	}
	if o.identity != nil {
		parts = append(parts, saga.Identity(o.identity))
	}
	d, err := saga.Define(orderSaga, o.version, parts...)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// begin starts a work and fails the test when that does not succeed.
func (p *process) begin(work string) coordinator.Started {
	p.t.Helper()
	s, err := p.Start(context.Background(), orderSaga, work, order{Customer: "c-" + work, Total: 100}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// await waits for the end or the review of a work.
func (p *process) await(work string) saga.Summary {
	p.t.Helper()
	s, err := p.Wait(context.Background(), orderSaga, work)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// want waits for a work and compares its status and reason.
func (p *process) want(work string, status saga.Status, reason saga.Reason) saga.Summary {
	p.t.Helper()
	s := p.await(work)
	if s.Status != status || s.Reason != reason {
		p.t.Errorf("%s is %s %s, want %s %s\n%s", work, s.Status, s.Reason, status, reason, s.Note)
	}
	return s
}

// recorder keeps what a process has made durable, in order.
type recorder struct {
	mu      sync.Mutex
	records []recorded
	lost    []error
	opened  []machine.Token
}

type recorded struct {
	id saga.ID
	machine.Record
}

// listen has o tell the recorder.
func (r *recorder) listen(o *coordinator.Options) {
	o.Hear(func(id saga.ID, rec *machine.Record) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.records = append(r.records, recorded{id, *rec})
	},
		func(t machine.Token) { r.mu.Lock(); defer r.mu.Unlock(); r.opened = append(r.opened, t) },
		func(_ machine.Token, why error) { r.mu.Lock(); defer r.mu.Unlock(); r.lost = append(r.lost, why) })
}

// of returns the records of one work that this process wrote.
func (r *recorder) of(work string) []machine.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rs []machine.Record
	for _, rec := range r.records {
		if rec.id.Work == work {
			rs = append(rs, rec.Record)
		}
	}
	return rs
}

// session returns the token of the latest session of the process.
func (r *recorder) session() machine.Token {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened[len(r.opened)-1]
}

func (r *recorder) losses() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.lost...)
}

func silent() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}
