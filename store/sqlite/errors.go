package sqlite

import "github.com/amends-dev/amends/store/internal/sqlitedb"

// explain gives SQLite's errors their meaning.
func explain(err error) error { return sqlitedb.Explain(err) }

// refused reports whether a constraint or a size limit refused one row. The transaction goes on.
func refused(err error) bool { return sqlitedb.Refused(err) }
