package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A fail-over that passes a standby, a disk that is full, a file that is locked for a
// moment: what ends the first attempt to open a session ends no process that has had one.
func TestOnlyTheFirstSessionIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"standby": ledger.ErrReadOnly, "schema": ledger.ErrSchema, "locked": ledger.ErrLocked} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newSilent(t)
				l.opens.with(fmt.Errorf("open: %w", why))
				first := several(t, l, config{}, oneStep(t, "billing", "", nil))
				if <-first.ended; !errors.Is(first.err, why) {
					t.Errorf("the first session: %v", first.err)
				}
				l.opens.with(nil)
				p := several(t, l, config{}, oneStep(t, "billing", "", nil))
				pass(time.Minute)
				l.renews.with(errors.New("connection refused"))
				l.opens.with(fmt.Errorf("open: %w", why))
				pass(5 * time.Minute)
				l.renews.with(nil)
				l.opens.with(nil)
				pass(time.Minute)
				p.starts("billing", 1)
				pass(time.Second)
				if n := in(t, l, "billing")[saga.Completed]; n != 1 {
					t.Errorf("after the fail-over: %v, run: %v", in(t, l, "billing"), p.err)
				}
			})
		})
	}
}

// The stop comes between the loss of a session and the next one, while a renewal hangs.
// What was sent is awaited and recorded all the same.
func TestAStopBesideALostSessionIsGraceful(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSilent(t)
		act := func(_ context.Context, c saga.Call[order]) (thing, error) {
			if c.Work == "slow" {
				<-time.After(4 * time.Second) // less than the lease goes on for
			}
			return thing{ID: "x"}, nil
		}
		d, err := saga.Define("billing", 1, saga.Do("mail", act).AtMostOnce().NoUndo("it cannot be unsent"))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, l, config{}, d)
		pass(time.Second)
		start := func(work string) {
			if _, err := p.Start(t.Context(), "billing", work, order{}, nil); err != nil {
				t.Error(err)
			}
		}
		start("slow")
		l.renews.mute.Store(true)
		pass(1500 * time.Millisecond) // the renewal hangs
		bury(t, l.DB, p.records.session())
		start("quick") // no lease: the session is lost
		if len(p.records.losses()) != 1 {
			t.Fatal("the session was not lost")
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		s, err := p.Show(t.Context(), saga.ID{Saga: "billing", Work: "slow"})
		if err != nil || s.Status != saga.Completed {
			t.Errorf("after the stop it is %s, %v", s.Status, err)
		}
	})
}

// A call that is never answered, and does not heed its context, costs its own time-out
// and no more, whichever it is: works go on, and the process stops when it is told to.
func TestASilentConnectionCostsATimeOut(t *testing.T) {
	t.Parallel()
	for name, which := range map[string]func(*silentStore) *gate{
		"open":   func(s *silentStore) *gate { return s.opens },
		"renew":  func(s *silentStore) *gate { return s.renews },
		"append": func(s *silentStore) *gate { return s.appends },
		"claim":  func(s *silentStore) *gate { return s.claims },
		"load":   func(s *silentStore) *gate { return s.loads },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newSilent(t)
				g := which(l)
				p := several(t, l, config{}, oneStep(t, "billing", "", nil))
				web := several(t, l, config{idle: true}, oneStep(t, "billing", "", nil))
				pass(time.Second)
				g.mute.Store(true)
				if name == "open" {
					bury(t, l.DB, p.records.session())
				}
				go web.Start(t.Context(), "billing", "w", order{}, nil) // answered late or not at all
				pass(3 * time.Second)
				g.mute.Store(false) // one connection was silent; new ones are not
				pass(3 * quick().Lease)
				if n := in(t, l, "billing")[saga.Completed]; n != 1 {
					t.Errorf("three leases later: %v", in(t, l, "billing"))
				}
				g.mute.Store(true)
				pass(time.Second)
				begun := time.Now()
				_ = p.halt()
				if took := time.Since(begun); took > quick().Drain+2*quick().Lease {
					t.Errorf("the stop took %s", took)
				}
			})
		})
	}
}

