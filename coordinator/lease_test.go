package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A lease is renewed three times in its span, for as long as the process lives.
func TestALeaseIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		var renewals atomic.Int64
		p := boot(t, l, w, config{hook: &hooked{renew: func(context.Context) error { renewals.Add(1); return nil }}})
		pass(10 * time.Minute)
		if n := renewals.Load(); len(p.records.losses()) != 0 || n < 295 || n > 305 {
			t.Errorf("%d renewals of a lease of 6s in ten minutes, lost %v; want about 300 and none", n, p.records.losses())
		}
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		verify(t, l, w, "o1")
	})
}

// A renewal that hangs is given up in time for another one: one dead connection does not cost the
// lease.
func TestAHangingRenewalDoesNotCostTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		var renewals atomic.Int64
		p := boot(t, l, w, config{hook: &hooked{renew: func(ctx context.Context) error {
			if renewals.Add(1) == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}})
		pass(time.Minute)
		if lost := p.records.losses(); len(lost) != 0 {
			t.Errorf("the session was lost: %v", lost)
		}
	})
}

// "The local deadline counts from before the renewal was sent; past it minus the margin the process
// arms nothing." The attempt under way goes on, and its result is recorded, without an arm.
func TestALeaseInQuestionArmsNothing(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]time.Duration{
		"before the margin": 3 * time.Second,
		"in the margin":     5500 * time.Millisecond,
		"past the lease":    9 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { question(t, slow) })
		})
	}
}

func question(t *testing.T, slow time.Duration) { //nolint:thelper // it is the test itself, once for each case
	l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{slow: slow})}
	w.watch(l)
	o := quick()
	o.Margin = time.Second
	opened := time.Now()
	p := boot(t, l, w, config{opts: o, tune: tuning{timeout: 30 * time.Second}, hook: &hooked{
		renew: func(context.Context) error {
			if time.Since(opened) < 20*time.Second {
				return errors.New("the database does not answer renewals")
			}
			return nil
		},
	}})
	synctest.Wait()
	p.begin("o1")
	p.want("o1", saga.Completed, "")
	trusted := opened.Add(o.Lease - o.Margin)
	for _, r := range p.records.of("o1") {
		switch at := r.At; {
		case r.Dispatch != nil && r.Session == p.records.opened[0] && at.After(trusted):
			t.Errorf("%s was armed %s after the lease came into question", r.Dispatch.Step, at.Sub(trusted))
		case r.Kind == machine.KindDone && r.Step == "invoice" && at.Sub(opened) > slow+50*time.Millisecond:
			t.Errorf("the invoice's answer came after %s and was recorded after %s", slow, at.Sub(opened))
		}
	}
	if n := w.count("o1", "invoice", saga.Forward); n != 1 {
		t.Errorf("%d requests for one invoice whose answer was at hand", n)
	}
	verify(t, l, w, "o1")
}

// A process that lost its lease takes up what it held under a new one.
func TestALostSessionIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 3, fault{unsent: true})}
		w.watch(l)
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o1") // it backs off, in hand
		synctest.Wait()
		bury(t, l, p.records.opened[0])
		p.want("o1", saga.Completed, "")
		if n := len(p.records.opened); n != 2 {
			t.Errorf("%d sessions, want 2", n)
		}
		if lost := p.records.losses(); len(lost) != 1 || !errors.Is(lost[0], ledger.ErrSessionDead) {
			t.Errorf("the listener was told of %v, want one dead session", lost)
		}
		verify(t, l, w, "o1")
	})
}

// Another process takes over when the lease has ended, and not before.
func TestTakeoverAfterTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("customer", saga.Forward, 1, fault{unsent: true})}
		w.watch(l)
		a := boot(t, l, w, config{})
		synctest.Wait()
		a.begin("o1") // it backs off
		synctest.Wait()
		killed := time.Now()
		a.kill()
		b := boot(t, l, w, config{})
		b.want("o1", saga.Completed, "")
		took := b.records.of("o1")[0].At.Sub(killed)
		if lease := quick().Lease; took < lease-50*time.Millisecond || took > lease+time.Second {
			t.Errorf("the work was taken over after %s; the lease is %s", took, lease)
		}
		verify(t, l, w, "o1")
	})
}

