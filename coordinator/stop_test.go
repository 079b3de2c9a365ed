package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// mailing is a saga of one AtMostOnce step: whatever leaves it in doubt is a review.
func mailing(p *process, act func(context.Context, saga.Call[order]) (thing, error)) saga.Program {
	d, err := saga.Define(orderSaga, 1, saga.Do("receipt", act).AtMostOnce().NoUndo("a mail cannot be unsent").Timeout(20*time.Second).To("post"))
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// "Graceful stop records not-sent for every attempt behind its gate, so deploys cause no reviews",
// and it does not count as a try.
func TestAStopBeforeTheGateIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		atTheGate, stopped := make(chan struct{}, 1), make(chan struct{})
		program := func(p *process) saga.Program {
			return mailing(p, func(ctx context.Context, c saga.Call[order]) (thing, error) {
				select {
				case atTheGate <- struct{}{}:
					<-stopped
				default:
				}
				return p.send(ctx, c, saga.Forward, "")
			})
		}
		p := boot(t, l, w, config{program: program})
		synctest.Wait()
		p.begin("o1")
		<-atTheGate
		p.stop()
		synctest.Wait()
		close(stopped)
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if n := w.count("o1", "receipt", saga.Forward); n != 0 {
			t.Errorf("%d mails left a process that was told to stop before its gate", n)
		}
		st := stateOf(t, l, "o1")
		if e := st.Step("receipt").Forward; st.Status != saga.Running || e.Phase != machine.Ready || e.CountedAttempts != 0 {
			t.Errorf("the work is %s, its step %s after %d counted tries; want running, ready, 0", st.Status, e.Phase, e.CountedAttempts)
		}
		next := boot(t, l, w, config{program: program})
		before := time.Now()
		next.want("o1", saga.Completed, "")
		if took := time.Since(before); took > time.Second {
			t.Errorf("the works of a process that stopped were taken over after %s, want at once", took)
		}
		verifyMails(t, l, w, 1, "o1")
	})
}

// "Attempts that may have been sent are awaited": the answer is recorded before the process is
// gone.
func TestAStopBehindTheGateIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{slow: 4 * time.Second})}
		w.watch(l)
		p := boot(t, l, w, config{program: mailer})
		synctest.Wait()
		p.begin("o1")
		synctest.Wait()
		before := time.Now()
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took != 4*time.Second {
			t.Errorf("the stop took %s, the answer 4s", took)
		}
		if st := stateOf(t, l, "o1"); st.Status != saga.Completed {
			t.Errorf("the work is %s, want completed by the answer that was awaited", st.Status)
		}
		verifyMails(t, l, w, 1, "o1")
	})
}

// What does not answer within Drain is abandoned, is in doubt, and Run says so.
func TestADrainExceededIsTold(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"the action ends with its context": {slow: 15 * time.Second},
		"the action notices nothing":       {slow: 15 * time.Second, ignore: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, f)}
				p := boot(t, l, w, config{program: mailer})
				synctest.Wait()
				p.begin("o1")
				synctest.Wait()
				err := p.halt()
				if err == nil || !strings.Contains(err.Error(), "1 works did not come to rest within 10s") {
					t.Errorf("Run said %v", err)
				}
				next := boot(t, l, w, config{program: mailer})
				next.want("o1", saga.Review, saga.ReasonInDoubt)
				verifyMails(t, l, w, 1, "o1")
			})
		})
	}
}

// "Nothing new is armed", and no attempt that was armed is let go unsent: whatever the moment of
// the stop, every work is at rest and none is in doubt.
func TestAStopAtAnyMomentLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	runs := 15
	if pace.AtNight() {
		runs = 2000
	}
	for range runs {
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{}
			w.watch(l)
			p := boot(t, l, w, config{program: mailer})
			synctest.Wait()
			works := make([]string, 40)
			for i := range works {
				works[i] = fmt.Sprintf("o%d", i)
				go p.Start(t.Context(), orderSaga, works[i], order{Customer: "c"}, nil) // refused while stopping
			}
			if err := p.halt(); err != nil {
				t.Error(err)
			}
			stored := 0
			for _, work := range works {
				st := maybe(l, work)
				if st == nil {
					continue
				}
				stored++
				if ss := st.Step("receipt"); ss != nil && (ss.Forward.Phase == machine.Started || ss.Forward.Phase == machine.InDoubt) {
					t.Errorf("%s is left %s by a graceful stop", work, ss.Forward.Phase)
				}
			}
			next := boot(t, l, w, config{program: mailer})
			for _, work := range works {
				if maybe(l, work) != nil {
					next.want(work, saga.Completed, "")
				}
			}
			verifyMails(t, l, w, stored)
		})
	}
}

// The same by count: the stop begins in the middle of the n-th decision, between its view of the
// world and its append, for every n. An arm that is stored all the same is not let go: it is
// recorded as not sent.
func TestAStopWithinEveryDecision(t *testing.T) {
	t.Parallel()
	n := 1
	for hit := true; hit; n++ {
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{}
			w.watch(l)
			trap := &trapped{}
			p := boot(t, l, w, config{program: func(p *process) saga.Program {
				trap.Program = orders(p, tuning{})
				return trap
			}})
			synctest.Wait()
			trap.set(n, func() {
				p.stop()
				pass(time.Millisecond) // virtual: Run has noticed
			})
			_, err := p.Start(t.Context(), orderSaga, "o1", order{Customer: "c-o1"}, nil)
			pass(time.Second)
			if hit = trap.sprung(); err != nil || p.halt() != nil {
				t.Errorf("start: %v, run: %v", err, p.err)
			}
			for _, ss := range stateOf(t, l, "o1").Steps {
				if ph := ss.Forward.Phase; ph == machine.Started || ph == machine.InDoubt {
					t.Errorf("a stop within decision %d leaves %s %s", n, ss.Name, ph)
				}
			}
			boot(t, l, w, config{}).want("o1", saga.Completed, "")
			verify(t, l, w, "o1")
		})
	}
	t.Logf("%d decisions", n-2)
}

