package coordinator_test

import (
	"context"
	"errors"
	"expvar"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A process is not healthy from the moment on in which its lease is over, while the
// ledger is still away; it is healthy when it has another, and not when it has stopped.
func TestHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSilent(t)
		idle, err := coordinator.New(l, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := idle.Health(); err == nil || !strings.Contains(err.Error(), "call Run") {
			t.Errorf("before Run: %v", err)
		}
		p := several(t, l, config{}, oneStep(t, "billing", "", nil))
		pass(time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("while it runs: %v", err)
		}
		gates := []*gate{l.opens, l.renews, l.appends, l.claims, l.loads}
		for _, g := range gates {
			g.with(errors.New("connection refused"))
		}
		gone := time.Now()
		for p.Health() == nil {
			if time.Since(gone) > quick().Lease {
				t.Fatalf("still healthy %s after the ledger went away, with a lease of %s", time.Since(gone), quick().Lease)
			}
			pass(50 * time.Millisecond)
		}
		pass(quick().Lease)
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "the ledger has not answered for") {
			t.Errorf("while it is away: %v", err)
		}
		for _, g := range gates {
			g.with(nil)
		}
		pass(time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("when it is back: %v", err)
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "stopping") {
			t.Errorf("when it has stopped: %v", err)
		}
	})
}

// The counters say how every attempt ended and what became of every instance, each once.
func TestCounters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := new(expvar.Map)
		tried := map[string]bool{}
		p := boot(t, memory.New(nil), &world{}, config{
			opts: coordinator.Options{Listener: coordinator.Counters(all), Lease: 15 * time.Second},
			program: func(*process) saga.Program {
				return flat(t, func(_ context.Context, c saga.Call[order]) (thing, error) {
					switch {
					case c.Work == "o00003":
						return thing{}, saga.Permanent(errors.New("422: no such customer"))
					case c.Work == "o00005" && !tried[c.Work]:
						tried[c.Work] = true
						return thing{}, saga.NotSent(errors.New("no route"))
					}
					return thing{ID: c.Work}, nil
				})
			},
		})
		for i := range 10 {
			begin(t, p, i)
			begin(t, p, i)
			synctest.Wait()
		}
		pass(time.Minute)
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		want := map[string]string{
			"steps":      `{"order-to-invoice": {"invoice": {"done": 9, "not-sent": 1, "refused": 1}}}`,
			"undos":      `{}`,
			"instances":  `{"order-to-invoice": {"compensated": 1, "completed": 9, "started": 10}}`,
			"duplicates": `{"order-to-invoice": 10}`,
			"sessions":   `1`,
		}
		for name, text := range want {
			if got := all.Get(name).String(); got != text {
				t.Errorf("%s: %s, want %s", name, got, text)
			}
		}
		if all.Get("records") == nil || all.Get("commits") == nil {
			t.Errorf("%s", all)
		}
	})
}
