package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// sites are the destinations of a simulated fleet. They outlive every process, keep what took
// effect, and misbehave as their dice say: refused connections, 429 and 503 with Retry-After,
// answers that are lost, effects that arrive late, lookups that lag or lie.
type sites struct {
	limits map[string]coordinator.Limit
	over   []string // when a limit was exceeded

	seed  uint64
	rules siteRules
	clash map[string]string // what is broken on purpose, see [breaks]

	mu       sync.Mutex
	byName   map[string]*site
	requests map[string][]*request // by what they are for
	effects  []*made
	byFor    map[string][]*made
	tainted  map[saga.ID]string // works whose destination did not keep its stated times, and how
	outlived map[saga.ID]string // those whose keys may have outlived what the ledger says of them
	pending  sync.WaitGroup     // requests and late effects on their way
	counts   siteCounts
}

// siteRules say how a world misbehaves.
type siteRules struct {
	trouble float64 // the share of requests that something happens to
	refuses float64 // the share of works whose pivot is refused
	beyond  bool    // some effects arrive, or show, later than settle
	lag     bool    // lookups show an effect late, and within settle unless beyond
	lies    bool    // lookups answer anything
}

type siteCounts struct{ requests, effects, hurt, lookups, lied, late, beyond int }

// site is one destination.
type site struct {
	name     string
	think    time.Duration // what one request takes
	capacity int           // more at the same time are answered 429; 0: any number
	busy     int
	state    siteState
	opened   time.Time // since when it takes requests, whatever it has asked for
}

type siteState string

const (
	siteOpen    siteState = ""
	siteBusy    siteState = "503"
	siteRefuses siteState = "connection refused"
	siteHangs   siteState = "hangs"
)

// request is one request as it leaves a process.
type request struct {
	id       saga.ID
	step     string
	dir      saga.Direction
	key      string
	attempt  int
	revision string
	memo     string
	target   string // the external id that an undo or an update speaks of
	from     *member

	n        int // of its step, direction and work
	at       time.Time
	deadline time.Time // or when it was no longer awaited, if that came before
	fate     string
	told     time.Time // when its success was answered in time; zero: it was not
}

func (r *request) purpose() string { return purpose(r.id, r.step) }

func purpose(id saga.ID, step string) string { return id.Saga + "/" + id.Work + "/" + step }

func (r *request) String() string {
	return fmt.Sprintf("%s %s of %s, attempt %d, from %s: %s", r.step, r.dir, r.id, r.attempt, r.from.name, r.fate)
}

// made is one thing that exists at a destination because of a saga.
type made struct {
	id       string
	of       saga.ID
	step     string
	key      string
	revision string
	memo     string
	at       time.Time
	shows    time.Time // to lookups
	undone   bool
	twin     bool // another one of the same step and work stood when it was made
}

func newSites(seed uint64, rules siteRules, broken map[string]string) *sites {
	w := &sites{
		seed: seed, rules: rules, clash: broken, byName: map[string]*site{}, requests: map[string][]*request{},
		byFor: map[string][]*made{}, tainted: map[saga.ID]string{}, outlived: map[saga.ID]string{},
	}
	for _, name := range []string{"crm", "books", "shop", "post", "depot", "stock"} {
		w.byName[name] = &site{name: name, think: 50 * time.Millisecond, opened: time.Now()}
	}
	return w
}

