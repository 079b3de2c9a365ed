package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// paper is a destination that keeps one invoice per work, and how it came to be what it is.
type paper struct {
	mu       sync.Mutex
	invoices map[string]string // id → content; "" when it is void
	story    []string
	hold     chan struct{} // not nil: an invoice waits for it before it is made
}

func (b *paper) tellf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.story = append(b.story, fmt.Sprintf(format, args...))
}

// papers is a saga that updates what an earlier revision made; mailless is one that sends no mail.
func papers(t *testing.T, b *paper, version int, mailless bool) saga.Program {
	t.Helper()
	invoice := func(_ context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		b.mu.Lock()
		hold := b.hold
		b.mu.Unlock()
		if hold != nil {
			<-hold
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		id := c.PreviousID()
		if id == "" {
			id = fmt.Sprintf("inv-%d", len(b.invoices)+1)
		}
		b.invoices[id] = c.Input.Memo
		b.story = append(b.story, fmt.Sprintf("%s says %s (revision %q)", id, c.Input.Memo, c.Revision))
		return thing{ID: id}, nil
	}
	void := func(_ context.Context, c saga.Call[order], made *thing) error {
		if err := c.Sending(); err != nil || made == nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.invoices[made.ID] = ""
		b.story = append(b.story, made.ID+" is void")
		return nil
	}
	mail := func(_ context.Context, c saga.Call[order]) (thing, error) {
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		b.tellf("mail about %s", c.ExternalID("invoice"))
		return thing{ID: "mail"}, nil
	}
	steps := []saga.Step[order]{
		saga.Do("invoice", invoice).Idempotent().UndoMaybe(void).Pivot(),
		saga.Identity(func(o order) any { return o.Memo }),
	}
	if !mailless {
		steps = append(steps, saga.Do("mail", mail).AtMostOnce().NoUndo("the customer is told by the void invoice"))
	}
	d, err := saga.Define(orderSaga, version, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// office is one process that writes papers.
func office(t *testing.T, l *memory.DB, b *paper, version int, mailless bool) *process {
	t.Helper()
	p := boot(t, l, &world{}, config{program: func(*process) saga.Program { return papers(t, b, version, mailless) }})
	synctest.Wait()
	return p
}

func (p *process) revise(revision, memo string) coordinator.Started {
	p.t.Helper()
	s, err := p.Start(p.t.Context(), orderSaga, "o1", order{Memo: memo}, &saga.StartOptions{Revision: revision, Source: "webhook"})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (b *paper) wants(t *testing.T, lines ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.story, lines) {
		t.Errorf("what happened:\n%q\nwant\n%q", b.story, lines)
	}
}

// A newer version of the same source object re-runs the saga for the same work: the invoice is
// updated, not made again, and the mail is sent once. Equal and older versions, and newer ones that
// say the same, change nothing.
func TestARevisionUpdates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		if s := p.revise("7", "three lines"); s.Duplicate || s.Revised {
			t.Errorf("the first start: %+v", s)
		}
		p.want("o1", saga.Completed, "")
		if s := p.revise("7", "three lines"); !s.Duplicate || s.Revised || s.Stale {
			t.Errorf("the same version again: %+v", s)
		}
		if s := p.revise("9", "four lines"); !s.Revised || s.Duplicate {
			t.Errorf("a newer version: %+v", s)
		}
		pass(time.Second)
		s := p.want("o1", saga.Completed, "")
		if s.Revision != "9" || s.Steps["invoice"].ExternalID != "inv-1" {
			t.Errorf("after the revision: %+v", s)
		}
		if s := p.revise("8", "late, and older"); !s.Stale || s.Revised {
			t.Errorf("an older version: %+v", s)
		}
		p.revise("11", "four lines")
		p.revise("10", "late, and older than one that said the same")
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says three lines (revision "7")`, "mail about inv-1", `inv-1 says four lines (revision "9")`)
		ledgertest.MustCheck(t, l)
	})
}

// A revision that arrives while a step is under way waits for the step's end; of several the newest
// is begun.
func TestARevisionWaitsForTheStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}, hold: make(chan struct{})}
		p := office(t, l, b, 1, false)
		p.revise("1", "one")
		synctest.Wait()
		p.revise("3", "three")
		p.revise("2", "two")
		pass(2 * time.Second)
		b.mu.Lock()
		hold := b.hold
		b.hold = nil
		b.mu.Unlock()
		close(hold)
		pass(5 * time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says one (revision "1")`, `inv-1 says three (revision "3")`, "mail about inv-1")
		ledgertest.MustCheck(t, l)
	})
}

