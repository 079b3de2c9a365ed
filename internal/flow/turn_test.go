package flow

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/machine"
)

// whole is a destination whose limit one process has as a whole.
func whole(l Limit, hold time.Duration, room int, wake func()) *Destination {
	d := newDestination("books", l, hold, room, wake, alone(), sharing{
		gone:   func(string) bool { return false },
		divide: func(func(share) (share, bool)) {},
	})
	me := d.who().String()
	s := share{Sessions: map[string]want{me: {}}}
	for range l.partsOf() {
		s.Parts = append(s.Parts, part{Session: me})
	}
	d.shares(s)
	d.none(again)
	return d
}

// A line's order: what is being undone, then what is furthest along, then what came first. Only the
// head of the line gets the slot that comes back.
func TestTheOrderOfALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := whole(Limit{Concurrent: 1}, time.Hour, 100, func() {})
		if !d.Try(Rank{Left: 9}) {
			t.Fatal("the slot is not free")
		}
		came := make(chan string, 10)
		for _, c := range []struct {
			name string
			rank Rank
		}{
			{"first of five left", Rank{Left: 5}},
			{"second of five left", Rank{Left: 5}},
			{"two left", Rank{Left: 2}},
			{"undoing three", Rank{Back: true, Left: 3}},
			{"third of five left", Rank{Left: 5}},
			{"undoing one", Rank{Back: true, Left: 1}},
		} {
			go func() {
				if err := d.Take(t.Context(), nil, c.rank); err != nil {
					t.Error(err)
				}
				came <- c.name
			}()
			synctest.Wait()
		}
		if d.Try(Rank{Back: true}) {
			t.Error("a slot was given that was not there")
		}
		var order []string
		for range cap(came) - 4 {
			d.Release(Rank{}, time.Second)
			order = append(order, <-came)
		}
		want := []string{"undoing one", "undoing three", "two left", "first of five left", "second of five left", "third of five left"}
		if !slices.Equal(order, want) {
			t.Errorf("the order was %q, want %q", order, want)
		}
	})
}

// What would wait for longer than a work may is turned away: at once when that is known, after Hold
// when it is not. The head of the line stays.
func TestALineTurnsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		d := whole(Limit{PerSecond: 1}, hold, 100, func() {})
		if !d.Try(Rank{}) {
			t.Fatal("the slot is not free")
		}
		answers := make(chan error, 20)
		for range 8 {
			go func() { answers <- d.Take(t.Context(), nil, Rank{}) }()
			synctest.Wait()
		}
		for range 3 { // five fit into five seconds
			if err := <-answers; !errors.Is(err, ErrNoRoom) {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		for range 5 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took != hold {
			t.Errorf("five turns took %s, want 5s", took)
		}

		slow := whole(Limit{Concurrent: 1}, hold, 100, func() {})
		slow.Try(Rank{})
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { answers <- slow.Take(ctx, nil, Rank{}) }()
			synctest.Wait()
		}
		begun = time.Now()
		for range 2 {
			if err := <-answers; !errors.Is(err, ErrNoRoom) || time.Since(begun) != hold {
				t.Errorf("%v after %s", err, time.Since(begun))
			}
		}
		cancel()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("the head of the line left with %v", err)
		}
		if slow.Release(Rank{}, 0); !slow.Try(Rank{}) {
			t.Error("a slot was lost")
		}
	})
}

// "A claim wakes when room is there". A line has room for as many of those that wait
// in the ledger as have their turns within Hold, and for one at least; for none while it is as long
// as that, or the destination wants to hear nothing. When it has become short it asks for more,
// unless nothing waits.
func TestALineSaysHowMuchRoomThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		asked := 0
		d := whole(Limit{Concurrent: 1}, hold, 300, func() { asked++ })
		asked, d.asked = 0, time.Time{} // a part of a limit was taken
		want := func(when string, room, times int) {
			t.Helper()
			if got := d.offer(fresh); got != room || asked != times {
				t.Errorf("%s there is room for %d, and it was asked for %d times; want %d and %d", when, got, asked, room, times)
			}
			asked = 0
		}
		used := func(d *Destination, took time.Duration) {
			if !d.Try(Rank{}) {
				t.Error("the slot is not free")
			}
			time.Sleep(askEvery) //nolint:forbidigo // virtual
			d.Release(Rank{}, took)
		}
		want("before anything is known", 300, 0)
		used(d, time.Minute)
		want("of one that takes a minute", 1, 1)
		for range 60 {
			used(d, 100*time.Millisecond)
		}
		want("of one that takes a tenth of a second", 49, 60)
		answers := make(chan error, 40)
		d.Try(Rank{})
		for range 40 {
			go func() { answers <- d.Take(t.Context(), nil, Rank{}) }()
		}
		synctest.Wait()
		want("with forty in line", 9, 0)
		for range 20 {
			time.Sleep(askEvery) //nolint:forbidigo // virtual
			d.Release(Rank{}, 100*time.Millisecond)
			<-answers
		}
		want("with twenty in line", 29, 5)
		d.none(fresh)
		d.Release(Rank{}, 100*time.Millisecond)
		<-answers
		want("and nothing in the ledger", 30, 0)
		d.Hush(time.Minute, "503")
		want("of one that asked for silence", 0, 0)
		for range 19 {
			if err := <-answers; !errors.Is(err, ErrNoRoom) {
				t.Errorf("in line: %v", err)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual
		d.Release(Rank{}, 0)
		want("after that", 49, 1)
	})
}

// alone is what a destination sees of a ledger that nobody else uses and in which nothing is kept.
func alone() condition {
	return condition{
		now:    func() machine.Moment { return machine.Moment{Earliest: time.Now(), Latest: time.Now()} },
		who:    func() machine.Token { return 1 },
		change: func(func(Health) (Health, bool)) {},
		recall: func(bool) {},
	}
}

// A place in line that a work took which came after those that wait in the ledger is still
// theirs: the line asks for them, and they stand before it. When one of them is turned away all the
// same, what stands in line keeps its place, and is not asked about again and again.
func TestWhoComesLateLeavesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := whole(Limit{Concurrent: 1}, 3*time.Second, 100, func() {})
		d.took = time.Second
		if !d.Try(Rank{}) {
			t.Fatal("the slot is not free")
		}
		room := func(when string, want int) {
			t.Helper()
			if got := d.offer(fresh); got != want {
				t.Errorf("%s there is room for %d, want %d", when, got, want)
			}
		}
		d.youngest = 10 // which waits in the ledger
		late := d.join(Rank{Number: 11})
		room("beside one that came late", 3)
		if early := d.join(Rank{Number: 9}); d.line[0] != early || d.line[1] != late {
			t.Error("one that waited does not stand before it")
		}
		room("beside one that had waited", 2)
		undone := d.join(Rank{Back: true, Number: 12})
		if d.line[0] != undone {
			t.Error("what is undone does not stand first")
		}
		d.join(Rank{Number: 10})
		room("beside two that had waited", 1)
		if d.join(Rank{Number: 8, Left: 1}); len(d.line) != 4 {
			t.Fatalf("%d in line", len(d.line))
		}
		room("when one that had waited found none", 0)
	})
}
