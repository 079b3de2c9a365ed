package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/amends-dev/amends/internal/ledger"
)

// locate returns the absolute path without symbolic links, by which every process knows the file,
// or says why it cannot hold a ledger. A file that does not exist is created, for its owner only.
func locate(path string) (string, error) {
	if path == "" || path == ":memory:" {
		return "", fmt.Errorf("a ledger must outlive its process: give the path of a file, or use package store/memory for one that forgets")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	switch {
	case err == nil && info.IsDir():
		return "", fmt.Errorf("%s is a directory: give the path of a file in it", abs)
	case os.IsNotExist(err): // a ledger holds people's orders: its owner decides who else may read it
		f, cerr := os.OpenFile(abs, os.O_CREATE|os.O_RDWR, 0o600)
		if cerr != nil {
			return "", fmt.Errorf("its directory cannot be used: %w", cerr)
		}
		if err := f.Close(); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// openReaders opens a pool of at most n connections that only read.
func openReaders(path string, busy time.Duration, n int) (*sqlx.DB, error) {
	return connect(path, busy, "&_pragma=query_only(1)", n)
}

// connect opens a pool on the file. Every connection waits for a writer in another process, and
// checks foreign keys.
func connect(path string, busy time.Duration, pragmas string, conns int) (*sqlx.DB, error) {
	dsn := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)%s",
		(&url.URL{Path: path}).EscapedPath(), busy.Milliseconds(), pragmas)
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// oldest is the first release of SQLite without the WAL-reset bug, by which two connections could
// corrupt a file.
var oldest = [3]int{3, 51, 3}

func trustworthy(ctx context.Context, db *sqlx.DB) error {
	var version string
	if err := db.GetContext(ctx, &version, `SELECT sqlite_version()`); err != nil {
		return err
	}
	if err := recent(version); err != nil {
		return err
	}
	var mode string
	if err := db.GetContext(ctx, &mode, `PRAGMA journal_mode = WAL`); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("SQLite cannot keep a write-ahead log there (journal mode %q), which a ledger needs: "+
			"put the file on a local file system, not on a network share", mode)
	}
	return nil
}

func recent(version string) error {
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("read the version of SQLite from %q: %w", version, err)
	}
	for i := range v {
		if v[i] != oldest[i] {
			if v[i] > oldest[i] {
				return nil
			}
			return fmt.Errorf("%w: SQLite %s; a ledger needs 3.51.3 or newer, earlier ones can corrupt a file in WAL mode. "+
				"Update modernc.org/sqlite", ledger.ErrUnsupported, version)
		}
	}
	return nil
}
