package claims

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Limit is how many instances one claim asks for.
const Limit = 100

// A Claimer is one process that claims.
type Claimer interface {
	// Claim takes up to Limit due instances and returns their numbers.
	Claim(ctx context.Context) ([]int64, error)
	Close() error
}

// A Source opens claimers on one database.
type Source interface {
	Claimer(ctx context.Context) (Claimer, error)

	// Stop begins a claim that stands still inside its transaction, and returns what ends it.
	Stop(ctx context.Context) (resume func() error, err error)
}

// Claimed is what was measured.
type Claimed struct {
	Instances int
	Claims    int
	Wall      time.Duration
	Longest   time.Duration // claim
}

// Drain lets n claimers take all of the instances there are. No two may get the same one.
func Drain(ctx context.Context, s Source, n, instances int) (Claimed, error) {
	return drive(ctx, s, n, instances)
}

// standstill is how long the claimer stands still that Beside measures the others beside.
const standstill = 2 * time.Second

// Beside lets n claimers take some instances while another stands still inside its transaction.
func Beside(ctx context.Context, s Source, n int) (c Claimed, err error) {
	resume, err := s.Stop(ctx)
	if err != nil {
		return c, err
	}
	resumed := make(chan error, 1)
	time.AfterFunc(standstill, func() { resumed <- resume() })
	defer func() { err = errors.Join(err, <-resumed) }()
	return drive(ctx, s, n, n*10*Limit)
}

func drive(ctx context.Context, s Source, n, instances int) (c Claimed, err error) {
	var opened []Claimer
	defer func() {
		for _, o := range opened {
			err = errors.Join(err, o.Close())
		}
	}()
	for range n {
		o, err := s.Claimer(ctx)
		if err != nil {
			return c, err
		}
		opened = append(opened, o)
	}
	t := tally{wanted: int64(instances)}
	begun := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, o := range opened {
		g.Go(func() error { return t.take(ctx, o) })
	}
	err = g.Wait()
	return Claimed{Instances: int(t.got.Load()), Claims: int(t.claims.Load()), Wall: time.Since(begun), Longest: time.Duration(t.longest.Load())}, err
}

// tally is what all claimers together have.
type tally struct {
	wanted               int64
	got, claims, longest atomic.Int64
	taken                sync.Map
}

func (t *tally) take(ctx context.Context, c Claimer) error {
	for t.got.Load() < t.wanted {
		begun := time.Now()
		numbers, err := c.Claim(ctx)
		if err != nil {
			return err
		}
		took := int64(time.Since(begun))
		for longest := t.longest.Load(); took > longest && !t.longest.CompareAndSwap(longest, took); longest = t.longest.Load() {
		}
		for _, n := range numbers {
			if _, twice := t.taken.LoadOrStore(n, nil); twice {
				return fmt.Errorf("instance %d was claimed twice", n)
			}
		}
		t.claims.Add(1)
		t.got.Add(int64(len(numbers)))
	}
	return nil
}
