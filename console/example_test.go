package console_test

import (
	"context"
	"log"
	"net/http"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/store"
)

// The console beside the program's own pages: tokens from a file, metrics of the process and of the
// ledger, and starts by POST /amends/api/v1/works.
func ExampleNew() {
	db, err := store.Open(context.Background(), "shop.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	c, err := coordinator.New(db, &coordinator.Options{Listener: amendsprom.New(reg)})
	if err != nil {
		log.Fatal(err)
	}
	amendsprom.Ledger(reg, db, nil)
	tokens, err := console.OpenTokens("/etc/shop/amends-tokens")
	if err != nil {
		log.Fatal(err)
	}
	pages, err := console.New(db, &console.Options{
		Path: "/amends/", Hosts: []string{"ops.example.com"}, Tokens: tokens,
		Coordinator: c, Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{}),
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/amends/", pages)
}

// A proxy signs people in and says who they are.
func ExampleHeader() {
	var db store.DB
	_, err := console.New(db, &console.Options{
		Hosts: []string{"ops.example.com"},
		Who:   console.Header("X-Forwarded-User", "X-Forwarded-Groups", netip.MustParsePrefix("10.0.0.7/32")),
	})
	if err != nil {
		log.Fatal(err)
	}
}
