package scan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/nap"
)

// haltError ends a run where it is: it is not the source's fault.
type haltError struct{ error }

func (e haltError) Unwrap() error { return e.error }

// halt reports whether the run has to end, whatever else could be done.
func halt(err error) bool {
	_, ok := errors.AsType[haltError](err)
	return ok
}

// caller asks one side, in its turn.
type caller struct {
	*Sweep

	quota *asking.Quota
	calls atomic.Int64
}

// ask calls the other side until it answers, some attempts long. A turn is taken for every attempt.
func (c *caller) ask(ctx context.Context, call func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		if err := c.Proceed(ctx); err != nil {
			return haltError{err}
		}
		if err := c.quota.Take(ctx); err != nil {
			if ctx.Err() != nil {
				return haltError{err}
			}
			return err
		}
		c.calls.Add(1)
		err := c.once(ctx, call)
		c.quota.Answered(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return haltError{err}
		case asking.Refused(err), errors.Is(err, ErrExpired), attempt >= c.Attempts:
			return err
		}
		if nap.For(ctx, time.Second<<min(attempt-1, 5)) != nil {
			return haltError{context.Cause(ctx)}
		}
	}
}

// once calls the other side. A panic of the adapter is an error like any other.
func (c *caller) once(ctx context.Context, call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = asking.Permanent(fmt.Errorf("the adapter panicked: %v", r))
		}
	}()
	return call(ctx)
}

// load reads a position and its state.
func load[T any](ctx context.Context, store Store, name string, state *T) (Position, error) {
	p, err := store.Position(ctx, name)
	if err != nil {
		return p, haltError{fmt.Errorf("read where the sweep %s stands: %w", name, err)}
	}
	return p, decode(p, state)
}

func decode[T any](p Position, state *T) error {
	if len(p.State) == 0 {
		return nil
	}
	if err := json.Unmarshal(p.State, state); err != nil {
		return haltError{fmt.Errorf("read where the sweep %s stands: its state is not one this program wrote: %w", p.Name, err)}
	}
	return nil
}

// advance stores a page and the state behind it.
func (s *Sweep) advance(ctx context.Context, p *Position, state any, page Catch) error {
	text, err := json.Marshal(state)
	if err != nil {
		return haltError{fmt.Errorf("write where the sweep %s stands: %w", p.Name, err)}
	}
	next := *p
	next.State = text
	for attempt := 1; ; attempt++ {
		moved, err := s.Store.Advance(ctx, next, page)
		if err == nil {
			*p = moved
			return nil
		}
		if errors.Is(err, ErrMoved) || ctx.Err() != nil || attempt >= 3 {
			return haltError{fmt.Errorf("store a page of the sweep %s: %w", p.Name, err)}
		}
		if nap.For(ctx, time.Second) != nil {
			return haltError{context.Cause(ctx)}
		}
	}
}