// dice are thrown for one thing: the same seed throws the same for it, whatever else is going on.
func dice(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

var (
	errBusySite = errors.New("429 too many requests")
	errDownSite = errors.New("503 service unavailable")
)

// fate is what becomes of one request.
type fate struct {
	name     string
	unsent   bool          // provably no effect
	refused  bool          // no effect, for good
	after    time.Duration // Retry-After
	drop     bool          // no effect, no answer
	mute     bool          // effect, no answer
	cut      bool          // effect, the connection breaks
	overtime time.Duration // effect, answered that long after the deadline by an action that heeds no context
	late     time.Duration // no answer, and the effect that long after it was no longer awaited
}

// judge decides on the fate of a request that has arrived.
func (w *sites) judge(r *request, settle time.Duration) fate {
	d := dice(w.seed, r.purpose(), r.dir, r.revision, r.n)
	if r.step == "mark" && r.dir == saga.Forward && dice(w.seed, r.id, r.revision, "refused").Float64() < w.rules.refuses {
		return fate{name: "refused", refused: true}
	}
	if d.Float64() >= w.rules.trouble {
		return fate{name: "answered"}
	}
	w.counts.hurt++
	switch n := d.IntN(16); {
	case n < 3:
		return fate{name: "connection refused", unsent: true}
	case n < 4:
		return fate{name: "429", unsent: true, after: time.Duration(1+d.IntN(8)) * time.Second}
	case n < 5:
		return fate{name: "503 behind the effect", cut: true, after: time.Duration(1+d.IntN(8)) * time.Second}
	case n < 7:
		return fate{name: "lost", drop: true}
	case n < 9:
		return fate{name: "not answered", mute: true}
	case n < 11:
		return fate{name: "cut", cut: true}
	case n < 12:
		return fate{name: "answered late", overtime: time.Duration(d.IntN(6000)) * time.Millisecond}
	}
	if w.rules.beyond && d.IntN(2) == 0 {
		w.counts.beyond++
		return fate{name: "late beyond settle", late: settle + time.Duration(100+d.IntN(20_000))*time.Millisecond}
	}
	w.counts.late++
	return fate{name: "late", late: time.Duration(d.Int64N(int64(settle) * 8 / 10))}
}

// send carries one request to its destination and back. ctx ends at the attempt's deadline.
func (w *sites) send(ctx context.Context, r *request, to string, settle time.Duration) (thing, error) {
	w.pending.Add(1)
	defer w.pending.Done()
	s, f := w.arrive(ctx, r, to, settle)
	if err := w.enter(ctx, s, r, &f); err != nil {
		return thing{}, err
	}
	leave := sync.OnceFunc(func() { w.leave(s) })
	defer leave()
	if s.think > 0 { // else the race detector of Go 1.26 may fall over two of them, see package reconcile
		<-time.After(s.think)
	}
	switch {
	case f.refused:
		return thing{}, saga.Permanent(errRefused)
	case f.unsent && f.after > 0:
		w.asks(s, f.after)
		return thing{}, tooBusy(f.after, saga.NotSent(errBusySite))
	case f.unsent:
		return thing{}, saga.NotSent(errNoRoute)
	case f.drop:
		<-ctx.Done()
		return thing{}, errors.Join(errNoAnswer, ctx.Err())
	case f.late > 0:
		w.unawaited(ctx, r)
		w.later(r, f)
		return thing{}, errors.Join(errNoAnswer, ctx.Err())
	}
	id := w.take(r)
	switch {
	case f.cut && f.after > 0:
		w.asks(s, f.after)
		return thing{}, tooBusy(f.after, errDownSite)
	case f.cut:
		return thing{}, errCut
	case f.mute:
		w.unawaited(ctx, r)
		return thing{}, errors.Join(errNoAnswer, ctx.Err())
	case f.overtime > 0:
		<-ctx.Done()
		leave() // what it has to do is done; only its answer is late
		<-time.After(f.overtime)
		return thing{ID: id}, nil // its attempt is closed by now
	}
	w.mu.Lock()
	r.told = time.Now()
	w.mu.Unlock()
	return thing{ID: id + w.clash[brokenGhost]}, nil
}

// unawaited waits until the request is no longer awaited.
func (w *sites) unawaited(ctx context.Context, r *request) {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Before(r.deadline) {
		r.deadline = now
	}
}

// later lets the request take effect when it is no longer awaited.
func (w *sites) later(r *request, f fate) {
	w.pending.Add(1)
	time.AfterFunc(f.late, func() {
		defer w.pending.Done()
		if f.name == "late beyond settle" {
			w.taint(r.id, r.String())
		}
		w.take(r)
	})
}

// arrive notes the request.
func (w *sites) arrive(ctx context.Context, r *request, to string, settle time.Duration) (*site, fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.at, r.n = time.Now(), 1
	r.deadline, _ = ctx.Deadline()
	for _, b := range w.requests[r.purpose()] {
		if b.dir == r.dir && b.revision == r.revision {
			r.n++
		}
	}
	w.requests[r.purpose()] = append(w.requests[r.purpose()], r)
	w.counts.requests++
	f := w.judge(r, settle)
	r.fate = f.name
	return w.byName[to], f
}

// enter takes a place at a site, or says why there is none.
func (w *sites) enter(ctx context.Context, s *site, r *request, f *fate) error {
	w.mu.Lock()
	if s.state == siteOpen && (s.capacity == 0 || s.busy < s.capacity) {
		s.busy++
		if n := w.limits[s.name].Concurrent; n > 0 && s.busy > n { // "limits hold for all processes of a ledger"
			w.over = append(w.over, fmt.Sprintf("%d requests at once at %s, which takes %d: %s", s.busy, s.name, n, r.purpose()))
		}
		w.mu.Unlock()
		return nil
	}
	f.name = string(s.state)
	if s.state == siteOpen {
		f.name = "429: full"
	}
	r.fate = f.name
	after := time.Duration(1+dice(w.seed, r.purpose(), r.n, "after").IntN(10)) * time.Second
	if s.state == siteOpen {
		after = time.Second
	}
	state := s.state
	w.mu.Unlock()
	switch state {
	case siteOpen, siteBusy:
		w.asks(s, after)
		return tooBusy(after, saga.NotSent(errBusySite))
	case siteRefuses:
		return saga.NotSent(errNoRoute)
	default:
		<-ctx.Done()
		return errors.Join(errNoAnswer, ctx.Err())
	}
}

// asks notes that a site asked for silence: who was told keeps away until then.
func (w *sites) asks(s *site, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.opened = later(s.opened, time.Now().Add(after))
}

func (w *sites) leave(s *site) {
	w.mu.Lock()
	s.busy--
	w.mu.Unlock()
}

// turn changes what a site does with requests.
func (w *sites) turn(name string, to siteState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.byName[name]
	if s.state != siteOpen && to == siteOpen && time.Now().After(s.opened) {
		s.opened = time.Now()
	}
	s.state = to
}

// closed reports whether a site takes nothing now, and since when it takes requests otherwise.
func (w *sites) closed(name string) (since time.Time, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.byName[name]
	return s.opened, s.state != siteOpen || s.opened.After(time.Now())
}

// taint notes that a destination did not keep its stated times for a work.
func (w *sites) taint(id saga.ID, how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tainted[id] == "" {
		w.tainted[id] = how
	}
}

func (w *sites) taintOf(id saga.ID, repeat program.Repeat) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if how := w.outlived[id]; how != "" && repeat == program.RepeatKeyed {
		return how
	}
	return w.tainted[id]
}

// calm ends all misbehaviour.
func (w *sites) calm() {
	w.mu.Lock()
	w.rules = siteRules{}
	w.mu.Unlock()
}
