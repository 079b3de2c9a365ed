package coordinator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// machine/F2: "no step is armed until its send slot is in hand". So whatever is armed is sent at that very
// moment, even when six works want a destination that takes one request at a time and needs a
// second for each.
func TestNothingIsArmedWithoutASlot(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]coordinator.Limit{
		"concurrency": {Concurrent: 1},
		"rate":        {PerSecond: 2, Burst: 1},
		"both":        {PerSecond: 2, Burst: 2, Concurrent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { slots(t, limit) })
		})
	}
}

func slots(t *testing.T, limit coordinator.Limit) { //nolint:thelper // it is the test itself, once for each case
	l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{slow: time.Second})}
	w.watch(l)
	p := boot(t, l, w, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": limit}}})
	synctest.Wait()
	var works []string
	for i := range 6 {
		works = append(works, fmt.Sprintf("o%d", i))
		p.begin(works[i])
	}
	armed := map[string]time.Time{}
	for _, work := range works {
		p.want(work, saga.Completed, "")
		for _, r := range p.records.of(work) {
			if r.Dispatch != nil {
				armed[work+r.Dispatch.Step] = r.At
			}
		}
	}
	var sent []time.Time
	for _, a := range w.arrivals {
		if at := armed[a.work+a.step]; a.at.Sub(at).Truncate(time.Millisecond) != 0 {
			t.Errorf("%s was armed at %s and sent %s later", a, at, a.at.Sub(at))
		}
		if a.step == "customer" || a.step == "invoice" {
			sent = append(sent, a.at)
		}
	}
	if limit.PerSecond > 0 {
		spaced(t, sent, limit)
	}
	if limit.Concurrent > 0 { // every invoice takes a second
		if took, least := sent[len(sent)-1].Sub(sent[0]), time.Duration(6/limit.Concurrent-1)*time.Second; took < least {
			t.Errorf("six invoices went out within %s; at %d at a time it takes %s", took, limit.Concurrent, least)
		}
	}
	verify(t, l, w, works...)
}

// spaced checks that no second saw more than the rate and the burst together.
func spaced(t *testing.T, sent []time.Time, limit coordinator.Limit) {
	t.Helper()
	most := int(limit.PerSecond) + limit.Burst
	for i := range sent {
		n := 0
		for _, at := range sent {
			if d := at.Sub(sent[i]); d >= 0 && d < time.Second {
				n++
			}
		}
		if n > most {
			t.Errorf("%d requests within a second, at most %d are allowed", n, most)
		}
	}
}

// A blocked duplicate sends nothing, so it must not keep a send slot either.
func TestADuplicateKeepsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		p := boot(t, l, w, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}}}})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		if s := p.begin("o1"); !s.Duplicate || s.Status != saga.Completed {
			t.Errorf("the second start was answered with %+v", s)
		}
		p.begin("o2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.Wait(ctx, orderSaga, "o2"); err != nil {
			t.Errorf("the duplicate kept the only slot: %v", err)
		}
		verify(t, l, w, "o1")
	})
}

// "429 with Retry-After: honoured". The destination asked everybody for silence: the work that was
// answered, and those that stand in line for its slot. What the answer says about the effect does
// not matter.
func TestRetryAfterSilencesTheLine(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"nothing happened": {think: time.Second, unsent: true, after: 40 * time.Second},
		"nobody can tell":  {think: time.Second, cut: true, after: 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { silences(t, f) })
		})
	}
}

func silences(t *testing.T, f fault) { //nolint:thelper // it is the test itself, once for each case
	l, w := memory.New(nil), &world{}
	w.watch(l)
	w.plan = func(a arrival) fault {
		if a.step == "customer" && a.work == "o0" && a.n == 1 {
			return f
		}
		return fault{}
	}
	p := boot(t, l, w, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}}}})
	synctest.Wait()
	for i := range 3 {
		p.begin(fmt.Sprintf("o%d", i))
		synctest.Wait() // o0 is under way, the others stand in line
	}
	for i := range 3 {
		p.want(fmt.Sprintf("o%d", i), saga.Completed, "")
	}
	quietFor40s(t, w.arrivals[0].at.Add(time.Second), w.arrivals[1:])
	verify(t, l, w, "o0", "o1", "o2")
}

