package coordinator_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
)

// machine/F27: a process whose session ended opens no other too soon. When the database went back,
// others may hold leases that it has forgotten, for a lease. When something had no answer, others
// look first for what is free at the end of the lease.
func TestANewSessionWaitsForOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		least time.Duration
		harm  func(*silentStore)
	}{
		"the database went back": {quick().Lease, func(l *silentStore) { l.FailOver(l.Backup()) }},
		"no answer":              {quick().Lease/2 + 2*quick().Poll, func(l *silentStore) { l.claims.mute.Store(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newSilent(t)
				var lost, opened time.Time
				p := several(t, l, config{opts: coordinator.Options{Listener: &coordinator.Listener{
					SessionLost: func(string, error) {
						if lost.IsZero() {
							lost = time.Now()
						}
					},
					SessionOpened: func(string) {
						if !lost.IsZero() && opened.IsZero() {
							opened = time.Now()
						}
					},
				}}}, oneStep(t, "billing", "", nil))
				pass(time.Second)
				c.harm(l)
				pass(5 * quick().Lease)
				p.kill()
				if lost.IsZero() || opened.Sub(lost) < c.least {
					t.Errorf("lost at %s, the next was opened at %s; want %s between", lost.Format(time.TimeOnly), opened.Format(time.TimeOnly), c.least)
				}
			})
		})
	}
}

// A claimed chain that cannot be loaded is given back at once, for a process that may be
// able to; the renewals that would find it are for what the process does not know of. It is not
// tried without a pause.
func TestAChainThatCannotBeLoadedIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSilent(t)
		d := oneStep(t, "billing", "", nil)
		several(t, l.DB, config{idle: true}, d).starts("billing", 1)
		l.loads.with(errors.New("deadlock detected"))
		p := several(t, l, config{}, d)
		pass(100 * time.Millisecond)
		heads, err := ledger.First(t.Context(), l, ledger.Filter{Saga: "billing"})
		if err != nil || len(heads) != 1 || heads[0].Session != 0 || time.Until(heads[0].Due) <= quick().Poll {
			t.Errorf("%+v, %v; want it released, and due later than at the next poll", heads, err)
		}
		p.kill()
	})
}
