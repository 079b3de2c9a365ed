package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var withdrawalCases = []testCase{
	{name: "counted by one at a time", run: withdrawalRace, breaks: broken{"withdrawals-alone": func(s Store) Store { return apart{s} }}},
	{name: "what undoes nothing", run: withdrawalUndoes},
	{name: "what is counted", run: withdrawalTally},
	{name: "released and dropped once", run: withdrawalEnds},
}

// few is the bound of the suite.
var few = intake.Bound{Count: 5, Percent: 50, Window: time.Hour}

// weighs asks for the withdrawal of an order of a work that stands, as a processor does. It reports
// whether it was let through, and what it was told.
func weighs(ctx context.Context, s Store, work string, o intake.Object) (through bool, t intake.Tally, err error) {
	err = s.Weigh(ctx, o, id(work), few, func(now time.Time, e *intake.Entry, tally intake.Tally) error {
		e.Accepted, e.Delivered = 2, 1
		through, t = e.Weigh(2, now, tally, &few), tally
		return nil
	})
	return through, t, err
}

func (b *bench) weighs(work, order string) (bool, intake.Tally) {
	b.Helper()
	through, t, err := weighs(b.Context(), b.Store, work, object(order))
	if err != nil {
		b.Fatalf("weigh the withdrawal of %s: %v", order, err)
	}
	return through, t
}

// stands starts a work that has something to undo.
func (b *bench) stands(work string) *chain {
	b.Helper()
	c := b.start(b.session(), work, started(), hold)
	c.add(doing(machine.KindDone, saga.Completed), release)
	return c
}

// "Calls about one source that have a count exclude each other until they are stored": however many
// processes ask at once, no more than the bound are let through. Another source has its own.
func withdrawalRace(b *bench) {
	b.stands("w")
	stores := []Store{b.Store, b.again()}
	if _, broken := b.Store.(apart); broken {
		stores[1] = apart{stores[1]}
	}
	var through [2]atomic.Int64
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			o := object(fmt.Sprint(i))
			if i%4 == 3 {
				o.Source = "books"
			}
			ok, _, err := weighs(b.Context(), stores[i%2], "w", o)
			if err != nil {
				b.Error(err)
			}
			if ok {
				through[i%4/3].Add(1)
			}
		})
	}
	wg.Wait()
	if shop, books := through[0].Load(), through[1].Load(); shop != few.Count || books != few.Count {
		b.Errorf("%d withdrawals of one source were let through, and %d of the other; want %d each", shop, books, few.Count)
	}
}

// "What was never started, or has been undone, undoes nothing", unless it was spoken to since.
func withdrawalUndoes(b *bench) {
	c := b.stands("undone")
	c.add(doing(machine.KindCancelled, saga.Compensating), hold)
	compensating, _ := b.weighs("undone", "1")
	_, t := b.weighs("undone", "2")
	if !compensating || !t.Undoes || t.Withdrawn != 1 {
		b.Errorf("one that is being undone: %v, %+v", compensating, t)
	}
	c.add(doing(machine.KindDone, saga.Compensated), release)
	for _, work := range []string{"undone", "never started"} {
		if ok, t := b.weighs(work, "3"); !ok || t.Undoes {
			b.Errorf("%s: %v, %+v", work, ok, t)
		}
	}
	if e := b.known(object("3")); e.Let != 0 || e.Held != 0 || !e.Withdrawn.IsZero() {
		b.Errorf("it was counted: %+v", e)
	}
	b.post(c.id, "news")
	if _, t := b.weighs("undone", "3"); !t.Undoes || t.Withdrawn != 2 {
		b.Errorf("one that was spoken to since: %+v", t)
	}
}

