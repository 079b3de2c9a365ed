package naive_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/shopsim/audit"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/naive"
	"github.com/amends-dev/amends/internal/shopsim/world"
)

// A sync that ended leaves nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick suits callers with a deadline of a quarter of a second.
var quick = faults.Timing{Slow: 5 * time.Millisecond, Silent: time.Second, Late: 20 * time.Millisecond, Retry: time.Millisecond}

func start(t *testing.T, c world.Config) *world.World {
	t.Helper()
	c.Dir, c.Timing = filepath.Join(t.TempDir(), "world"), quick
	w, err := world.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// run runs the naive sync over w until it has nothing left to do.
// Each try may take as long as timeout.
func run(ctx context.Context, w *world.World, timeout time.Duration) error {
	return naive.Run(ctx, naive.Config{
		ShopURL: w.ShopURL, BooksURL: w.BooksURL, MailAddr: w.MailAddr, Log: quiet(),
		Timeout: timeout, Pause: time.Millisecond, Every: time.Millisecond, Workers: 8,
	})
}

// In a world without faults even the naive sync is clean. So what the audit
// finds below comes from the faults.
func TestWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, orders := range []int{1, 60} {
		w := start(t, world.Config{Seed: 1, Orders: orders})
		if err := run(t.Context(), w, time.Minute); err != nil {
			t.Fatal(err)
		}
		r, err := audit.World(t.Context(), w)
		if err != nil || !r.Clean() || r.Invoices != orders || r.Receipts != orders {
			t.Errorf("got %+v, %v", r, err)
		}
		if tally, err := w.Progress(t.Context()); err != nil || tally.Synced != orders {
			t.Errorf("progress %+v, %v", tally, err)
		}
	}
}

// With faults the naive sync ends, thinks that all is done, and has made
// duplicates.
func TestWithFaults(t *testing.T) {
	t.Parallel()
	w := start(t, world.Config{Seed: 1, Orders: 100, Faults: 0.3})
	if err := run(t.Context(), w, 250*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r, err := audit.World(t.Context(), w)
	if err != nil || r.Duplicates == 0 {
		t.Errorf("got %+v, %v, want duplicates", r, err)
	}
	if tally, err := w.Progress(t.Context()); err != nil || tally.Synced != 100 {
		t.Errorf("progress %+v, %v", tally, err)
	}
	if len(w.Faults()) < 5 {
		t.Errorf("few kinds of faults were met: %v", w.Faults())
	}
}

// What customers change after the mark never reaches the books, in a world
// without faults: a wrong total for each edit, an invoice too many for each late
// cancel.
func TestChangesAfterTheMark(t *testing.T) {
	t.Parallel()
	w := start(t, world.Config{Seed: 1, Orders: 40, Edits: 0.3, LateCancels: 0.2, Pace: time.Millisecond})
	if err := run(t.Context(), w, time.Minute); err != nil {
		t.Fatal(err)
	}
	for ticks := time.Tick(time.Millisecond); ; <-ticks {
		if quiet, err := w.Quiet(t.Context()); err != nil || quiet {
			break
		}
	}
	r, err := audit.World(t.Context(), w)
	if err != nil || r.Orphans != w.Changes().LateCancels || r.Orphans == 0 || r.Mismatches <= r.Orphans || r.Duplicates+r.Missing != 0 {
		t.Errorf("got %+v, %v after %+v", r, err, w.Changes())
	}
}

// Stopped between two calls and started again, the naive sync makes a second
// invoice where the first has no mark, and never sends the receipt where there
// is one. No fault of the servers is needed for that.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := start(t, world.Config{Seed: 1, Orders: 40})
	for limit := 3; ; limit += 3 {
		ctx, cancel := context.WithCancel(t.Context())
		killer := &killAfter{limit: limit, kill: cancel}
		err := naive.Run(ctx, naive.Config{
			ShopURL: killer.listen(t, w.ShopURL), BooksURL: w.BooksURL, MailAddr: w.MailAddr, Log: quiet(), Every: time.Millisecond, Workers: 4,
		})
		cancel()
		if err == nil {
			break
		}
	}
	r, err := audit.World(t.Context(), w)
	if err != nil || r.Duplicates == 0 || r.Missing == 0 {
		t.Errorf("got %+v, %v, want duplicates and missing receipts", r, err)
	}
}

// A call is tried as often as Tries says, and the next run starts over. A sync
// that cannot even list its orders goes on until it is stopped, and says so.
func TestTries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 6 {
			cancel()
		}
		http.Error(w, "closed", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	log, hook := quiet(), &lines{}
	log.AddHook(hook)
	err := naive.Run(ctx, naive.Config{ShopURL: server.URL, Log: log, Tries: 2, Pause: time.Millisecond, Every: time.Millisecond})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if calls.Load() != 6 || hook.n != 3 {
		t.Errorf("%d calls and %d log lines, want 6 calls in 3 runs", calls.Load(), hook.n)
	}
}

// lines counts what is logged.
type lines struct{ n int }

// Levels are all of them.
func (*lines) Levels() []logrus.Level { return logrus.AllLevels }

// Fire counts one.
func (l *lines) Fire(*logrus.Entry) error { l.n++; return nil }
