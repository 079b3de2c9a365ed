package naive_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/examples/orders-to-accounting/audit"
	"github.com/amends-dev/amends/examples/orders-to-accounting/naive"
	"github.com/amends-dev/amends/internal/outside"
)

// quick suits callers with a deadline of a quarter of a second.
var quick = outside.Timing{Slow: 5 * time.Millisecond, Silent: time.Second, Late: 20 * time.Millisecond, Retry: time.Millisecond}

func start(t *testing.T, c outside.Config) *outside.World {
	t.Helper()
	c.Timing = quick
	w := outside.Start(c)
	t.Cleanup(w.Close)
	return w
}

// run runs the naive sync over w until it has nothing left to do. Each try may take as long as timeout.
func run(ctx context.Context, w *outside.World, shop string, timeout time.Duration) error {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return naive.Run(ctx, naive.Config{Shop: shop, Books: w.BooksURL, Mail: w.MailURL, Log: log, Timeout: timeout})
}

// In a world without faults even the naive sync is clean. So what the audit
// finds below comes from the faults.
func TestWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, orders := range []int{1, 60} {
		w := start(t, outside.Config{Seed: 1, Orders: orders})
		if err := run(t.Context(), w, w.ShopURL, time.Minute); err != nil {
			t.Fatal(err)
		}
		r := audit.World(w, audit.Known{})
		if !r.Clean() || r.Invoices != orders || r.Receipts != orders {
			t.Errorf("got %+v", r)
		}
	}
}

// With faults the naive sync ends, thinks that all is done, and has made
// duplicates.
func TestWithFaults(t *testing.T) {
	t.Parallel()
	w := start(t, outside.Config{Seed: 1, Orders: 100, Faults: 0.3})
	if err := run(t.Context(), w, w.ShopURL, 250*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r := audit.World(w, audit.Known{})
	if r.Duplicates == 0 {
		t.Errorf("got %+v, want duplicates", r)
	}
	if len(w.Faults.Tally()) < 5 {
		t.Errorf("few kinds of faults were met: %v", w.Faults.Tally())
	}
}

// Stopped between two calls and started again, the naive sync makes a second
// invoice where the first has no mark, and never sends the receipt where there
// is one. No fault of the servers is needed for that.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := start(t, outside.Config{Seed: 1, Orders: 40})
	for limit := 3; ; limit += 3 {
		ctx, cancel := context.WithCancel(t.Context())
		killer := &killAfter{limit: limit, kill: cancel}
		err := run(ctx, w, killer.listen(t, w.ShopURL), time.Minute)
		cancel()
		if err == nil {
			break
		}
	}
	r := audit.World(w, audit.Known{})
	if r.Duplicates == 0 || r.Missing == 0 {
		t.Errorf("got %+v, want duplicates and missing receipts", r)
	}
}

// killAfter stands in front of the shop and stops the sync at its limit-th
// mark: at odd limits before the mark reaches the shop, at even ones after.
type killAfter struct {
	limit int
	kill  context.CancelFunc
	marks atomic.Int32
}

func (k *killAfter) listen(t *testing.T, shopURL string) string {
	t.Helper()
	target, err := url.Parse(shopURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && int(k.marks.Add(1)) == k.limit {
			defer k.kill()
			if k.limit%2 == 1 {
				k.kill()
				panic(http.ErrAbortHandler)
			}
			r = r.WithContext(context.WithoutCancel(r.Context()))
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
