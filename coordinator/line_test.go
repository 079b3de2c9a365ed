package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// Works that wait for one destination never take the places of others. It asks for ten
// minutes of silence, or takes requests and never answers, while six thousand works want it and the
// process has places for far fewer.
func TestAWaitingDestinationStarvesNoOther(t *testing.T) {
	t.Parallel()
	hushed := func(d *diary) action {
		return func(context.Context, saga.Call[order]) (thing, error) {
			if d.note("books") == 1 {
				return thing{}, saga.HoldBack(saga.RetryAfter(10*time.Minute, saga.NotSent(errors.New("429"))))
			}
			return thing{ID: "x"}, nil
		}
	}
	silent := func(d *diary) action {
		return func(ctx context.Context, _ saga.Call[order]) (thing, error) {
			d.note("books")
			<-ctx.Done()
			return thing{}, ctx.Err()
		}
	}
	for name, c := range map[string]struct {
		act   func(*diary) action
		limit coordinator.Limit
		n     int
	}{
		"hushed for ten minutes": {hushed, coordinator.Limit{}, 600},
		"silent":                 {silent, coordinator.Limit{Concurrent: 2}, 2000},
		"one at a time":          {silent, coordinator.Limit{Concurrent: 1}, 300},
		"once an hour":           {hushed, coordinator.Limit{PerSecond: 1.0 / 3600}, 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, sent := memory.New(nil), &diary{}
				mail := func(context.Context, saga.Call[order]) (thing, error) { sent.note("mail"); return thing{ID: "y"}, nil }
				p := several(t, l, config{opts: coordinator.Options{
					MaxWorks: 400, Destinations: map[string]coordinator.Limit{"books": c.limit},
				}}, oneStep(t, "invoices", "books", c.act(sent)), oneStep(t, "mails", "post", mail))
				synctest.Wait()
				p.starts("invoices", c.n)
				begun := time.Now()
				p.starts("mails", 1)
				pass(5 * time.Minute)
				if took := sent.first("mail", begun); took > time.Minute {
					t.Errorf("a mail to a destination that is free went out after %s", took)
				}
				if n := held(t, l, p); n > 400/4+3 {
					t.Errorf("%d works wait in memory for a destination that is away, with room for 400", n)
				}
				if name == "hushed for ten minutes" {
					pass(40 * time.Minute) // it has no limit, and served nobody before: it gets one a second
					if n := in(t, l, "invoices")[saga.Completed]; n != c.n {
						t.Errorf("%d of %d are completed forty minutes later", n, c.n)
					}
				}
				p.kill() // nothing is awaited of a destination that does not answer
			})
		})
	}
}

// held counts the works that a process holds on record.
func held(t testing.TB, l *memory.DB, p *process) (n int64) {
	t.Helper()
	sessions, err := l.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if s.Token == p.records.session() {
			n += s.Holds
		}
	}
	return n
}

// A Retry-After is about the request that was answered so, unless the destination says that
// it has too much to do (429, 503). Others are not held back by a document that is being edited,
// not by its lookup either.
func TestARetryAfterIsForItsOwnWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, sent := memory.New(nil), &diary{}
		act := func(_ context.Context, c saga.Call[order]) (thing, error) {
			if n := sent.note(c.Work); n == 1 && c.Work == "w00000" {
				return thing{}, saga.RetryAfter(time.Hour, saga.NotSent(errors.New("423: it is being edited")))
			}
			return thing{ID: "x"}, nil
		}
		p := several(t, l, config{}, oneStep(t, "invoices", "books", act))
		synctest.Wait()
		p.starts("invoices", 1)
		pass(time.Second)
		begun := time.Now()
		p.starts("invoices", 2)
		pass(2 * time.Hour)
		if took := sent.first("w00001", begun); took > time.Second {
			t.Errorf("another work's request went out after %s", took)
		}
		if at := sent.of("w00000"); len(at) != 2 || at[1].Sub(at[0]) < time.Hour {
			t.Errorf("the work that was asked to wait for an hour was sent at %v", at)
		}
	})
}

// Waiting in line reserves nothing. When the lease is lost with a thousand works in line,
// the destination hears of the next at once and not after the turns of those that left; a signal to
// a work in line costs no turn.
func TestALineThatIsLeftReservesNothing(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testing.T, *memory.DB, *process){
		"the lease is lost": func(t *testing.T, l *memory.DB, p *process) { t.Helper(); bury(t, l, p.records.session()) },
		"signals": func(t *testing.T, _ *memory.DB, p *process) {
			t.Helper()
			for i := range 1000 {
				id := saga.ID{Saga: "invoices", Work: fmt.Sprintf("w%05d", i)}
				if err := p.Cancel(t.Context(), id, anna); err != nil && !errors.Is(err, coordinator.ErrFinished) {
					t.Fatal(err)
				}
			}
			p.starts("orders", 100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, sent := memory.New(nil), &diary{}
				act := func(context.Context, saga.Call[order]) (thing, error) { sent.note("books"); return thing{ID: "x"}, nil }
				p := several(t, l, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {PerSecond: 1}}}},
					oneStep(t, "invoices", "books", act), oneStep(t, "orders", "books", act))
				synctest.Wait()
				p.starts("invoices", 1000)
				pass(10 * time.Second)
				leave(t, l, p)
				left := time.Now()
				pass(time.Minute)
				n := 0
				for _, at := range sent.of("books") {
					if at.After(left) {
						n++
					}
				}
				if n < 45 || n > 61 {
					t.Errorf("%d requests in the minute after that, at one a second", n)
				}
			})
		})
	}
}

// "A claim wakes when room is there", also for works that a line has turned away. A
// destination takes one request a minute, and sixty wait for it in the ledger; then it is fast, and
// nothing waits for the old estimate.
func TestWhoWasTurnedAwayComesBackWhenTheLineIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, sent := memory.New(nil), &diary{}
		act := func(context.Context, saga.Call[order]) (thing, error) {
			if sent.note("books") <= 3 {
				<-time.After(time.Minute)
			}
			return thing{ID: "x"}, nil
		}
		books := saga.Do("make", act).Idempotent().NoUndo("it stays").To("books").Timeout(2 * time.Minute)
		d, err := saga.Define("invoices", 1, books)
		if err != nil {
			t.Fatal(err)
		}
		o := quick()
		o.Destinations = map[string]coordinator.Limit{"books": {Concurrent: 1}}
		p := several(t, l, config{opts: o}, d)
		synctest.Wait()
		p.starts("invoices", 60)
		pass(3*time.Minute - time.Second)
		if n := in(t, l, "invoices")[saga.Completed]; n != 2 {
			t.Fatalf("%d were completed in three minutes, at one a minute", n)
		}
		pass(quick().Hold + time.Second)
		if n := in(t, l, "invoices")[saga.Completed]; n != 60 {
			t.Errorf("%d of 60 are completed %s after the destination became fast", n, quick().Hold)
		}
	})
}
