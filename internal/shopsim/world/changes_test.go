package world_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/hooks"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/internal/shopsim/world"
)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="

// lively is a world in which customers change their minds after the mark.
func lively(orders int) world.Config {
	return world.Config{Seed: 4, Orders: orders, Edits: 0.5, LateCancels: 0.3, Pace: 10 * time.Millisecond}
}

// markAll marks every order, twice. The second time it may be cancelled or deleted.
func markAll(t *testing.T, w *world.World, c world.Config) {
	t.Helper()
	for _, o := range world.Orders(c) {
		for range 2 {
			if status, body := send(t, http.MethodPut, w.ShopURL+"/orders/"+o.ID+"/synced", shop.Mark{InvoiceID: "inv_7"}); !strings.HasPrefix(status, "200") && !strings.HasPrefix(status, "422") && !strings.HasPrefix(status, "404") {
				t.Fatalf("mark: %s %s", status, body)
			}
		}
	}
}

// await waits until the world is quiet.
func await(t *testing.T, w *world.World) {
	t.Helper()
	ticks := time.NewTicker(2 * time.Millisecond)
	defer ticks.Stop()
	for range ticks.C {
		quiet, err := w.Quiet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if quiet {
			return
		}
	}
}

// theirs returns the shop's orders.
func theirs(t *testing.T, w *world.World) []shop.Order {
	t.Helper()
	var page shop.Page
	_, body := send(t, http.MethodGet, w.ShopURL+"/orders?limit=500", nil)
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	return page.Orders
}

// Customers change their orders after the mark exactly as the seed says, once
// each, whoever asks and in whatever order; and what they want is the same in
// two worlds of one seed.
func TestChangesDependOnTheSeed(t *testing.T) {
	t.Parallel()
	c := lively(60)
	var ends [2][]shop.Order
	for i := range ends {
		w := start(t, c)
		await(t, w)
		if got := w.Changes(); got != (world.Changes{}) {
			t.Errorf("before any mark: %+v", got)
		}
		markAll(t, w, c)
		await(t, w)
		ends[i] = theirs(t, w)
		checkChanges(t, c, ends[i], w.Changes())
		for j := range ends[i] {
			ends[i][j].UpdatedAt = time.Time{}
		}
	}
	if !reflect.DeepEqual(ends[0], ends[1]) {
		t.Errorf("two worlds of one seed ended as\n%+v\n%+v", ends[0], ends[1])
	}
}

// Some customers edit as soon as their invoice is booked: once, however often it
// is booked, and not those who cancel then.
func TestEditedMeanwhile(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 4, Orders: 60, Edits: 1, Cancels: 0.2, Pace: time.Hour}
	w := start(t, c)
	send(t, http.MethodPut, w.BooksURL+"/customers/shop:customer:1", books.Contact{Name: "Ada"})
	for _, o := range world.Orders(c) {
		for range 2 {
			ask(t, w, o)
		}
	}
	var want world.Changes
	cancelled := 0
	for i, o := range theirs(t, w) {
		first := world.Orders(c)[i]
		rushed := !reflect.DeepEqual(o.Lines, first.Lines)
		switch {
		case c.Cancelled(o.ID):
			cancelled++
			if rushed || o.Status != shop.Cancelled || o.Version != 2 || c.EditedMeanwhile(o.ID) {
				t.Errorf("the cancelled order is %+v", o)
			}
		case c.EditedMeanwhile(o.ID):
			want.Meanwhile++
			if !rushed || o.Version != 2 || o.TotalCents != shop.Total(o.Lines) {
				t.Errorf("the edited order is %+v", o)
			}
		case rushed || o.Version != 1:
			t.Errorf("nobody wanted to change %+v", o)
		}
	}
	if got := w.Changes(); got != want || want.Meanwhile < 5 || want.Meanwhile > 25 || cancelled == 0 {
		t.Errorf("%+v, want %+v, and some of %d cancelled", got, want, cancelled)
	}
}

