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