// quietFor40s checks that the books heard nothing for forty seconds from the moment they asked for
// it.
func quietFor40s(t *testing.T, asked time.Time, later []arrival) {
	t.Helper()
	for _, a := range later {
		if d := a.at.Sub(asked); (a.step == "customer" || a.step == "invoice") && d >= 0 && d < 40*time.Second {
			t.Errorf("%s came %s after the destination asked for 40s of silence", a, d)
		}
	}
}

// A lookup that is answered with a Retry-After silences the line as well.
func TestALookupsRetryAfterSilencesTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{cut: true})}
		w.watch(l)
		asked := make(chan time.Time, 10)
		w.asked = func(string, string) error {
			if asked <- time.Now(); len(asked) == 1 {
				return saga.HoldBack(saga.RetryAfter(40*time.Second, errTooBusy))
			}
			return nil
		}
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o0")
		for len(asked) == 0 {
			pass(100 * time.Millisecond)
		}
		synctest.Wait()
		before := len(w.arrivals)
		p.begin("o1")
		p.want("o0", saga.Completed, "")
		p.want("o1", saga.Completed, "")
		first, second := <-asked, <-asked
		quietFor40s(t, first, w.arrivals[before:])
		if d := second.Sub(first); d < 40*time.Second {
			t.Errorf("the second lookup came %s after the destination asked for 40s of silence", d)
		}
		verify(t, l, w, "o0", "o1")
	})
}

// machine/S2: "cancel turns the work, from any place before the pivot may have happened", also from a line,
// and from the ledger where the work waits for a turn that is far away: it does not wait for a slot
// that it does not want any more.
func TestACancelDoesNotWaitInLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit coordinator.Limit
		first fault // of the work ahead of us
	}{
		"for the one ahead":         {coordinator.Limit{Concurrent: 1}, fault{slow: time.Hour}},
		"for the rate":              {coordinator.Limit{PerSecond: 1.0 / 3600, Burst: 1}, fault{}},
		"for the end of a silence":  {coordinator.Limit{}, fault{unsent: true, after: time.Hour}},
		"ahead, and for the rate":   {coordinator.Limit{PerSecond: 1.0 / 3600, Burst: 1, Concurrent: 1}, fault{slow: time.Hour}},
		"for the rate, with a slot": {coordinator.Limit{PerSecond: 1.0 / 3600, Burst: 1, Concurrent: 2}, fault{slow: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{}
				w.watch(l)
				w.plan = func(a arrival) fault {
					if a.work == "ahead" {
						return c.first
					}
					return fault{}
				}
				o := quick()
				o.Destinations = map[string]coordinator.Limit{"books": c.limit}
				p := boot(t, l, w, config{opts: o, tune: tuning{timeout: 2 * time.Hour}})
				synctest.Wait()
				p.begin("ahead")
				synctest.Wait()
				p.begin("o1")
				synctest.Wait()
				if w.count("o1", "customer", saga.Forward) != 0 {
					t.Fatal("the work does not wait")
				}
				before := time.Now()
				if err := p.Cancel(t.Context(), idOf("o1"), anna); err != nil {
					t.Fatal(err)
				}
				p.want("o1", saga.Compensated, "")
				if took := time.Since(before); took > 2*quick().Poll {
					t.Errorf("the cancel was heard after %s", took)
				}
				if n := len(p.records.of("o1")); n != 2 {
					t.Errorf("%d records, want the start and the cancel", n)
				}
				p.kill() // nobody waits for the work ahead
				verify(t, l, w, "o1")
			})
		})
	}
}

// Who leaves the line leaves his turn to the next.
func TestACancelGivesItsTurnBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		o := quick()
		o.Destinations = map[string]coordinator.Limit{"books": {PerSecond: 1.0 / 3600, Burst: 1}}
		p := boot(t, l, w, config{opts: o})
		synctest.Wait()
		start := time.Now()
		p.begin("o0") // a customer now, an invoice in an hour
		synctest.Wait()
		p.begin("o1")
		synctest.Wait()
		if err := p.Cancel(t.Context(), idOf("o1"), anna); err != nil {
			t.Fatal(err)
		}
		p.want("o1", saga.Compensated, "")
		p.begin("o2")
		p.want("o2", saga.Completed, "")
		for _, a := range w.arrivals {
			if a.work == "o2" && a.step == "customer" && a.at.Sub(start) > 2*time.Hour+time.Second {
				t.Errorf("o2 got its turn after %s, want the one o1 gave back, after two hours", a.at.Sub(start))
			}
		}
		verify(t, l, w, "o0", "o1", "o2")
	})
}

