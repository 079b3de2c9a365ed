package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

var anna = saga.Actor{Name: "anna", Reason: "the customer called"}

// machine/S2: "cancel turns the work, from any place before the pivot may have happened".
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan func(arrival) fault
		when time.Duration
		ends saga.Status
	}{
		"during a backoff in hand":          {on("mark", saga.Forward, 99, fault{unsent: true}), time.Second, saga.Compensated},
		"during a backoff in the ledger":    {on("mark", saga.Forward, 99, fault{unsent: true, after: time.Hour}), time.Second, saga.Compensated},
		"while an attempt is under way":     {on("invoice", saga.Forward, 1, fault{slow: 3 * time.Second}), time.Second, saga.Compensated},
		"while a step in doubt settles":     {on("invoice", saga.Forward, 1, fault{mute: true}), 5 * time.Second, saga.Compensated},
		"too late: the pivot may have been": {on("mark", saga.Forward, 1, fault{slow: 3 * time.Second}), time.Second, saga.Completed},
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
				if err := p.Cancel(t.Context(), idOf("o1"), anna); err != nil {
					t.Fatal(err)
				}
				p.want("o1", c.ends, "")
				if err := p.Cancel(t.Context(), idOf("o1"), anna); !errors.Is(err, coordinator.ErrFinished) {
					t.Errorf("cancelling a work that has ended: %v", err)
				}
				verify(t, l, w, "o1")
			})
		})
	}
}

// "Pending signals are fed before anything is armed", also those that wait behind the open attempt
// of a dead process: the cancel is consumed, and the step is not armed once more over its head.
func TestACancelBehindALostAttemptComesFirst(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{7 * time.Second, 7300 * time.Millisecond, 8900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{plan: on("mark", saga.Forward, 1, fault{mute: true})}
			w.watch(l)
			tune := tuning{timeout: 10 * time.Second}
			a := boot(t, l, w, config{tune: tune, doom: func(a arrival) death {
				if a.step == "invoice" {
					return diesBetween
				}
				return lives
			}})
			synctest.Wait()
			go a.Start(t.Context(), orderSaga, "o1", order{Customer: "c-o1"}, nil) // its process dies
			// No poll falls on the deadline and brings the cancel.
			pass(200 * time.Millisecond)
			b := boot(t, l, w, config{tune: tune})
			pass(after) // b holds the work and waits until the dead process's invoice has settled
			if err := b.Cancel(t.Context(), idOf("o1"), anna); err != nil {
				t.Fatal(err)
			}
			b.want("o1", saga.Compensated, "")
			if n := w.count("o1", "mark", saga.Forward); n != 0 {
				t.Errorf("%d marks were armed over the head of a cancel", n)
			}
			rs := b.records.of("o1")
			i := slices.IndexFunc(rs, func(r machine.Record) bool { return r.Kind == machine.KindCancelled })
			j := slices.IndexFunc(rs, func(r machine.Record) bool { return r.Dispatch != nil })
			if i < 0 || j >= 0 && j < i {
				t.Errorf("after %s: the cancel is record %d of the second process, its first arm record %d", after, i, j)
			}
			verify(t, l, w, "o1")
		})
	}
}

// The same for a step that can be repeated two seconds after it was armed.
func TestASignalBehindALostAttemptIsNotArmedOver(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{1200 * time.Millisecond, 1300 * time.Millisecond, 1400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{}
			w.watch(l)
			cfg := config{tune: tuning{timeout: 10 * time.Second}, opts: quick()}
			cfg.opts.Lease, cfg.opts.Margin = time.Second, 100*time.Millisecond
			dying := cfg
			dying.doom = func(arrival) death { return diesBetween }
			a := boot(t, l, w, dying)
			synctest.Wait()
			go a.Start(t.Context(), orderSaga, "o1", order{Customer: "c-o1"}, nil) // its process dies
			// No poll falls on the end of the grace and brings the cancel.
			pass(300 * time.Millisecond)
			b := boot(t, l, w, cfg)
			pass(after) // b holds the work
			if err := b.Cancel(t.Context(), idOf("o1"), anna); err != nil {
				t.Fatal(err)
			}
			b.want("o1", saga.Compensated, "")
			if n := w.count("o1", "customer", saga.Forward); n != 1 {
				t.Errorf("after %s: %d requests, want only the one whose process died", after, n)
			}
			verify(t, l, w, "o1")
		})
	}
}