// Objects are counted that were withdrawn, or changed otherwise, within the window.
func withdrawalTally(b *bench) {
	b.stands("w")
	now := b.calendar()
	at := func(order string, withdrawn, changed time.Time) {
		b.put(object(order), func(e *intake.Entry) { e.Withdrawn, e.Changed = withdrawn, changed })
	}
	for n := range 5 {
		at(fmt.Sprint("withdrawn ", n), now.Add(-time.Minute), time.Time{})
		at(fmt.Sprint("changed ", n), time.Time{}, now.Add(-time.Minute))
	}
	at("long ago", now.Add(-2*time.Hour), now.Add(-2*time.Hour))
	other := object("of another source")
	other.Source = "books"
	b.put(other, func(e *intake.Entry) { e.Withdrawn, e.Changed, e.Held = now, now, 1 })
	if ok, t := b.weighs("w", "1"); ok || t.Held || t.Withdrawn != 5 || t.Changed != 5 {
		b.Errorf("with as many changes: %v, %+v", ok, t)
	}
	b.put(object("1"), func(e *intake.Entry) { e.Held = 0 })
	at("changed 5", time.Time{}, now)
	at("changed 6", time.Time{}, now)
	if ok, t := b.weighs("w", "1"); !ok || t.Changed != 6 { // no more are counted than it takes
		b.Errorf("with one more: %v, %+v", ok, t)
	}
	b.put(object("2"), func(e *intake.Entry) { e.Held = 1 })
	if ok, t := b.weighs("w", "3"); ok || !t.Held {
		b.Errorf("with one that is held: %v, %+v", ok, t)
	}
}

// "EndHold does [ActRelease] or [ActDrop] to the withdrawals of a source that are held", once, with
// a record of who did it, and begins to count again.
func withdrawalEnds(b *bench) {
	b.stands("w")
	by := saga.Actor{Name: "anna", Reason: "the shop says so"}
	for i, act := range []string{intake.ActRelease, intake.ActDrop} {
		for n := range 8 {
			b.weighs("w", fmt.Sprint(act, n))
		}
		held, err := b.Entries(b.Context(), intake.EntryFilter{Held: true})
		all, errHoldings := b.Holdings(b.Context())
		if err := errors.Join(err, errHoldings); err != nil || len(held) != 3 || len(all) != 1 || all[0] != (intake.Holding{Source: "shop", Count: 3}) {
			b.Fatalf("before %s: %d entries are held, %+v, %v", act, len(held), all, err)
		}
		for n, want := range []int64{3, 0} {
			if got, err := b.EndHold(b.Context(), "shop", act, by); got != want || err != nil {
				b.Errorf("%s, for the %dth time: %d, %v; want %d", act, n+1, got, err, want)
			}
		}
		for _, was := range held {
			e := b.known(was.Object)
			if drop := act == intake.ActDrop; e.Held != 0 || e.Due.IsZero() || (e.Delivered == 2) != drop || (e.Let == 2) == drop {
				b.Errorf("after %s: %+v", act, e)
			}
		}
		if n, err := b.EndHold(b.Context(), "elsewhere", act, by); n != 0 || err != nil {
			b.Errorf("%s of a source that holds nothing: %d, %v", act, n, err)
		}
		deeds, err := b.Deeds(b.Context(), time.Time{}, 0)
		if err != nil || len(deeds) != i+1 || deeds[0].Kind != act || deeds[0].Name != "shop" || deeds[0].Actor != by.Name || deeds[0].Reason != by.Reason {
			b.Errorf("on record after %s: %+v, %v", act, deeds, err)
		}
	}
	if _, err := b.EndHold(b.Context(), "", intake.ActDrop, by); err == nil {
		b.Error("a source without a name was not refused")
	}
}

// apart: what is counted is not locked.
type apart struct{ Store }

func (a apart) Weigh(ctx context.Context, o intake.Object, id saga.ID, bound intake.Bound, decide func(time.Time, *intake.Entry, intake.Tally) error) error {
	var t intake.Tally
	err := a.Store.Weigh(ctx, o, id, bound, func(_ time.Time, _ *intake.Entry, tally intake.Tally) error {
		t = tally
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		return err
	}
	<-time.After(50 * time.Millisecond)
	return a.Update(ctx, o, func(now time.Time, e *intake.Entry) error { return decide(now, e, t) })
}
