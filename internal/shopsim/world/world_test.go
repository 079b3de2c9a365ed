package world_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/shopsim/audit"
	"github.com/amends-dev/amends/internal/shopsim/books"
	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/mail"
	"github.com/amends-dev/amends/internal/shopsim/naive"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/internal/shopsim/world"
)

// A closed world leaves nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client keeps no connection, so that none is left over after the tests.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// quick suits callers without a deadline: even silence ends soon.
var quick = faults.Timing{Slow: time.Millisecond, Silent: time.Millisecond, Late: time.Millisecond, Retry: time.Millisecond}

func start(t *testing.T, c world.Config) *world.World {
	t.Helper()
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "world")
	}
	if c.Timing == (faults.Timing{}) {
		c.Timing = quick
	}
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

// Equal seeds make equal orders, other seeds others; faults and cancels do not
// change them. Customers are shared, totals add up.
func TestOrdersDependOnTheSeed(t *testing.T) {
	t.Parallel()
	orders := world.Orders(world.Config{Seed: 1, Orders: 300})
	if !reflect.DeepEqual(orders, world.Orders(world.Config{Seed: 1, Orders: 300, Faults: 0.5, Cancels: 0.5, Dir: "x"})) {
		t.Error("equal seeds made other orders")
	}
	if reflect.DeepEqual(orders, world.Orders(world.Config{Seed: 2, Orders: 300})) {
		t.Error("two seeds made the same orders")
	}
	customers, lengths := map[string]int{}, map[int]int{}
	for _, o := range orders {
		customers[o.Customer.ID]++
		lengths[len(o.Lines)]++
		var total int64
		for _, l := range o.Lines {
			total += l.Quantity * l.UnitCents
		}
		if o.Status != shop.Paid || o.TotalCents != total || total == 0 {
			t.Errorf("order %+v", o)
		}
	}
	if len(customers) > 200 || len(lengths) != 4 {
		t.Errorf("%d customers, lines %v, want shared customers and 1 to 4 lines", len(customers), lengths)
	}
}

// What Orders says is what the shop has, and a second start in the same
// directory is refused.
func TestStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := world.Config{Dir: dir, Seed: 3, Orders: 20}
	w := start(t, c)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.ShopURL+"/orders?status=paid", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page shop.Page
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	if want := world.Orders(c); !reflect.DeepEqual(page.Orders, want) {
		t.Errorf("the shop has\n%+v\nwant\n%+v", page.Orders, want)
	}
	if _, err := world.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another world") {
		t.Errorf("a second start: %v", err)
	}
}

// Nobody has done anything yet: the audit misses all three things of each
// order.
func TestAuditOfAFreshWorld(t *testing.T) {
	t.Parallel()
	r, err := audit.World(t.Context(), start(t, world.Config{Seed: 1, Orders: 10}))
	if err != nil || r.Orders != 10 || r.Missing != 30 || r.Invoices+r.Receipts+r.Duplicates+r.Orphans+r.Mismatches != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The world cancels the orders that Cancelled names, each after its invoice
// and before its mark. The naive sync leaves their invoices live.
func TestCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 5, Orders: 60, Cancels: 0.2}
	want := 0
	for _, o := range world.Orders(c) {
		if c.Cancelled(o.ID) {
			want++
		}
	}
	w := start(t, c)
	log := logrus.New()
	log.SetOutput(io.Discard)
	if err := naive.Run(t.Context(), naive.Config{ShopURL: w.ShopURL, BooksURL: w.BooksURL, MailAddr: w.MailAddr, Log: log, Timeout: time.Minute, Every: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	tally, err := w.Progress(t.Context())
	if err != nil || tally.Cancelled != want || want < 5 || tally.Synced != 60-want {
		t.Errorf("%+v, %v, want %d cancelled", tally, err, want)
	}
	r, err := audit.World(t.Context(), w)
	if err != nil || r.Orphans != want || r.Compensated != 0 || r.Receipts != 60-want {
		t.Errorf("got %+v, %v, want an orphan for each of %d", r, err, want)
	}
}

// Two worlds with one seed treat equal requests equally, whatever their order.
func TestEqualWorlds(t *testing.T) {
	t.Parallel()
	c := world.Config{Seed: 9, Orders: 12, Faults: 0.5, Cancels: 0.5}
	first, second := start(t, c), start(t, c)
	orders := world.Orders(c)
	statuses := func(w *world.World, step int) map[string][]string {
		got := map[string][]string{}
		for i := range orders {
			o := orders[(i*step)%len(orders)]
			for range 3 {
				got[o.ID] = append(got[o.ID], ask(t, w, o))
			}
		}
		return got
	}
	one, two := statuses(first, 1), statuses(second, 5)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("one world answered\n%v\nthe other\n%v", one, two)
	}
	if !reflect.DeepEqual(first.Faults(), second.Faults()) || len(first.Faults()) == 0 {
		t.Errorf("faults met: %v and %v", first.Faults(), second.Faults())
	}
}

// ask posts an invoice for o, to a customer that only some tests make, and says
// what came back.
func ask(t *testing.T, w *world.World, o shop.Order) string {
	t.Helper()
	draft := books.Draft{Customer: "cus_0001", Reference: o.Ref(), Lines: []books.Line{{Quantity: 1}}}
	status, _ := send(t, http.MethodPost, w.BooksURL+"/invoices", draft)
	return status
}

// send sends in as JSON and returns the answer's status, or "cut", and body.
func send(t *testing.T, method, url string, in any) (status, body string) {
	t.Helper()
	out, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "cut", ""
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return "cut", ""
	}
	return resp.Status, string(answer)
}

// Some of the invoices that faults have touched are in the books and not in
// the lookups, others are in both.
func TestLateLookups(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Late = time.Hour
	c := world.Config{Seed: 2, Orders: 20, Faults: 0.5, Timing: timing}
	w := start(t, c)
	insist := func(method, url string, in any) string {
		for range faults.Patience + 1 {
			if status, body := send(t, method, url, in); strings.HasPrefix(status, "200") {
				return body
			}
		}
		t.Fatalf("%s %s: no end of faults", method, url)
		return ""
	}
	insist(http.MethodPut, w.BooksURL+"/customers/1", books.Contact{Name: "Ada"})
	found := 0
	for _, o := range world.Orders(c) {
		ask(t, w, o)
		var list books.List
		if err := json.Unmarshal([]byte(insist(http.MethodGet, w.BooksURL+"/invoices?reference="+o.Ref(), nil)), &list); err != nil {
			t.Fatal(err)
		}
		found += len(list.Invoices)
	}
	r, err := audit.World(t.Context(), w)
	if err != nil || found == 0 || found >= r.Invoices {
		t.Errorf("%d invoices found of %d, %v", found, r.Invoices, err)
	}
}

// Bounces is the share of customers that mail cannot reach.
func TestBounces(t *testing.T) {
	t.Parallel()
	n := 0
	for _, o := range world.Orders(world.Config{Seed: 1, Orders: 300, Bounces: 0.1}) {
		if mail.Bounces(o.Customer.Email) {
			n++
		}
	}
	if n < 10 || n > 60 {
		t.Errorf("%d of 300 orders bounce, want about 30", n)
	}
}
