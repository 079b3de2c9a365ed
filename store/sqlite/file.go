package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/amends-dev/amends/internal/address/file"
	"github.com/amends-dev/amends/internal/ledger"
)

// read reads the path that a program gives. An absolute one is the name of a file, whatever it has
// in it.
func read(path string) (file.Address, error) {
	if filepath.IsAbs(path) && !strings.HasPrefix(path, "//") { // of a URL that has lost its scheme
		return file.Address{File: path}, nil
	}
	return file.Parse(path)
}

// locate returns the absolute path without symbolic links, by which every process knows the file,
// or says why it cannot hold a ledger. A file that does not exist is created, for its owner only.
func locate(path string, mode file.Mode) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	switch {
	case err == nil && info.IsDir():
		return "", fmt.Errorf("%s is a directory: give the path of a file in it", abs)
	case os.IsNotExist(err) && mode != file.Create:
		return "", fmt.Errorf("there is no file %s, and the address says that it exists (mode=rw, mode=ro): %w", abs, err)
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

// openReaders opens a pool of at most n connections that only read. With mode=ro the last of them
// does not copy the log into the file when it is closed.
func openReaders(path string, mode file.Mode, busy time.Duration, n int) (*sqlx.DB, error) {
	how := "&_pragma=query_only(1)"
	if mode == file.ReadOnly {
		how += "&mode=ro"
	}
	return connect(path, busy, how, n)
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
