package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// reviews is how many instances wait for a person beside those that have ended.
const reviews = 500

// pages is what `bench pages` was asked for.
type pages struct {
	growth

	requests int
}

func pagesCommand() *cobra.Command {
	var p pages
	cmd := &cobra.Command{
		Use:   "pages",
		Short: "How long each page of the console takes over a million instances, of which 500 are in review",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	p.flags(cmd, defaults{rounds: 1, loads: []int{1}, warmUp: 0, duration: time.Second})
	cmd.Flags().IntVar(&p.works, "works", 1_000_000, "finished instances in the ledger")
	cmd.Flags().IntVar(&p.requests, "requests", 300, "requests of each page, two at a time")
	return cmd
}

func (p pages) run(ctx context.Context, out, people io.Writer) (err error) {
	stage, err := openStage(ctx, p.dir, slices.Contains(p.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"ledger", "page", "p50 ms", "p99 ms", "max ms", "KiB"})
	for _, ledger := range p.ledgers {
		if err := p.onLedger(ctx, people, stage, ledger, t); err != nil {
			return fmt.Errorf("on %s: %w", ledger, err)
		}
	}
	_, err = fmt.Fprintln(out, t.Render())
	return err
}

func (p pages) onLedger(ctx context.Context, people io.Writer, stage *stage, ledger string, t table.Writer) (err error) {
	e, err := subject(ledger)
	if err != nil {
		return err
	}
	address, remove, err := stage.fresh(ctx, ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := p.grow(ctx, people, e, address); err != nil {
		return err
	}
	db, err := store.Open(ctx, address, &store.Options{Migrate: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := review(ctx, db); err != nil {
		return err
	}
	return p.measure(ctx, db, ledger, t)
}

// review leaves instances in review: each sends a letter whose answer is lost.
func review(ctx context.Context, db store.DB) error {
	log := logrus.New()
	log.SetOutput(io.Discard)
	lost := saga.Do("send", func(_ context.Context, c saga.Call[int]) (string, error) {
		return "", errors.Join(c.Sending(), errors.New("the line went dead"))
	}).AtMostOnce().NoUndo("a letter cannot be unsent").Settle(time.Millisecond)
	mail, err := saga.Define("mail", 1, lost)
	if err != nil {
		return err
	}
	c, err := coordinator.New(db, &coordinator.Options{Log: log})
	if err != nil {
		return err
	}
	if err := c.Register(ctx, mail); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running) }()
	for n := range reviews {
		if _, err := c.Start(ctx, "mail", fmt.Sprintf("mail:%d", n), n, nil); err != nil {
			return err
		}
	}
	for there := 0; there < reviews; {
		all, err := db.Totals(ctx)
		if err != nil {
			return err
		}
		for _, of := range all {
			if of.Status == saga.Review {
				there = int(of.Works)
			}
		}
	}
	stop()
	return <-ended
}

// measure asks for each page, two at a time.
func (p pages) measure(ctx context.Context, db store.DB, ledger string, t table.Writer) error {
	tokens, err := console.OpenTokens("")
	if err != nil {
		return err
	}
	token, err := tokens.Issue(console.Person{Name: "bench", Roles: []string{console.Admin}}, time.Hour)
	if err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	amendsprom.Ledger(reg, db, nil)
	handler, err := console.New(db, &console.Options{Tokens: tokens, Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{})})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for _, path := range []string{
		"/", "/works", "/works?status=review", "/works?status=completed", "/works?prefix=shop:order:9000500", "/works?external-id=inv_9000000500000",
		"/work?saga=mail&id=mail:7", "/work?saga=order-to-invoice&id=shop:order:9000500000", "/destinations", "/inbox", "/jobs", "/findings", "/duplicates", "/acts", "/metrics",
		"/api/v1/status", "/api/v1/works?limit=100",
	} {
		runtime.GC()
		took, bytes, err := p.ask(ctx, server.URL+path, token)
		if err != nil {
			return err
		}
		slices.Sort(took)
		ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
		t.AppendRow(table.Row{ledger, path, ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]), bytes / 1024})
	}
	return nil
}

func (p pages) ask(ctx context.Context, address, token string) (took []time.Duration, bytes int64, err error) {
	took = make([]time.Duration, p.requests)
	two, ctx := errgroup.WithContext(ctx)
	two.SetLimit(2)
	sizes := make([]int64, p.requests)
	for i := range p.requests {
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
			sizes[i], err = io.Copy(io.Discard, answer.Body)
			took[i] = time.Since(begin)
			if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
				err = fmt.Errorf("%s answers %s", address, answer.Status)
			}
			return errors.Join(err, answer.Body.Close())
		})
	}
	err = two.Wait()
	return took, sizes[0], err
}