// machine/F10: "nothing is sent or awaited under a session that is over". The first process is only cut off
// from renewing: it stops waiting for its answer when its lease is over, long before the attempt's
// deadline.
func TestNoAnswerIsAwaitedPastTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		var renewed, ended time.Time
		a := boot(t, l, &world{}, config{
			program: func(p *process) saga.Program {
				return mailing(p, func(ctx context.Context, c saga.Call[order]) (thing, error) {
					err := c.Sending()
					<-ctx.Done()
					ended = time.Now()
					return thing{}, errors.Join(err, ctx.Err())
				})
			},
			hook: &hooked{renew: func(context.Context) error {
				if renewed.IsZero() {
					renewed = time.Now()
					return nil
				}
				return errors.New("no answer")
			}},
		})
		synctest.Wait()
		a.begin("o1")
		pass(time.Minute)
		synctest.Wait()
		if took := ended.Sub(renewed); took != quick().Lease {
			t.Errorf("the answer was awaited for %s after the last renewal; the lease is %s", took, quick().Lease)
		}
	})
}

// A starved process may hear of a renewal when its lease is over by its own clock: what it had under way is given up, so it does not go on
// under that session, in which everything it sends would end at once.
func TestARenewalThatIsHeardLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if coordinator.LateRenewal(time.Second) {
			t.Error("the session goes on, and awaits nothing any more")
		}
	})
}

// An action that does not heed its context is under way until it returns. Meanwhile its step is neither looked up, sent again
// nor undone, and it keeps its place at the destination; what it made is undone behind that.
func TestAnActionThatHasNotReturnedIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, cancelled := range map[string]bool{"it goes on": false, "it is cancelled meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var made, undone, asked, at, most atomic.Int64
				act := func(_ context.Context, c saga.Call[order]) (thing, error) {
					if err := c.Sending(); err != nil {
						return thing{}, err
					}
					most.Store(max(most.Load(), at.Add(1)))
					defer at.Add(-1)
					pass(20 * time.Minute)
					made.Add(1)
					return thing{ID: c.Work}, nil
				}
				find := func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
					asked.Add(1)
					return saga.NotFound[thing](), nil
				}
				undo := func(context.Context, saga.Call[order], thing) error { undone.Add(1); return nil }
				d, err := saga.Define("deaf", 1, saga.Do("make", act).Find(find).EachRun().Undo(undo).To("books").Timeout(time.Second).Settle(time.Second),
					saga.Do("mark", func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "m"}, nil }).Idempotent().NoUndo("a test"))
				if err != nil {
					t.Fatal(err)
				}
				out := &lines{}
				l := memory.New(nil)
				p := several(t, l, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}}, Log: out.logger()}}, d)
				pass(time.Second)
				p.starts("deaf", 3)
				pass(10 * time.Minute)
				if made.Load()+asked.Load()+undone.Load() != 0 || most.Load() != 1 || !strings.Contains(out.String(), "does not heed its context") {
					t.Errorf("within its time %d made, %d asked, %d undone, %d at once: %s", made.Load(), asked.Load(), undone.Load(), most.Load(), out)
				}
				if sum, err := p.Show(t.Context(), saga.ID{Saga: "deaf", Work: "w00000"}); err != nil || sum.Reason != saga.ReasonHung || !strings.Contains(sum.Next, "restart that process") {
					t.Errorf("a person is told %s %s: %s (%v)", sum.Status, sum.Reason, sum.Next, err)
				}
				want := map[saga.Status]int{saga.Completed: 3}
				if cancelled {
					want = map[saga.Status]int{saga.Compensated: 3}
					for i := range 3 {
						if err := p.Cancel(t.Context(), saga.ID{Saga: "deaf", Work: fmt.Sprintf("w%05d", i)}, anna); err != nil {
							t.Fatal(err)
						}
					}
				}
				pass(2 * time.Hour)
				if got := in(t, l, "deaf"); !maps.Equal(got, want) || most.Load() != 1 || asked.Load() != 0 || (undone.Load() == 0) != (made.Load() == 0 || !cancelled) || cancelled && undone.Load() < made.Load() {
					t.Errorf("in the end %v: %d made, %d undone, %d asked, %d at once", got, made.Load(), undone.Load(), asked.Load(), most.Load())
				}
			})
		})
	}
}

// What hung goes on by itself when its process is gone, by the database's clock: its destination is asked first.
func TestWhatHungGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		d, err := saga.Define("deaf", 1, saga.Do("make", func(_ context.Context, c saga.Call[order]) (thing, error) {
			if err := c.Sending(); err == nil && calls.Add(1) == 1 {
				pass(day)
			}
			return thing{ID: c.Work}, nil
		}).Find(func(context.Context, saga.Call[order]) (saga.Finding[thing], error) {
			return saga.NotFound[thing](), nil
		}).
			EachRun().NoUndo("a test").Timeout(time.Second).Settle(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		l := memory.New(nil)
		p := several(t, l, config{}, d)
		pass(time.Second)
		p.starts("deaf", 1)
		pass(6 * time.Minute)
		if got := in(t, l, "deaf"); got[saga.Review] != 1 {
			t.Errorf("after six minutes %v", got)
		}
		q := several(t, l, config{}, d)
		pass(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("sent %d times while the first has not returned", calls.Load())
		}
		p.kill()
		pass(10 * time.Minute)
		if got := in(t, l, "deaf"); got[saga.Completed] != 1 || calls.Load() != 2 {
			t.Errorf("behind the end of its process %v, sent %d times", got, calls.Load())
		}
		q.kill()
		pass(day)
	})
}

