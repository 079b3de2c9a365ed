package coordinator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
)

// watch tells people what does not move, once a minute while it lasts: it is in the ledger, and no
// record says so.
type watch struct {
	log    logrus.FieldLogger
	within time.Duration      // a work that is held or overdue has a new record within this time
	seen   map[int64]sighting // by the ledger's number of the work
}

// sighting is when a work's latest record was first seen to be the oldest.
type sighting struct{ record, since time.Time }

// watching looks at the ledger until ctx ends.
func (c *Coordinator) watching(ctx context.Context) {
	w := watch{log: c.opts.Log, seen: map[int64]sighting{}}
	for nap.For(ctx, sayEvery) == nil {
		o, err := within(ctx, c.opts.Lease, c.Operator.ledger.Overview)
		if err != nil {
			continue // other calls fail, too, and say so
		}
		w.within = c.clock.settling() + c.opts.Lease
		w.look(&o)
	}
}

func (w *watch) look(o *ledger.Overview) {
	w.unknown(o)
	w.still(o)
	w.ahead(o)
}

// unknown names what waits for a process that knows its definition.
func (w *watch) unknown(o *ledger.Overview) {
	var names []string
	for _, b := range o.Unknown {
		if b.Oldest.Before(o.At) {
			version := fmt.Sprint(b.Version)
			if b.Ended {
				version += " or newer"
			}
			names = append(names, fmt.Sprintf("%s version %s (%d works, due since %s)", b.Saga, version, b.Works, b.Oldest.UTC().Format(time.RFC3339)))
		}
	}
	if len(names) > 0 {
		w.log.WithField("definitions", strings.Join(names, ", ")).
			Warn("works are due that no running process knows the definition of; start one that does, nothing is lost meanwhile")
	}
}

// still names the oldest of the works that ought to have moved.
func (w *watch) still(o *ledger.Overview) {
	now, seen := time.Now(), map[int64]sighting{}
	var oldest *ledger.Instance
	for i := range o.Oldest {
		h := &o.Oldest[i]
		s := w.seen[h.Number]
		if !s.record.Equal(h.Updated) {
			s = sighting{h.Updated, now}
		}
		seen[h.Number] = s
		if oldest == nil && now.Sub(s.since) > w.within {
			oldest = h
		}
	}
	w.seen = seen
	if oldest != nil {
		w.log.WithFields(logrus.Fields{
			"saga": oldest.ID.Saga, "work": oldest.ID.Work, "status": string(oldest.Status), "session": oldest.Session.String(),
			"record": oldest.Updated.UTC().Format(time.RFC3339),
		}).Warn("a work has not moved for longer than an attempt, its settle time and a lease take")
	}
}

// ahead tells of works and sessions that wait for a clock which was further once.
func (w *watch) ahead(o *ledger.Overview) {
	if works, sessions := len(o.Ahead.Works), len(o.Ahead.Sessions); works+sessions > 0 {
		w.log.WithField("works", works).WithField("sessions", sessions).
			Warn("the ledger's clock is behind times it has written; what is due then waits until it has come there")
	}
}
