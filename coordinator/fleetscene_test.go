package coordinator_test

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
)

// scene is what a simulated fleet lives through.
type scene struct {
	name     string
	length   time.Duration
	pace     time.Duration // between two new objects of the source
	maxWorks int
	limits   map[string]coordinator.Limit
	rules    siteRules
	events   []event
	overload bool // more is asked for than can be done, for all its length
	prepare  func(*simulation)
}

// event is one thing the director does now and then.
type event struct {
	name  string
	every time.Duration // on average
	do    func(*simulation)
}

// drain is how long everything may take to come to its end once all is right again.
func (sc scene) drain() time.Duration {
	if sc.overload {
		return 4 * sc.length
	}
	return 15 * time.Minute
}

func (sc scene) dress(s *simulation) {
	if sc.prepare != nil {
		sc.prepare(s)
		return
	}
	s.join(orders1, parcels1)
	s.join(orders1)
	s.join(parcels1)
}

// direct lets the scene happen: objects begin and change, and events strike.
func (s *simulation) direct() {
	const tick = 250 * time.Millisecond
	end := time.Now().Add(s.scene.length)
	source := dice(s.seed, "source")
	for time.Now().Before(end) {
		pass(tick)
		if source.Float64() < float64(tick)/float64(s.scene.pace) {
			s.object()
		}
		for _, o := range s.objects {
			if source.Float64() < float64(tick)/float64(3*time.Minute) && len(s.objects) > 0 {
				s.change(o)
			}
			s.deliver(o)
		}
		for i := range s.scene.events {
			if e := &s.scene.events[i]; s.r.Float64() < float64(tick)/float64(e.every) {
				s.deeds[e.name]++
				e.do(s)
			}
		}
	}
}

// object lets the source have a new one.
func (s *simulation) object() {
	n := len(s.objects) + 1
	name := orderSaga
	if dice(s.seed, "saga", n).IntN(3) == 0 {
		name = parcelSaga
	}
	s.objects = append(s.objects, &object{id: saga.ID{Saga: name, Work: fmt.Sprintf("o%d", n)}, revision: 1})
}

// change lets the source revise or withdraw an object, or take it up again.
func (s *simulation) change(o *object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heard == 0 || o.revision > 4 {
		return
	}
	o.revision++
	o.gone = !o.gone && dice(s.seed, o.id, o.revision, "gone").IntN(4) == 0
}

// living returns the processes that are neither dead nor stopping.
func (s *simulation) living() (ms []*member) {
	for _, m := range s.all() {
		m.mu.Lock()
		if !m.dead && !m.halting {
			ms = append(ms, m)
		}
		m.mu.Unlock()
	}
	return ms
}

// one picks a living process, or nil.
func (s *simulation) one() *member {
	ms := s.living()
	if len(ms) == 0 {
		return nil
	}
	return ms[s.r.IntN(len(ms))]
}

// span is a random length of time.
func (s *simulation) span(from, to time.Duration) time.Duration {
	return from + time.Duration(s.r.Int64N(int64(to-from)))
}

// What the director can do to processes.

func stopOne(s *simulation) { s.replace(func(m *member) { m.halt() }) }
func killOne(s *simulation) { s.replace(func(m *member) { m.kill() }) }

// replace ends a process in some way, and lets another one take its place a little later.
func (s *simulation) replace(end func(*member)) {
	m := s.one()
	if m == nil {
		return
	}
	end(m)
	after := s.span(100*time.Millisecond, 20*time.Second)
	s.running.Go(func() {
		<-time.After(after)
		s.join(m.knows...)
	})
}

func stallOne(s *simulation) {
	if m := s.one(); m != nil {
		m.sleep(s.span(time.Second, 4*simLease))
	}
}

// deploy replaces all who know an order's version, one after the other: v1, then both, then v2; and
// back.
func deploy(s *simulation) {
	next := map[int][]ledger.Version{1: {orders1, orders2}, 2: {orders2}, 3: {orders1, orders2}, 4: {orders1}}
	s.mu.Lock()
	s.stage = s.stage%4 + 1
	knows := next[s.stage]
	s.mu.Unlock()
	for _, m := range s.living() {
		if !m.knowsVersion(orders1, true) {
			continue
		}
		set := append([]ledger.Version(nil), knows...)
		if m.knowsVersion(parcels1, false) {
			set = append(set, parcels1)
		}
		kill, gap := s.r.IntN(5) == 0, s.span(200*time.Millisecond, 8*time.Second)
		if kill {
			m.kill()
		} else {
			m.halt()
		}
		pass(gap)
		s.join(set...)
	}
}