// An hour of actions that hang and then return, beside good ones: with half of the slots free the good ones end, and nothing is made twice.
func TestHangingBesideGoodOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		made, hanging := map[string]int{}, 0
		d, err := saga.Define("deaf", 1, saga.Do("make", func(_ context.Context, c saga.Call[order]) (thing, error) {
			if err := c.Sending(); err != nil {
				return thing{}, err
			}
			mu.Lock()
			hangs := c.Input.Total%100 == 0 && hanging < 4
			if hangs {
				hanging++
			}
			mu.Unlock()
			if pass(100 * time.Millisecond); hangs {
				pass(20 * time.Minute)
			}
			mu.Lock()
			defer mu.Unlock()
			if made[c.Work]++; hangs {
				hanging--
			}
			return thing{ID: c.Work}, nil
		}).Find(func(_ context.Context, c saga.Call[order]) (saga.Finding[thing], error) {
			mu.Lock()
			defer mu.Unlock()
			if made[c.Work] == 0 {
				return saga.NotFound[thing](), nil
			}
			return saga.Found(thing{ID: c.Work}), nil
		}).EachRun().NoUndo("a test").To("books").Timeout(time.Second).Settle(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		l := memory.New(nil)
		p := several(t, l, config{opts: coordinator.Options{Destinations: map[string]coordinator.Limit{"books": {Concurrent: 8}}}}, d)
		pass(time.Second)
		n := 1200
		if pace.AtNight() {
			n = 3600
		}
		for i := range n {
			if _, err := p.Start(t.Context(), "deaf", fmt.Sprintf("w%05d", i), order{Total: i}, nil); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		pass(10 * time.Second)
		if got := in(t, l, "deaf"); got[saga.Completed] < n-4 {
			t.Errorf("beside four that hang there are %v", got)
		}
		pass(2 * time.Hour)
		if got := in(t, l, "deaf"); got[saga.Completed] != n {
			t.Errorf("in the end %v", got)
		}
		for work, times := range made {
			if times != 1 {
				t.Errorf("%s was made %d times", work, times)
			}
		}
		p.kill()
	})
}

// "If that attempt is closed by then, post it as a signal": an answer behind the end of the lease is evidence, and takes a work out of
// review. A stop says what it leaves behind.
func TestALateAnswerBecomesASignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{slow: 80 * time.Second, ignore: true})}
		w.watch(l)
		p := boot(t, l, w, config{program: mailer})
		synctest.Wait()
		p.begin("o1")
		pass(time.Second)
		o, err := l.Overview(t.Context())
		if err != nil || len(o.Sessions) != 1 || l.Bury(t.Context(), o.Sessions[0].Token) != nil {
			t.Fatalf("its session is %+v, %v", o.Sessions, err)
		}
		pass(70 * time.Second)
		p.want("o1", saga.Review, saga.ReasonInDoubt)
		pass(30 * time.Second)
		s := p.want("o1", saga.Completed, "")
		if r := s.Steps["receipt"]; r.ExternalID != w.made("receipt", "o1")[0].id || r.Evidence != string(machine.KindFound) {
			t.Errorf("the late answer was recorded as %+v", r)
		}
		signals, err := l.Signals(t.Context(), idOf("o1"))
		if err != nil || len(signals) != 1 || signals[0].Kind != machine.SignalLate {
			t.Errorf("signals: %+v, %v", signals, err)
		}
		verifyMails(t, l, w, 1, "o1")
	})
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{slow: time.Hour, ignore: true})}
		p := boot(t, l, w, config{program: mailer})
		synctest.Wait()
		p.begin("o1")
		pass(time.Minute)
		if err := p.halt(); err == nil || !strings.Contains(err.Error(), "1 works did not come to rest") {
			t.Errorf("the stop says %v of what it leaves behind", err)
		}
		pass(time.Hour)
	})
}

// machine/F20: a step whose process dies in flight twenty times is poison; other works go on. It pauses
// longer each time.
func TestLostAttemptsArePoison(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		var deaths atomic.Int64
		deadly := config{doom: func(a arrival) death {
			if a.work != "bad" || a.step != "customer" {
				return lives
			}
			deaths.Add(1)
			return diesBetween
		}}
		p := boot(t, l, w, deadly)
		synctest.Wait()
		p.begin("bad")
		for range 30 {
			<-time.After(20 * time.Minute)
			if !p.isDead() {
				break
			}
			p.kill()
			p = boot(t, l, w, deadly)
		}
		p.want("bad", saga.Review, saga.ReasonPoison)
		if n := deaths.Load(); n != 20 {
			t.Errorf("the step took %d processes down, want 20", n)
		}
		p.begin("good")
		p.want("good", saga.Completed, "")
		verify(t, l, w, "bad", "good")
	})
}

