package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/amends-dev/amends/internal/ledger"
)

// explain gives SQLite's errors their meaning, by code.
func explain(err error) error {
	switch code(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: the file was opened with mode=ro, or it or its directory is not writable for this user: %w", ledger.ErrReadOnly, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the file is not a SQLite database, and not a ledger: %w", err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("the file is damaged: stop, keep a copy, and restore from a backup: %w", err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("the disk is full, nothing was stored: %w", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("another process was writing for longer than the busy timeout, nothing was stored: %w", err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("the file cannot be opened: look at its path and permissions: %w", err)
	}
	return err
}

// refused reports whether a constraint or a size limit refused one row. The transaction goes on.
func refused(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

// code is the primary result code of a SQLite error, 0 for others.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}
