package main

import (
	"context"
	"encoding/json"
	"expvar"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/examples/service/outside"
	world "github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// The whole program: webhooks make, change and void invoices, a forged one does nothing, a
// comparison makes up for a lost one, and the process says that it is healthy and what it did.
func TestService(t *testing.T) {
	t.Parallel()
	o, file, address, counted := outside.New(), filepath.Join(t.TempDir(), "amends.db"), free(t), new(expvar.Map).Init()
	t.Cleanup(o.Close)
	url := "http://" + address
	env := map[string]string{
		"DATABASE": file, "LISTEN": address, "SHOP_URL": o.ShopURL, "BOOKS_URL": o.BooksURL, "WEBHOOK_SECRET": outside.Secret,
	}
	ctx, stop := context.WithCancel(t.Context())
	told, _, err := read(ctx, func(name string) string { return env[name] }, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, told, slog.New(slog.DiscardHandler), counted) }()
	until(t, func() bool { return health(ctx, address) == nil }, "the process is healthy")

	tell := func(status string, cents int64, want string) {
		t.Helper()
		hook := o.Put("1", status, cents)
		if err := world.Tell(t.Context(), url+"/webhooks/shop", "whsec_YSBzZWNyZXQgb2Ygc29tZSBvdGhlcg==", hook); err == nil || !strings.Contains(err.Error(), "401") {
			t.Fatalf("under another secret: %v", err)
		}
		if err := world.Tell(t.Context(), url+"/webhooks/shop", outside.Secret, hook); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return o.Invoices() == want }, want)
	}
	tell("paid", 2000, "inv_0001 of shop:order:1: 2000")
	tell("paid", 2500, "inv_0001 of shop:order:1: 2500")
	tell("cancelled", 2500, "inv_0001 of shop:order:1: 2500 void")

	db, err := store.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Every five minutes the other job hears what has changed, and would make up for it first.
	if err := schedule.Pause(t.Context(), db, "orders-changed", saga.Actor{Name: "anna", Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	o.Put("2", "paid", 800) // and its webhook is lost
	if err := schedule.Approve(t.Context(), db, "orders", saga.Actor{Name: "anna", Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	if run := asked(t, db, "orders"); run.Seen != 2 || run.Planned != 1 || run.Applied != 1 {
		t.Errorf("the comparison saw %d, planned %d and applied %d; want 2, 1 and 1: %s", run.Seen, run.Planned, run.Applied, run.Note)
	}
	until(t, func() bool { return strings.HasSuffix(o.Invoices(), ", inv_0002 of shop:order:2: 800") }, "the lost order has its invoice")

	var counts struct {
		Steps map[string]map[string]map[string]int `json:"steps"`
	}
	// A step is counted when its answer is stored, which is after the books have the invoice.
	until(t, func() bool {
		return json.Unmarshal([]byte(get(t, url+"/counters")), &counts) == nil && counts.Steps["invoice-order"]["invoice"]["done"] == 3
	}, "three invoices are counted as done")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if health(t.Context(), address) == nil {
		t.Error("it has ended, and is said to be healthy")
	}
}

// Without any setting the program says what it reads, and works: what the shop sells is in its books.
func TestNoSettings(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var out strings.Builder
	env := map[string]string{"LISTEN": free(t), "DATABASE": filepath.Join(t.TempDir(), "amends.db")}
	told, done, err := read(ctx, func(name string) string { return env[name] }, &out, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for _, name := range []string{"DATABASE", "LISTEN", "SHOP_URL", "BOOKS_URL", "WEBHOOK_SECRET", env["DATABASE"], env["LISTEN"]} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("nothing is said of %s in:\n%s", name, out.String())
		}
	}
	counted, ended := new(expvar.Map).Init(), make(chan error, 1)
	go func() { ended <- run(ctx, told, slog.New(slog.DiscardHandler), counted) }()
	until(t, func() bool { return strings.Contains(counted.String(), `"invoice": {"done"`) }, "an order has its invoice")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Half of the settings are a mistake, and all that is missing is named at once.
func TestHalfOfTheSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SHOP_URL": "http://shop.example"}
	_, _, err := read(t.Context(), func(name string) string { return env[name] }, io.Discard, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "set BOOKS_URL and WEBHOOK_SECRET, too") {
		t.Errorf("the error is %v", err)
	}
}

// What a program needs beside its adapters and settings stays small: service.go and saga.go have 150
// lines together.
func TestWiringIsSmall(t *testing.T) {
	t.Parallel()
	lines := 0
	for _, file := range []string{"service.go", "saga.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
	}
	if lines > 150 {
		t.Errorf("the wiring and the saga have %d lines; 150 at most", lines)
	}
}

// asked has a job run by hand, as amends does, and waits for its end.
func asked(t *testing.T, db store.DB, job string) schedule.RunRow {
	t.Helper()
	run, err := schedule.Request(t.Context(), db, job, "", saga.Actor{Name: "anna", Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		if run, err = db.Run(t.Context(), job, run.Number); err != nil {
			t.Fatal(err)
		}
		return !run.Open()
	}, "the run has ended")
	if run.Result != schedule.OK {
		t.Fatalf("%s ended %s: %s %s", job, run.Result, run.Note, run.Error)
	}
	return run
}

// get is the body of an answer with 200, and a space where that is empty; else nothing.
func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return "" // it does not listen yet
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		return ""
	}
	return string(body) + " "
}

// free is an address at which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// until waits until a condition holds.
func until(t *testing.T, holds func() bool, what string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it never came to this: %s", what)
		}
	}
}
