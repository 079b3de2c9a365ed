package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// machine/S14: "a pause holds the work where it is, going forward or back". No process moves it, whichever
// dies, until a person lets it go on.
func TestPause(t *testing.T) {
	t.Parallel()
	unsent := fault{unsent: true}
	for name, c := range map[string]struct {
		plan func(arrival) fault
		when time.Duration
		step string // that does not go out while it is paused
		dir  saga.Direction
		ends saga.Status
	}{
		"in a backoff":                  {on("invoice", saga.Forward, 3, unsent), 2 * time.Second, "invoice", saga.Forward, saga.Completed},
		"in a backoff in the ledger":    {on("invoice", saga.Forward, 1, fault{unsent: true, after: time.Hour}), time.Second, "invoice", saga.Forward, saga.Completed},
		"while an attempt is under way": {on("invoice", saga.Forward, 1, fault{slow: 3 * time.Second}), time.Second, "mark", saga.Forward, saga.Completed},
		"while a step in doubt settles": {on("invoice", saga.Forward, 1, fault{mute: true}), 5 * time.Second, "mark", saga.Forward, saga.Completed},
		"on the way back":               {undoing(unsent), 2 * time.Second, "invoice", saga.Undo, saga.Compensated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: c.plan}
				w.watch(l)
				p := boot(t, l, w, config{})
				synctest.Wait()
				p.begin("o1")
				pass(c.when)
				must(t, p.Pause(t.Context(), idOf("o1"), anna))
				if s := p.want("o1", saga.Paused, ""); !strings.Contains(s.Note, "the customer called") || !strings.Contains(s.Next, "amends show o1") {
					t.Errorf("%q, %q", s.Note, s.Next)
				}
				before := w.count("o1", c.step, c.dir)
				storesNothing(t, l, coordinator.ErrAtRest, func() error { return p.Pause(t.Context(), idOf("o1"), anna) })
				p.kill()
				p = boot(t, l, w, config{})
				pass(2 * time.Hour)
				if n := w.count("o1", c.step, c.dir); n != before {
					t.Errorf("%d requests went out of a paused work", n-before)
				}
				must(t, p.Resume(t.Context(), idOf("o1"), anna))
				p.want("o1", c.ends, "")
				storesNothing(t, l, coordinator.ErrNotPaused, func() error { return p.Resume(t.Context(), idOf("o1"), anna) })
				storesNothing(t, l, coordinator.ErrFinished, func() error { return p.Pause(t.Context(), idOf("o1"), anna) })
				verify(t, l, w, "o1")
			})
		})
	}
}

// undoing turns the work at its mark and strikes the first undos of its invoice.
func undoing(f fault) func(arrival) fault {
	return func(a arrival) fault {
		switch {
		case a.step == "mark":
			return fault{refuse: true}
		case a.step == "invoice" && a.dir == saga.Undo && a.n <= 3:
			return f
		default:
			return fault{}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// storesNothing expects an order about o1 to be refused with an error that says what to do, and
// nothing to be stored.
func storesNothing(t *testing.T, l *memory.DB, want error, order func() error) {
	t.Helper()
	before := len(signalsOf(t, l, "o1"))
	if err := order(); !errors.Is(err, want) {
		t.Errorf("got %v, want: %v", err, want)
	}
	if n := len(signalsOf(t, l, "o1")) - before; n != 0 {
		t.Errorf("%d signals were stored of what was refused: %v", n, want)
	}
}

// What is said behind a pause that nobody has read yet is posted, in its order.
func TestResumeBehindAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{unsent: true, after: time.Hour})}
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o1")
		pass(time.Second)
		p.halt()
		must(t, p.Pause(t.Context(), idOf("o1"), anna))
		must(t, p.Resume(t.Context(), idOf("o1"), anna))
		boot(t, l, w, config{}).want("o1", saga.Completed, "")
		verify(t, l, w, "o1")
	})
}

