package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var judgeCases = []testCase{
	{name: "the oldest first", run: judgeOldest},
	{name: "with the entries of their objects", run: judgeEntries},
	{name: "outcomes are stored", run: judgeOutcomes},
	{name: "an error stores nothing", run: judgeError, breaks: broken{"error-stores-nothing": func(s Store) Store { return stubborn{s} }}},
	{name: "entries are locked", run: judgeLocks, breaks: broken{"judge-locks": func(s Store) Store { return unlocked{s} }}},
	{name: "one transaction", run: judgeOneTransaction, breaks: broken{"one-transaction": func(s Store) Store { return halver{s} }}},
}

// Judge hands out up to limit deliveries that have not been judged yet, "the oldest first". "It
// returns how many there were".
func judgeOldest(b *bench) {
	for _, e := range events(5) {
		b.accept(e)
	}
	var seen []string
	for _, want := range []int{2, 2, 1, 0} {
		var handed []string
		n, err := b.Judge(b.Context(), 2, func(_ time.Time, ds []intake.Delivery, _ map[intake.Object]*intake.Entry) error {
			handed = nil // it may be called again
			for i := range ds {
				handed = append(handed, ds[i].Object.ID)
				ds[i].Outcome = intake.Applied
			}
			return nil
		})
		seen = append(seen, handed...)
		if err != nil || n != want {
			b.Fatalf("judged %d, %v; want %d", n, err, want)
		}
	}
	if got, want := fmt.Sprint(seen), "[0000 0001 0002 0003 0004]"; got != want {
		b.Errorf("they came as %v, want %v", got, want)
	}
}

// "with the entries of their objects (new ones are empty but for Object and First)".
func judgeEntries(b *bench) {
	old, fresh := object("old"), object("new")
	b.put(old, func(e *intake.Entry) { e.Dirty, e.Clean = 3, 3 })
	was := b.known(old)
	twice := event("new")
	twice.Dedupe = intake.DigestOf("another event about it")
	b.accept(event("old"), event("new"), twice)
	_, err := b.Judge(b.Context(), 10, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		if len(ds) != 3 || len(es) != 2 {
			b.Errorf("%d deliveries and %d entries, want 3 and 2", len(ds), len(es))
		}
		same(b, "the known entry", *es[old], was)
		same(b, "the new entry", *es[fresh], intake.Entry{Object: fresh, First: es[fresh].First})
		if d := now.Sub(es[fresh].First); d < 0 || d > time.Minute {
			b.Errorf("first heard of at %v, now is %v", es[fresh].First, now)
		}
		es[old].Dirty++
		es[fresh].Dirty = 1
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if e := b.known(old); e.Dirty != 4 || e.Clean != 3 || !e.First.Equal(was.First) || e.Updated.Before(was.Updated) {
		b.Errorf("the known entry is %+v", e)
	}
	if e := b.known(fresh); e.Dirty != 1 || e.First.IsZero() || e.Updated.IsZero() {
		b.Errorf("the new entry is %+v", e)
	}
}

// "The callback sets their outcomes [...]; the store sets when they were judged".
func judgeOutcomes(b *bench) {
	b.accept(events(2)...)
	before := b.calendar()
	if n := b.judgeAs(intake.Hint); n != 2 {
		b.Fatalf("judged %d", n)
	}
	for _, d := range b.all() {
		if d.Outcome != intake.Hint || d.Because != "the test says so" || d.Judged.Before(before) {
			b.Errorf("got %+v", d)
		}
	}
	if n := b.judgeAs(intake.Applied); n != 0 {
		b.Errorf("%d were judged twice", n)
	}
}

var errRefused = errors.New("the callback refuses")

// "Its error is returned as it is, and nothing is stored".
func judgeError(b *bench) {
	b.accept(events(2)...)
	_, err := b.Judge(b.Context(), 10, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
		for i := range ds {
			ds[i].Outcome = intake.Applied
			es[ds[i].Object].Dirty = 1
		}
		return errRefused
	})
	if err != errRefused { //nolint:errorlint // as it is
		b.Errorf("got %v, want the callback's own error", err)
	}
	for _, d := range b.all() {
		if !d.Judged.IsZero() || d.Outcome != "" {
			b.Errorf("%s was judged: %+v", d.Object, d)
		}
		if e, err := b.Entry(b.Context(), d.Object); err != nil || e != nil && e.Dirty != 0 {
			b.Errorf("the entry of %s was stored: %+v, %v", d.Object, e, err)
		}
	}
	if n := b.judgeAs(intake.Applied); n != 2 {
		b.Errorf("%d are there to be judged, want 2", n)
	}
}

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
