package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// A backlog of a saga that a running process knows is nothing to review, however old it is
// and whatever other processes run beside it. A cancel that is posted meanwhile is kept for the
// process that can follow it.
func TestABacklogIsNothingToReview(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		several(t, l, config{}, oneStep(t, "shipping", "", nil))
		slow := func(context.Context, saga.Call[order]) (thing, error) {
			<-time.After(time.Second)
			return thing{ID: "x"}, nil
		}
		p := several(t, l, config{opts: coordinator.Options{MaxWorks: 4}}, oneStep(t, "billing", "", slow))
		pass(time.Second)
		const n = 400 // a hundred seconds of work
		p.starts("billing", n)
		last := saga.ID{Saga: "billing", Work: fmt.Sprintf("w%05d", n-1)}
		if err := p.Cancel(t.Context(), last, anna); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		if count := in(t, l, "billing"); count[saga.Completed] != n-1 || count[saga.Compensated] != 1 {
			t.Errorf("ten minutes later: %v", count)
		}
	})
}

// What no running process knows stays due and untouched, and people are told; what is
// posted to it is kept for a process that knows it, also for a work that has ended. A chain that
// cannot be read makes no busy loop.
func TestWhatNoProcessKnowsIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := memory.New(nil), &lines{}
		undo := func(name string) saga.Program {
			d, err := saga.Define(name, 1, saga.Do("make", func(_ context.Context, c saga.Call[order]) (thing, error) {
				if c.Work == "retrying" {
					return thing{}, saga.RetryAfter(time.Minute, saga.NotSent(errTooBusy))
				}
				return thing{ID: c.Work}, nil
			}).Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { return nil }))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		p := several(t, l, config{}, undo("billing"))
		synctest.Wait()
		for _, work := range []string{"retrying", "ended"} {
			if _, err := p.Start(t.Context(), "billing", work, order{}, &saga.StartOptions{Revision: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		other := several(t, l, config{opts: coordinator.Options{Log: out.logger()}}, oneStep(t, "shipping", "", nil))
		pass(time.Second)
		if err := other.Cancel(t.Context(), saga.ID{Saga: "billing", Work: "retrying"}, anna); err != nil {
			t.Fatal(err)
		}
		if err := other.Withdraw(t.Context(), "billing", "ended", "2", anna); err != nil {
			t.Fatal(err)
		}
		before, calls := len(history(t, l, "retrying"))+len(history(t, l, "ended")), other.calls()
		pass(time.Hour)
		if n := len(history(t, l, "retrying")) + len(history(t, l, "ended")); n != before {
			t.Errorf("an hour later there are %d records, there were %d", n, before)
		}
		if n := other.calls() - calls; n > 2*3600+1800+10 { // two claims a second and a renewal every other
			t.Errorf("%d calls of the ledger in an hour", n)
		}
		if said := strings.Count(out.String(), "billing version 1 (1 works"); said < 50 || said > 61 {
			t.Errorf("people were told %d times in an hour", said)
		}
		several(t, l, config{}, undo("billing"))
		pass(time.Minute)
		if count := in(t, l, "billing"); count[saga.Compensated] != 2 {
			t.Errorf("when a process came that knows it: %v", count)
		}
		ledgertest.MustCheck(t, l)
	})
}

func history(t testing.TB, l ledger.Catalogue, work string) []machine.Record {
	t.Helper()
	rs, err := l.History(t.Context(), saga.ID{Saga: "billing", Work: work})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// twoSteps is a definition whose versions differ: from version 2 on there is a third step. What a
// work did stands until it is undone.
func twoSteps(t testing.TB, version int) saga.Program {
	t.Helper()
	step := func(name string, d time.Duration) saga.Step[order] {
		return saga.Do(name, func(_ context.Context, c saga.Call[order]) (thing, error) {
			<-time.After(d)
			return thing{ID: name + " of " + c.Work}, nil
		}).Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { return nil }).Timeout(10 * time.Second).Settle(time.Second).
			Retry(saga.Retry{Initial: time.Second, Max: 5 * time.Second})
	}
	parts := []saga.Step[order]{step("make", 4*time.Second), step("mark", time.Second)}
	if version > 1 {
		parts = append(parts, step("mail", time.Second))
	}
	d, err := saga.Define("billing", version, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A work in the hands of an older process hears a revision that takes version 2. The older
// process lets go of it, due now, and a process that knows version 2 goes on.
func TestARevisionIntoANewerVersionIsHandedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		old := several(t, l, config{}, twoSteps(t, 1))
		pass(time.Second)
		fresh := several(t, l, config{}, twoSteps(t, 1), twoSteps(t, 2))
		pass(time.Second)
		revise := func(p *process, revision string, total int) {
			o := &saga.StartOptions{Revision: revision}
			if _, err := p.Start(t.Context(), "billing", "w", order{Total: total}, o); err != nil {
				t.Fatal(err)
			}
		}
		revise(old, "1", 1)
		pass(time.Second)
		revise(fresh, "2", 2)
		pass(20 * time.Second) // three to the end of its step, a poll or two, and six for version 2
		s, err := fresh.Show(t.Context(), saga.ID{Saga: "billing", Work: "w"})
		if err != nil || s.Status != saga.Completed || s.Revision != "2" {
			t.Errorf("it is %s at revision %s: %q, %v", s.Status, s.Revision, s.Note, err)
		}
	})
}