// A work that stands in line to look hears a cancel too: the cancel is on record at once, and its
// undo comes when there is a slot.
func TestACancelDoesNotWaitForALookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		w.plan = func(a arrival) fault {
			switch {
			case a.work == "ahead":
				return fault{slow: 10 * time.Minute}
			case a.step == "invoice" && a.dir == saga.Forward:
				return fault{broken: true} // so that its slot is free at once
			default:
				return fault{}
			}
		}
		o := quick()
		o.Destinations = map[string]coordinator.Limit{"books": {Concurrent: 1}}
		p := boot(t, l, w, config{opts: o, tune: tuning{timeout: 20 * time.Minute, settle: 10 * time.Second}})
		synctest.Wait()
		p.begin("o1") // its invoice is in doubt, and may arrive for twenty minutes
		pass(20*time.Minute + 5*time.Second)
		p.begin("ahead")
		pass(time.Minute) // o1 stands in line to look
		cancelled := time.Now()
		if err := p.Cancel(t.Context(), idOf("o1"), anna); err != nil {
			t.Fatal(err)
		}
		p.want("o1", saga.Compensated, "")
		for _, r := range p.records.of("o1") {
			if r.Kind == machine.KindCancelled && r.At.Sub(cancelled) > 2*quick().Poll {
				t.Errorf("the cancel was heard after %s", r.At.Sub(cancelled))
			}
		}
		p.want("ahead", saga.Completed, "")
		verify(t, l, w, "o1")
	})
}

// A Retry-After of a century does not switch a destination off: longer than a day is not believed.
func TestAnAbsurdRetryAfterIsCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{unsent: true, after: 100 * 365 * 24 * time.Hour})}
		p := boot(t, l, w, config{opts: coordinator.Options{Lease: time.Hour, Poll: time.Minute}, tune: tuning{retry: saga.Retry{Within: 72 * time.Hour}}})
		synctest.Wait()
		p.begin("o1")
		pass(25 * time.Hour)
		p.want("o1", saga.Completed, "")
		if took := w.arrivals[1].at.Sub(w.arrivals[0].at); took < 24*time.Hour || took > 25*time.Hour {
			t.Errorf("the second try came after %s, want a day", took)
		}
		verify(t, l, w, "o1")
	})
}

// A work that holds a slot and must look at the same destination does not wait for itself.
func TestALookupUsesTheSlotInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		w.plan = func(a arrival) fault {
			switch {
			case a.work == "o1" && a.step == "customer" && a.n == 1:
				return fault{mute: true}
			case a.work == "o2":
				return fault{slow: 3 * time.Second}
			default:
				return fault{}
			}
		}
		program := func(p *process) saga.Program {
			send := func(ctx context.Context, c saga.Call[order]) (thing, error) { return p.send(ctx, c, saga.Forward, "") }
			d, err := saga.Define(orderSaga, 1,
				saga.Do("customer", send).Keyed(8*time.Second).EachRun().Timeout(2*time.Second).Settle(time.Second).To("books").
					Retry(saga.Retry{Initial: 200 * time.Millisecond}).
					Find(func(_ context.Context, c saga.Call[order]) (saga.Finding[thing], error) {
						return saga.Found(w.find(c.Step, c.Input.Customer)...), nil
					}).NoUndo("they stay"))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		p := boot(t, l, w, config{program: program, opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}}}})
		synctest.Wait()
		p.begin("o1") // in doubt after 2 s, then stands in line behind o2 ...
		synctest.Wait()
		p.begin("o2")
		p.begin("o3")
		w.mu.Lock()
		w.plan = func(a arrival) fault { return fault{slow: 1900 * time.Millisecond} }
		w.mu.Unlock()
		for i := range 4 {
			p.begin(fmt.Sprintf("p%d", i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for _, work := range []string{"o1", "o2", "o3"} { // ... until its key is out of the window and it has to look
			if s, err := p.Wait(ctx, orderSaga, work); err != nil || s.Status != saga.Completed {
				t.Errorf("%s: %s, %v", work, s.Status, err)
			}
		}
	})
}