// machine/S5, S6: a person's resolution on a step that nobody can tell about, both ways.
func TestResolveForward(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f          fault
		resolution func(*world) saga.Resolution
		mails      int
	}{
		"it happened": {fault{mute: true}, func(w *world) saga.Resolution {
			return coordinator.Happened(w.made("receipt", "o1")[0].id)
		}, 1},
		"it did not": {fault{drop: true}, func(*world) saga.Resolution { return coordinator.DidNotHappen() }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, c.f)}
				w.watch(l)
				p := boot(t, l, w, config{})
				synctest.Wait()
				p.begin("o1")
				p.want("o1", saga.Review, saga.ReasonInDoubt)
				refusedResolutions(t, p)
				if err := p.Resolve(t.Context(), idOf("o1"), "receipt", c.resolution(w), anna); err != nil {
					t.Fatal(err)
				}
				s := p.want("o1", saga.Completed, "")
				if made := w.made("receipt", "o1"); len(made) != 1 || s.Steps["receipt"].ExternalID != made[0].id {
					t.Errorf("the ledger says %+v, the mailbox %+v", s.Steps["receipt"], made)
				}
				keys := map[string]bool{}
				for _, a := range w.arrivals {
					if a.step == "receipt" {
						keys[a.key] = true
					}
				}
				if len(keys) != c.mails {
					t.Errorf("%d keys, want %d: a resolution that it did not happen is a new key", len(keys), c.mails)
				}
				verify(t, l, w, "o1")
			})
		})
	}
}

func refusedResolutions(t *testing.T, p *process) {
	t.Helper()
	ctx, id := t.Context(), idOf("o1")
	if err := p.Resolve(ctx, id, "receipt", coordinator.DidNotHappen(), saga.Actor{}); err == nil {
		t.Error("a resolution of nobody, for no reason, was taken")
	}
	if err := p.Resolve(ctx, id, "invoice", coordinator.DidNotHappen(), anna); !errors.Is(err, coordinator.ErrOtherStep) {
		t.Errorf("a resolution on another step: %v", err)
	}
	if err := p.Resolve(ctx, idOf("nowhere"), "invoice", coordinator.DidNotHappen(), anna); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a resolution on an unknown work: %v", err)
	}
}

// machine/C8: an undo that is refused goes to review; a person says whether it is undone.
func TestResolveUndo(t *testing.T) {
	t.Parallel()
	for name, happened := range map[string]bool{"undone by hand": true, "to be tried again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{}
				w.watch(l)
				w.plan = func(a arrival) fault {
					return fault{refuse: a.step == "mark" || a.step == "invoice" && a.dir == saga.Undo && a.n == 1}
				}
				p := boot(t, l, w, config{})
				synctest.Wait()
				p.begin("o1")
				p.want("o1", saga.Review, saga.ReasonUndoFailed)
				resolution := coordinator.DidNotHappen()
				if happened {
					w.take(arrival{work: "o1", step: "invoice", dir: saga.Undo, target: w.made("invoice", "o1")[0].id})
					resolution = coordinator.Happened("")
				}
				if err := p.Resolve(t.Context(), idOf("o1"), "invoice", resolution, anna); err != nil {
					t.Fatal(err)
				}
				p.want("o1", saga.Compensated, "")
				if n := w.count("o1", "invoice", saga.Undo); n != map[bool]int{true: 1, false: 2}[happened] {
					t.Errorf("%d requests to void the invoice", n)
				}
				verify(t, l, w, "o1")
			})
		})
	}
}

