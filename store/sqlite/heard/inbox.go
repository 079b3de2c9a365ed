package sqlite

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Accept stores events and has them on disk when it returns. Calls that come at the same time share a commit.
func (s *Store) Accept(ctx context.Context, events []reconcile.Event) error {
	ins, err := rows.Receive(events)
	if err == nil && len(ins) > 0 {
		err = s.group.Do(ctx, job{size: len(ins), run: func(ctx context.Context, b *batch) error { return s.accept(ctx, b, ins) }})
	}
	if err != nil {
		return fmt.Errorf("accept %d events: %w", len(events), err)
	}
	return nil
}

func (s *Store) accept(ctx context.Context, b *batch, ins []*rows.Incoming) error {
	now, _ := s.clock()
	if b.number == 0 {
		if err := s.lastNumber.QueryRowContext(ctx).Scan(&b.number); err != nil {
			return err
		}
	}
	for _, in := range ins {
		stored, err := s.add(ctx, in, b.number+1, now)
		if err != nil {
			return err
		}
		if stored {
			b.number++
		}
	}
	return nil
}

// add stores an event, or counts it as a copy, or keeps it beside the one it conflicts with.
func (s *Store) add(ctx context.Context, in *rows.Incoming, number, now int64) (stored bool, err error) {
	fresh, err := s.recognise(ctx, in.Key, in, number, now)
	if err != nil {
		return false, err
	}
	if fresh {
		return true, s.deliver(ctx, in.Key, in, number, now)
	}
	if known, err := affects(s.countCopy.ExecContext(ctx, in.Key[:], in.Content[:], in.Copies, now)); known || err != nil {
		return false, err
	}
	fresh, err = s.recognise(ctx, in.Twin, in, number, now)
	if err != nil {
		return false, err
	}
	if !fresh {
		_, err := affects(s.countCopy.ExecContext(ctx, in.Twin[:], in.Content[:], in.Copies, now))
		return false, err
	}
	twin := *in
	twin.Judged = false
	twin.Values = append([]any(nil), in.Values...)
	twin.Values[rows.Verdict] = string(reconcile.Conflict)
	return true, s.deliver(ctx, in.Twin, &twin, number, now)
}

// recognise reports whether key is new, and remembers it.
func (s *Store) recognise(ctx context.Context, key reconcile.Digest, in *rows.Incoming, number, now int64) (bool, error) {
	return affects(s.addDigest.ExecContext(ctx, key[:], in.Content[:], number, in.Copies, now))
}

// deliver puts an event into the inbox.
func (s *Store) deliver(ctx context.Context, key reconcile.Digest, in *rows.Incoming, number, now int64) error {
	args := make([]any, 0, 5+len(in.Values))
	if in.Judged {
		args = append(args, number, key[:], now, in.Values[rows.Verdict], in.Values[rows.Why])
	} else {
		args = append(args, number, key[:], nil, nil, nil)
	}
	if _, err := s.addDelivery.ExecContext(ctx, append(args, in.Values...)...); err != nil {
		return err
	}
	if in.Body == "" {
		return nil
	}
	_, err := s.addBody.ExecContext(ctx, number, now, in.Body)
	return err
}

type result interface{ RowsAffected() (int64, error) }

// affects reports whether a statement changed a row.
func affects(r result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}
