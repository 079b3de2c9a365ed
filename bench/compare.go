package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/report"
)

// comparison is what `bench compare` was asked for.
type comparison struct {
	rounds   int
	loads    []int
	ledgers  []string
	warmUp   time.Duration
	duration time.Duration
	dir      string
	profiles string
	against  string
}

func compareCommand() *cobra.Command {
	var c comparison
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Run amends and the floor in turn; medians as a table, then as lines of JSON",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&c.against, "against", "", "another build of this program: each engine of amends runs with it, too, in turn")
	c.flags(cmd, defaults{rounds: 3, loads: []int{1, 64, 1024}, warmUp: time.Second, duration: 3 * time.Second})
	return cmd
}

// defaults are those in which the commands differ.
type defaults struct {
	rounds           int
	loads            []int
	warmUp, duration time.Duration
}

// flags declares what all comparisons can be told.
func (c *comparison) flags(cmd *cobra.Command, d defaults) {
	f := cmd.Flags()
	f.IntVar(&c.rounds, "rounds", d.rounds, "interleaved rounds; figures are their medians")
	f.IntSliceVar(&c.loads, "in-flight", d.loads, "sagas in flight, one load each")
	f.StringSliceVar(&c.ledgers, "ledgers", []string{onSQLite, onPostgres}, "ledgers to measure")
	f.DurationVar(&c.warmUp, "warm-up", d.warmUp, "unmeasured start of each run")
	f.DurationVar(&c.duration, "duration", d.duration, "measured part of each run")
	f.StringVar(&c.dir, "dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	f.StringVar(&c.profiles, "profiles", "", "existing folder for a CPU profile of each run; profiling slows the runs down")
}

func (c comparison) validate() error {
	var errs []error
	for _, l := range c.ledgers {
		if l != onSQLite && l != onPostgres {
			errs = append(errs, fmt.Errorf("--ledgers knows sqlite and postgres, not %q", l))
		}
	}
	for _, n := range c.loads {
		if n < 1 {
			errs = append(errs, fmt.Errorf("--in-flight must be at least 1, not %d", n))
		}
	}
	if c.rounds < 1 || c.duration <= 0 || c.warmUp < 0 {
		errs = append(errs, errors.New("--rounds, --duration and --warm-up must be positive"))
	}
	return errors.Join(errs...)
}

// run measures every engine at every load in every round. The table and the
// progress go to people, the lines of JSON to out.
func (c comparison) run(ctx context.Context, out, people io.Writer) (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	stage, err := openStage(ctx, c.dir, slices.Contains(c.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	var samples []report.Sample
	for round := range c.rounds {
		for _, inFlight := range c.loads {
			for _, t := range c.turns(round) {
				s, err := c.cell(ctx, stage, t, round+1, inFlight)
				if err != nil {
					return err
				}
				fmt.Fprintf(people, "round %d/%d  %-8s  %-35s %5d in flight  %8.0f sagas/s\n", round+1, c.rounds, t.ledger, s.Engine, inFlight, s.SagasPerSecond)
				samples = append(samples, s)
			}
		}
	}
	groups := report.Groups(samples)
	report.WriteTable(people, groups, "of floor")
	return report.WriteJSON(out, report.Lines(groups))
}

// turn is one engine, run by one build of this program.
type turn struct {
	entry

	program string // "": this one
}

// turns are the engines of a round in their order. What is compared with another build runs right
// after or before it, in the other order every second round.
func (c comparison) turns(round int) (turns []turn) {
	for _, e := range entries {
		if !slices.Contains(c.ledgers, e.ledger) {
			continue
		}
		now, before := turn{entry: e}, turn{e, c.against}
		switch {
		case c.against == "" || e.role == report.Floor || e.role == report.Slow:
			turns = append(turns, now)
		case round%2 == 0:
			turns = append(turns, before, now)
		default:
			turns = append(turns, now, before)
		}
	}
	return turns
}

// cell measures one engine at one load on an empty ledger.
func (c comparison) cell(ctx context.Context, stage *stage, t turn, round, inFlight int) (s report.Sample, err error) {
	e := t.entry
	address, remove, err := stage.fresh(ctx, e.ledger)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := stage.settle(ctx); err != nil {
		return s, err
	}
	profile := ""
	if c.profiles != "" {
		profile = filepath.Join(c.profiles, fmt.Sprintf("%s-%s-%d-%d.pprof", e.ledger, strings.ReplaceAll(e.name, " ", "-"), inFlight, round))
	}
	s, err = cell{
		program:    t.program,
		Ledger:     e.ledger,
		Engine:     e.name,
		Address:    address,
		Postmaster: stage.postmaster,
		Round:      round,
		InFlight:   inFlight,
		WarmUp:     c.warmUp,
		Duration:   c.duration,
		Profile:    profile,
	}.start(ctx)
	if t.program != "" {
		s.Engine, s.Role = s.Engine+report.ByBefore, s.Role+report.ByBefore
	}
	return s, err
}

// heading says on what the figures were taken.
func heading(ctx context.Context, w io.Writer, s *stage) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	disk, err := cost.SyncLatency(s.dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d processors, %s, %s, a write and fdatasync take %s (p50) in %s\n",
		runtime.NumCPU(), runtime.Version(), version, disk.Round(time.Microsecond), s.dir)
	return err
}
