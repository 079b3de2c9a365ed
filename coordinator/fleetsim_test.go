package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// simulation is a fleet of processes with different definitions over one ledger in virtual time,
// the destinations they talk to, the source that tells them what to do, people, and a director who
// lets things go wrong.
type simulation struct {
	t      testing.TB
	seed   uint64
	scene  scene
	broken map[string]string // rules that are broken on purpose
	r      *rand.Rand        // the director's
	clock  *steppedClock
	tap    *tap
	sites  *sites
	born   int

	members []*member
	objects []*object
	cancels []*asked
	running sync.WaitGroup // deliveries and people under way
	calls   atomic.Int64   // of the ledger, under way

	mu      sync.Mutex
	faults  []string
	kinds   map[string]int // of faults
	holders map[machine.Token]*member
	specs   map[ledger.Version]*program.Spec
	counts  map[disorder]int
	deeds   map[string]int // what the director did
	reviews map[saga.Reason]int
	stage   int // of the deploy
}

// object is what the source knows: it is started, revised and withdrawn until the fleet has taken
// its latest word.
type object struct {
	mu       sync.Mutex
	id       saga.ID
	revision int
	gone     bool
	heard    int // the latest revision that was acknowledged
	busy     bool
}

// asked is a cancel by a person that was acknowledged.
type asked struct {
	id     saga.ID
	reason string
}

// steppedClock is the ledger's clock: virtual time, and what it was set forward or back by.
type steppedClock struct {
	mu     sync.Mutex
	offset time.Duration
	high   time.Time // the latest it has ever shown
	since  time.Time // when it had caught up with that again
	behind bool
	leapt  time.Duration // its steps forward together
}

func (c *steppedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Add(c.offset)
	switch {
	case now.Before(c.high):
		c.behind = true
	case c.behind:
		c.behind, c.since = false, time.Now()
		fallthrough
	default:
		c.high = now
	}
	return now
}

func (c *steppedClock) step(d time.Duration) {
	c.now()
	c.mu.Lock()
	c.offset += d
	c.leapt += max(d, 0)
	c.since = time.Now()
	c.mu.Unlock()
	c.now()
}

// leap is how far it has stepped forward, all steps together.
func (c *steppedClock) leap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leapt
}

// caughtUp reports whether the clock shows the latest time it has ever shown, and since when.
func (c *steppedClock) caughtUp() (bool, time.Time) {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.behind, c.since
}

func (s *simulation) faultf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, _, _ := strings.Cut(format, ":")
	if s.kinds[kind]++; s.kinds[kind] <= 8 {
		s.faults = append(s.faults, time.Now().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
	}
}

func (s *simulation) count(d disorder) {
	s.mu.Lock()
	s.counts[d]++
	s.mu.Unlock()
}

func (s *simulation) opened(token machine.Token, m *member) {
	s.mu.Lock()
	s.holders[token] = m
	s.mu.Unlock()
}

func (s *simulation) owner(token machine.Token) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holders[token]
}

func (s *simulation) spec(v ledger.Version) *program.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.specs[v] == nil {
		s.specs[v] = (&member{s: s}).program(v).Spec()
	}
	return s.specs[v]
}

// known reports since when some process that is well has known a definition, or with orNewer or a
// newer version.
func (s *simulation) known(v ledger.Version, orNewer bool) (since time.Time, ok bool) {
	for _, m := range s.all() {
		if well, fine := m.healthy(); fine && m.knowsVersion(v, orNewer) && (!ok || well.Before(since)) {
			since, ok = well, true
		}
	}
	return since, ok
}

// claimant reports since when the ledger has answered some process that knows a definition.
func (s *simulation) claimant(v ledger.Version, orNewer bool) time.Time {
	since := time.Now()
	for _, m := range s.all() {
		well, fine := m.healthy()
		dark, last := m.link.disturbed()
		if fine && !dark && m.knowsVersion(v, orNewer) && later(well, last).Before(since) {
			since = later(well, last)
		}
	}
	return since
}

// all returns the processes that have not been buried by the director.
func (s *simulation) all() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members)
}

// play runs one scene from one seed in a bubble of virtual time, and returns what was found.
func play(t *testing.T, sc scene, seed uint64, broken ...string) *simulation {
	t.Helper()
	s := &simulation{
		t: t, seed: seed, scene: sc, r: dice(seed, "director"), clock: &steppedClock{}, broken: map[string]string{},
		holders: map[machine.Token]*member{}, specs: map[ledger.Version]*program.Spec{}, counts: map[disorder]int{}, deeds: map[string]int{},
		reviews: map[saga.Reason]int{}, kinds: map[string]int{},
	}
	for _, b := range broken {
		s.broken[b] = b
	}
	synctest.Test(t, func(*testing.T) {
		s.tap = newTap(s)
		s.sites = newSites(seed, sc.rules, s.broken)
		s.sites.limits = sc.limits
		sc.dress(s)
		done := make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() { s.watch(done) })
		watch.Go(func() { s.person(done) })
		s.direct()
		s.settle()
		close(done)
		watch.Wait()
		s.running.Wait()
		for _, m := range s.all() {
			m.halt()
		}
		for _, m := range s.all() {
			<-m.ended
		}
		s.sites.pending.Wait()
		for s.calls.Load() > 0 {
			pass(time.Second)
		}
		s.verify()
	})
	return s
}

