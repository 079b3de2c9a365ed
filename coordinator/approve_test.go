package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// payments are what approvals are about: a booking, a decision of two people, a charge. They outlive every process.
type payments struct{ diary }

// payment is the saga.
func (p *payments) saga(t testing.TB, within time.Duration) saga.Program {
	t.Helper()
	act := func(_ context.Context, c saga.Call[order]) (thing, error) {
		p.note(fmt.Sprintf("%s %s %d", c.Step, c.Work, c.Input.Total))
		return thing{ID: c.Step + "-" + c.Work}, nil
	}
	undo := func(_ context.Context, c saga.Call[order], _ *thing) error {
		p.note("undo " + c.Step + " " + c.Work)
		return nil
	}
	ask := func(_ context.Context, c saga.Call[order]) (struct{}, error) { // the mail server sends what has a key once
		b := c.Brief()
		if p.note(c.Key) == 1 {
			p.note(fmt.Sprintf("mail %s to %s about %d: %t %t", c.Work, strings.Join(b.Roles, ","), c.Input.Total, b.Reminder, b.Escalated))
			p.note("link " + c.Work + " " + b.Path + " " + b.Digest)
		}
		return struct{}{}, nil
	}
	d, err := saga.Define("payment", 1,
		saga.Do("book", act).Idempotent().UndoMaybe(undo),
		saga.Approve[order]("pay").By("finance").Votes(2).NotStarter().Within(within).When(func(c saga.Call[order]) bool { return c.Input.Total > 10 }).
			Ask(saga.Do("ask", ask).Keyed(90*day).NoID().NoUndo("a question")).Remind(within/4).Escalate(within/2, "cfo"),
		saga.Do("charge", act).Idempotent().NoUndo("a test").Pivot(),
		saga.Identity(func(o order) any { return o.Total }))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mails are those that a work was asked about by, without its name.
func (p *payments) mails(work string) (mails []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for what, at := range p.at {
		if _, about, ok := strings.Cut(what, "mail "+work+" "); ok {
			mails = append(mails, slices.Repeat([]string{about}, len(at))...)
		}
	}
	slices.Sort(mails)
	return mails
}

func paymentOf(work string) saga.ID { return saga.ID{Saga: "payment", Work: work} }

func votes(name string, roles ...string) coordinator.Voter {
	return coordinator.Voter{Actor: saga.Actor{Name: name, Reason: "seen"}, Roles: roles}
}

// Whatever a process dies of, and whenever: who decides is asked once, reminded once, and it is escalated once; without a
// decision it is undone, and with two votes it is charged once (machine/P5, P6).
func TestApprovalsSurviveEveryCrash(t *testing.T) {
	t.Parallel()
	for _, decided := range []bool{false, true} {
		for n, crashed := 1, true; crashed; n++ {
			synctest.Test(t, func(t *testing.T) {
				l, w := memory.New(nil), &payments{}
				faulty := ledgertest.Faulty(l, ledgertest.CrashDuring(n, ledgertest.Append))
				p := several(t, faulty, config{}, w.saga(t, 8*time.Minute))
				q := p
				start := func() (err error) {
					ctx, stop := context.WithTimeout(t.Context(), time.Minute) // a process that died does not answer
					defer stop()
					_, err = q.Start(ctx, "payment", "w", order{Total: 50}, &saga.StartOptions{Starter: "sam"})
					return err
				}
				_ = start()
				again := func() {
					select {
					case <-faulty.Crashed():
						if q == p {
							p.kill()
							q = several(t, l, config{}, w.saga(t, 8*time.Minute))
							if err := start(); err != nil {
								t.Fatal(err)
							}
						}
					default:
					}
				}
				for i := range 20 {
					again()
					pass(30 * time.Second)
					if again(); decided && i == 10 {
						a, err := q.Approval(t.Context(), paymentOf("w"), "")
						if err != nil {
							t.Fatal(err)
						}
						for _, name := range []string{"ann", "bob"} {
							vote := func() error { return q.Vote(t.Context(), a.ID, "", true, a.Digest, votes(name, "finance")) }
							err := vote()
							if again(); err != nil { // the process died before it had heard it
								err = vote()
							}
							if err != nil && !errors.Is(err, coordinator.ErrVoted) {
								t.Fatal(err)
							}
						}
					}
				}
				crashed = q != p
				want, status := []string{"to cfo about 50: false true", "to finance about 50: false false", "to finance about 50: true false"}, saga.Compensated
				if decided {
					status = saga.Completed
				}
				if got := w.mails("w"); !slices.Equal(got, want) {
					t.Errorf("a crash at append %d: the mails are %q", n, got)
				}
				if s, err := q.Show(t.Context(), paymentOf("w")); err != nil || s.Status != status || len(w.of("charge w 50")) > 0 != decided {
					t.Errorf("a crash at append %d: it is %s, charged %d times (%v)", n, s.Status, len(w.of("charge w 50")), err)
				}
			})
		}
	}
}

// "machine/P6: a vote that was posted before the end counts, however late it is read", and so does an answer (machine/A4): also what another process
// stored at the last moment, between two polls of the one that holds the work.
func TestWhatIsSaidAtTheLastMomentCounts(t *testing.T) {
	t.Parallel()
	for before := 20 * time.Millisecond; before < 500*time.Millisecond; before += 60 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			l, w := memory.New(nil), &payments{}
			read := func(saga.Call[order], saga.Message) (thing, error) { return thing{ID: "a"}, nil }
			act := func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "b"}, nil }
			asks, err := saga.Define("asks", 1, saga.Do("submit", act).Idempotent().NoUndo("a test"),
				saga.Await("answer", read).On("done", func(c saga.Call[order]) string { return c.Work }).EachRun().Within(4*time.Second, saga.Compensate))
			if err != nil {
				t.Fatal(err)
			}
			p := several(t, l, config{}, w.saga(t, 4*time.Second), asks)
			pass(730 * time.Millisecond) // the end falls between two polls
			for _, name := range []string{"payment", "asks"} {
				if _, err := p.Start(t.Context(), name, "w", order{Total: 50}, &saga.StartOptions{Starter: "sam"}); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
			op := coordinator.NewOperator(l)
			a, err := op.Approval(t.Context(), paymentOf("w"), "")
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Until(a.Until.Add(-before)))
			for _, name := range []string{"ann", "bob"} {
				if err := op.Vote(t.Context(), a.ID, "", true, a.Digest, votes(name, "finance")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := op.Deliver(t.Context(), saga.Message{Name: "done", Key: "w", ID: "1"}); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			for _, id := range []saga.ID{a.ID, {Saga: "asks", Work: "w"}} {
				if s, err := op.Show(t.Context(), id); err != nil || s.Status != saga.Completed {
					t.Errorf("said %s before the end, and %s is %s (%v)", before, id, s.Status, err)
				}
			}
		})
	}
}