// A lease is renewed only while records and claims are answered. When they have not been for a
// lease, the session is let go, so that another process takes the works over; and that is in the
// log.
func TestALeaseIsLetGoWhenNothingIsAnswered(t *testing.T) {
	t.Parallel()
	for name, which := range map[string]func(*silentStore) *gate{
		"append": func(s *silentStore) *gate { return s.appends },
		"claim":  func(s *silentStore) *gate { return s.claims },
	} {
		for _, mute := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, silent: %t", name, mute), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					l, out := newSilent(t), &lines{}
					act := func(context.Context, saga.Call[order]) (thing, error) {
						<-time.After(2 * time.Second)
						return thing{ID: "x"}, nil
					}
					d, err := saga.Define("billing", 1, saga.Do("make", act).Idempotent().NoUndo("it stays").Timeout(5*time.Second).Settle(0))
					if err != nil {
						t.Fatal(err)
					}
					p := several(t, l, config{opts: coordinator.Options{Log: out.logger()}}, d)
					pass(time.Second)
					p.starts("billing", 1)
					if g := which(l); mute {
						g.mute.Store(true)
					} else {
						g.with(errors.New("deadlock detected"))
					}
					broken := time.Now()
					several(t, l.DB, config{}, d)
					pass(5 * quick().Lease)
					if lost := p.records.losses(); len(lost) == 0 || len(lost) > 4 || name == "append" && len(lost) > 1 {
						t.Errorf("the session was lost %d times in five leases: %v", len(lost), lost)
					}
					said := false
					for _, line := range out.all(t) {
						said = said || line["error"] == "a record, a claim, a load or a return has had no answer for longer than a lease"
					}
					if !said {
						t.Error("the log does not say why")
					}
					if n := in(t, l, "billing")[saga.Completed]; n != 1 {
						t.Errorf("%s after it went silent: %v", time.Since(broken), in(t, l, "billing"))
					}
					p.kill()
				})
			})
		}
	}
}

// What a process has claimed and cannot load, or cannot give back, is let go with its session,
// too. The connections for that fall silent, and those for renewals and claims do not.
func TestALeaseIsLetGoWhenChainsAreSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		which func(*silentStore) *gate
		works int
	}{
		"load":      {func(s *silentStore) *gate { return s.loads }, 3},
		"load one":  {func(s *silentStore) *gate { return s.loads }, 1}, // which would be given back and claimed again
		"give back": {func(s *silentStore) *gate { return s.returns }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newSilent(t)
				once := config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {PerSecond: 1.0 / 3600}}}}
				d := oneStep(t, "billing", "books", nil)
				p := several(t, l, once, d)
				synctest.Wait()
				c.which(l).mute.Store(true)
				several(t, l.DB, config{idle: true}, d).starts("billing", c.works) // p can send one of them
				pass(quick().Lease / 2)
				several(t, l.DB, config{}, d)
				pass(4 * quick().Lease)
				if n := in(t, l, "billing")[saga.Completed]; n != c.works || len(p.records.losses()) == 0 {
					t.Errorf("%d of %d are completed, the session was lost %d times", n, c.works, len(p.records.losses()))
				}
				if n := l.claimed.Load(); name == "load one" && n != 1 {
					t.Errorf("it was claimed %d times by the process that cannot load it, want once", n)
				}
				p.kill()
			})
		})
	}
}

// unreadable is a ledger that cannot read one chain, whichever process asks and however often.
type unreadable struct {
	*memory.DB

	id atomic.Pointer[saga.ID]
}

func (u *unreadable) Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error) {
	if id := u.id.Load(); id != nil && slices.Contains(ids, *id) {
		return nil, errors.New("invalid page in block 7")
	}
	return u.DB.Load(ctx, ids)
}

// A chain that cannot be read any more, of a work in hand, costs the process a session and not its
// life: the others go on.
func TestAChainThatCannotBeReadKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := &unreadable{DB: memory.New(nil)}, &world{plan: on("customer", saga.Forward, 1, fault{unsent: true, after: 2 * time.Second})}
		w.watch(l.DB)
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o1")
		synctest.Wait()
		o1 := saga.ID{Saga: orderSaga, Work: "o1"}
		l.id.Store(&o1)
		if _, err := l.Post(t.Context(), o1, machine.Signal{Kind: machine.SignalWake, Key: "1", Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		pass(5 * quick().Lease)
		before := time.Now()
		p.begin("o2")
		p.want("o2", saga.Completed, "")
		if took := time.Since(before); took > quick().Lease {
			t.Errorf("the other work took %s", took)
		}
		l.id.Store(nil)
		p.want("o1", saga.Completed, "")
		verify(t, l, w, "o1", "o2")
	})
}

// A work that is let go is not taken in hand again before the ledger has it back, though it is ours
// on record and a signal to it is unread: the return would release it under our hands, and a crash
// would leave it alone until its old due time.
func TestAReturnReleasesNothingInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, sent := newSilent(t), &diary{}
		act := func(context.Context, saga.Call[order]) (thing, error) {
			sent.note("books")
			<-time.After(3 * time.Second)
			return thing{ID: "x"}, nil
		}
		d, err := saga.Define("billing", 1, saga.Do("make", act).Idempotent().NoUndo("it stays").To("books"))
		if err != nil {
			t.Fatal(err)
		}
		o := coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {PerSecond: 1.0 / 600, Burst: 1}}}
		p := several(t, l, config{opts: o}, d)
		synctest.Wait()
		l.returns.with(errors.New("deadlock detected"))
		for i := range 3 { // the second heads the line, the third is turned away
			if _, err := p.Start(t.Context(), "billing", fmt.Sprint(i), order{}, &saga.StartOptions{Revision: "1"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if _, err := p.Start(t.Context(), "billing", "2", order{Total: 1}, &saga.StartOptions{Revision: "2"}); err != nil {
			t.Fatal(err)
		}
		heard := func() int64 {
			heads, err := ledger.First(t.Context(), l, ledger.Filter{Work: "2"})
			if err != nil || len(heads) != 1 {
				t.Fatal(heads, err)
			}
			return heads[0].Consumed
		}
		pass(quick().Lease / 2)
		if heard() != 0 {
			t.Error("it was taken in hand while its return was on its way")
		}
		l.returns.with(nil)
		pass(time.Second + 2*quick().Poll)
		if heard() != 1 {
			t.Error("the news were not heard after the work had been given back")
		}
		p.kill()
	})
}