// trapped is a program whose structure, when it is read for the n-th time, springs a trap. Every
// decision reads it.
type trapped struct {
	saga.Program
	mu     sync.Mutex
	left   int
	spring func()
}

func (p *trapped) set(n int, spring func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.spring = n, spring
}

func (p *trapped) sprung() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left <= 0
}

func (p *trapped) Spec() *program.Spec {
	p.mu.Lock()
	p.left--
	spring := p.spring
	now := p.left == 0 && spring != nil
	p.mu.Unlock()
	if now {
		spring()
	}
	return p.Program.Spec()
}

// A stop while no session is open (the last was lost, the next cannot be had) still awaits what was
// sent.
func TestAStopBetweenSessionsKeepsResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{slow: 4 * time.Second})}
		w.watch(l)
		var away atomic.Bool
		hook := &hooked{renew: func(context.Context) error {
			if away.Load() {
				return ledger.ErrSessionDead
			}
			return nil
		}}
		hook.open = func() error {
			if away.Load() {
				return errors.New("the database is away")
			}
			return nil
		}
		p := boot(t, l, w, config{program: mailer, hook: hook})
		synctest.Wait()
		p.begin("o1")
		synctest.Wait()
		away.Store(true)
		pass(5 * time.Second / 2) // the next renewal tells that the session is dead
		if len(p.records.losses()) != 1 {
			t.Fatalf("the session was lost %d times, want once", len(p.records.losses()))
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		next := boot(t, l, w, config{program: mailer})
		next.want("o1", saga.Completed, "")
		verifyMails(t, l, w, 1, "o1")
	})
}

// A coordinator runs once: its works would be under way twice.
func TestACoordinatorRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := boot(t, memory.New(nil), &world{}, config{})
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		if err := p.Run(t.Context()); err == nil {
			t.Error("it ran again")
		}
		if _, err := p.Start(t.Context(), orderSaga, "o1", order{}, nil); err == nil {
			t.Error("a stopped coordinator accepted a start")
		}
	})
}

// mailer is mailing with nothing between the action and the wire.
func mailer(p *process) saga.Program {
	return mailing(p, func(ctx context.Context, c saga.Call[order]) (thing, error) { return p.send(ctx, c, saga.Forward, "") })
}

func stateOf(t testing.TB, l ledger.Catalogue, work string) *machine.State {
	t.Helper()
	st := maybe(l, work)
	if st == nil {
		t.Fatalf("%s is not in the ledger", work)
	}
	return st
}

// maybe folds a work's chain, or returns nil when there is none.
func maybe(l ledger.Catalogue, work string) *machine.State {
	rs, err := l.History(context.Background(), idOf(work))
	if err != nil {
		return nil
	}
	st, err := machine.Fold(idOf(work), rs)
	if err != nil {
		return nil
	}
	return st
}

// verifyMails checks a world of mails only: so many of them, all armed before, in a sound ledger.
func verifyMails(t *testing.T, l *memory.DB, w *world, mails int, works ...string) {
	t.Helper()
	w.pending.Wait()
	for _, why := range w.illegal {
		t.Errorf("%s", why)
	}
	if n := w.count("", "receipt", saga.Forward); n != mails {
		t.Errorf("%d mails, want %d", n, mails)
	}
	for _, work := range works {
		if n := len(w.made("receipt", work)); n > 1 {
			t.Errorf("%d mails for %s", n, work)
		}
	}
	ledgertest.MustCheck(t, l)
}

// "The session is then buried, so that others take over at once": also a work that waits in hand,
// which the stop writes nothing about.
func TestAWorkThatWaitsInHandIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{unsent: true, after: 2 * time.Second})}
		w.watch(l)
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o1")
		synctest.Wait()
		if h := headOf(t, l, "o1"); h.Session == 0 {
			t.Fatal("the work is not in hand")
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		before := time.Now()
		boot(t, l, w, config{}).want("o1", saga.Completed, "")
		if took := time.Since(before); took > 3*time.Second {
			t.Errorf("it was taken over after %s; the lease is %s", took, quick().Lease)
		}
		verify(t, l, w, "o1")
	})
}

// deaf is a ledger that is away when a process wants to say goodbye.
type deaf struct {
	ledger.Ledger

	asked atomic.Int32
}

func (d *deaf) Bury(context.Context, machine.Token) error {
	d.asked.Add(1)
	return errors.New("connection refused")
}

// A stop that the ledger does not hear of leaves nothing behind but a session, which ends with its
// lease: the process asks until then, has stopped well, and the works are taken over.
func TestAStopThatTheLedgerDoesNotHearOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{unsent: true, after: 2 * time.Second})}
		w.watch(l)
		away := &deaf{Ledger: l}
		p := boot(t, away, w, config{})
		synctest.Wait()
		p.begin("o1")
		synctest.Wait()
		before := time.Now()
		if err := p.halt(); err != nil {
			t.Errorf("the stop said %v", err)
		}
		if took := time.Since(before); took > quick().Lease || away.asked.Load() < 2 {
			t.Errorf("it asked %d times in %s; the lease is %s", away.asked.Load(), took, quick().Lease)
		}
		boot(t, l, w, config{}).want("o1", saga.Completed, "")
		verify(t, l, w, "o1")
	})
}
