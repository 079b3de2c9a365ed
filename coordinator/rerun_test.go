package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A completed work is run again at the version it has: the invoice is written again, the mail is
// not sent again, the same request does it once, and the source's next version follows as ever.
func TestRerun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		p.revise("17", "three lines")
		first := p.want("o1", saga.Completed, "")
		again := func(request string, duplicate bool) {
			t.Helper()
			s, err := p.Rerun(t.Context(), idOf("o1"), request, anna)
			if err != nil || s.Duplicate != duplicate || s.Revised == duplicate {
				t.Errorf("request %s: %+v, %v", request, s, err)
			}
		}
		again("plan 1", false)
		again("plan 1", true)
		pass(time.Second)
		s := p.want("o1", saga.Completed, "")
		if s.Revision != "17+1" || s.Steps["invoice"].Key == first.Steps["invoice"].Key || s.Steps["invoice"].ExternalID != "inv-1" {
			t.Errorf("after the run: %+v", s)
		}
		again("plan 1", true)
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		again("plan 2", false)
		again("plan 3", false) // nobody has read the one before
		p = office(t, l, b, 1, false)
		pass(time.Second)
		if s := p.revise("17", "three lines"); !s.Stale || s.Revision != "17+3" {
			t.Errorf("the source says again what was repeated: %+v", s)
		}
		p.revise("18", "four lines")
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says three lines (revision "17")`, "mail about inv-1", `inv-1 says three lines (revision "17+1")`,
			`inv-1 says three lines (revision "17+3")`, `inv-1 says four lines (revision "18")`)
		ledgertest.MustCheck(t, l)
	})
}

// A work without revisions can be run again, too.
func TestRerunWithoutRevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &paper{invoices: map[string]string{}}
		p := office(t, memory.New(nil), b, 1, false)
		p.revise("", "one")
		p.want("o1", saga.Completed, "")
		if _, err := p.Rerun(t.Context(), idOf("o1"), "r", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says one (revision "")`, "mail about inv-1", `inv-1 says one (revision "+1")`)
	})
}

// A rerun is check-and-set on the run that it names: however often, and from wherever, that one is asked for, it is done again once, also
// when the run that followed it has ended; and then that one can be named. Without a run or a request nothing is done.
func TestRerunOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		p.revise("1", "one")
		p.want("o1", saga.Completed, "")
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		again := func(request string, duplicate bool, revision string) {
			t.Helper()
			if s, err := p.Rerun(t.Context(), idOf("o1"), request, anna); err != nil || s.Duplicate != duplicate || s.Revision != revision {
				t.Errorf("%s: %+v, %v", request, s, err)
			}
		}
		for i := range 3 {
			again(coordinator.OfRun("1"), i > 0, "1")
		}
		p = office(t, l, b, 1, false)
		if s := p.want("o1", saga.Completed, ""); s.Revision != "1+1" {
			t.Errorf("it is at %s", s.Revision)
		}
		again(coordinator.OfRun("1"), true, "1+1") // by a proxy that repeats it, or an arrow key
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		again("ticket 1", false, "1+1")
		again(coordinator.OfRun("1+1"), true, "1+1") // it is to be followed already
		p = office(t, l, b, 1, false)
		if s := p.want("o1", saga.Completed, ""); s.Revision != "1+2" {
			t.Errorf("it is at %s", s.Revision)
		}
		again(coordinator.OfRun("1+1"), true, "1+2")
		again(coordinator.OfRun("1+2"), false, "1+2")
		if s := p.want("o1", saga.Completed, ""); s.Revision != "1+3" {
			t.Errorf("it is at %s", s.Revision)
		}
		for request, want := range map[string]error{"": coordinator.ErrInvalid, coordinator.OfRun("9"): coordinator.ErrChangesNothing} {
			if _, err := p.Rerun(t.Context(), idOf("o1"), request, anna); !errors.Is(err, want) {
				t.Errorf("request %q: %v, want %v", request, err, want)
			}
		}
	})
}

