package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/shopsim/hooks"
	"github.com/amends-dev/amends/internal/shopsim/shop"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
)

// A closed sender leaves nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="

// wild is a plan under which everything happens.
var wild = hooks.Plan{Seed: 3, Drops: 0.3, Duplicates: 0.5, Forgeries: 0.3}

// inbox keeps what the door of reconcile/webhook lets in.
type receiver struct {
	intake.Gate // it processes nothing
	mu          sync.Mutex
	events      []intake.Event
}

// Accept keeps events.
func (i *receiver) Accept(_ context.Context, events []intake.Event) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.events = append(i.events, events...)
	return nil
}

// door is a receiver as the sync has one.
func door(t *testing.T, in *receiver) http.Handler {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	processor, err := inbox.New(in, []*inbox.Source{{
		Name: "shop", Saga: "order-to-invoice",
		Webhooks: &webhook.Sender{
			Provider: webhook.Standard(webhook.Mapping{Version: "data.version", Clock: intake.CounterClock}),
			Secrets:  []webhook.Secret{{Name: "1", Text: secret}}, Types: []string{"order"},
		},
		// It processes nothing here.
		Fetch: func(context.Context, intake.Object) (inbox.Fetched, error) {
			return inbox.Fetched{}, errors.ErrUnsupported
		},
		Decide: func(inbox.Snapshot) (saga.Change, error) { return saga.Change{}, errors.ErrUnsupported },
		Apply:  func(context.Context, saga.Change) error { return errors.ErrUnsupported },
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := webhook.New(processor, &webhook.Options{Prefix: "/", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// serve returns the URL at which h hears of the shop.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/shop"
}

// orders opens a shop with n paid orders.
func orders(t *testing.T, n int) *shop.Store {
	t.Helper()
	store, err := shop.Open(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range n {
		if err := store.Add(t.Context(), shop.Order{ID: fmt.Sprint(i + 1), Status: shop.Paid, TotalCents: 300}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// send starts a sender that the test closes.
func send(t *testing.T, from hooks.Outbox, o hooks.Options) *hooks.Sender {
	t.Helper()
	if o.Secret == "" {
		o.Secret = secret
	}
	o.Spread = 40 * time.Millisecond
	s, err := hooks.Start(t.Context(), from, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// settled waits until the sender is quiet, and returns its counts.
func settled(t *testing.T, s *hooks.Sender) hooks.Tally {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for range ticks.C {
		quiet, err := s.Quiet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if quiet {
			break
		}
	}
	tally, err := s.Tally(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

// Everything arrives that the shop has to tell, as the shop left it, whatever
// happens on the way; out of order, more than once, and nothing that is forged.
// What happened is counted as the plan says.
func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	store, in := orders(t, 80), &receiver{}
	s := send(t, store, hooks.Options{Plan: wild, Receivers: []string{serve(t, door(t, in))}})
	store.Changed = func(shop.Webhook) { s.Wake() }
	for n := range 40 {
		if _, err := store.MarkSynced(t.Context(), fmt.Sprint(n+1), "inv_7"); err != nil {
			t.Fatal(err)
		}
	}
	got := settled(t, s)
	want := hooks.Tally{Made: 120, Acknowledged: 120}
	stale := 0
	for n := range 120 {
		f := wild.For(fmt.Sprintf("msg_%d_%d", n%80+1, n/80+1))
		want.Copies += f.Copies
		want.Dropped += f.Dropped
		if f.Forgery != hooks.Genuine {
			want.Forged++
			want.Refused++
		}
		if f.Forgery == hooks.Stale {
			stale++
		}
	}
	want.Sent = want.Made + want.Copies
	if got != want || want.Copies == 0 || want.Dropped == 0 || want.Forged < stale+2 || stale == 0 {
		t.Errorf("counted %+v\nwant    %+v, %d stale ones", got, want, stale)
	}
	in.check(t, store, want.Sent)
}

// check compares what arrived with what the shop had to tell.
func (i *receiver) check(t *testing.T, store *shop.Store, arrivals int) {
	t.Helper()
	heard := map[string]map[int64]int{}
	var order []string
	for _, e := range i.events {
		var o shop.Order
		if err := json.Unmarshal(e.Body, &o); err != nil {
			t.Fatal(err)
		}
		if e.Disposition != "" || e.Object != (intake.Object{Source: "shop", Type: "order", ID: o.ID}) || e.Version != intake.Counter(o.Version) {
			t.Errorf("heard %+v of %+v", e, o)
		}
		if (o.InvoiceID != "") != (o.Version == 2) || o.Status != shop.Paid {
			t.Errorf("no order ever was like %+v", o)
		}
		if heard[o.ID] == nil {
			heard[o.ID] = map[int64]int{}
			order = append(order, fmt.Sprintf("%3s", o.ID))
		}
		heard[o.ID][o.Version]++
	}
	all, err := store.Orders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if len(heard[o.ID]) != int(o.Version) {
			t.Errorf("order %s has %d versions, heard %v", o.ID, o.Version, heard[o.ID])
		}
	}
	if len(i.events) != arrivals || slices.IsSorted(order) {
		t.Errorf("%d arrivals, want %d; the orders in the order of arrival: %s", len(i.events), arrivals, order)
	}
}

// A receiver that is dead, or cannot store, does not keep the others from
// hearing: each attempt chooses anew.
func TestSomeAreDead(t *testing.T) {
	t.Parallel()
	in := &receiver{}
	sick := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	astray := serve(t, http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	s := send(t, orders(t, 30), hooks.Options{
		Plan: hooks.Plan{Seed: 1}, Receivers: []string{"http://127.0.0.1:1/shop", sick, astray, serve(t, door(t, in))},
	})
	got := settled(t, s)
	if got.Acknowledged != 30 || got.Unheard < 10 || got.Sent != 30+got.Unheard || len(in.events) != 30 {
		t.Errorf("%+v, %d arrived", got, len(in.events))
	}
}

// Who is told once is told once: what did not leave, or met nobody, is lost for
// ever, and the rest is acknowledged.
func TestOnce(t *testing.T) {
	t.Parallel()
	store, in := orders(t, 60), &receiver{}
	plan := hooks.Plan{Seed: 1, Drops: 0.2}
	s := send(t, store, hooks.Options{Plan: plan, Receivers: []string{"http://127.0.0.1:1/shop", serve(t, door(t, in))}, Once: true})
	got := settled(t, s)
	dropped := 0
	for n := range 60 {
		if plan.For(fmt.Sprintf("msg_%d_1", n+1)).Dropped > 0 {
			dropped++
		}
	}
	if got.Dropped != dropped || dropped == 0 || got.Sent != 60-dropped || got.Lost != dropped+got.Unheard || got.Unheard == 0 {
		t.Errorf("%+v, want %d dropped", got, dropped)
	}
	if got.Acknowledged != 60-got.Lost || len(in.events) != got.Acknowledged {
		t.Errorf("%+v, %d arrived", got, len(in.events))
	}
}

// Who drops everything and sends once reaches nobody, not even with a copy, and
// is quiet all the same; what somebody forges arrives, and is refused.
func TestAllDropped(t *testing.T) {
	t.Parallel()
	store, in := orders(t, 40), &receiver{}
	s := send(t, store, hooks.Options{
		Plan: hooks.Plan{Seed: 1, Drops: 1, Duplicates: 0.5, Forgeries: 0.3}, Receivers: []string{serve(t, door(t, in))}, Once: true,
	})
	store.Changed = func(shop.Webhook) { s.Wake() }
	for n := range 10 {
		if _, err := store.Cancel(t.Context(), fmt.Sprint(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	got := settled(t, s)
	if got.Made != 50 || got.Dropped != 50 || got.Lost != 50 || got.Sent+got.Copies+got.Acknowledged+got.Unheard != 0 || len(in.events) != 0 {
		t.Errorf("%+v, %d arrived", got, len(in.events))
	}
	if got.Forged == 0 || got.Refused != got.Forged {
		t.Errorf("%d forged, %d refused", got.Forged, got.Refused)
	}
}

// A receiver that takes anything is found out.
func TestCredulous(t *testing.T) {
	t.Parallel()
	anything := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s := send(t, orders(t, 10), hooks.Options{Plan: hooks.Plan{Seed: 1, Forgeries: 1}, Receivers: []string{anything}})
	if got := settled(t, s); got.Forged != 10 || got.Believed != 10 || got.Refused != 0 {
		t.Errorf("%+v", got)
	}
}

// What was not acknowledged stays in the outbox, and the next sender sends it.
func TestNextSender(t *testing.T) {
	t.Parallel()
	store, in := orders(t, 5), &receiver{}
	if err := store.Acknowledge(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	tried := make(chan struct{}, 100)
	nobody := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		tried <- struct{}{}
	}))
	first := send(t, store, hooks.Options{Plan: hooks.Plan{Seed: 1}, Receivers: []string{nobody}})
	for range 8 {
		<-tried
	}
	if quiet, err := first.Quiet(t.Context()); quiet || err != nil {
		t.Errorf("quiet %t, %v while nobody has answered", quiet, err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	got := settled(t, send(t, store, hooks.Options{Plan: hooks.Plan{Seed: 1}, Receivers: []string{serve(t, door(t, in))}}))
	if got.Acknowledged != 5 || got.Sent != 4 || len(in.events) != 4 {
		t.Errorf("%+v, %d arrived", got, len(in.events))
	}
}

// broken is an outbox that cannot be written.
type broken struct{ *shop.Store }

var errBroken = errors.New("the disk is full")

// Acknowledge fails.
func (broken) Acknowledge(context.Context, int64) error { return errBroken }

// A sender that can go no further says so; one that cannot begin does not.
func TestFailures(t *testing.T) {
	t.Parallel()
	store := orders(t, 1)
	heard := make(chan struct{}, 1)
	anything := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard <- struct{}{} }))
	s, err := hooks.Start(t.Context(), broken{store}, hooks.Options{Receivers: []string{anything}, Secret: secret, Spread: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	<-heard
	for ticks := time.Tick(time.Millisecond); ; <-ticks {
		if _, err := s.Quiet(t.Context()); errors.Is(err, errBroken) {
			break
		}
	}
	if err := s.Close(); !errors.Is(err, errBroken) {
		t.Errorf("closed with %v", err)
	}
	for name, o := range map[string]hooks.Options{
		"no receiver": {Secret: secret}, "no secret": {Receivers: []string{anything}}, "short secret": {Receivers: []string{anything}, Secret: "whsec_MDEy"},
	} {
		if _, err := hooks.Start(t.Context(), store, o); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}
