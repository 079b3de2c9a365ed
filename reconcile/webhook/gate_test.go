package webhook

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/store/memory"
)

// hall is a door with a real store behind it, and the gate behind that.
type hall struct {
	*door
	store *memory.DB
	now   *atomic.Int64 // the one clock of all three
}

func openHall(t *testing.T, sources ...named) *hall {
	t.Helper()
	var now atomic.Int64
	now.Store(noon.UnixNano())
	clock := func() time.Time { return time.Unix(0, now.Load()).UTC() }
	h := &hall{door: open(t, &Options{Now: clock}, sources...), store: memory.New(&memory.Options{Now: clock}), now: &now}
	h.Receiver.inbox = h.store
	return h
}

// judge sends what nobody has judged through the gate, and returns the dispositions in the order of
// arrival.
func (h *hall) judge(t *testing.T) []intake.Disposition {
	t.Helper()
	var dispositions []intake.Disposition
	_, err := h.store.Judge(t.Context(), 100, func(now time.Time, ds []intake.Delivery, es map[inbox.Object]*intake.Entry) error {
		for i := range ds {
			e := es[ds[i].Object]
			*e, ds[i].Outcome, ds[i].Because = intake.Judge(*e, &ds[i], now, &intake.Policy{})
			dispositions = append(dispositions, ds[i].Outcome)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dispositions
}

// forget purges the inbox as if a year had passed in which everything that was owed was done.
func (h *hall) forget(t *testing.T) {
	t.Helper()
	entries, err := h.store.Entries(t.Context(), intake.EntryFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		done := func(_ time.Time, e *intake.Entry) error {
			e.FetchCompleted, e.Delivered = e.FetchRequested, e.Accepted
			return nil
		}
		if err := h.store.Update(t.Context(), e.Object, done); err != nil {
			t.Fatal(err)
		}
	}
	h.now.Add(int64(365 * 24 * time.Hour))
	for {
		n, err := h.store.Purge(context.WithoutCancel(t.Context()), intake.Retention{Bodies: 1, Rows: 1, Digests: 1}, 100)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// From the wire through the gate: the first is applied, the same change in other words is a
// duplicate, an older state stale, a deletion a hint. When the inbox has forgotten all of
// it, a captured delivery still verifies where no time is signed, and the gate knows it.
func TestThroughTheGate(t *testing.T) {
	t.Parallel()
	h := openHall(t, woo())
	newer := fixture(t, "woocommerce.json")
	moved := strings.Replace(newer, "https://shop.example/", "https://www.shop.example/", 1)
	older := strings.Replace(strings.Replace(newer, "T10:30:00", "T10:29:59", 1), "24.50", "20.00", 1)
	send := func(webhook, body string) {
		t.Helper()
		head := wooSigned(body)
		head.Set(wooID, webhook)
		if got := h.post(t, "woo", head, body); got != 200 {
			t.Errorf("answer %d", got)
		}
	}
	expect := func(rows string, want ...intake.Disposition) {
		t.Helper()
		if got := h.judge(t); !slices.Equal(got, want) {
			t.Errorf("%s: dispositions %v; want %v", rows, got, want)
		}
	}
	send("1", newer)
	send("2", moved)
	send("2", newer)
	send("1", older)
	expect("D1, C3, D3", intake.Applied, intake.Duplicate, intake.Stale)

	h.forget(t)
	send("1", newer)
	send("1", older)
	expect("A9, C6", intake.Duplicate, intake.Stale)

	gone := wooSigned(`{"id":10492}`)
	gone.Set(wooTopic, "order.deleted")
	if got := h.post(t, "woo", gone, `{"id":10492}`); got != 200 {
		t.Errorf("answer %d", got)
	}
	expect("F4", intake.Hint)
	e, err := h.store.Entry(t.Context(), inbox.Object{Source: "woo", Type: "order", ID: "10492"})
	if err != nil || e == nil || e.Deleted || e.FetchRequested == e.FetchCompleted || e.Accepted != 1 {
		t.Errorf("a deletion by an unsigned header has to be confirmed by the source: %+v, %v", e, err)
	}
}

// From the wire: an event of Stripe fills what is unknown, and afterwards asks for a look at
// the source.
func TestStripeThroughTheGate(t *testing.T) {
	t.Parallel()
	h := openHall(t, named{"stripe", Sender{Provider: Stripe(), Secrets: []Secret{{"only", "whsec_stripe_test_secret_0001"}}, Tolerance: NoTolerance}})
	v := independent(t)[0]
	head := http.Header{}
	head.Set("Stripe-Signature", v.header["Stripe-Signature"])
	var dispositions []intake.Disposition
	for range 2 {
		if got := h.post(t, "stripe", head, v.body); got != 200 {
			t.Errorf("answer %d", got)
		}
		dispositions = append(dispositions, h.judge(t)...)
		h.forget(t)
	}
	if want := []intake.Disposition{intake.Applied, intake.Hint}; !slices.Equal(dispositions, want) {
		t.Errorf("dispositions %v; want %v", dispositions, want)
	}
}