// A compensated work whose source still wants it is run again by a command, and every
// step is made under a new key. A duplicate start and the log name the command.
func TestRerunOfWhatWasUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w, out := memory.New(nil), &world{plan: on("mark", saga.Forward, 1, fault{refuse: true})}, &lines{}
		w.watch(l)
		o := quick()
		o.Log = out.logger()
		p := boot(t, l, w, config{opts: o})
		synctest.Wait()
		p.begin("o1")
		before := p.want("o1", saga.Compensated, "")
		if s := p.begin("o1"); !s.Duplicate || !strings.Contains(s.Next, "amends show o1 --saga "+orderSaga) {
			t.Errorf("a duplicate start says %q", s.Next)
		}
		if !slices.ContainsFunc(out.all(t), func(line map[string]any) bool {
			next, _ := line["next"].(string)
			return line["status"] == "compensated" && strings.Contains(next, "amends rerun o1 --saga "+orderSaga)
		}) {
			t.Errorf("the log does not name the command:\n%s", out)
		}
		if _, err := p.Rerun(t.Context(), idOf("o1"), "a ticket", anna); err != nil {
			t.Fatal(err)
		}
		s := p.want("o1", saga.Completed, "")
		if s.Revision != "+1" || s.Steps["invoice"].Key == before.Steps["invoice"].Key || len(w.made("receipt", "o1")) != 1 {
			t.Errorf("%+v", s)
		}
		ledgertest.MustCheck(t, l)
	})
}

// mails is a saga that sends two mails, before any pivot.
func mails(p *process) saga.Program {
	send := func(ctx context.Context, c saga.Call[order]) (thing, error) { return p.send(ctx, c, saga.Forward, "") }
	void := func(ctx context.Context, c saga.Call[order], _ *thing) error {
		_, err := p.send(ctx, c, saga.Undo, "")
		return err
	}
	d, err := saga.Define(orderSaga, 1,
		saga.Do("mark", send).Keyed(24*time.Hour).EachRun().UndoMaybe(void).Timeout(4*time.Second).Settle(3*time.Second),
		saga.Do("receipt", send).AtMostOnce().NoUndo("the customer is told").Timeout(4*time.Second).Settle(3*time.Second),
		saga.Do("letter", send).AtMostOnce().NoUndo("the customer is told").Timeout(4*time.Second).Settle(3*time.Second),
	)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// machine/V5, V9: a mail that was sent, or may have been, is not sent again by a rerun: the first is kept,
// about the second a person is asked before the run begins.
func TestRerunSendsNoSecondMail(t *testing.T) {
	t.Parallel()
	t.Run("it was sent", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{plan: on("letter", saga.Forward, 1, fault{refuse: true})}
			p := boot(t, l, w, config{program: mails})
			p.begin("o1")
			p.want("o1", saga.Compensated, "")
			if _, err := p.Rerun(t.Context(), idOf("o1"), "a ticket", anna); err != nil {
				t.Fatal(err)
			}
			p.want("o1", saga.Completed, "")
			if n := w.count("o1", "receipt", saga.Forward); n != 1 {
				t.Errorf("%d mails", n)
			}
			ledgertest.MustCheck(t, l)
		})
	})
	t.Run("it may have been", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &world{plan: on("receipt", saga.Forward, 1, fault{mute: true})}
			p := boot(t, l, w, config{program: mails})
			p.begin("o1")
			p.want("o1", saga.Review, saga.ReasonInDoubt)
			if err := p.Cancel(t.Context(), idOf("o1"), anna); err != nil {
				t.Fatal(err)
			}
			p.want("o1", saga.Compensated, "")
			if _, err := p.Rerun(t.Context(), idOf("o1"), "a ticket", anna); err != nil {
				t.Fatal(err)
			}
			p.want("o1", saga.Review, saga.ReasonInDoubt)
			if rs, err := l.History(t.Context(), idOf("o1")); err != nil || !slices.ContainsFunc(rs, func(r machine.Record) bool {
				return r.Kind == machine.KindHeard && r.Said() == "it is to be run again, says anna: the customer called"
			}) {
				t.Errorf("who asked for it, and why, is not on record: %v", err)
			}
			if err := p.Retry(t.Context(), idOf("o1"), anna); !errors.Is(err, coordinator.ErrChangesNothing) {
				t.Errorf("a retry of a mail that may have been sent: %v", err)
			}
			if err := p.Resolve(t.Context(), idOf("o1"), "receipt", coordinator.Happened("m1"), anna); err != nil {
				t.Fatal(err)
			}
			if s := p.want("o1", saga.Completed, ""); s.Revision != "+1" || w.count("o1", "receipt", saga.Forward) != 1 {
				t.Errorf("%d mails, %+v", w.count("o1", "receipt", saga.Forward), s)
			}
			ledgertest.MustCheck(t, l)
		})
	})
}

