package coordinator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A line's order: what is being undone, then what is furthest along, then what came first. Only the head of the line
// gets the slot that comes back.
func TestTheOrderOfALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDestination(Limit{Concurrent: 1}, time.Hour, 100, nil)
		if !d.try(rank{left: 9}) {
			t.Fatal("the slot is not free")
		}
		came := make(chan string, 10)
		for _, c := range []struct {
			name string
			rank rank
		}{
			{"first of five left", rank{left: 5}},
			{"second of five left", rank{left: 5}},
			{"two left", rank{left: 2}},
			{"undoing three", rank{back: true, left: 3}},
			{"third of five left", rank{left: 5}},
			{"undoing one", rank{back: true, left: 1}},
		} {
			go func() {
				if err := d.take(t.Context(), nil, c.rank); err != nil {
					t.Error(err)
				}
				came <- c.name
			}()
			synctest.Wait()
		}
		if d.try(rank{back: true}) {
			t.Error("a slot was given that was not there")
		}
		var order []string
		for range cap(came) - 4 {
			d.release(time.Second)
			order = append(order, <-came)
		}
		want := []string{"undoing one", "undoing three", "two left", "first of five left", "second of five left", "third of five left"}
		if !slices.Equal(order, want) {
			t.Errorf("the order was %q, want %q", order, want)
		}
	})
}

// What would wait for longer than a work may is turned away: at once when that is known, after Hold when it is not. It
// is told when to come back, later than those that were turned away before it. The head of the line stays.
func TestALineTurnsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		d := newDestination(Limit{PerSecond: 1}, hold, 100, nil)
		if !d.try(rank{}) {
			t.Fatal("the slot is not free")
		}
		answers := make(chan error, 20)
		for range 8 {
			go func() { answers <- d.take(t.Context(), nil, rank{}) }()
			synctest.Wait()
		}
		var last time.Duration
		for range 3 { // five fit into five seconds
			var away *turnedAwayError
			if err := <-answers; !errors.As(err, &away) || time.Until(away.until) <= last {
				t.Fatalf("%v, %v", err, away)
			}
			last = time.Until(away.until)
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

		slow := newDestination(Limit{Concurrent: 1}, hold, 100, nil)
		slow.try(rank{})
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { answers <- slow.take(ctx, nil, rank{}) }()
			synctest.Wait()
		}
		begun = time.Now()
		for range 2 {
			var away *turnedAwayError
			if err := <-answers; !errors.As(err, &away) || time.Since(begun) != hold {
				t.Errorf("%v after %s", err, time.Since(begun))
			}
		}
		cancel()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("the head of the line left with %v", err)
		}
		if slow.release(0); !slow.try(rank{}) {
			t.Error("a slot was lost")
		}
	})
}

// CORE-15, T3: "a claim wakes when room is there". Who was turned away is asked back when the line is shorter than it was
// estimated to be, in the order of the line, as many as have their turns within Hold and one at least; and not while those
// that were asked are on their way, nor while the destination wants to hear nothing.
func TestALineAsksBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 5 * time.Second
		var asked []int64
		d := newDestination(Limit{Concurrent: 1}, hold, 3, func(ns []int64) { asked = append(asked, ns...) })
		want := func(when string, ns ...int64) {
			t.Helper()
			synctest.Wait()
			if d.mu.Lock(); !slices.Equal(asked, ns) {
				t.Errorf("%s %v were asked back, want %v", when, asked, ns)
			}
			asked = nil
			d.mu.Unlock()
		}
		pass := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // virtual
		slot := func(used time.Duration) {
			if !d.try(rank{}) {
				t.Error("the slot is not free")
			}
			d.release(used)
		}
		slot(time.Minute)                                      // the destination is slow, as it seems
		for _, n := range []int64{1, 9, 8, 7, 6, 5, 4, 3, 2} { // the first of them is asked back before there are others
			d.sentAway(rank{number: n}, time.Now().Add(10*time.Minute))
		}
		want("of a slow destination", 1)
		slot(time.Second)
		want("while that one has not come")
		pass(hold)
		want("when it has not come for long", 2)
		d.came(2)
		slot(time.Second)
		want("when it has come and gone", 3)
		for range 40 {
			slot(10 * time.Millisecond)
		}
		want("of a fast one, with room for three,", 4, 5)
		d.hush(time.Minute)
		pass(59 * time.Second)
		want("of one that asked for silence")
		pass(2 * time.Second)
		want("after that", 6, 7, 8)
		pass(10 * time.Minute)
		want("before their time has come, of those left,", 9)
		d.hush(time.Minute)
		for n := range int64(3) {
			d.sentAway(rank{number: n + 11}, time.Now().Add(time.Duration(n+1)*50*time.Second))
		}
		d.came(12)
		pass(time.Minute)
		want("that neither came nor will by itself", 13)
	})
}