// loadless is a ledger that loads nothing.
type loadless struct{ ledger.Ledger }

func (loadless) Load(context.Context, []saga.ID) ([]ledger.Chain, error) {
	return nil, errors.New("connection refused")
}

// What waits for people is listed also while their question cannot be sent; and a ledger that fails is no short list.
func TestTheListOfApprovals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		mute := func(context.Context, saga.Call[order]) (struct{}, error) {
			return struct{}{}, saga.NotSent(errors.New("no mail server"))
		}
		charge := func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "c"}, nil }
		d, err := saga.Define("payment", 1,
			saga.Approve[order]("pay").By("finance").Within(time.Hour).Ask(saga.Do("ask", mute).Keyed(90*day).NoID().NoUndo("a question")),
			saga.Do("charge", charge).Idempotent().NoUndo("a test"))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, l, config{}, d)
		if _, err := p.Start(t.Context(), "payment", "w", order{}, nil); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		var listed []coordinator.Approval
		for a, err := range p.Approvals(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, a)
		}
		if s, err := p.Show(t.Context(), paymentOf("w")); err != nil || s.Status != saga.Retrying || len(listed) != 1 || listed[0].ID != paymentOf("w") {
			t.Fatalf("it is %s, and %+v is listed (%v)", s.Status, listed, err)
		}
		var failed error
		for _, failed = range coordinator.NewOperator(loadless{l}).Approvals(t.Context()) {
		}
		if failed == nil {
			t.Error("a ledger that does not answer has a list")
		}
		a, err := p.Approval(t.Context(), paymentOf("w"), "") // at the one that is to be decided, and not at the question
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Vote(t.Context(), a.ID, "", true, a.Digest, votes("ann", "finance")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if s, err := p.Show(t.Context(), paymentOf("w")); err != nil || s.Status != saga.Completed {
			t.Errorf("it is %s (%v)", s.Status, err)
		}
	})
}