// watch samples the liveness of everything each second.
func (s *simulation) watch(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	n := 0
	for {
		select {
		case <-tick.C:
			s.tap.sample()
			if n++; n%60 == 0 {
				s.steady()
			}
		case <-done:
			return
		}
	}
}

// steady holds that works which have not begun make steady progress, however much else there is to
// do.
func (s *simulation) steady() {
	const span = 2 * time.Minute
	if begun, waiting := s.tap.progress(span); waiting > 0 && begun == 0 && s.undisturbed(span) {
		s.faultf("progress: %d works wait to begin, and none has begun for %s", waiting, span)
	}
}

// undisturbed reports whether all destinations have been open for that long.
func (s *simulation) undisturbed(span time.Duration) bool {
	for name := range s.sites.byName {
		if since, closed := s.sites.closed(name); closed || time.Since(since) < span {
			return false
		}
	}
	caught, since := s.clock.caughtUp()
	return caught && time.Since(since) > span
}

// settle ends all that goes wrong, and waits until everything has come to its end.
func (s *simulation) settle() {
	s.sites.calm()
	for name := range s.sites.byName {
		s.sites.turn(name, siteOpen)
	}
	if caught, _ := s.clock.caughtUp(); !caught {
		s.sites.taintOpen()
		s.clock.step(time.Until(s.clock.high) - s.clock.offset)
	}
	s.join(orders1, orders2, parcels1)
	until := time.Now().Add(s.scene.drain())
	for time.Now().Before(until) {
		pass(time.Second)
		for _, o := range s.objects {
			s.deliver(o)
		}
		if s.atRest() {
			return
		}
	}
	for _, w := range s.tap.unfinished() {
		s.faultf("liveness: %s is %s %s and not at its end %s after everything was right again", w.ID, w.Status, w.Reason, s.scene.drain())
	}
}

func (s *simulation) atRest() bool {
	for _, o := range s.objects {
		if o.latest() > o.acknowledged() {
			return false
		}
	}
	return len(s.tap.unfinished()) == 0
}

// unfinished returns works that are live, in review or spoken to.
func (t *tap) unfinished() (sts []machine.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.order {
		if !w.st.Status.Terminal() || w.unread > 0 {
			sts = append(sts, machine.State{ID: w.st.ID, Status: w.st.Status, Reason: w.st.Reason})
		}
	}
	return sts
}

// reviews returns the works in review, and for how long they have been.
func (t *tap) reviews() map[saga.ID]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[saga.ID]time.Duration{}
	for _, w := range t.order {
		if w.st.Status == saga.Review {
			all[w.st.ID] = time.Since(w.touched)
		}
	}
	return all
}

func (o *object) latest() int       { o.mu.Lock(); defer o.mu.Unlock(); return o.revision }
func (o *object) acknowledged() int { o.mu.Lock(); defer o.mu.Unlock(); return o.heard }

// deliver tells some process the object's latest word, as a source does that repeats itself until
// it is answered.
func (s *simulation) deliver(o *object) {
	o.mu.Lock()
	revision, gone := o.revision, o.gone
	if o.busy || o.heard >= revision {
		o.mu.Unlock()
		return
	}
	o.busy = true
	o.mu.Unlock()
	m := s.pick(o.id.Saga, dice(s.seed, o.id, revision, time.Now()))
	s.running.Go(func() {
		err := errDead
		if m != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			err = s.tell(ctx, m, o.id, revision, gone)
			cancel()
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.busy = false; err == nil {
			o.heard = max(o.heard, revision)
		}
	})
}

func (s *simulation) tell(ctx context.Context, m *member, id saga.ID, revision int, gone bool) error {
	if gone {
		by := saga.Actor{Name: "source", Reason: "it was cancelled"}
		return m.Withdraw(ctx, id.Saga, id.Work, fmt.Sprint(revision), by)
	}
	c := m.Coordinator
	if s.broken[brokenStarts] != "" { // by a process that only starts
		var err error
		if c, err = coordinator.New(s.tap, &coordinator.Options{Log: silent()}); err != nil {
			return err
		}
		if err := c.Register(ctx, m.program(orders1), m.program(parcels1)); err != nil {
			return err
		}
	}
	in := order{Customer: "c-" + id.Work, Total: revision, Memo: fmt.Sprintf("revision %d", revision)}
	_, err := c.Start(ctx, id.Saga, id.Work, in, &saga.StartOptions{Revision: fmt.Sprint(revision), Source: "source"})
	return err
}

// pick returns a process that is not known to be dead and knows a saga.
func (s *simulation) pick(name string, d *rand.Rand) *member {
	var able []*member
	for _, m := range s.all() {
		if !m.isDead() && m.knowsVersion(ledger.Version{Saga: name}, true) {
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return nil
	}
	return able[d.IntN(len(able))]
}
