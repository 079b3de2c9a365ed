package pgdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// 40001 and 40P01 mean that nothing happened, and are repeated; 40003 and a lost connection
// mean that nothing is known, and are repeated where the verb may be. Everything else is the
// caller's.
func TestRepeat(t *testing.T) {
	t.Parallel()
	code := func(c pqerror.Code) error { return fmt.Errorf("append: %w", &pq.Error{Code: c}) }
	for _, c := range []struct {
		err         error
		once, twice int // how often it is tried where the verb may not, and may, be done twice
	}{
		{code(pqerror.TRSerializationFailure), triesUndone, triesUndone},
		{code(pqerror.TRDeadlockDetected), triesUndone, triesUndone},
		{code(pqerror.TooManyConnections), triesUndone, triesUndone},
		{code(pqerror.TRStatementCompletionUnknown), 1, triesUnknown},
		{code(pqerror.AdminShutdown), 1, triesUnknown},
		{code(pqerror.ConnectionFailure), 1, triesUnknown},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), 1, triesUnknown},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, 1, triesUnknown},
		{driver.ErrBadConn, 1, triesUnknown},
		{code(pqerror.UniqueViolation), 1, 1},
		{code(pqerror.LockNotAvailable), 1, 1},
		{code(pqerror.QueryCanceled), 1, 1},
		{context.DeadlineExceeded, 1, 1},
		{nil, 1, 1},
	} {
		for mayTwice, want := range map[bool]int{false: c.once, true: c.twice} {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				err := Repeat(t.Context(), mayTwice, func(context.Context) error { n++; return c.err })
				if !errors.Is(err, c.err) || n != want {
					t.Errorf("%v, may be done twice: %t: tried %d times, want %d; error %v", c.err, mayTwice, n, want, err)
				}
			})
		}
	}
}

// A caller who leaves is not kept waiting for a repetition, and none is made for him.
func TestRepeatEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n, began := 0, time.Now()
		err := Repeat(ctx, true, func(context.Context) error {
			if n++; n == 3 {
				cancel()
				began = time.Now()
			}
			return &pq.Error{Code: pqerror.TRSerializationFailure}
		})
		if n != 3 || !Undone(err) || time.Since(began) > 0 {
			t.Errorf("tried %d times and %v longer, %v; want 3 and no longer", n, time.Since(began), err)
		}
	})
}
