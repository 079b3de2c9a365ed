package ledger

import (
	"errors"

	"github.com/amends-dev/amends/saga"
)

// What a caller can tell apart. Drivers map their database's own errors to these; the cause stays
// in the chain.
var (
	// ErrNotFound: there is no such work.
	ErrNotFound = errors.New("no such work")

	// ErrInvalid: a value that no ledger stores: text that is not UTF-8 or holds a NUL, a key that
	// is too long. Sending it again cannot help.
	ErrInvalid = errors.New("a value cannot be stored")

	// ErrForgotten: the work's records have gone by retention. Nothing can be said to it any more.
	ErrForgotten = saga.Permanent(errors.New("its records have gone by retention: what is left is its status, what it made by external id, and a hash of its input. " +
		"Change what it made at the destination, by hand"))

	// ErrCursor: the cursor of a page is not one of this listing.
	ErrCursor = errors.New("the listing cannot go on")

	// ErrChanged: a control is not the one any more that this one was decided on, or a work has signals
	// that a signal was not decided on.
	ErrChanged = errors.New("it was changed meanwhile: read it again and decide again")

	// ErrSessionDead: the session's lease has ended and does not come back. Open a new session.
	ErrSessionDead = errors.New("the session is dead: its lease ended")

	// ErrDatabaseChanged: the database is not the one this session was opened on (fail-over,
	// restore). Its last moments may be forgotten: arm nothing, open a new session after a lease
	// time.
	ErrDatabaseChanged = errors.New("the database is not the one the session was opened on")

	// ErrDefinitionChanged: a definition's structure differs from what is stored under the same
	// version.
	ErrDefinitionChanged = errors.New("the definition's structure changed under an unchanged version number")

	// ErrSchema: the database's schema is older or newer than this program.
	ErrSchema = errors.New("the database schema does not fit this program")

	// ErrReadOnly: the database is a read replica or read-only.
	ErrReadOnly = errors.New("the database does not accept writes")

	// ErrDamaged: what is stored of a work cannot be read. Run amends check, and compare with a
	// backup.
	ErrDamaged = errors.New("what is stored is damaged")

	// ErrLocked: another coordinator has this SQLite ledger open.
	ErrLocked = errors.New("another coordinator holds this ledger")

	// ErrBehind: the database has less than its [Witness] has seen of it. It was put back from a backup, or
	// is a copy of one.
	ErrBehind = errors.New("the ledger has forgotten what was stored in it")

	// ErrUnsupported: the database engine is too old, or what stands between it and us changes what is said.
	ErrUnsupported = errors.New("the database cannot hold a ledger")
)
