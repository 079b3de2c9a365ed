package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/play"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
	"github.com/amends-dev/amends/store"
)

// secret is what the shop signs its webhooks with.
const secret = "whsec_YS1zaG9wLW9uLXRoaXMtbWFjaGluZQ=="

// rig is one sync process in this one, over a shop, books and a mailbox of its own. It listens at
// door.
type rig struct {
	t     *testing.T
	shop  *outside.Shop
	books *outside.Books
	box   *outside.Mailbox
	door  string

	ledger ledger.Catalogue
	heard  intake.Reader
}

// rigUp starts a sync that hears of one paid order by webhooks alone, until the test is over.
func rigUp(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, shop: outside.NewShop(), books: outside.NewBooks(), box: &outside.Mailbox{}}
	r.shop.Add(order())
	shopURL := serve(t, r.shop.Handler())
	door := freeAddress(t)
	r.door = "http://" + door + staged.Webhooks
	p := play.Place{
		Shop: shopURL, Books: serve(t, r.books.Handler()), Mail: serve(t, r.box.Handler()),
		Answer: 10 * time.Second, Settle: 10 * time.Millisecond, Secret: secret,
	}

	db := filepath.Join(t.TempDir(), "ledger.db")
	l, err := store.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	r.ledger, r.heard = l, l
	works, err := coordinator.New(l, &coordinator.Options{Log: log, Poll: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := works.Register(t.Context(), definition(t, p)); err != nil {
		t.Fatal(err)
	}
	asks, err := sagahttp.New(shopURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context()) // which ends before the cleanups
	group.Go(func() error { return works.Run(ctx) })
	group.Go(func() error {
		return hear(ctx, door, newSource(&Sync{shop: asks}, works, secret, false), l, log)
	})
	t.Cleanup(func() {
		if err := errors.Join(group.Wait(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// freeAddress is one at which a process can listen.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// tell sends webhooks of the shop, chosen by the order's version, in this order.
func (r *rig) tell(versions ...int64) {
	r.t.Helper()
	all := r.shop.Webhooks()
	for _, v := range versions {
		w := all[v-1]
		h := http.Header{}
		if err := webhook.SignStandard(h, secret, w.ID(), time.Now(), w.Body); err != nil {
			r.t.Fatal(err)
		}
		eventually(r.t, "the door is open", func() bool { return r.post(h, w.Body) != 0 })
		if status := r.post(h, w.Body); status != http.StatusOK { // every one comes twice
			r.t.Errorf("version %d was answered with %d", v, status)
		}
	}
}

// post returns the answer's status, 0 when there was none.
func (r *rig) post(h http.Header, body []byte) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.door, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = h
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// head is where the work of an order stands; nil when there is none.
func (r *rig) head(o outside.Order) *ledger.Instance {
	r.t.Helper()
	heads, err := ledger.First(r.t.Context(), r.ledger, ledger.Filter{Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(heads, func(h ledger.Instance) bool { return h.ID.Work == o.Ref() })
	if i < 0 {
		return nil
	}
	return &heads[i]
}

// becomes waits until the work of an order stands there, having read all that was said to it.
func (r *rig) becomes(o outside.Order, status saga.Status, revision string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%s is %s at version %s", o.Ref(), status, revision), func() bool {
		h := r.head(o)
		return h != nil && h.Status == status && h.Revision == revision && h.Posted == h.Consumed
	})
}

// invoice is the only invoice there is.
func (r *rig) invoice() outside.Invoice {
	r.t.Helper()
	all := r.books.Invoices()
	if len(all) != 1 {
		r.t.Fatalf("the books have %+v; want one invoice", all)
	}
	return all[0]
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// A webhook starts the work of an order. Our own mark is no news; an edit brings the same invoice
// up to date and sends no second receipt; a webhook that is late changes nothing; a cancel voids
// the invoice and takes the mark off.
func TestWebhooksBecomeWork(t *testing.T) {
	t.Parallel()
	r := rigUp(t)
	r.tell(1)
	r.becomes(order(), saga.Completed, "1")
	first := r.invoice()
	if first.TotalCents != order().TotalCents || first.Memo != memo("1", order()) {
		t.Errorf("the invoice of the first version is %+v", first)
	}
	r.edit(1)
	r.edit(2)
	r.tell(4, 3, 2, 1)
	r.becomes(order(), saga.Completed, "4")
	edited, err := r.shop.Order(order().ID)
	if err != nil {
		t.Fatal(err)
	}
	last := r.invoice()
	if last.ID != first.ID || last.Memo != memo("4", edited) || last.TotalCents != edited.TotalCents || last.TotalCents == first.TotalCents {
		t.Errorf("after the edits the invoice is %+v, and the order %+v", last, edited)
	}
	if _, err := r.shop.Cancel(order().ID); err != nil {
		t.Fatal(err)
	}
	r.tell(5)
	r.becomes(order(), saga.Compensated, "4")
	end, err := r.shop.Order(order().ID)
	if err != nil || end.InvoiceID != "" || r.invoice().State != outside.Void || len(r.box.Messages()) != 1 {
		t.Errorf("in the end the order is %+v, %v, the invoice %+v, and %d receipts went out", end, err, r.invoice(), len(r.box.Messages()))
	}
}

// edit adds to the quantity of the order's first line, as it was at first.
func (r *rig) edit(quantity int64) {
	r.t.Helper()
	lines := order().Lines
	lines[0].Quantity += quantity
	if _, err := r.shop.Edit(order().ID, lines); err != nil {
		r.t.Fatal(err)
	}
}

// A cancelled order that nothing was done for is nothing to undo, and what is said of it later
// starts nothing.
func TestCancelledBeforeItWasHeardOf(t *testing.T) {
	t.Parallel()
	r := rigUp(t)
	if _, err := r.shop.Cancel(order().ID); err != nil {
		t.Fatal(err)
	}
	r.tell(2, 1)
	o := order()
	o.ID = "20001"
	r.shop.Add(o)
	r.tell(3) // the third webhook of the shop, about another order
	r.becomes(o, saga.Completed, "1")
	eventually(t, "nothing is owed", func() bool {
		owing, err := r.heard.Entries(t.Context(), intake.EntryFilter{Owing: true})
		if err != nil {
			t.Fatal(err)
		}
		return len(owing) == 0
	})
	if h := r.head(order()); h != nil {
		t.Errorf("the cancelled order has a work: %+v", h)
	}
	if inv := r.invoice(); inv.Reference != o.Ref() {
		t.Errorf("the invoice is %+v", inv)
	}
}

// A webhook that the shop did not sign is refused at the door.
func TestForgedWebhook(t *testing.T) {
	t.Parallel()
	r := rigUp(t)
	r.tell(1)
	r.becomes(order(), saga.Completed, "1")
	body := []byte(`{"type":"order.cancelled","data":{"id":"10001","version":99,"status":"cancelled"}}`)
	h := http.Header{}
	if err := webhook.SignStandard(h, "whsec_bm90IHRoZSBzaG9wJ3Mgc2VjcmV0", "msg_x", time.Now(), body); err != nil {
		t.Fatal(err)
	}
	if status := r.post(h, body); status != http.StatusUnauthorized {
		t.Errorf("answered with %d", status)
	}
}

// What the shop answers to a question decides what is known: the order, that there is none, or
// nothing, and then when to ask again.
func TestFetchOrder(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(order())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status int
		body   []byte
		gone   bool
		fails  bool
	}{
		"there":      {200, body, false, false},
		"not there":  {404, []byte(`{"code":"unknown_order"}`), true, false},
		"not now":    {429, nil, false, true},
		"not for us": {403, nil, false, true},
		"broken":     {502, nil, false, true},
		"no order":   {200, []byte(`[]`), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := sagahttp.New(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/orders/10001" {
					t.Errorf("asked for %s", r.URL)
				}
				w.Header().Set("Retry-After", strconv.Itoa(7))
				w.WriteHeader(c.status)
				_, _ = w.Write(c.body)
			})), nil)
			if err != nil {
				t.Fatal(err)
			}
			source := &Sync{shop: client}
			got, err := source.fetchOrder(t.Context(), inbox.Object{Source: sourceName, Type: "order", ID: "10001"})
			if got.Gone != c.gone || (err != nil) != c.fails {
				t.Errorf("got %+v, %v", got, err)
			}
			if c.status == 200 && !c.fails && (got.Version != inbox.Counter(1) || !bytes.Equal(got.Body, body)) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// An order that an earlier version has an invoice for gets no second one: that invoice is brought
// up to date, and its memo says which version it shows.
func TestUpdateInvoice(t *testing.T) {
	t.Parallel()
	books, url := booksServer(t)
	first, second := call(t, "invoice"), call(t, "invoice")
	if customer := books.PutCustomer("shop:customer:1", outside.Contact{Name: "Ada"}); customer.ID != first.Results["customer"].ExternalID {
		t.Fatalf("%+v", customer)
	}
	d := definition(t, play.Place{Books: url})
	first.Revision = "1"
	made := d.Act(t.Context(), first)
	edited := order()
	edited.Lines[0].Quantity++
	second.Revision, second.Previous = "4", &program.Result{ExternalID: made.ExternalID}
	second.Input, _ = json.Marshal(edited)
	for range 2 {
		if got := d.Act(t.Context(), second); !got.Done() || got.ExternalID != made.ExternalID {
			t.Errorf("%s %q (%s), want %q again", got.Class, got.ExternalID, got.Error, made.ExternalID)
		}
	}
	if all := books.Invoices(); len(all) != 1 || all[0].Memo != memo("4", edited) || all[0].TotalCents != outside.Total(edited.Lines) || all[0].Reference != order().Ref() {
		t.Errorf("the books have %+v", all)
	}
	if _, err := books.Void(made.ExternalID); err != nil {
		t.Fatal(err)
	}
	if got := d.Act(t.Context(), second); got.Done() {
		t.Errorf("a void one was updated: %s", got.Class)
	}
}

// The lookup of a newer version asks for its own effect: the invoice of an earlier version that was
// not brought up to date yet does not count.
func TestFindUpdatedInvoice(t *testing.T) {
	t.Parallel()
	books, url := booksServer(t)
	inv := addInvoice(t, books, outside.Live)
	look := call(t, "invoice")
	look.Revision, look.Previous = "4", &program.Result{ExternalID: inv.ID}
	d := definition(t, play.Place{Books: url})
	if got := d.Look(t.Context(), look); got.Answer != program.AnswerNotFound {
		t.Errorf("before the update: %s %q", got.Answer, got.ExternalID)
	}
	if _, err := books.Update(inv.ID, outside.Content{Memo: memo("4", order()), Lines: []outside.Line{tea}}, 0); err != nil {
		t.Fatal(err)
	}
	if got := d.Look(t.Context(), look); got.Answer != program.AnswerFound || got.ExternalID != inv.ID {
		t.Errorf("after the update: %s %q", got.Answer, got.ExternalID)
	}
}
