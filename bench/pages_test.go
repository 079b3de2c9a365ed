package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// reviews is how many instances wait for a person beside those that have ended.
const reviews = 500

var paths = []string{
	"/", "/works", "/works?status=review", "/works?status=completed", "/works?prefix=shop:order:9000500", "/works?external-id=inv_9000000500000",
	"/work?saga=mail&id=7", "/work?saga=order-to-invoice&id=shop:order:9000500000", "/destinations", "/inbox", "/jobs", "/findings", "/duplicates", "/acts", "/metrics",
	"/api/v1/status", "/api/v1/works?limit=100",
}

// BenchmarkPages is how long each page of the console takes over a million instances, of which 500 are in review, two at a time.
// One iteration is one request. WORKS=n has fewer.
func BenchmarkPages(b *testing.B) {
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			address, _ := grow(b, ledger, 0)
			db := open(b, address)
			defer db.Close()
			must(b, review(b.Context(), db))
			site, token := served(b, db)
			for _, path := range paths {
				b.Run("page="+path, func(b *testing.B) { ask(b, site+path, token) })
			}
		})
	}
}

// review leaves instances in review: each sends a letter whose answer is lost.
func review(ctx context.Context, db store.DB) error {
	mail, err := saga.Define("mail", 1, saga.Do("send", func(_ context.Context, c saga.Call[int]) (string, error) {
		return "", errors.Join(c.Sending(), errors.New("the line went dead"))
	}).AtMostOnce().NoUndo("a letter cannot be unsent").Settle(time.Millisecond))
	if err != nil {
		return err
	}
	return over(ctx, unclosed{db}, coordinator.Options{}, mail, func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := begun(ctx, c, "mail", reviews, atOnce); err != nil {
			return err
		}
		return until(ctx, coordinator.NewOperator(db), saga.Review, reviews)
	})
}

// unclosed is a store that others still need.
type unclosed struct{ store.DB }

// Close closes nothing.
func (unclosed) Close() error { return nil }

// served serves the console, and gives an admin's token.
func served(b *testing.B, db store.DB) (address, token string) {
	b.Helper()
	tokens, err := console.OpenTokens("")
	must(b, err)
	token, err = tokens.Issue(console.Person{Name: "bench", Roles: []string{console.Admin}}, time.Hour)
	must(b, err)
	reg := prometheus.NewRegistry()
	amendsprom.Ledger(reg, db, nil)
	handler, err := console.New(db, &console.Options{Tokens: tokens, Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{})})
	must(b, err)
	site := httptest.NewServer(handler)
	b.Cleanup(site.Close)
	return site.URL, token
}

func ask(b *testing.B, address, token string) {
	b.Helper()
	took := make([]time.Duration, b.N)
	var bytes int64
	two, ctx := errgroup.WithContext(b.Context())
	two.SetLimit(2)
	b.ResetTimer()
	for i := range b.N {
		two.Go(func() error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				return err
			}
			r.Header.Set("Authorization", "Bearer "+token)
			begin := time.Now()
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			n, err := io.Copy(io.Discard, answer.Body)
			took[i] = time.Since(begin)
			if i == 0 {
				bytes = n
			}
			if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
				err = fmt.Errorf("%s answers %s", address, answer.Status)
			}
			return errors.Join(err, answer.Body.Close())
		})
	}
	must(b, two.Wait())
	b.StopTimer()
	slices.Sort(took)
	report(b, map[string]float64{"p50-ms": ms(took[b.N/2]), "p99-ms": ms(took[b.N*99/100]), "max-ms": ms(took[b.N-1]), "KiB": float64(bytes) / 1024})
}