func bury(t *testing.T, l ledger.Ledger, token machine.Token) {
	t.Helper()
	if err := l.Bury(t.Context(), token); err != nil {
		t.Fatal(err)
	}
}

// lateAnswer is a ledger that answers the first record of a kind late: it is stored, and its time
// runs.
type lateAnswer struct {
	ledger.Ledger

	to   func(*machine.Record) bool
	by   time.Duration
	once sync.Once
}

func arms(r *machine.Record) bool { return r.Dispatch != nil }

func (l *lateAnswer) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	as, err := l.Ledger.Append(ctx, t, es)
	if slices.ContainsFunc(es, func(e ledger.Entry) bool { return l.to(&e.Record) }) {
		l.once.Do(func() { pass(l.by) })
	}
	return as, err
}

// An attempt's deadline counts from before its arm was sent to the ledger, and is never later than
// the one on record: what is confirmed behind it is not sent, because others count on it.
func TestAnArmConfirmedTooLateIsNotSent(t *testing.T) {
	t.Parallel()
	for by, want := range map[time.Duration]int{time.Second: 1, 3 * time.Second: 2} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, w := memory.New(nil), &world{}
				w.watch(m)
				var attempts []int
				p := boot(t, &lateAnswer{Ledger: m, to: arms, by: by}, w, config{program: func(p *process) saga.Program {
					d, err := saga.Define(orderSaga, 1, saga.Do("receipt", func(ctx context.Context, c saga.Call[order]) (thing, error) {
						attempts = append(attempts, c.Attempt)
						return p.send(ctx, c, saga.Forward, "")
					}).AtMostOnce().NoUndo("a mail cannot be unsent").Timeout(2*time.Second).To("post"))
					if err != nil {
						t.Fatal(err)
					}
					return d
				}})
				synctest.Wait()
				p.begin("o1")
				p.want("o1", saga.Completed, "")
				if len(attempts) != 1 || attempts[0] != want {
					t.Errorf("the arm was confirmed after %s, the step has 2s: attempts %v acted, want %d", by, attempts, want)
				}
				verifyMails(t, m, w, 1, "o1")
			})
		})
	}
}

// A send gate asks for the lease, too: an action that comes to it when its process's lease is over
// lets nothing out, though its attempt has time left. By then another process may have taken the
// work over.
func TestTheGateWantsALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{}
		w.watch(l)
		var deaf atomic.Bool
		var refused []error
		p := boot(t, l, w, config{
			hook: &hooked{renew: func(context.Context) error {
				if deaf.Load() {
					return errors.New("connection refused")
				}
				return nil
			}},
			program: func(p *process) saga.Program {
				return mailing(p, func(ctx context.Context, c saga.Call[order]) (thing, error) {
					if c.Attempt == 1 {
						deaf.Store(true)
						pass(quick().Lease) // the attempt has 20 s
						err := c.Sending()
						refused = append(refused, err)
						deaf.Store(false)
						return thing{}, err
					}
					return p.send(ctx, c, saga.Forward, "")
				})
			},
		})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Completed, "")
		if len(refused) != 1 || refused[0] == nil {
			t.Errorf("the gate said %v behind the lease, want a refusal", refused)
		}
		verifyMails(t, l, w, 1, "o1")
	})
}

// While an action hangs nothing is known of what it does: no resolution is taken that an attempt behind it would follow.
func TestNoResolutionOfWhatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := saga.Define("deaf", 1, saga.Do("mail", func(_ context.Context, c saga.Call[order]) (thing, error) {
			_ = c.Sending()
			pass(time.Hour)
			return thing{ID: c.Work}, nil
		}).AtMostOnce().NoUndo("a test").Timeout(time.Second).Settle(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		l := memory.New(nil)
		p := several(t, l, config{}, d)
		pass(time.Second)
		p.starts("deaf", 1)
		pass(10 * time.Minute)
		id := saga.ID{Saga: "deaf", Work: "w00000"}
		if err := p.Resolve(t.Context(), id, "mail", saga.Resolution{}, anna); !errors.Is(err, coordinator.ErrChangesNothing) {
			t.Errorf("did not happen: %v", err)
		}
		if err := p.Skip(t.Context(), id, "mail", nil, anna); err == nil {
			t.Error("a skip is taken")
		}
		pass(2 * time.Hour)
		if got := in(t, l, "deaf"); got[saga.Completed] != 1 {
			t.Errorf("in the end %v", got)
		}
	})
}
