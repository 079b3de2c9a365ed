package sqlitedb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
)

// A place without a write-ahead log is refused; a database in memory is one.
func TestWithoutWriteAheadLog(t *testing.T) {
	t.Parallel()
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := trustworthy(t.Context(), db); err == nil || !strings.Contains(err.Error(), "local file system") {
		t.Errorf("got %v, want a word about the file system", err)
	}
}

// SQLite before 3.51.3 is refused.
func TestOldEngine(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]error{
		"3.51.3": nil, "3.51.10": nil, "3.52.0": nil, "4.0.0": nil,
		"3.51.2": ledger.ErrUnsupported, "3.9.9": ledger.ErrUnsupported, "2.99.99": ledger.ErrUnsupported,
	} {
		if err := recent(version); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", version, err, want)
		}
	}
}

// The writers of one file queue in one place within a process: with a busy timeout of nothing, none of them is ever
// refused because another one writes.
func TestWritersQueue(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	errs := make(chan error)
	for range 3 {
		w, err := OpenWriter(t.Context(), path, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		go func() { errs <- write(t.Context(), w, 200) }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func write(ctx context.Context, w *Writer, times int) error {
	for range times {
		err := w.Transaction(ctx, func(c *sqlx.Conn) error {
			_, err := c.ExecContext(ctx, `INSERT INTO amends_sessions (token, label, database, knows, opened, renewed, expires)
				VALUES (abs(random()) + 1, '', '', '', 0, 0, 0)`)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A queue is forgotten with its last writer.
func TestQueueIsForgotten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	one, two := join(path), join(path)
	if one != two {
		t.Error("two writers of one file have two queues")
	}
	one.leave()
	if join(path) != one {
		t.Error("the queue was forgotten while somebody is in it")
	}
	one.leave()
	one.leave()
	if q := join(path); q == one {
		t.Error("the queue outlived its last writer")
	}
}

// A function that panics leaves no transaction behind.
func TestPanic(t *testing.T) {
	t.Parallel()
	w, err := OpenWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = w.Transaction(t.Context(), func(*sqlx.Conn) error { panic("no") })
	}()
	if err := write(t.Context(), w, 1); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

// A call whose context ends, at whatever moment, leaves no transaction open behind it: all later ones would fail.
func TestAContextThatEndsLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	w, err := OpenWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	nothing := func(*sqlx.Conn) error { return nil }
	ended := 0
	for i := range 3000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%100)*time.Microsecond)
		if w.Transaction(ctx, nothing) != nil {
			ended++
		}
		cancel()
		if err := w.Transaction(t.Context(), nothing); err != nil {
			t.Fatalf("after %d calls, %d of them ended early: %v", i+1, ended, err)
		}
	}
	if ended == 0 {
		t.Error("no call ended early")
	}
}
