package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/address/file"
	"github.com/amends-dev/amends/internal/ledger"
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

func write(ctx context.Context, w *writer) error {
	return w.transaction(ctx, func(c sqlstore.Queries) error {
		_, err := c.ExecContext(ctx, `INSERT INTO amends_sessions (token, label, database, knows, lock, witness, opened_at, renewed_at, expires_at)
			VALUES (abs(random()) + 1, '', '', '', '', '', 0, 0, 0)`)
		return err
	})
}

// A function that panics leaves no transaction behind.
func TestPanic(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), file.Create, time.Second)
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
	if err := write(t.Context(), w); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

// A call whose context ends, at whatever moment, leaves no transaction open behind it: all later
// ones would fail.
func TestAContextThatEndsLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), file.Create, time.Second)
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

// Who commits one transaction behind the other leaves others a chance: two handles on one file, of
// which one writes without a pause, and the disk takes 7 ms for a transaction. The other's wait for
// their turn and a little. With SQLite's own patience they were refused after whatever time (a case
// of the suite on two handles: SQLITE_BUSY for ten minutes).
func TestAWriterLeavesAGapToOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	synctest.Test(t, func(t *testing.T) {
		var ws []*writer
		for range 2 {
			w, err := openWriter(t.Context(), path, file.Create, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.close() }()
			ws = append(ws, w)
		}
		busy, other := ws[0], ws[1]
		commits, ended, stopped := 0, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-ended:
					return
				default:
				}
				err := busy.transaction(t.Context(), func(sqlstore.Queries) error {
					time.Sleep(7 * time.Millisecond) //nolint:forbidigo // virtual time: what the disk takes
					return nil
				})
				if err != nil {
					t.Errorf("the busy one: %v", err)
					return
				}
				commits++
			}
		}()
		for _, way := range []func(context.Context, func(sqlstore.Queries) error) error{other.transaction, other.plain} {
			for range 10 {
				time.Sleep(11 * time.Millisecond) //nolint:forbidigo // virtual time
				from := time.Now()
				err := way(t.Context(), func(q sqlstore.Queries) error {
					_, err := q.ExecContext(t.Context(), `UPDATE amends_meta SET controls = controls + 1`)
					return err
				})
				if d := time.Since(from); err != nil || d > 2*turn {
					t.Errorf("the other one wrote after %v, %v; want less than %v", d, err, 2*turn)
				}
			}
		}
		close(ended)
		<-stopped
		t.Logf("%d commits of the busy one meanwhile", commits)
	})
}

// A call that waits for another one's transaction comes back when its context ends, and one that
// has no time to wait says so.
func TestAWaitForAnotherWriterEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	var ws []*writer
	for _, busy := range []time.Duration{time.Hour, time.Hour, time.Millisecond} {
		w, err := openWriter(t.Context(), path, file.Create, busy)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.close() }()
		ws = append(ws, w)
	}
	err := ws[0].transaction(t.Context(), func(sqlstore.Queries) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := write(ctx, ws[1]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: %v", err)
		}
		if err := explain(write(t.Context(), ws[2])); err == nil || !strings.Contains(err.Error(), "longer than the busy timeout, nothing was stored") {
			t.Errorf("with a timeout that ends: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, w := range ws {
		if err := write(t.Context(), w); err != nil {
			t.Errorf("behind it: %v", err)
		}
	}
}

// What callers write while another one writes is one transaction behind it. What failed of it is not there, and what did not is; one that
// panics fails the others, and keeps none waiting.
func TestSharedTransaction(t *testing.T) {
	t.Parallel()
	w, err := openWriter(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), file.Create, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.close() }()
	failed := errors.New("failed")
	over, end := context.WithCancel(t.Context())
	end()
	add := func(ctx context.Context, label string, result error) error {
		return w.share(ctx, func(ctx context.Context, q sqlstore.Queries) error {
			_, err := q.ExecContext(ctx, `INSERT INTO amends_sessions (token, label, database, knows, lock, witness, opened_at, renewed_at, expires_at)
				VALUES (abs(random()) + 1, $1, '', '', '', '', 0, 0, 0)`, label)
			return errors.Join(err, result)
		})
	}
	together := func(n int, each func(i int)) {
		w.mu.Lock()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { each(i) })
		}
		for queued := 0; queued < n; {
			w.queue.Lock()
			queued = len(w.queue.jobs)
			w.queue.Unlock()
			runtime.Gosched()
		}
		w.mu.Unlock()
		all.Wait()
	}
	const n = 3 * mostJobs
	stored := func(label string) (n int) {
		if err := w.conn.QueryRowContext(t.Context(), `SELECT count(*) FROM amends_sessions WHERE label = $1`, label).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	together(n, func(i int) {
		switch i % 3 {
		case 0:
			if err := add(t.Context(), "good", nil); err != nil {
				t.Error(err)
			}
		case 1:
			if err := add(t.Context(), "failed", failed); !errors.Is(err, failed) {
				t.Error(err)
			}
		default:
			if err := add(over, "gone", nil); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	if good, bad, late := stored("good"), stored("failed"), stored("gone"); good != n/3 || bad != 0 || late != 0 {
		t.Errorf("stored are %d good, %d failed, %d whose callers had gone", good, bad, late)
	}
	together(10, func(i int) {
		defer func() { _ = recover() }()
		if i == 0 {
			_ = w.share(t.Context(), func(context.Context, sqlstore.Queries) error { panic("a test") })
		}
		if err := add(t.Context(), "beside", nil); err != nil && !errors.Is(err, errBeside) {
			t.Error(err)
		}
	})
}

// Rule: who opens a ledger writes nothing to it, so a command is not held up by what another process writes.
func TestOpenBesideAWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.writer.transaction(t.Context(), func(sqlstore.Queries) error { // it has the file's lock
		other, err := Open(t.Context(), path, &Options{BusyTimeout: time.Millisecond})
		if err != nil {
			return err
		}
		return other.Close()
	})
	if err != nil {
		t.Error(err)
	}
}
