package pgdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/amends-dev/amends/ledger"
)

// Explain gives Postgres's errors their meaning, by SQLSTATE. Everything that may pass (serialisation, deadlock,
// restart, a lost connection) stays as it is: the caller appends the same records again.
func Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	// A cancelled statement is 57014 and does not say by whom.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
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
	case pqerror.LockNotAvailable:
		return fmt.Errorf("another transaction holds what this needs; nothing was stored, try again: %w", err)
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

// Contended reports whether a lock was not had in time.
func Contended(err error) bool { return pq.As(err, pqerror.LockNotAvailable) != nil }