// A customer changes an order after its first mark, and not again when the mark
// is taken off and set anew.
func TestOneMarkCounts(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 4, Orders: 1, Edits: 1, Pace: time.Millisecond}
	w := start(t, c)
	markAll(t, w, c)
	await(t, w)
	before := w.Changes()
	send(t, http.MethodDelete, w.ShopURL+"/orders/10001/synced", nil)
	markAll(t, w, c)
	await(t, w)
	if after := w.Changes(); after != before || before.Edits == 0 {
		t.Errorf("%+v after the first mark, %+v after the second", before, after)
	}
}

// An order that is cancelled while its customer still thinks about an edit stays as it was. It
// happens when a cancel that came with the invoice is slower than the mark.
func TestCancelledBeforeTheEdit(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 4, Orders: 20, Edits: 1, Pace: time.Second}
	w := start(t, c)
	for _, o := range world.Orders(c) {
		send(t, http.MethodPut, w.ShopURL+"/orders/"+o.ID+"/synced", shop.Mark{InvoiceID: "inv_7"})
		send(t, http.MethodPost, w.ShopURL+"/orders/"+o.ID+"/cancel", nil)
	}
	await(t, w)
	edits := 0
	for _, o := range theirs(t, w) {
		edits += int(o.Version) - 3 // paid, marked, cancelled
	}
	if n := w.Changes().Edits; n != edits {
		t.Errorf("%d edits are counted, and %d were made", n, edits)
	}
}

// A world whose customers still think is not quiet, and closes all the same.
func TestCustomersThink(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 4, Orders: 1, LateCancels: 1, Pace: time.Hour}
	w := start(t, c)
	markAll(t, w, c)
	if quiet, err := w.Quiet(t.Context()); quiet || err != nil {
		t.Errorf("quiet %t, %v", quiet, err)
	}
}

func checkChanges(t *testing.T, c world.Config, end []shop.Order, got world.Changes) {
	t.Helper()
	var want world.Changes
	kinds := map[string]int{}
	for i, first := range world.Orders(c) {
		o, edits, late := end[i], c.EditsOf(first.ID), c.CancelledLate(first.ID)
		want.Edits += edits
		version := 2 + edits
		status := shop.Paid
		if late {
			want.LateCancels++
			version++
			status = shop.Cancelled
		}
		kinds[fmt.Sprintf("%d edits, cancelled %t", edits, late)]++
		if o.ID != first.ID || o.Version != int64(version) || o.Status != status || o.LateCancel != late || o.InvoiceID != "inv_7" || o.TotalCents != shop.Total(o.Lines) {
			t.Errorf("with %d edits, cancelled %t, the order became %+v", edits, late, o)
		}
		switch same := reflect.DeepEqual(o.Lines, first.Lines); {
		case edits == 0 && !same, edits == 1 && same:
			t.Errorf("%d edits made %+v of %+v", edits, o.Lines, first.Lines)
		case edits == 2 && same:
			kinds["taken back"]++
		}
	}
	if got != want || len(kinds) != 7 {
		t.Errorf("%+v, want %+v; met %v", got, want, kinds)
	}
}

// A higher share changes more orders, and those of the lower share as before.
func TestShares(t *testing.T) {
	t.Parallel()
	low, high := world.Config{Seed: 1, LateCancels: 0.1}, world.Config{Seed: 1, LateCancels: 0.4}
	n := 0
	for i := range 1000 {
		id := fmt.Sprint(i)
		if low.CancelledLate(id) && !high.CancelledLate(id) {
			t.Errorf("order %s is cancelled at the low share only", id)
		}
		if high.CancelledLate(id) {
			n++
		}
		if low.EditsOf(id) != 0 || (world.Config{Seed: 1, Edits: 1}).EditsOf(id) == 0 {
			t.Errorf("order %s is edited at share 0 or not at share 1", id)
		}
	}
	if n < 340 || n > 460 {
		t.Errorf("%d of 1000 cancelled late, want about 400", n)
	}
}

