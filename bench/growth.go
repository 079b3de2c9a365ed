package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/preload"
	"github.com/amends-dev/amends/bench/report"
)

// templates is how many works are run for real before they are copied.
const templates = 500

// The two ledgers that growth compares, in the role the report knows them by.
const (
	empty = "empty ledger"
	grown = "grown ledger"
)

// growth is what `bench growth` was asked for.
type growth struct {
	comparison

	works int
	limit float64
}

func growthCommand() *cobra.Command {
	var g growth
	cmd := &cobra.Command{
		Use:   "growth",
		Short: "What finished works in the ledger cost a new one: an empty ledger against a grown one, in turn",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	g.flags(cmd, defaults{rounds: 9, loads: []int{1, 64}, warmUp: 500 * time.Millisecond, duration: 2 * time.Second})
	f := cmd.Flags()
	f.IntVar(&g.works, "works", 1_000_000, "finished works in the grown ledger")
	f.Float64Var(&g.limit, "limit", 10, "fail when a new work is slower by this many percent")
	return cmd
}

// run measures amends on both ledgers of each database, in turn.
func (g growth) run(ctx context.Context, out, people io.Writer) (err error) {
	if err := g.validate(); err != nil {
		return err
	}
	stage, err := openStage(ctx, g.dir, slices.Contains(g.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	var samples []report.Sample
	for _, ledger := range g.ledgers {
		s, err := g.onLedger(ctx, people, stage, ledger)
		if err != nil {
			return err
		}
		samples = append(samples, s...)
	}
	groups := report.Groups(samples)
	report.WriteTable(people, groups, "of empty")
	lines := report.Growths(groups, g.works)
	return errors.Join(report.WriteJSON(out, lines), g.result(lines))
}

// result fails when a new work is slower than the limit allows.
func (g growth) result(lines []report.Growth) error {
	var errs []error
	for _, l := range lines {
		if l.SlowerPercent >= g.limit {
			errs = append(errs, fmt.Errorf("%s, %d in flight: %d finished works slow a new one by %.1f %%, the limit is %.0f %%",
				l.Ledger, l.InFlight, l.Works, l.SlowerPercent, g.limit))
		}
	}
	return errors.Join(errs...)
}

// onLedger grows one ledger and runs the rounds on it and on empty ones.
func (g growth) onLedger(ctx context.Context, people io.Writer, stage *stage, ledger string) (samples []report.Sample, err error) {
	e, err := subject(ledger)
	if err != nil {
		return nil, err
	}
	address, remove, err := stage.fresh(ctx, ledger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := g.grow(ctx, people, e, address); err != nil {
		return nil, fmt.Errorf("grow the ledger on %s: %w", ledger, err)
	}
	first := templates
	for round := range g.rounds {
		for _, inFlight := range g.loads {
			on := cell{
				Ledger: ledger, Engine: e.name, Address: address, Postmaster: stage.postmaster, First: first,
				Round: round + 1, InFlight: inFlight, WarmUp: g.warmUp, Duration: g.duration,
			}
			first += maxSagas
			pair, err := g.pair(ctx, stage, e, on)
			if err != nil {
				return nil, err
			}
			for _, s := range pair {
				fmt.Fprintf(people, "round %d/%d  %-8s  %-12s %5d in flight  %8.0f sagas/s\n", round+1, g.rounds, ledger, s.Engine, inFlight, s.SagasPerSecond)
			}
			samples = append(samples, pair...)
		}
	}
	return samples, nil
}

// pair measures the load on an empty ledger and on the grown one. Every other
// round begins with the grown one, so that a machine that slows down favours neither.
func (g growth) pair(ctx context.Context, stage *stage, e entry, on cell) ([]report.Sample, error) {
	onEmpty := func() (report.Sample, error) {
		s, err := g.cell(ctx, stage, turn{entry: e}, on.Round, on.InFlight)
		s.Engine, s.Role = empty, report.Floor
		return s, err
	}
	onGrown := func() (report.Sample, error) {
		if err := stage.settle(ctx); err != nil {
			return report.Sample{}, err
		}
		s, err := on.start(ctx)
		s.Engine, s.Role = grown, report.Subject
		return s, err
	}
	order := []func() (report.Sample, error){onEmpty, onGrown}
	if on.Round%2 == 0 {
		slices.Reverse(order)
	}
	var samples []report.Sample
	for _, measure := range order {
		s, err := measure()
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// grow runs a few works on the ledger and copies them.
func (g growth) grow(ctx context.Context, people io.Writer, e entry, address string) error {
	begin := time.Now()
	if err := finish(ctx, e, address, 0, templates); err != nil {
		return err
	}
	db, err := openForFilling(ctx, e.ledger, address)
	if err != nil {
		return err
	}
	err = preload.Fill(ctx, db, g.works, func(works int) {
		fmt.Fprintf(people, "%s: %d finished works after %s\n", e.ledger, works, time.Since(begin).Round(time.Second))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	syscall.Sync() // gigabytes on their way to the disk would be measured, too
	return nil
}

// openForFilling opens the database of a ledger without the ledger.
func openForFilling(ctx context.Context, ledger, address string) (*sqlx.DB, error) {
	if ledger == onPostgres {
		return sqlx.ConnectContext(ctx, "postgres", address)
	}
	// A crash here costs a benchmark, so nothing waits for the disk.
	return sqlx.ConnectContext(ctx, "sqlite", "file:"+filepath.ToSlash(address)+"?_pragma=synchronous(0)&_pragma=cache_size(-200000)")
}
