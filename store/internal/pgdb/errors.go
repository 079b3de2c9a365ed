package pgdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/nap"
)

// Explain gives Postgres's errors their meaning, by SQLSTATE. Everything that may pass
// (serialisation, deadlock, restart, a lost connection) stays as it is: [Repeat] has seen to it as
// far as it may, and the caller tries again.
func Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	// A cancelled statement is 57014 and does not say by whom.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return fmt.Errorf("%w; where that is meant, as on this machine, add sslmode=disable to the address (behind a ? or a &)", err)
	}
	e := pq.As(err)
	if e == nil {
		return err
	}
	switch e.Code {
	case pqerror.ReadOnlySQLTransaction:
		return fmt.Errorf("%w: %w", errStandby, err)
	case pqerror.UndefinedTable, pqerror.UndefinedColumn:
		return fmt.Errorf("%w: %w. Run amends migrate", ledger.ErrSchema, err)
	case pqerror.TRSerializationFailure, pqerror.TRDeadlockDetected:
		return fmt.Errorf("others were in the way again and again; nothing was stored, try again: %w", err)
	case pqerror.TRStatementCompletionUnknown:
		return fmt.Errorf("the server does not know whether it was stored; do the same again: %w", err)
	case pqerror.LockNotAvailable:
		return fmt.Errorf("another transaction holds what this needs; nothing was stored, try again: %w", err)
	case pqerror.TooManyConnections:
		return fmt.Errorf("the server has no connection left, and had none for some seconds; nothing was stored. Give it more (max_connections), or the processes "+
			"fewer: each takes ten, or Writers + Workers + Readers + 4 of its Options: %w", err)
	case pqerror.InsufficientPrivilege:
		return fmt.Errorf("this user may not do that; grant it the tables named amends_ and pg_control_system(): %w", err)
	}
	return err
}

// Refused reports whether the database refused a value: bad data, a constraint, a limit of size.
func Refused(err error) bool {
	e := pq.As(err)
	if e == nil {
		return false
	}
	switch e.Code.Class() {
	case "22", "23", "54":
		return true
	}
	return false
}

// Taken reports whether something stands where it would be the only one.
func Taken(err error) bool { return pq.As(err, pqerror.UniqueViolation) != nil }

// Contended reports whether a lock was not had in time.
func Contended(err error) bool { return pq.As(err, pqerror.LockNotAvailable) != nil }

// Undone reports whether an error proves that nothing was stored: another transaction was in the
// way, and is gone, or all connections were taken. It may be of another driver, in a transaction of the caller's.
func Undone(err error) bool {
	var e interface{ SQLState() string }
	return errors.As(err, &e) && slices.Contains([]pqerror.Code{pqerror.TRSerializationFailure, pqerror.TRDeadlockDetected, pqerror.TooManyConnections}, pqerror.Code(e.SQLState()))
}

// Unknown reports whether an error leaves open what was stored: the connection is gone, or the
// server itself cannot say. A silence does, too, but whether there is time for another is the
// caller's to know.
func Unknown(err error) bool {
	if _, silent := errors.AsType[*Silence](err); silent {
		return false // it has cost its time, and again would cost it again
	}
	if e := pq.As(err); e != nil {
		switch e.Code {
		case pqerror.TRStatementCompletionUnknown, pqerror.AdminShutdown, pqerror.CrashShutdown:
			return true
		}
		return e.Code.Class() == pqerror.ClassConnectionException
	}
	var network *net.OpError
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// How often something is tried. What was undone is tried until the others are through; a connection
// that is gone is made again at once or not so soon, and the caller has more patience than we.
const (
	triesUndone  = 50
	triesUnknown = 6
)

// Repeat runs fn, and again after an error that proves that nothing was stored. Where fn may take
// effect twice it runs again, too, when nothing is known. Nothing that a failed attempt has read
// counts: fn starts over.
func Repeat(ctx context.Context, mayTwice bool, fn func(context.Context) error) error {
	for undone, unknown := 1, 1; ; {
		err := fn(ctx)
		var again bool
		switch {
		case Undone(err):
			again = undone < triesUndone
			undone++
		case mayTwice && Unknown(err):
			again = unknown < triesUnknown
			unknown++
		}
		if !again || !pause(ctx, max(undone, unknown)-1) {
			return err
		}
	}
}

// pause waits for a little while that differs from everybody else's, the longer the more often it
// was tried. It reports whether ctx is still there.
func pause(ctx context.Context, tries int) bool {
	most := time.Millisecond << min(tries, 7)
	_ = nap.For(ctx, rand.N(most))
	return ctx.Err() == nil
}