// Adoption 7.7: the listener is told that the session is lost when its lease is over by this
// process's own clock, also while the database is away; not when it is back.
func TestALostSessionIsToldWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSilent(t)
		var told time.Time
		p := several(t, l, config{opts: coordinator.Options{Listener: &coordinator.Listener{
			SessionLost: func(string, error) { told = time.Now() },
		}}}, oneStep(t, "billing", "", nil))
		pass(time.Minute + time.Second)
		away := errors.New("connection refused")
		for _, g := range []*gate{l.opens, l.renews, l.appends, l.claims, l.loads} {
			g.with(away)
		}
		gone := time.Now()
		pass(10 * time.Minute)
		synctest.Wait()
		if took := told.Sub(gone); told.IsZero() || took > quick().Lease || took < quick().Lease/2 {
			t.Errorf("it was told %s after the database was away, with a lease of %s", took, quick().Lease)
		}
		_ = p
	})
}

// An outage is in the log when it begins, at most once a minute, and when it is over, with how long
// it was.
func TestAnOutageIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := newSilent(t), &lines{}
		p := several(t, l, config{opts: coordinator.Options{Log: out.logger()}}, oneStep(t, "billing", "", nil))
		pass(time.Minute)
		for _, g := range []*gate{l.opens, l.renews, l.appends, l.claims, l.loads} {
			g.with(errors.New("connection refused"))
		}
		go p.Start(t.Context(), "billing", "w", order{}, nil)
		pass(10 * time.Minute)
		for _, g := range []*gate{l.opens, l.renews, l.appends, l.claims, l.loads} {
			g.with(nil)
		}
		pass(time.Minute)
		count := map[any]int{}
		for _, line := range out.all(t) {
			count[line["msg"]]++
			if line["msg"] == "the ledger answers again" {
				said, _ := line["lasted"].(string)
				lasted, err := time.ParseDuration(said)
				if err != nil || lasted < 10*time.Minute || lasted > 10*time.Minute+5*time.Second {
					t.Errorf("it lasted %v", line["lasted"])
				}
			}
		}
		const away = "the ledger does not answer; the same call is repeated until it does"
		if count["the ledger answers again"] != 1 || count[away] < 5 || count[away] > 11 {
			t.Errorf("in ten minutes without a database: %v", count)
		}
		if n := in(t, l, "billing")[saga.Completed]; n != 1 {
			t.Errorf("afterwards: %v", in(t, l, "billing"))
		}
	})
}

// A schema that has become newer than the program is noticed at the next renewal. Nothing
// is claimed or sent from then on, what is under way is recorded, and it is said; nor does the
// process end.
func TestANewerSchemaIsNoticedAtRunTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out, sent := newSilent(t), &lines{}, &diary{}
		act := func(_ context.Context, c saga.Call[order]) (thing, error) {
			sent.note(c.Work)
			if c.Work == "w00000" {
				<-time.After(5 * time.Second)
			}
			return thing{ID: "x"}, nil
		}
		p := several(t, l, config{opts: coordinator.Options{Log: out.logger()}}, oneStep(t, "billing", "", act))
		pass(time.Second)
		p.starts("billing", 1)
		newer := fmt.Errorf("%w: it is at 99", ledger.ErrSchema)
		l.renews.with(newer)
		l.opens.with(newer)
		pass(3 * time.Second)
		for i := range 5 {
			_, _ = p.Start(t.Context(), "billing", fmt.Sprint("later", i), order{}, nil)
		}
		pass(5 * time.Minute)
		if len(sent.of("later0")) != 0 {
			t.Error("something was sent on a ledger of a newer schema")
		}
		if s, err := p.Show(t.Context(), saga.ID{Saga: "billing", Work: "w00000"}); err != nil || s.Status != saga.Completed {
			t.Errorf("what was under way is %s, %v", s.Status, err)
		}
		said := 0
		for _, line := range out.all(t) {
			if line["level"] == "error" && line["msg"] == "the ledger's schema does not fit this program; nothing is claimed or sent until it does, so deploy the program that does" {
				said++
			}
		}
		if said < 3 || said > 6 {
			t.Errorf("it was said %d times in five minutes", said)
		}
		l.renews.with(nil)
		l.opens.with(nil)
		pass(time.Minute)
		if n := in(t, l, "billing")[saga.Completed]; n != 6 {
			t.Errorf("after the schema was taken back: %v", in(t, l, "billing"))
		}
	})
}