// The source cancelled what is completed: it is undone where every step says how, and restored by a
// newer version.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		p.revise("1", "one")
		p.want("o1", saga.Completed, "")
		for range 2 { // the hint may come twice
			if err := p.Withdraw(t.Context(), orderSaga, "o1", "2", anna); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		p.want("o1", saga.Compensated, "")
		if s := p.revise("1", "late"); !s.Stale {
			t.Errorf("what came before the cancel: %+v", s)
		}
		p.revise("3", "restored")
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says one (revision "1")`, "mail about inv-1", "inv-1 is void", `inv-2 says restored (revision "3")`)
		ledgertest.MustCheck(t, l)
	})
}

// machine/V17: a person undoes what is completed. It is no word of the source: it can be run again, and the source's next version runs it as ever.
func TestUndo(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"1", ""} {
		synctest.Test(t, func(t *testing.T) {
			l, b := memory.New(nil), &paper{invoices: map[string]string{}}
			p := office(t, l, b, 1, false)
			undo := func(want error) {
				t.Helper()
				if err := p.Undo(t.Context(), idOf("o1"), "", anna); !errors.Is(err, want) {
					t.Errorf("undo: %v, want %v", err, want)
				}
			}
			undo(ledger.ErrNotFound)
			b.hold = make(chan struct{})
			p.revise(revision, "one")
			undo(coordinator.ErrNotEnded)
			close(b.hold)
			p.want("o1", saga.Completed, "")
			undo(nil)
			undo(nil) // by a proxy that repeats it
			pass(time.Second)
			if s := p.want("o1", saga.Compensated, ""); strings.Contains(s.Next, "source cancelled it") {
				t.Errorf("undone by a person: %s", s.Next)
			}
			undo(coordinator.ErrChangesNothing)
			if _, err := p.Rerun(t.Context(), idOf("o1"), "it stands after all", anna); err != nil {
				t.Error(err)
			}
			pass(time.Second)
			p.want("o1", saga.Completed, "")
			undo(nil)
			pass(time.Second)
			p.revise("2", "two")
			pass(time.Second)
			p.want("o1", saga.Completed, "")
			b.wants(t, fmt.Sprintf("inv-1 says one (revision %q)", revision), "mail about inv-1", "inv-1 is void",
				fmt.Sprintf("inv-2 says one (revision %q)", revision+"+2"), "inv-2 is void", `inv-3 says two (revision "2")`)
			ledgertest.MustCheck(t, l)
		})
	}
}

// machine/V19: a person undoes what is completed from a step on, and what was done before stays, also for the next version.
func TestUndoFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		step := func(name string) *saga.Action[order, thing] {
			return saga.Do(name, func(_ context.Context, c saga.Call[order]) (thing, error) {
				said = append(said, strings.TrimSuffix(name+" of "+c.PreviousID(), " of "))
				return thing{ID: name + "-1"}, nil
			}).Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { said = append(said, "no "+name); return nil })
		}
		def, err := saga.Define(orderSaga, 1, step("reserve"), step("invoice"), step("mark"))
		if err != nil {
			t.Fatal(err)
		}
		l := memory.New(nil)
		p := boot(t, l, &world{}, config{program: func(*process) saga.Program { return def }})
		p.revise("1", "one")
		p.want("o1", saga.Completed, "")
		if err := p.Undo(t.Context(), idOf("o1"), "delivery", anna); !errors.Is(err, coordinator.ErrChangesNothing) {
			t.Errorf("from a step that there is none: %v", err)
		}
		if err := p.Undo(t.Context(), idOf("o1"), "invoice", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if s := p.want("o1", saga.Completed, ""); !strings.Contains(s.Next, "invoice, mark") {
			t.Errorf("it says: %s", s.Next)
		}
		p.revise("2", "two")
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		if want := []string{"reserve", "invoice", "mark", "no mark", "no invoice", "reserve of reserve-1", "invoice", "mark"}; !slices.Equal(said, want) {
			t.Errorf("what happened: %q", said)
		}
		ledgertest.MustCheck(t, l)
	})
}

// Apply makes an instance what its source says, however often it is said: it runs, runs again for a
// newer revision, and is undone; a state that wants nothing changes nothing, and what was never
// started is withdrawn by doing nothing.
func TestApply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		apply := func(work string, want saga.Want, revision, says string) {
			t.Helper()
			for range 2 {
				if err := p.Apply(t.Context(), saga.Change{ID: idOf(work), Want: want, Revision: revision, Input: order{Memo: says}, Actor: "webhook"}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
			}
		}
		apply("unknown", saga.WantWithdrawn, "1", "")
		apply("unknown", saga.WantNothing, "1", "")
		if _, err := p.Show(t.Context(), idOf("unknown")); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("what was never started is there: %v", err)
		}
		apply("o1", saga.WantRun, "1", "one")
		apply("o1", saga.WantNothing, "2", "")
		p.want("o1", saga.Completed, "")
		apply("o1", saga.WantRun, "3", "three")
		p.want("o1", saga.Completed, "")
		apply("o1", saga.WantWithdrawn, "4", "")
		p.want("o1", saga.Compensated, "")
		b.wants(t, `inv-1 says one (revision "1")`, "mail about inv-1", `inv-1 says three (revision "3")`, "inv-1 is void")
		if err := p.Apply(t.Context(), saga.Change{ID: idOf("o1"), Want: "cancelled"}); err == nil {
			t.Error("a Want that there is not is taken")
		}
		ledgertest.MustCheck(t, l)
	})
}

// machine/V18: an object that is being changed is not begun, and what runs for it goes no further than the step that it is in, until its source
// says more; then it goes on by itself, with what that says.
func TestNotYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}, hold: make(chan struct{})}
		p, work := office(t, l, b, 1, false), "o1"
		apply := func(want saga.Want, revision, says string) {
			t.Helper()
			for range 2 {
				if err := p.Apply(t.Context(), saga.Change{ID: idOf(work), Want: want, Revision: revision, Input: order{Memo: says}, Actor: "webhook"}); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
		}
		let := func() { // the invoice that is under way
			b.mu.Lock()
			defer b.mu.Unlock()
			close(b.hold)
			b.hold = nil
		}
		apply(saga.WantHeld, "1", "one")
		if _, err := p.Show(t.Context(), idOf("o1")); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("what is being changed is begun: %v", err)
		}
		apply(saga.WantRun, "2", "one")
		apply(saga.WantHeld, "3", "one") // while the invoice is under way
		let()
		pass(time.Minute)
		p.want("o1", saga.Paused, "")
		b.wants(t, `inv-1 says one (revision "2")`)
		apply(saga.WantRun, "4", "four")
		p.want("o1", saga.Completed, "")
		apply(saga.WantHeld, "5", "five") // it has ended: nothing is held
		apply(saga.WantRun, "6", "six")
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says one (revision "2")`, `inv-1 says four (revision "4")`, "mail about inv-1", `inv-1 says six (revision "6")`)

		ledgertest.MustCheck(t, l)

		b.mu.Lock()
		work, b.hold, b.story = "o2", make(chan struct{}), nil
		b.mu.Unlock()
		apply(saga.WantRun, "2", "two")
		apply(saga.WantHeld, "3", "two")
		let()
		pass(time.Minute)
		p.want("o2", saga.Paused, "")
		apply(saga.WantNothing, "4", "") // nothing is to be done for it now, and it is not held any more
		p.want("o2", saga.Completed, "")
		b.wants(t, `inv-2 says two (revision "2")`, "mail about inv-2")
		if err := p.Apply(t.Context(), saga.Change{ID: idOf("o1"), Want: saga.WantHeld}); !errors.Is(err, coordinator.ErrInvalid) {
			t.Errorf("a hold without a revision: %v", err)
		}
	})
}

