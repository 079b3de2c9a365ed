package inbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/nap"
)

// Processor turns what was received into changes of sagas: it judges the deliveries of an inbox,
// asks the sources of truth where they prove nothing, and applies what Decide says of what was
// accepted. Any number of processes may run one over a store. All methods are safe for concurrent
// use.
type Processor struct {
	gate    intake.Store
	given   []*Source
	opts    Options
	holder  string // before there is a session
	sources map[string]*source
	tell    *Listener
	panics  panics
	ran     atomic.Bool

	judgeSoon chan struct{} // something was stored
	claimSoon chan struct{} // something became due
	slots     chan struct{} // one for each worker
	workers   sync.WaitGroup
}

// New returns a processor over db for the webhooks and objects of the sources. o may be nil. It
// does nothing before [Processor.Run], and what it receives until then is kept. Every fault of the
// sources and of o is reported at once.
func New(db intake.Store, sources []*Source, o *Options) (*Processor, error) {
	opts := *cmp.Or(o, new(Options))
	wrong := faults.List{opts.validate()}
	wrong.Whenf(db == nil, "there is no Store: what is received needs a place")
	wrong.Whenf(len(sources) == 0, "there are no sources: nothing would be processed")
	opts = opts.withDefaults()
	h := &Processor{
		gate: db, given: slices.Clone(sources), opts: opts, holder: rand.Text()[:16],
		judgeSoon: make(chan struct{}, 1), claimSoon: make(chan struct{}, 1), slots: make(chan struct{}, opts.Workers),
	}
	var err error
	h.sources, err = newSources(sources, opts.Workers, h.wake)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return nil, fmt.Errorf("new processor: %w", err)
	}
	h.tell = Tee(logTo(opts.Log), opts.Listener)
	return h, nil
}

// Sources are those of the processor, as they were given.
func (h *Processor) Sources() []*Source { return slices.Clone(h.given) }

// Accept stores events as [intake.Inbox] has it, and has them processed at once where this process
// runs the processor.
func (h *Processor) Accept(ctx context.Context, events []intake.Event) error {
	err := h.gate.Accept(ctx, events)
	h.wake()
	return err
}

// Blocked counts refused deliveries as [intake.Inbox] has it.
func (h *Processor) Blocked(ctx context.Context, by, source string, n int64) error {
	return h.gate.Blocked(ctx, by, source, n)
}

// wake says that something was stored. It never blocks.
func (h *Processor) wake() { soon(h.judgeSoon) }

func soon(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // that was said already
	}
}

// Run processes until ctx ends. Then nothing new is begun, calls under way are cancelled, their
// objects are given back, and Run returns nil. A store that fails is tried again. A processor runs
// once.
func (h *Processor) Run(ctx context.Context) error {
	if h.ran.Swap(true) {
		return errors.New("this processor has run already; make a new one")
	}
	var loops sync.WaitGroup
	loops.Go(func() { h.judgeLoop(ctx) })
	loops.Go(func() { h.claimLoop(ctx) })
	loops.Go(func() { h.purgeLoop(ctx) })
	loops.Wait()
	h.workers.Wait()
	return nil
}

// judgeLoop judges what is stored, in batches, until ctx ends.
func (h *Processor) judgeLoop(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := h.judge(ctx, map[int64]string{})
		if err != nil && ctx.Err() == nil {
			h.opts.Log.WithError(err).Warn("judging failed; trying again")
		}
		if n > 0 {
			soon(h.claimSoon)
		}
		if n < h.opts.Batch {
			_ = nap.Until(ctx, h.judgeSoon, h.opts.Poll)
		}
	}
}

// errUnread ends a batch with deliveries that have to be read again first.
var errUnread = errors.New("deliveries are to be read again first")

// judge judges one batch. What a person replays and named no object is read again before: read says what became of it.
func (h *Processor) judge(ctx context.Context, read map[int64]string) (int, error) {
	var judged, unread []intake.Delivery
	n, err := h.gate.Judge(ctx, h.opts.Batch, func(now time.Time, ds []intake.Delivery, es map[Object]*intake.Entry) error {
		unread = slices.DeleteFunc(slices.Clone(ds), func(d intake.Delivery) bool {
			_, is := read[d.Number]
			return is || d.Object.ID != "" || d.Outcome != intake.Unknown && d.Outcome != intake.Malformed
		})
		if len(unread) > 0 {
			return errUnread
		}
		for i := range ds {
			h.judgeOne(&ds[i], es[ds[i].Object], now, read[ds[i].Number])
		}
		judged = ds
		return nil
	})
	if errors.Is(err, errUnread) {
		if err = h.reread(ctx, unread, read); err == nil {
			return h.judge(ctx, read)
		}
	}
	if err != nil {
		return 0, err
	}
	for i := range judged {
		d := &judged[i]
		h.tell.Judged(Delivery{Name: d.Name(), Object: d.Object, Topic: d.Topic, Disposition: string(d.Outcome), Why: d.Because})
	}
	return n, nil
}

