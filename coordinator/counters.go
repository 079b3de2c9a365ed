package coordinator

import (
	"expvar"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/machine"
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
		Recorded: func(r Record) {
			if of := attempts[r.Direction]; of != nil && r.Step != "" && r.Attempt > 0 && r.Kind != string(machine.KindDispatched) {
				group(group(of, r.ID.Saga), r.Step).Add(r.Kind, 1)
			}
			if r.From == "" {
				group(instances, r.ID.Saga).Add(string(machine.KindStarted), 1)
			}
			if r.From != r.To && (r.To == saga.Review || r.To.Terminal()) {
				group(instances, r.ID.Saga).Add(string(r.To), 1)
			}
		},
		Duplicate:     func(id saga.ID, _ string) { duplicates.Add(id.Saga, 1) },
		Conflict:      func(id saga.ID, _ string) { conflicts.Add(id.Saga, 1) },
		Claimed:       func(saga.ID) { m.Add("claims", 1) },
		Committed:     func(records int, _ time.Duration) { m.Add("records", int64(records)); m.Add("commits", 1) },
		SessionOpened: func(string) { m.Add("sessions", 1) },
		SessionLost:   func(string, error) { m.Add("sessions_lost", 1) },
	}
}
