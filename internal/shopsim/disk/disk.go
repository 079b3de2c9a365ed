// Package disk opens the SQLite files in which the shop and the books keep
// their data.
//
// Both servers live in one process that is never killed, and what they store
// is not what the example measures. So the files are opened with
// synchronous=NORMAL: a commit survives the end of the process, and only a
// power cut may lose the last ones.
package disk

import (
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the pure Go driver, registered as "sqlite"
)

// Open opens the database file at path, creates it when it is not there, and
// applies schema, which must be safe to apply again.
func Open(path, schema string) (*sqlx.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the database file %s: %w", path, err)
	}
	dsn := url.URL{
		Scheme:   "file",
		Path:     abs,
		RawQuery: "_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)&_txlock=immediate",
	}
	db, err := sqlx.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open the database file %s: %w", path, err)
	}
	// One connection: writers queue in Go instead of meeting SQLITE_BUSY.
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(schema); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("prepare the database file %s: %w", path, err)
	}
	return db, nil
}