// What was given up is run again where nothing of it is in doubt; where something may have happened
// it is tried again under its key instead.
func TestRerunOfWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step string
		want error
	}{"nothing is in doubt": {"invoice", nil}, "it may have happened": {"customer", coordinator.ErrInDoubt}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &world{plan: on(c.step, saga.Forward, 1, fault{drop: true})}
				w.watch(l)
				p := boot(t, l, w, config{tune: tuning{retry: saga.Retry{Within: time.Second}}})
				synctest.Wait()
				p.begin("o1")
				p.want("o1", saga.Review, saga.ReasonExhausted)
				_, err := p.Rerun(t.Context(), idOf("o1"), "a ticket", anna)
				if !errors.Is(err, c.want) {
					t.Fatalf("run again: %v, want %v", err, c.want)
				}
				if err != nil {
					if !strings.Contains(err.Error(), "amends show o1") || len(signalsOf(t, l, "o1")) > 0 {
						t.Errorf("%v; posted: %+v", err, signalsOf(t, l, "o1"))
					}
					if err := p.Retry(t.Context(), idOf("o1"), anna); err != nil {
						t.Fatal(err)
					}
				}
				p.want("o1", saga.Completed, "")
				verify(t, l, w, "o1")
			})
		})
	}
}

func signalsOf(t *testing.T, l ledger.Catalogue, work string) []machine.Signal {
	t.Helper()
	signals, err := l.Signals(t.Context(), idOf(work))
	if err != nil {
		t.Fatal(err)
	}
	return signals
}

// A version that was heard, and taken back by a person's cancel before it began, is what the source
// still wants.
func TestRerunOfAVersionTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("invoice", saga.Forward, 1, fault{mute: true})}
		p := boot(t, l, w, config{})
		synctest.Wait()
		p.revise("1", "one")
		pass(5 * time.Second) // the invoice is in doubt, and settles
		p.revise("2", "two")
		pass(time.Second)
		if st := stateOf(t, l, "o1"); st.PendingRevision == nil {
			t.Fatalf("nothing waits: %+v", st)
		}
		if err := p.Cancel(t.Context(), idOf("o1"), anna); err != nil {
			t.Fatal(err)
		}
		p.want("o1", saga.Compensated, "")
		if _, err := p.Rerun(t.Context(), idOf("o1"), "a ticket", anna); err != nil {
			t.Fatal(err)
		}
		p.want("o1", saga.Completed, "")
		if st := stateOf(t, l, "o1"); st.Revision != "2+1" || !strings.Contains(string(st.Input), "two") {
			t.Errorf("revision %s was run with %s", st.Revision, st.Input)
		}
		ledgertest.MustCheck(t, l)
	})
}

// What its source cancelled, what moves, and what nobody knows is not run again; nothing is stored.
// It is said who wants it, and why.
func TestRerunRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		p.revise("1", "one")
		p.want("o1", saga.Completed, "")
		if err := p.Withdraw(t.Context(), orderSaga, "o1", "2", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		p.want("o1", saga.Compensated, "")
		b.hold = make(chan struct{})
		if _, err := p.Start(t.Context(), orderSaga, "o2", order{Memo: "one"}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := len(signalsOf(t, l, "o1"))
		for _, c := range []struct {
			work string
			by   saga.Actor
			want error
		}{
			{"o1", anna, coordinator.ErrWithdrawn},
			{"o2", anna, coordinator.ErrNotEnded},
			{"o3", anna, ledger.ErrNotFound},
			{"o1", saga.Actor{}, nil},
		} {
			if _, err := p.Rerun(t.Context(), idOf(c.work), "r", c.by); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if n := len(signalsOf(t, l, "o1")); n != before || len(signalsOf(t, l, "o2")) > 0 {
			t.Errorf("%d signals were stored", n-before)
		}
		close(b.hold)
	})
}