// machine/S16: a retry goes out at once, under the key that the step has.
func TestRetryUnderTheSameKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan   func(arrival) fault
		step   string
		reason saga.Reason // "": it waits
	}{
		"refused behind the pivot":         {on("receipt", saga.Forward, 1, fault{refuse: true}), "receipt", saga.ReasonAfterPivot},
		"in doubt, and given up":           {on("customer", saga.Forward, 1, fault{drop: true}), "customer", saga.ReasonExhausted},
		"given up within the key's window": {on("mark", saga.Forward, 1, fault{mute: true}), "mark", saga.ReasonExhausted},
		"in a backoff":                     {on("mark", saga.Forward, 1, fault{unsent: true}), "mark", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: c.plan}
				w.watch(l)
				p := boot(t, l, w, config{tune: tuning{retry: saga.Retry{Within: time.Second, Initial: time.Hour}}})
				synctest.Wait()
				p.begin("o1")
				if c.reason != "" {
					p.want("o1", saga.Review, c.reason)
				}
				pass(time.Second)
				from := time.Now()
				must(t, p.Retry(t.Context(), idOf("o1"), anna))
				// Said twice, it is one; it is refused where the first has been heard by now.
				if err := p.Retry(t.Context(), idOf("o1"), anna); err != nil && !errors.Is(err, coordinator.ErrFinished) && !errors.Is(err, coordinator.ErrChangesNothing) {
					t.Error(err)
				}
				if n := len(signalsOf(t, l, "o1")); n != 1 {
					t.Errorf("%d signals", n)
				}
				if p.want("o1", saga.Completed, ""); time.Since(from) > time.Minute {
					t.Errorf("it took %s", time.Since(from))
				}
				keys := map[string]bool{}
				for _, a := range w.arrivals {
					if a.step == c.step {
						keys[a.key] = true
					}
				}
				if len(keys) != 1 {
					t.Errorf("%s went out under %d keys", c.step, len(keys))
				}
				storesNothing(t, l, coordinator.ErrFinished, func() error { return p.Retry(t.Context(), idOf("o1"), anna) })
				verify(t, l, w, "o1")
			})
		})
	}
}

// What nobody can tell of is not tried again, and while an attempt is under way there is nothing to
// try.
func TestRetryRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{mute: true})}
		w.watch(l)
		p := boot(t, l, w, config{})
		synctest.Wait()
		retry := func() error { return p.Retry(t.Context(), idOf("o1"), anna) }
		p.begin("o1")
		pass(time.Second)
		storesNothing(t, l, coordinator.ErrUnderWay, retry)
		p.want("o1", saga.Review, saga.ReasonInDoubt)
		storesNothing(t, l, coordinator.ErrChangesNothing, retry)
		if err := retry(); !strings.Contains(err.Error(), "it cannot be told whether the step happened") || !strings.Contains(err.Error(), "amends show o1") {
			t.Errorf("it says %v", err)
		}
		if err := p.Retry(t.Context(), idOf("o1"), saga.Actor{Name: " ", Reason: " "}); err == nil || !strings.Contains(err.Error(), "(actor)") || !strings.Contains(err.Error(), "(reason)") {
			t.Errorf("a retry without an actor and a reason: %v", err)
		}
		if n := w.count("o1", "receipt", saga.Forward); n != 1 {
			t.Errorf("%d mails", n)
		}
		verify(t, l, w, "o1")
	})
}