// A starter that is still at version 1 posts a revision of a work that has ended, to a
// process that knows version 2 alone. The revision takes what its holder knows, and later ones are
// heard.
func TestARevisionByAnOlderStarter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		id := saga.ID{Saga: "billing", Work: "w"}
		revise := func(p *process, revision string) {
			o := &saga.StartOptions{Revision: revision}
			if _, err := p.Start(t.Context(), "billing", "w", order{Memo: revision}, o); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		first := several(t, l, config{}, twoSteps(t, 1))
		synctest.Wait()
		revise(first, "1")
		if err := first.halt(); err != nil {
			t.Fatal(err)
		}
		several(t, l, config{}, twoSteps(t, 2))
		old, fresh := several(t, l, config{idle: true}, twoSteps(t, 1)), several(t, l, config{idle: true}, twoSteps(t, 2))
		revise(old, "2")
		revise(fresh, "3")
		revise(old, "4")
		if s, err := fresh.Show(t.Context(), id); err != nil || s.Status != saga.Completed || s.Revision != "4" {
			t.Errorf("it is %s %s at revision %s: %q, %v", s.Status, s.Reason, s.Revision, s.Note, err)
		}
	})
}

// A rolling deploy: processes that know version 1, both, or version 2 come and go, gracefully or
// not, over one ledger. Works are started, revised and cancelled all the while. Nothing goes to
// review, no cancel is dropped, and everything comes to its end.
func TestARollingDeploy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { rollingDeploy(t, rand.New(rand.NewPCG(seed, 9))) })
		})
	}
}

func rollingDeploy(t *testing.T, dice *rand.Rand) { //nolint:thelper // it is the test itself, once for each seed
	l := memory.New(nil)
	v1, v2 := []saga.Program{twoSteps(t, 1)}, []saga.Program{twoSteps(t, 2)}
	both := []saga.Program{twoSteps(t, 1), twoSteps(t, 2)}
	fleet := []*process{several(t, l, config{}, v1...), several(t, l, config{}, v1...)}
	cancelled := map[string]bool{}
	works := 0
	work := func() { // what people and sources do in twenty seconds
		for range 20 {
			p := fleet[dice.IntN(len(fleet))]
			o := &saga.StartOptions{Revision: "1"}
			name := fmt.Sprint("w", works)
			if works > 0 && dice.IntN(3) == 0 {
				name = fmt.Sprint("w", dice.IntN(works))
				o.Revision = fmt.Sprint(2 + dice.IntN(3))
			} else {
				works++
			}
			if _, err := p.Start(t.Context(), "billing", name, order{Memo: o.Revision}, o); err != nil && !errors.Is(err, coordinator.ErrConflict) {
				t.Errorf("start %s: %v", name, err)
			}
			if dice.IntN(6) == 0 {
				id := saga.ID{Saga: "billing", Work: name}
				if err := p.Cancel(t.Context(), id, anna); err == nil {
					cancelled[name] = true
				} else if !errors.Is(err, coordinator.ErrFinished) && !errors.Is(err, coordinator.ErrChangesNothing) {
					t.Errorf("cancel %s: %v", name, err)
				}
			}
			pass(time.Second)
		}
	}
	for _, next := range [][]saga.Program{both, both, v2, v2} { // v1 alone, v1 beside both, both alone, both beside v2, v2 alone
		work()
		gone := fleet[0]
		if dice.IntN(2) == 0 {
			gone.kill()
			pass(quick().Lease)
		} else if err := gone.halt(); err != nil {
			t.Error(err)
		}
		fleet = append(fleet[1:], several(t, l, config{}, next...))
	}
	work()
	late := several(t, l, config{}, both...) // works that kept version 1 are due for a process that knows it
	pass(10 * time.Minute)
	count := in(t, l, "billing")
	if count[saga.Review] > 0 || count[saga.Completed]+count[saga.Compensated] != works {
		t.Errorf("of %d works: %v", works, count)
	}
	for name := range cancelled {
		id := saga.ID{Saga: "billing", Work: name}
		signals, err := l.Signals(t.Context(), id)
		records, rerr := l.History(t.Context(), id)
		if err := errors.Join(err, rerr); err != nil {
			t.Fatal(err)
		}
		followed := map[int64]bool{}
		for i := range records {
			for _, s := range records[i].Signals {
				followed[s] = records[i].Kind == machine.KindCancelled || strings.Contains(records[i].Said(), "too late") ||
					strings.Contains(records[i].Said(), "undone already")
			}
		}
		for i := range signals {
			if signals[i].Kind == machine.SignalCancel && !followed[signals[i].ID] {
				t.Errorf("a cancel of %s was dropped", name)
			}
		}
	}
	if err := late.halt(); err != nil {
		t.Error(err)
	}
	ledgertest.MustCheck(t, l)
}