// The source cancelled it, and a step stands that the newer version of the definition does not
// have: a person undoes that step by hand, and the rest follows; or keeps it.
func TestWithdrawWithoutAWayBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choose func(ctx context.Context, p *process) error
		status saga.Status
		last   string
	}{
		"made good by hand": {func(ctx context.Context, p *process) error {
			return p.Resolve(ctx, idOf("o1"), "mail", coordinator.Happened(""), anna)
		}, saga.Compensated, "inv-1 is void"},
		"kept": {func(ctx context.Context, p *process) error { return p.Keep(ctx, idOf("o1"), anna) }, saga.Completed, `inv-1 says two (revision "2")`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, b := memory.New(nil), &paper{invoices: map[string]string{}}
				p := office(t, l, b, 1, false)
				p.revise("1", "one")
				p.want("o1", saga.Completed, "")
				if err := p.halt(); err != nil {
					t.Fatal(err)
				}
				p = office(t, l, b, 2, true)
				p.revise("2", "two")
				pass(time.Second)
				p.want("o1", saga.Completed, "")
				if err := p.Keep(t.Context(), idOf("o1"), anna); err == nil {
					t.Error("a work that nobody cancelled was kept")
				}
				if err := p.Withdraw(t.Context(), orderSaga, "o1", "3", anna); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				p.want("o1", saga.Review, saga.ReasonConflict)
				if err := c.choose(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				pass(2 * time.Second)
				p.want("o1", c.status, "")
				if got := b.story[len(b.story)-1]; got != c.last {
					t.Errorf("last happened %q, want %q", got, c.last)
				}
				ledgertest.MustCheck(t, l)
			})
		})
	}
}

// A revision takes the newest definition, also when nobody knows any more the one the work ended
// with.
func TestARevisionTakesTheNewestDefinition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		p.revise("1", "one")
		p.want("o1", saga.Completed, "")
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		p = office(t, l, b, 2, false)
		p.revise("2", "two")
		pass(time.Hour) // a definition that somebody else may know is waited for
		if s := p.want("o1", saga.Completed, ""); s.Version != 2 || s.Revision != "2" {
			t.Errorf("the work is at version %d, revision %s", s.Version, s.Revision)
		}
		b.wants(t, `inv-1 says one (revision "1")`, "mail about inv-1", `inv-1 says two (revision "2")`)
		ledgertest.MustCheck(t, l)
	})
}

// Bad revisions are refused at the edge.
func TestBadRevisions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := office(t, memory.New(nil), &paper{invoices: map[string]string{}}, 1, false)
		if _, err := p.Start(t.Context(), orderSaga, "o1", order{}, &saga.StartOptions{Revision: "yesterday"}); err == nil {
			t.Error("a revision that has no order was accepted")
		}
		for _, revision := range []string{"", "yesterday"} {
			if err := p.Withdraw(t.Context(), orderSaga, "o1", revision, anna); err == nil {
				t.Errorf("a cancel at revision %q was accepted", revision)
			}
		}
	})
}
