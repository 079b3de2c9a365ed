package amendsprom

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// mostUnderWay is of how many attempts at a time the begin is kept.
const mostUnderWay = 1 << 16

// buckets reach from what a service in the same house takes to the longest budgets of a step.
var buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// New returns a listener that counts in reg what this process does, from its begin on:
//
//	amends_step_attempts_total{saga, step, direction, outcome}   how attempts ended: done, refused, unknown, not-sent, lost, fault
//	amends_step_seconds{saga, step, direction}   how long they took, from the record that dispatched them to that of their outcome
//	amends_starts_total{saga}            instances that were started here
//	amends_conflicts_total{saga}         starts of a known instance with another identity
//	amends_records_total, amends_commits_total   what the ledger took, and in how many batches
//	amends_sessions_lost_total           leases that ended otherwise than by a stop
//
// A second listener in the same registry counts in the same metrics. Like
// [prometheus.Registerer.MustRegister] it panics when the registry has others of these names.
func New(reg prometheus.Registerer) *coordinator.Listener {
	p := process{
		attempts: counters(reg, "amends_step_attempts_total", "Attempts of steps that have ended, by how they ended.", 2, "saga", "step", "direction", "outcome"),
		seconds: registered(reg, &histogram{newFew(2), prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "amends_step_seconds", Help: "From the record that dispatched an attempt to that of its outcome.", Buckets: buckets,
		}, []string{"saga", "step", "direction"})}),
		starts:    counters(reg, "amends_starts_total", "Instances that this process started.", 1, "saga"),
		conflicts: counters(reg, "amends_conflicts_total", "Starts of a known instance that came with another identity.", 1, "saga"),
		underWay:  make(map[saga.ID]underWay),
	}
	records := counter(reg, "amends_records_total", "Records that the ledger took from this process.")
	commits := counter(reg, "amends_commits_total", "Batches in which the ledger took them.")
	lost := counter(reg, "amends_sessions_lost_total", "Leases of this process that ended otherwise than by a stop.")
	return &coordinator.Listener{
		Recorded: p.recorded,
		Conflict: func(id saga.ID, _ string) { p.conflicts.add(id.Saga) },
		Claimed:  func(id saga.ID) { p.begin(id, underWay{}) }, // what it had under way, if anything, was another's since
		Committed: func(n int, _ time.Duration) {
			records.Add(float64(n))
			commits.Inc()
		},
		SessionLost: func(string, error) {
			lost.Inc()
			p.forget()
		},
	}
}

// process is what [New] counts.
type process struct {
	attempts, starts, conflicts *counted
	seconds                     *histogram

	mu       sync.Mutex
	underWay map[saga.ID]underWay
}

// underWay is an attempt that was dispatched.
type underWay struct {
	step string // empty: none is
	at   time.Time
}

func (p *process) recorded(r coordinator.Record) {
	if r.From == "" {
		p.starts.add(r.ID.Saga)
	}
	if r.Attempt > 0 && ended(machine.Kind(r.Kind)) {
		p.attempts.add(r.ID.Saga, r.Step, string(r.Direction), r.Kind)
		if u := p.end(r.ID); u.step == r.Step {
			p.seconds.observe(max(0, r.At.Sub(u.at)), r.ID.Saga, r.Step, string(r.Direction))
		}
	}
	switch {
	case r.Dispatched != "":
		p.begin(r.ID, underWay{step: r.Dispatched, at: r.At})
	case r.To.Terminal():
		p.end(r.ID)
	}
}

// ended reports whether a record of a kind says how an attempt ended.
func ended(k machine.Kind) bool {
	switch k { //nolint:exhaustive // all others say something else
	case machine.KindDone, machine.KindRefused, machine.KindUnknown, machine.KindNotSent, machine.KindLost, machine.KindFault:
		return true
	default:
		return false
	}
}

// begin keeps when an attempt was dispatched, and forgets what the instance had under way before.
func (p *process) begin(id saga.ID, u underWay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.underWay, id)
	if u.step == "" {
		return
	}
	if len(p.underWay) >= mostUnderWay { // of what ended elsewhere nothing is heard: without this it would stay for ever
		clear(p.underWay)
	}
	p.underWay[id] = u
}

func (p *process) end(id saga.ID) underWay {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.underWay[id]
	delete(p.underWay, id)
	return u
}

// forget is for when other processes take over.
func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.underWay)
}

// counted is a counter with few label sets. It is what the registry has, so that all who count in it
// share the bound.
type counted struct {
	few *few
	*prometheus.CounterVec
}

func counters(reg prometheus.Registerer, name, help string, names int, labels ...string) *counted {
	return registered(reg, &counted{newFew(names), prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)})
}

func (c *counted) add(values ...string) { c.WithLabelValues(c.few.of(values...)...).Inc() }

// histogram is one with few label sets, as counted is.
type histogram struct {
	few *few
	*prometheus.HistogramVec
}

func (h *histogram) observe(took time.Duration, values ...string) {
	h.WithLabelValues(h.few.of(values...)...).Observe(took.Seconds())
}

func counter(reg prometheus.Registerer, name, help string) prometheus.Counter {
	return registered(reg, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

// registered is c, or what the registry has of it already.
func registered[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	err := reg.Register(c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		panic(err) // as MustRegister does
	}
	return c
}