// Each change is a webhook that is sent until it is acknowledged. The world is
// not quiet before, and knows what became of them.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	var mu sync.Mutex
	heard := map[string]map[int64]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e shop.Event
		if !open.Load() || json.NewDecoder(r.Body).Decode(&e) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if heard[e.Data.ID] == nil {
			heard[e.Data.ID] = map[int64]bool{}
		}
		heard[e.Data.ID][e.Data.Version] = true
	}))
	t.Cleanup(server.Close)
	c := lively(30)
	c.Webhooks = hooks.Options{Receivers: []string{server.URL}, Secret: secret, Plan: hooks.Plan{Drops: 0.3, Duplicates: 0.3}}
	w := start(t, c)
	markAll(t, w, c)
	if quiet, err := w.Quiet(t.Context()); quiet || err != nil {
		t.Errorf("quiet %t, %v while nobody hears", quiet, err)
	}
	open.Store(true)
	await(t, w)
	made := 0
	for _, o := range theirs(t, w) {
		made += int(o.Version)
		if len(heard[o.ID]) != int(o.Version) {
			t.Errorf("order %s has %d versions, heard of %v", o.ID, o.Version, heard[o.ID])
		}
	}
	got, err := w.Webhooks(t.Context())
	if err != nil || got.Made != made || got.Acknowledged != made || got.Dropped == 0 || got.Copies == 0 || got.Lost != 0 {
		t.Errorf("%+v, %v, want %d of them", got, err, made)
	}
}

// A world whose webhooks cannot be signed does not start.
func TestBadSecret(t *testing.T) {
	t.Parallel()
	w, err := world.Start(t.Context(), world.Config{Dir: t.TempDir(), Webhooks: hooks.Options{Receivers: []string{"http://127.0.0.1:1"}}})
	if err == nil {
		t.Errorf("it started, and closes with %v", w.Close())
	}
}

// The books number invoices as they come. Faults follow the order that a request
// is about, so they are the same when the numbers are not; and each content of an
// invoice meets its own.
func TestFaultsKnowNoNumbers(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 11, Orders: 10, Faults: 0.6}
	one, ids := fill(t, c, 1)
	two, others := fill(t, c, 3)
	if reflect.DeepEqual(ids, others) {
		t.Fatal("both worlds gave the same numbers")
	}
	answers := func(w *world.World, ids map[string]string) (all []string) {
		for _, o := range world.Orders(c) {
			url := w.BooksURL + "/invoices/" + ids[o.ID]
			for _, memo := range []string{"3", "4"} {
				for range faults.Patience + 1 {
					status, _ := send(t, http.MethodPut, url, books.Update{Memo: memo, Lines: []books.Line{{Quantity: 1, UnitCents: 5}}})
					all = append(all, "update "+memo+" "+status)
				}
			}
			status, _ := send(t, http.MethodGet, url, nil)
			all = append(all, "read "+status)
			status, _ = send(t, http.MethodPost, url+"/void", nil)
			all = append(all, "void "+status)
		}
		return all
	}
	first, second := answers(one, ids), answers(two, others)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("one world answered\n%q\nthe other\n%q", first, second)
	}
	if !slices.Contains(first, "update 4 502 Bad Gateway") {
		t.Errorf("no later content met a fault: %q", first)
	}
}

// fill makes one invoice for each order, every step-th first, and returns their
// numbers by order.
func fill(t *testing.T, c world.Config, step int) (*world.World, map[string]string) {
	t.Helper()
	w := start(t, c)
	insist := func(method, url string, in, out any) {
		for range faults.Patience + 1 {
			if status, body := send(t, method, url, in); strings.HasPrefix(status, "20") {
				if err := json.Unmarshal([]byte(body), out); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("%s %s: no end of faults", method, url)
	}
	insist(http.MethodPut, w.BooksURL+"/customers/1", books.Contact{Name: "Ada"}, &books.Customer{})
	ids, orders := map[string]string{}, world.Orders(c)
	for i := range orders {
		o := orders[i*step%len(orders)]
		var inv books.Invoice
		insist(http.MethodPost, w.BooksURL+"/invoices", books.Draft{Customer: "cus_0001", Reference: o.Ref(), Lines: []books.Line{{Quantity: 1}}}, &inv)
		ids[o.ID] = inv.ID
	}
	return w, ids
}