// A review that somebody has spoken to is not the last word: whoever waits right behind a
// resolution or a cancel is told what came of it, in every process, also when it only came to
// another note.
func TestWaitBehindAResolution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{mute: true})}
		w.watch(l)
		p, q := boot(t, l, w, config{}), boot(t, l, w, config{idle: true})
		synctest.Wait()
		p.begin("o1")
		before := p.want("o1", saga.Review, saga.ReasonInDoubt)
		if err := q.Cancel(t.Context(), idOf("o1"), anna); !errors.Is(err, coordinator.ErrChangesNothing) {
			t.Fatalf("a cancel behind the pivot: %v", err)
		}
		// It came too late for whoever posted it while the pivot was under way.
		if _, err := l.Post(t.Context(), idOf("o1"), machine.Signal{Kind: machine.SignalCancel, Key: "cancel:anna", Actor: anna.Name, Reason: anna.Reason}); err != nil {
			t.Fatal(err)
		}
		after := q.want("o1", saga.Review, saga.ReasonInDoubt)
		rs, err := l.History(t.Context(), idOf("o1"))
		if last := rs[len(rs)-1]; err != nil || last.Kind != machine.KindNoted || len(last.Signals) != 1 {
			t.Errorf("Wait returned %q (before: %q) and the last record is %s: the cancel was not heard yet", after.Note, before.Note, last.Kind)
		}
		if err := q.Resolve(t.Context(), idOf("o1"), "receipt", coordinator.Happened(w.made("receipt", "o1")[0].id), anna); err != nil {
			t.Fatal(err)
		}
		p.want("o1", saga.Completed, "")
		q.want("o1", saga.Completed, "")
		verify(t, l, w, "o1")
	})
}

// The same for a work that has ended and hears of a newer version of its source. Whatever else is
// said to it then moves nothing, and nobody waits for it.
func TestWaitBehindARevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		q := boot(t, l, &world{}, config{idle: true, program: func(*process) saga.Program { return papers(t, b, 1, false) }})
		q.revise("7", "three lines")
		q.want("o1", saga.Completed, "")
		q.revise("9", "four lines")
		if s := q.want("o1", saga.Completed, ""); s.Revision != "9" {
			t.Errorf("Wait behind a newer revision returned revision %s", s.Revision)
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		conflict := machine.Signal{Kind: machine.SignalConflict, Key: "conflict", Actor: "webhook"}
		if _, err := l.Post(t.Context(), idOf("o1"), conflict); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if s, err := q.Wait(ctx, orderSaga, "o1"); err != nil || s.Revision != "9" {
			t.Errorf("a conflict nobody reads: %s, %v", s.Revision, err)
		}
		q.kill()
	})
}

// "A command is stale when the step attempt it speaks of has moved on": the second of two
// resolutions changes nothing and is on record.
func TestTheSecondResolutionIsNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{mute: true})}
		w.watch(l)
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Review, saga.ReasonInDoubt)
		made := w.made("receipt", "o1")[0].id
		for _, v := range []saga.Resolution{coordinator.Happened(made), coordinator.DidNotHappen()} {
			if err := p.Resolve(t.Context(), idOf("o1"), "receipt", v, anna); err != nil {
				t.Fatal(err)
			}
		}
		p.want("o1", saga.Completed, "")
		if n := len(w.made("receipt", "o1")); n != 1 {
			t.Errorf("%d mails after a resolution that was overtaken", n)
		}
		verify(t, l, w, "o1")
	})
}

// A work of a definition that no running process knows stays due, untouched, and goes on when one
// comes that knows it. Older and newer versions run side by side, each work with the version it
// started with.
func TestUnknownVersions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{unsent: true, after: 20 * time.Second})}
		w.watch(l)
		old := boot(t, l, w, config{})
		synctest.Wait()
		old.begin("o1") // version 1, in the ledger for twenty seconds
		synctest.Wait()
		old.halt() // nothing was under way
		second := tuning{version: 2}
		next := boot(t, l, w, config{tune: second})
		next.begin("o2")
		next.want("o2", saga.Completed, "")
		if err := next.Cancel(t.Context(), idOf("o1"), anna); err != nil {
			t.Error(err)
		}
		before := stateOf(t, l, "o1").Seq
		pass(time.Hour)
		if h := headOf(t, l, "o1"); h.Status != saga.Retrying || h.Session != 0 || stateOf(t, l, "o1").Seq != before {
			t.Errorf("an hour later the work is %s, held by %s", h.Status, h.Session)
		}
		both := boot(t, l, w, config{tune: second, program: func(p *process) saga.Program {
			if err := p.Register(t.Context(), orders(p, tuning{})); err != nil {
				t.Error(err)
			}
			return orders(p, second)
		}})
		pass(time.Minute)
		both.want("o1", saga.Compensated, "") // the cancel was kept for who can read it
		both.begin("o3")
		both.want("o3", saga.Completed, "")
		for work, version := range map[string]int{"o1": 1, "o2": 2, "o3": 2} {
			if got := headOf(t, l, work).Version; got != version {
				t.Errorf("%s has version %d, want %d", work, got, version)
			}
		}
		verify(t, l, w, "o1", "o2", "o3")
	})
}
