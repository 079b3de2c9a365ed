package coordinator

import (
	"expvar"
	"sync"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Counters returns a [Listener] that counts in m what this process does, from its begin on:
//
//	opts.Listener = coordinator.Counters(expvar.NewMap("amends"))
//
// Package expvar serves them as JSON at /debug/vars:
//
//	steps.SAGA.STEP.OUTCOME       how attempts and lookups ended: done, refused, unknown, not-sent, lost, fault, found, …
//	undos.SAGA.STEP.OUTCOME       the same of compensations
//	instances.SAGA.STATUS         instances that were started, and that came to completed, compensated or review
//	duplicates.SAGA, conflicts.SAGA    starts answered from the ledger, and those with another identity
//	records, commits, claims      what the ledger took, in how many batches, and how often instances were taken from it
//	sessions, sessions_lost       leases that were opened, and those that ended otherwise than by a stop
func Counters(m *expvar.Map) *Listener {
	var making sync.Mutex
	group := func(m *expvar.Map, name string) *expvar.Map {
		if g, ok := m.Get(name).(*expvar.Map); ok {
			return g
		}
		making.Lock()
		defer making.Unlock()
		g, ok := m.Get(name).(*expvar.Map)
		if !ok {
			g = new(expvar.Map)
			m.Set(name, g)
		}
		return g
	}
	attempts := map[saga.Direction]*expvar.Map{saga.Forward: group(m, "steps"), saga.Undo: group(m, "undos")}
	instances, duplicates, conflicts := group(m, "instances"), group(m, "duplicates"), group(m, "conflicts")
	return &Listener{
		Recorded: func(id saga.ID, r *saga.Record) {
			if of := attempts[r.Direction]; of != nil && r.Step != "" && r.Attempt > 0 && r.Kind != saga.KindArmed {
				group(group(of, id.Saga), r.Step).Add(string(r.Kind), 1)
			}
		},
		Moved: func(id saga.ID, from, to saga.Status) {
			if from == "" {
				group(instances, id.Saga).Add(string(saga.KindStarted), 1)
			}
			if to == saga.Review || to.Terminal() {
				group(instances, id.Saga).Add(string(to), 1)
			}
		},
		Duplicate:     func(id saga.ID, _ string) { duplicates.Add(id.Saga, 1) },
		Conflict:      func(id saga.ID, _ string) { conflicts.Add(id.Saga, 1) },
		Claimed:       func(saga.ID) { m.Add("claims", 1) },
		Committed:     func(records int, _ time.Duration) { m.Add("records", int64(records)); m.Add("commits", 1) },
		SessionOpened: func(saga.Token) { m.Add("sessions", 1) },
		SessionLost:   func(saga.Token, error) { m.Add("sessions_lost", 1) },
	}
}
