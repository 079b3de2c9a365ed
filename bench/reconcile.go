package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/drifting"
	"github.com/amends-dev/amends/bench/report"
)

// reconciling is what `bench reconcile` was asked for.
type reconciling struct {
	comparison

	objects, onPostgres int64
	only                []string
}

// parts are what can be measured, from the least to the whole.
var parts = []string{"merge", "compare-bare", "compare", "plan"}

func reconcileCommand() *cobra.Command {
	var r reconciling
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "How long a plan over millions of listed objects takes, of which one in a thousand differs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.Int64Var(&r.objects, "objects", 10_000_000, "objects, in SQLite and in memory")
	f.Int64Var(&r.onPostgres, "postgres-objects", 1_000_000, "objects, in Postgres")
	f.StringSliceVar(&r.only, "only", parts, "what to measure")
	f.IntVar(&r.rounds, "rounds", 2, "rounds; figures are those of the fastest")
	f.StringSliceVar(&r.ledgers, "ledgers", []string{onSQLite, onPostgres}, "databases to measure")
	f.StringVar(&r.dir, "dir", "", "folder on the disk to measure; ten million objects take 6 GB (default: the system's temporary folder)")
	f.StringVar(&r.profiles, "profiles", "", "existing folder for a CPU profile of each round; profiling slows the rounds down")
	return cmd
}

// planLine is one line of JSON.
type planLine struct {
	Database  string  `json:"database"`
	What      string  `json:"what"` // merge, compare-bare, compare, plan
	Objects   int64   `json:"objects"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"objects_per_second"`
	CPU       float64 `json:"cpu_seconds_per_million"` // of this process and of the database
	Peak      float64 `json:"peak_memory_mb"`          // of this process
	Allocs    float64 `json:"allocations_per_object"`
	Rounds    int     `json:"rounds"`
	Load      string  `json:"load_average"` // of the machine, before and after
}

func (r reconciling) run(ctx context.Context, out, people io.Writer) (err error) {
	r.loads, r.duration = []int{1}, time.Second // not asked for
	if err := r.validate(); err != nil {
		return err
	}
	for _, what := range r.only {
		if !slices.Contains(parts, what) {
			return fmt.Errorf("--only knows %v, not %q", parts, what)
		}
	}
	if r.objects < 1 || r.onPostgres < 1 {
		return errors.New("--objects and --postgres-objects must be at least 1")
	}
	stage, err := openStage(ctx, r.dir, slices.Contains(r.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	lines := []planLine{}
	note := func(l planLine, err error) error {
		if l.Seconds == 0 {
			return err // --only left this part out
		}
		fmt.Fprintf(people, "%-8s  %-12s  %9d objects  %6.1f s  %8.0f/s  %5.2f CPU s per million  %5.0f MB  %5.2f allocations each; load average %s\n",
			l.Database, l.What, l.Objects, l.Seconds, l.PerSecond, l.CPU, l.Peak, l.Allocs, l.Load)
		lines = append(lines, l)
		return err
	}
	merge := func(ctx context.Context) error { return drifting.Merge(ctx, r.objects) }
	if err := note(r.measure(ctx, "memory", "merge", r.objects, cost.Process(), merge)); err != nil {
		return err
	}
	for _, database := range r.ledgers {
		if err := r.on(ctx, stage, database, people, note); err != nil {
			return err
		}
	}
	return report.WriteJSON(out, lines)
}

// on measures a job on one database.
func (r reconciling) on(ctx context.Context, s *stage, database string, people io.Writer, note func(planLine, error) error) (err error) {
	n := r.objects
	if database == onPostgres {
		n = r.onPostgres
	}
	address, remove, err := s.fresh(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	job, err := drifting.Open(ctx, database, address, n)
	if err != nil {
		return err
	}
	if err := errors.Join(r.fill(ctx, job, database, address, people), s.settle(ctx)); err != nil {
		return errors.Join(err, job.Close())
	}
	meter, err := cell{Ledger: database, Address: address, Postmaster: s.postmaster}.meter(ctx)
	if err != nil {
		return errors.Join(err, job.Close())
	}
	return errors.Join(
		note(r.measure(ctx, database, "compare-bare", n, meter, func(ctx context.Context) error { return job.Compare(ctx, true) })),
		note(r.measure(ctx, database, "compare", n, meter, func(ctx context.Context) error { return job.Compare(ctx, false) })),
		note(r.measure(ctx, database, "plan", n, meter, job.Plan)),
		job.Close(), meter.Close(), // in this order: see cost.OpenSQLite
	)
}

// fill writes what is to be compared.
func (r reconciling) fill(ctx context.Context, job *drifting.Job, database, address string, people io.Writer) (err error) {
	driver, dsn := "postgres", address
	if database == onSQLite {
		driver, dsn = "sqlite", "file:"+address+"?_pragma=busy_timeout(60000)"
	}
	db, err := sqlx.ConnectContext(ctx, driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	return job.Fill(ctx, db, database, func(what string) { fmt.Fprintf(people, "%-8s  %s\n", database, what) })
}

// measure runs something a few times, and keeps the fastest round.
func (r reconciling) measure(ctx context.Context, database, what string, n int64, meter cost.Meter, f func(context.Context) error) (planLine, error) {
	line := planLine{Database: database, What: what, Objects: n, Rounds: r.rounds, Load: loadAverage()}
	if !slices.Contains(r.only, what) {
		return line, nil
	}
	for round := range r.rounds {
		profile := ""
		if r.profiles != "" {
			profile = filepath.Join(r.profiles, fmt.Sprintf("reconcile-%s-%s-%d.pprof", database, what, round+1))
		}
		stop, err := (cell{Profile: profile}).profile()
		if err != nil {
			return line, err
		}
		l, err := once(ctx, n, meter, f)
		if err := errors.Join(err, stop()); err != nil {
			return line, fmt.Errorf("%s on %s: %w", what, database, err)
		}
		if round == 0 || l.Seconds < line.Seconds {
			line.Seconds, line.PerSecond, line.CPU, line.Peak, line.Allocs = l.Seconds, l.PerSecond, l.CPU, l.Peak, l.Allocs
		}
	}
	line.Load += " … " + loadAverage()
	return line, nil
}

// once runs something and reads what it cost.
func once(ctx context.Context, n int64, meter cost.Meter, f func(context.Context) error) (line planLine, err error) {
	if err := cost.ResetPeakMemory(); err != nil {
		return line, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, err := meter.Read(ctx)
	if err != nil {
		return line, err
	}
	began := time.Now()
	if err := f(ctx); err != nil {
		return line, err
	}
	line.Seconds = time.Since(began).Seconds()
	now, err := meter.Read(ctx)
	if err != nil {
		return line, err
	}
	runtime.ReadMemStats(&after)
	peak, err := cost.PeakMemory()
	all := now.Sub(spent)
	line.PerSecond = float64(n) / line.Seconds
	line.CPU = (all.EngineCPU + all.DatabaseCPU).Seconds() / float64(n) * 1e6
	line.Peak, line.Allocs = float64(peak)/(1<<20), float64(after.Mallocs-before.Mallocs)/float64(n)
	return line, err
}