// reread reads deliveries as their sources are set up now. What they name is stored beside them, before they are judged: done again
// after a crash, it is a copy.
func (h *Processor) reread(ctx context.Context, ds []intake.Delivery, read map[int64]string) error {
	for i := range ds {
		d := &ds[i]
		read[d.Number] = ""
		s := h.sources[d.Object.Source]
		if s == nil {
			continue
		}
		reader, can := s.Webhooks.(interface {
			Reread(of *Source, d *intake.Delivery) (*intake.Event, error)
		})
		if !can || len(d.Body) == 0 {
			continue
		}
		e, err := reader.Reread(s.Source, d)
		if err != nil {
			read[d.Number] = "read again, and " + intake.Brief(err)
			continue
		}
		if err := h.gate.Accept(ctx, []intake.Event{*e}); err != nil {
			return err
		}
		read[d.Number] = "read again: it names " + e.Object.String() + ", and is judged as a delivery of its own"
	}
	return nil
}

// judgeOne judges a delivery; read says what became of one that was read again.
func (h *Processor) judgeOne(d *intake.Delivery, e *intake.Entry, now time.Time, read string) {
	if why := d.Because; d.Outcome != "" && why != "" { // who wanted the replay is kept
		defer func() { d.Because += " (" + why + ")" }()
	}
	s := h.sources[d.Object.Source]
	if s == nil {
		d.Outcome, d.Because = intake.Unknown, "no source of this name is set up here; set it up and replay"
		return
	}
	err := h.guard(d.Object, func() error {
		*e, d.Outcome, d.Because = intake.Judge(*e, d, now, &s.policy)
		d.Because = cmp.Or(read, d.Because)
		return nil
	})
	if err != nil { // a function of the policy panicked: the source knows better
		e.FetchAgain()
		e.Due, e.Cause = now, d.Number
		d.Outcome, d.Because = intake.Hint, intake.Brief(err)+"; the source is asked"
	}
}

// claimLoop takes objects that are due for as many workers as are free, until ctx ends.
func (h *Processor) claimLoop(ctx context.Context) {
	for {
		select {
		case h.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		free := 1
		for free < h.opts.Workers && h.tryReserve() {
			free++
		}
		if full := h.claim(ctx, free); !full {
			_ = nap.Until(ctx, h.claimSoon, h.nextTurn())
		}
	}
}

// nextTurn is how long from now the next of the fetches comes due that wait for the rate of their
// source.
func (h *Processor) nextTurn() time.Duration {
	next := h.opts.Poll
	for _, s := range h.sources {
		next = min(next, s.nextTurn(time.Now(), next))
	}
	return next
}

func (h *Processor) tryReserve() bool {
	select {
	case h.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// claim takes up to free objects and gives each a worker. It reports whether there may be more. The
// reserved slots go to the workers, or back.
func (h *Processor) claim(ctx context.Context, free int) (full bool) {
	began := time.Now()
	c := claim{h: h, holder: cmp.Or(h.gate.Holder(), h.holder)}
	entries, err := h.gate.Lease(ctx, free, c.decide)
	for range free - len(entries) {
		<-h.slots
	}
	c.settle(entries)
	if err != nil {
		if ctx.Err() == nil {
			h.opts.Log.WithError(err).Warn("claiming failed; trying again")
		}
		return false
	}
	for _, d := range c.deferred {
		h.tell.Deferred(d.object, d.wait)
	}
	for i := range entries {
		h.workers.Go(func() {
			defer func() { <-h.slots }()
			h.work(ctx, &entries[i], began)
		})
	}
	return c.seen == free
}

// claim decides which due objects this process takes.
type claim struct {
	h        *Processor
	holder   string
	seen     int
	admitted []*source
	deferred []turn
}

// settle gives back what was admitted and not claimed after all: the transaction failed or was
// repeated.
func (c *claim) settle(entries []intake.Entry) {
	for i := range entries {
		s := c.h.sources[entries[i].Object.Source]
		c.admitted = slices.Delete(c.admitted, slices.Index(c.admitted, s), slices.Index(c.admitted, s)+1)
	}
	for _, s := range c.admitted {
		s.done()
	}
}

type turn struct {
	object Object
	wait   time.Duration
}

// unknownWait is how long an object of a source that is not set up waits.
const unknownWait = time.Minute

func (c *claim) decide(now time.Time, e *intake.Entry) error {
	c.seen++
	s := c.h.sources[e.Object.Source]
	if s == nil {
		e.Due = now.Add(unknownWait)
		return nil
	}
	leased := *e
	intake.Lease(&leased, c.holder, now, c.h.opts.Lease, &s.policy)
	wait, ok := s.admit(s.policy.MustFetch(&leased, now), time.Now())
	if !ok {
		e.Due = now.Add(wait)
		c.deferred = append(c.deferred, turn{e.Object, wait})
		return nil
	}
	c.admitted = append(c.admitted, s)
	*e = leased
	return nil
}
