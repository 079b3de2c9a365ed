package coordinator

import (
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Hear tells tests what a listener is not told.
func (o *Options) Hear(recorded func(saga.ID, *machine.Record), opened func(machine.Token), lost func(machine.Token, error)) {
	o.hook = &hook{recorded, opened, lost}
}

// TellAll tells a listener everything once.
func TellAll(l *Listener, log logrus.FieldLogger) {
	t := &teller{log: log, to: l}
	id := saga.ID{Saga: "s", Work: "w"}
	t.recorded(&machine.State{ID: id}, saga.Running, &machine.Record{Kind: machine.KindDone, Status: saga.Completed, Step: "a", BodyDropped: true, Dispatch: &machine.Dispatch{Step: "b", Key: "k"}})
	t.duplicate(id, "x")
	t.conflict(id, "y")
	t.claimed(id)
	t.committed(3, 1)
	t.sessionOpened(&ledger.Lease{Token: 7})
	t.sessionLost(7, errors.New("why"))
}

// LateRenewal reports whether a session goes on whose renewal is heard behind the end of its lease.
func LateRenewal(ttl time.Duration) bool {
	s := newSession(ledger.Lease{TTL: ttl}, time.Now(), 0)
	<-s.over.Done()
	return s.renewed(time.Now(), ttl)
}
