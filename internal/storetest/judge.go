package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var judgeCases = []testCase{
	{name: "entries are locked", run: judgeLocks, breaks: broken{"judge-locks": func(s Store) Store { return unlocked{s} }}},
	{name: "one transaction", run: judgeOneTransaction, breaks: broken{"one-transaction": func(s Store) Store { return halver{s} }}},
}

var errRefused = errors.New("the callback refuses")

// "what was handed to the callback is locked against every other process": who writes meanwhile
// writes after us. An entry that is new cannot be locked everywhere; there the callback may be
// called again, with what was written.
func judgeLocks(b *bench) {
	other := b.again()
	b.put(object("known"), func(e *intake.Entry) { e.Attempts = 1 })
	for _, id := range []string{"new", "known"} {
		judgeLocked(b, other, event(id))
	}
}

func judgeLocked(b *bench, other Store, e intake.Event) {
	b.Helper()
	b.accept(e)
	var once sync.Once
	var writing sync.WaitGroup
	_, err := b.Judge(b.Context(), 10, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		es[e.Object].Dirty++
		ds[0].Outcome = intake.Hint
		once.Do(func() {
			written := make(chan struct{})
			writing.Go(func() {
				defer close(written)
				err := other.Update(b.Context(), e.Object, func(_ time.Time, e *intake.Entry) error {
					e.Dirty++
					return nil
				})
				if err != nil {
					b.Errorf("the other process: %v", err)
				}
			})
			select { // it must not come through while we look, and we look long enough for it to try
			case <-written:
				if e.Object.ID == "known" {
					b.Errorf("%s was written while a batch with it was judged", e.Object)
				}
			case <-time.After(300 * time.Millisecond):
			}
		})
		return nil
	})
	writing.Wait()
	if err != nil {
		b.Fatal(err)
	}
	if got := b.known(e.Object).Dirty; got != 2 {
		b.Errorf("after two processes counted, the count of %s is %d", e.Object, got)
	}
}

// "Each method is one transaction": a reader that sees a disposition also sees the entry that it
// changed.
func judgeOneTransaction(b *bench) {
	other := b.again()
	e := event("1")
	b.accept(e)
	number := b.all()[0].Number
	judged := make(chan struct{})
	looking := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		close(looking)
		for {
			over := false
			select {
			case <-judged:
				over = true // one more look
			default:
			}
			d, err := other.Delivery(b.Context(), number)
			if err != nil {
				b.Error(err)
				return
			}
			n, err := other.Entry(b.Context(), e.Object)
			if err != nil {
				b.Error(err)
				return
			}
			if done := n != nil && n.Accepted == 1; !d.Judged.IsZero() && !done {
				b.Errorf("the delivery is judged %q, and its entry is %+v", d.Outcome, n)
				return
			}
			if over {
				return
			}
		}
	})
	<-looking
	_, err := b.Judge(b.Context(), 10, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		ds[0].Outcome, es[e.Object].Accepted = intake.Applied, 1
		return nil
	})
	close(judged)
	watching.Wait()
	if err != nil {
		b.Fatal(err)
	}
}