// forget ends every process that knows parcels; another one comes a minute or three later.
func forget(s *simulation) {
	after := s.span(time.Minute, 3*time.Minute)
	for _, m := range s.living() {
		if m.knowsVersion(parcels1, false) {
			m.halt()
			if m.knowsVersion(orders1, true) {
				s.join(orders1, orders2)
			}
		}
	}
	s.running.Go(func() {
		<-time.After(after)
		s.join(parcels1)
	})
}

// What the director can do to links.

var lanes = [][]ledgertest.Method{
	{ledgertest.Append}, {ledgertest.Renew}, {ledgertest.ClaimWorks}, {ledgertest.Load}, {ledgertest.Post}, {ledgertest.GiveBack},
	{ledgertest.Renew, ledgertest.ClaimWorks, ledgertest.OpenSession}, {ledgertest.OpenSession},
}

// ways are what may be out of order for longer.
var ways = [][]ledgertest.Method{
	{ledgertest.Append}, {ledgertest.Renew}, {ledgertest.ClaimWorks}, {ledgertest.OpenSession}, {ledgertest.Renew, ledgertest.ClaimWorks, ledgertest.OpenSession},
}

// blip disturbs a few calls of one method: one connection of several.
func blip(kind disorder) func(*simulation) {
	return func(s *simulation) {
		m := s.one()
		if m == nil {
			return
		}
		d := &disturbance{kind: kind, methods: lanes[s.r.IntN(len(lanes))], calls: 1 + s.r.IntN(2), effect: s.r.IntN(2) == 0}
		if kind == linkDeaf {
			d.hold = s.span(simLease/2, 10*simLease)
		}
		m.link.disturb(d)
	}
}

// parted disturbs everything between a process and the ledger, or all calls of some methods, for a
// while.
func parted(kind disorder) func(*simulation) {
	return func(s *simulation) {
		m := s.one()
		if m == nil {
			return
		}
		length := s.span(time.Second, 5*simLease)
		d := &disturbance{kind: kind, until: time.Now().Add(length), effect: s.r.IntN(2) == 0}
		if s.r.IntN(2) == 0 {
			d.methods = ways[s.r.IntN(len(ways))]
		}
		m.ail(length + simLease) // a call that began in silence has its time-out still to wait for
		m.link.disturb(d)
	}
}

// standby makes the server read-only for everybody.
func standby(s *simulation) {
	length := s.span(500*time.Millisecond, 3*simLease)
	for _, m := range s.living() {
		writes := []ledgertest.Method{
			ledgertest.OpenSession, ledgertest.Renew, ledgertest.Append, ledgertest.ClaimWorks, ledgertest.Post, ledgertest.Describe, ledgertest.Count, ledgertest.Bury, ledgertest.GiveBack,
		}
		m.link.disturb(&disturbance{kind: linkReadOnly, methods: writes, until: time.Now().Add(length)})
		m.ail(length)
	}
}

// What the director can do to the ledger's clock.

// clockBack makes keys that were sent outlive what the ledger's clock says of them: the audit
// judges what was made again.
func clockBack(s *simulation) {
	s.sites.outlive()
	s.clock.step(-s.span(100*time.Millisecond, 2*time.Minute))
}

// clockForward makes lookups come too early for what is on its way: such works are judged by the
// audit.
func clockForward(s *simulation) {
	s.sites.taintOpen()
	s.clock.step(s.span(100*time.Millisecond, 2*time.Minute))
}

// What the director can do to sites.

var siteNames = []string{"crm", "books", "shop", "post", "depot", "stock"}

func outage(s *simulation) {
	name, state := siteNames[s.r.IntN(len(siteNames))], []siteState{siteBusy, siteRefuses, siteHangs}[s.r.IntN(3)]
	s.sites.turn(name, state)
	time.AfterFunc(s.span(2*time.Second, time.Minute), func() { s.sites.turn(name, siteOpen) })
}

func cancelOne(s *simulation) { s.cancel() }

const clockForwardTaint = "the ledger's clock went forward"

// taintOpen notes every work of which something may be on its way.
func (w *sites) taintOpen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rs := range w.requests {
		for _, r := range rs {
			if time.Since(r.deadline) < simSettle && w.tainted[r.id] == "" {
				w.tainted[r.id] = clockForwardTaint
			}
		}
	}
}

const clockBackTaint = "the ledger's clock went back, and the key's window with it"

// outlive notes every work that has sent a key which its destination still knows.
func (w *sites) outlive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rs := range w.requests {
		for _, r := range rs {
			if r.step == "mark" && time.Since(r.deadline) < keyWindow {
				w.outlived[r.id] = clockBackTaint
			}
		}
	}
}
