package webhook

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/intake"
)

// What the door itself costs: one delivery from its request to its answer, with an inbox that costs
// nothing.
func BenchmarkDelivery(b *testing.B) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	body := fixture(b, "woocommerce.json")
	nothing := acceptFunc(func(context.Context, []intake.Event) error { return nil })
	r, err := newReceiver(nothing, []named{woo()},
		&Options{Log: quiet, Now: func() time.Time { return noon }})
	if err != nil {
		b.Fatal(err)
	}
	h := wooSigned(body)
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/webhooks/woo", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = h
		w := &plainWriter{}
		if r.ServeHTTP(w, req); w.status != http.StatusOK {
			b.Fatalf("answer %d", w.status)
		}
	}
}