// asks is a saga whose last step asks for the result of the mail before it.
func asks(p *process) saga.Program {
	send := func(ctx context.Context, c saga.Call[order]) (thing, error) { return p.send(ctx, c, saga.Forward, "") }
	d, err := saga.Define(orderSaga, 1,
		saga.Do("mark", send).Keyed(24*time.Hour).EachRun().NoUndo("the shop keeps it").Pivot(),
		saga.Do("receipt", send).Idempotent().NoUndo("the shop tells the customer"),
		saga.Do("customer", func(ctx context.Context, c saga.Call[order]) (thing, error) {
			c.Input.Customer = c.ExternalID("receipt")
			return p.send(ctx, c, saga.Forward, "")
		}).Idempotent().NoUndo("customers outlive their orders"),
	)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// machine/S17: a skipped step is not sent, and later steps find the result that was given, then or later.
func TestSkip(t *testing.T) {
	t.Parallel()
	bounced := func(t *testing.T) (*memory.DB, *world, *process) {
		t.Helper()
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 9, fault{refuse: true})}
		p := boot(t, l, w, config{program: asks})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Review, saga.ReasonAfterPivot)
		return l, w, p
	}
	told := func(t *testing.T, l *memory.DB, w *world, p *process) {
		t.Helper()
		s := p.want("o1", saga.Completed, "")
		if last := w.arrivals[len(w.arrivals)-1]; s.Steps["receipt"].Status != "skipped" || s.Steps["receipt"].Done || last.customer != "m1" {
			t.Errorf("%+v; the last step was told %q", s.Steps["receipt"], last.customer)
		}
		if n := w.count("o1", "receipt", saga.Forward); n != 1 {
			t.Errorf("%d mails", n)
		}
		ledgertest.MustCheck(t, l)
	}
	t.Run("with a result", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w, p := bounced(t)
			must(t, p.Skip(t.Context(), idOf("o1"), "", &program.Result{ExternalID: "m1"}, anna))
			told(t, l, w, p)
		})
	})
	t.Run("its result is given later", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w, p := bounced(t)
			must(t, p.Skip(t.Context(), idOf("o1"), "", nil, anna))
			p.want("o1", saga.Review, saga.ReasonPoison)
			must(t, p.Skip(t.Context(), idOf("o1"), "receipt", &program.Result{ExternalID: "m1"}, anna))
			p.want("o1", saga.Review, saga.ReasonPoison)
			must(t, p.Retry(t.Context(), idOf("o1"), anna))
			told(t, l, w, p)
		})
	})
	t.Run("out of a pause", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 9, fault{unsent: true})}
			p := boot(t, l, w, config{program: asks})
			synctest.Wait()
			p.begin("o1")
			pass(time.Second)
			skip := func() error { return p.Skip(t.Context(), idOf("o1"), "", nil, anna) }
			storesNothing(t, l, coordinator.ErrNotInReview, skip)
			must(t, p.Pause(t.Context(), idOf("o1"), anna))
			p.want("o1", saga.Paused, "")
			must(t, skip())
			p.want("o1", saga.Review, saga.ReasonPoison)
		})
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, _, p := bounced(t)
			skip := func(step string, r *program.Result) func() error {
				return func() error { return p.Skip(t.Context(), idOf("o1"), step, r, anna) }
			}
			storesNothing(t, l, coordinator.ErrChangesNothing, skip("mark", nil)) // it is done
			storesNothing(t, l, coordinator.ErrOtherStep, skip("customer", nil))  // nobody has tried it
			for _, output := range []string{"{", `"` + strings.Repeat("x", program.MaxOutput) + `"`} {
				if err := skip("", &program.Result{Output: []byte(output)})(); err == nil || len(signalsOf(t, l, "o1")) > 0 {
					t.Errorf("a result of %d bytes was taken: %v", len(output), err)
				}
			}
		})
	})
	t.Run("on the way back, where an undo was refused: it stands", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{plan: undoing(fault{refuse: true})}
			p := boot(t, l, w, config{})
			synctest.Wait()
			p.begin("o1")
			p.want("o1", saga.Review, saga.ReasonUndoFailed)
			if err := p.Skip(t.Context(), idOf("o1"), "", nil, anna); err != nil {
				t.Fatal(err)
			}
			p.want("o1", saga.Compensated, "")
		})
	})
}

// A person's later word, before a process has read the first one, counts: pause, resume and pause
// again is a pause.
func TestTheLastWordBeforeOneIsReadCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begun, end := memory.New(nil), make(chan struct{}, 100), make(chan struct{})
		p := boot(t, l, &world{}, config{program: func(*process) saga.Program {
			return flat(t, func(_ context.Context, c saga.Call[order]) (thing, error) {
				begun <- struct{}{}
				<-end
				return thing{}, errors.New("500")
			})
		}})
		synctest.Wait()
		begin(t, p, 0)
		<-begun
		op, id := coordinator.NewOperator(l), idOf("o00000")
		for i, say := range []func(context.Context, saga.ID, saga.Actor) error{op.Pause, op.Resume, op.Pause, op.Pause} {
			if err := say(t.Context(), id, anna); err != nil {
				t.Fatal(i, err)
			}
		}
		if all, err := l.Signals(t.Context(), id); err != nil || len(all) != 3 {
			t.Errorf("the same word twice is one signal: %+v, %v", all, err)
		}
		close(end)
		pass(time.Minute)
		if got := in(t, l, orderSaga); got[saga.Paused] != 1 {
			t.Errorf("%v", got)
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
	})
}
