package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/store/internal/sqlstore"
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

func write(ctx context.Context, w *writer, times int) error {
	for range times {
		err := w.transaction(ctx, func(c sqlstore.Queries) error {
			_, err := c.ExecContext(ctx, `INSERT INTO amends_sessions (token, label, database, knows, opened_at, renewed_at, expires_at)
				VALUES (abs(random()) + 1, '', '', '', 0, 0, 0)`)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A function that panics leaves no transaction behind.
func TestPanic(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.close() }()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = w.transaction(t.Context(), func(sqlstore.Queries) error { panic("no") })
	}()
	if err := write(t.Context(), w, 1); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

// A call whose context ends, at whatever moment, leaves no transaction open behind it: all later ones would fail.
func TestAContextThatEndsLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	nothing := func(sqlstore.Queries) error { return nil }
	ended := 0
	for i := range 3000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%100)*time.Microsecond)
		if w.transaction(ctx, nothing) != nil {
			ended++
		}
		cancel()
		if err := w.transaction(t.Context(), nothing); err != nil {
			t.Fatalf("after %d calls, %d of them ended early: %v", i+1, ended, err)
		}
	}
	if ended == 0 {
		t.Error("no call ended early")
	}
}
