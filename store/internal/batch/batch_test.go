package batch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func one(int) int { return 1 }

// What arrives while a batch is written is the next batch, up to the limit, and nobody waits for
// more to come.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		hold := make(chan struct{})
		g := New(1, 5, one, func(calls []*Call[int]) {
			sizes = append(sizes, len(calls))
			<-hold
			for _, c := range calls {
				c.Answer(nil)
			}
		})
		var wg sync.WaitGroup
		do := func() { wg.Go(func() { _ = g.Do(t.Context(), 1) }) }
		do()
		synctest.Wait()
		for range 7 {
			do()
		}
		synctest.Wait()
		close(hold)
		wg.Wait()
		g.Close()
		if len(sizes) != 3 || sizes[0] != 1 || sizes[1] != 5 || sizes[2] != 2 {
			t.Errorf("batches of %v, want 1, 5 and 2", sizes)
		}
	})
}

// A caller leaves when its context ends, whatever the writer does; work that nobody began is never
// done.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var done atomic.Int64
		g := New(1, 1, one, func(calls []*Call[int]) {
			<-hold
			for _, c := range calls {
				done.Add(1)
				c.Answer(nil)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 3 { // one with the writer, two waiting
			wg.Go(func() {
				if err := g.Do(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want the deadline", err)
				}
			})
		}
		wg.Wait()
		close(hold)
		if err := g.Do(t.Context(), 1); err != nil {
			t.Error(err)
		}
		g.Close()
		if n := done.Load(); n != 2 { // the one that was begun, and the last
			t.Errorf("%d calls were done, want 2", n)
		}
	})
}

// DoOrNot stays until the writer has let go of what is the caller's.
func TestDoOrNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := New(1, 1, one, func(calls []*Call[int]) {
			<-hold
			calls[0].Answer(nil)
		})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { got <- g.DoOrNot(ctx, 1) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("it returned %v while the writer had its work", err)
		default:
		}
		close(hold)
		if err := <-got; err != nil {
			t.Errorf("it was done, and the answer is %v", err)
		}
		g.Close()
	})
}

// After Close nobody waits for ever.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := New(1, 1, one, func(calls []*Call[int]) {
			<-hold
			calls[0].Answer(nil)
		})
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- g.Do(t.Context(), 1) }()
		}
		synctest.Wait()
		go g.Close()
		synctest.Wait()
		close(hold)
		synctest.Wait()
		var closed int
		for range 3 {
			if err := <-errs; errors.Is(err, ErrClosed) {
				closed++
			} else if err != nil {
				t.Error(err)
			}
		}
		if closed != 2 {
			t.Errorf("%d calls found it closed, want 2", closed)
		}
		if err := g.Do(t.Context(), 1); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
