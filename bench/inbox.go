package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/hear"
	"github.com/amends-dev/amends/bench/report"
)

// hearing is what `bench inbox` was asked for.
type hearing struct {
	comparison

	objects, batch, judges int
}

func inboxCommand() *cobra.Command {
	var h hearing
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "Deliveries that become durable per second beside a bare insert, and what the gate judges per second",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return h.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	h.flags(cmd, defaults{rounds: 3, loads: []int{64, 1024}, warmUp: time.Second, duration: 3 * time.Second})
	cmd.Flags().IntVar(&h.objects, "objects", 10_000, "objects of which the gate judges three versions each")
	cmd.Flags().IntVar(&h.batch, "batch", 500, "deliveries the gate judges at a time")
	cmd.Flags().IntVar(&h.judges, "judges", 2, "batches the gate judges at a time; SQLite has one writer")
	return cmd
}

// inboxLine is one line of JSON. Figures are medians of the rounds.
type inboxLine struct {
	Database  string  `json:"database"`
	What      string  `json:"what"` // accept, judge
	InFlight  int     `json:"in_flight,omitempty"`
	Batch     int     `json:"batch,omitempty"`
	Judges    int     `json:"judges,omitempty"`
	PerSecond float64 `json:"per_second"`
	Bare      float64 `json:"bare_insert_per_second,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"`
	P50       float64 `json:"latency_ms_p50,omitempty"`
	P99       float64 `json:"latency_ms_p99,omitempty"`
	BareP99   float64 `json:"bare_insert_latency_ms_p99,omitempty"`
	CPU       float64 `json:"cpu_us_each"` // of the engine, the load and the database, for each
	BareCPU   float64 `json:"bare_insert_cpu_us_each,omitempty"`
	Rounds    int     `json:"rounds"`
	Load      string  `json:"load_average"` // of the machine, before and after
}

func (h hearing) run(ctx context.Context, out, people io.Writer) (err error) {
	if err := h.validate(); err != nil {
		return err
	}
	if h.objects < 1 || h.batch < 1 || h.judges < 1 {
		return errors.New("--objects, --batch and --judges must be at least 1")
	}
	stage, err := openStage(ctx, h.dir, slices.Contains(h.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	var lines []inboxLine
	for _, database := range h.ledgers {
		for _, inFlight := range h.loads {
			line, err := h.accept(ctx, stage, database, inFlight)
			if err != nil {
				return err
			}
			fmt.Fprintf(people, "%-8s  %5d in flight  %7.0f deliveries/s  p50 %.3g ms, p99 %.3g ms; %.3g µs CPU each; bare insert %7.0f/s, p99 %.3g ms, %.3g µs; load average %s\n",
				database, inFlight, line.PerSecond, line.P50, line.P99, line.CPU, line.Bare, line.BareP99, line.BareCPU, line.Load)
			lines = append(lines, line)
		}
		line, err := h.judge(ctx, stage, database)
		if err != nil {
			return err
		}
		fmt.Fprintf(people, "%-8s  %5d at a time  %7.0f decisions/s, %.3g µs CPU each; load average %s\n", database, h.batch, line.PerSecond, line.CPU, line.Load)
		lines = append(lines, line)
	}
	return report.WriteJSON(out, lines)
}

// acceptors are the store and the bare insert on a database.
func acceptors(database string) [2]func(context.Context, string) (hear.Acceptor, error) {
	if database == onPostgres {
		return [2]func(context.Context, string) (hear.Acceptor, error){
			func(ctx context.Context, url string) (hear.Acceptor, error) { return hear.Postgres(ctx, url) },
			hear.BarePostgres,
		}
	}
	return [2]func(context.Context, string) (hear.Acceptor, error){
		func(ctx context.Context, path string) (hear.Acceptor, error) { return hear.SQLite(ctx, path) },
		hear.BareSQLite,
	}
}

// accept measures the store and the bare insert in turn.
func (h hearing) accept(ctx context.Context, s *stage, database string, inFlight int) (inboxLine, error) {
	line := inboxLine{Database: database, What: "accept", InFlight: inFlight, Rounds: h.rounds, Load: loadAverage()}
	load := hear.Load{InFlight: inFlight, WarmUp: h.warmUp, Duration: h.duration}
	var got [2][]hear.Accepted
	for range h.rounds {
		for i, open := range acceptors(database) {
			name := fmt.Sprintf("%s-accept-%d-%s", database, inFlight, [2]string{"store", "bare"}[i])
			a, err := onFresh(ctx, h, s, database, name, open, func(ctx context.Context, a hear.Acceptor, m cost.Meter) (hear.Accepted, error) {
				load.Meter = m
				return load.Drive(ctx, a)
			})
			if err != nil {
				return line, err
			}
			got[i] = append(got[i], a)
		}
	}
	rate := func(a hear.Accepted) float64 { return float64(a.Deliveries) / a.Wall.Seconds() }
	line.PerSecond, line.Bare = middle(got[0], rate), middle(got[1], rate)
	line.Ratio = line.PerSecond / line.Bare
	line.P50 = middle(got[0], func(a hear.Accepted) float64 { return milliseconds(a.P50) })
	line.P99 = middle(got[0], func(a hear.Accepted) float64 { return milliseconds(a.P99) })
	line.BareP99 = middle(got[1], func(a hear.Accepted) float64 { return milliseconds(a.P99) })
	each := func(a hear.Accepted) float64 { return cpu(a.Cost, a.Deliveries) }
	line.CPU, line.BareCPU = middle(got[0], each), middle(got[1], each)
	line.Load += " … " + loadAverage()
	return line, nil
}

// cpu is what each of n cost, in microseconds.
func cpu(r cost.Reading, n int) float64 {
	return milliseconds(r.EngineCPU+r.DatabaseCPU) * 1000 / float64(n)
}

func (h hearing) judge(ctx context.Context, s *stage, database string) (inboxLine, error) {
	line := inboxLine{Database: database, What: "judge", Batch: h.batch, Judges: h.judges, Rounds: h.rounds, Load: loadAverage()}
	open := hear.SQLite
	if database == onPostgres {
		open = hear.Postgres
	}
	var got []hear.Judged
	for range h.rounds {
		j, err := onFresh(ctx, h, s, database, database+"-judge", open, func(ctx context.Context, g hear.Store, m cost.Meter) (hear.Judged, error) {
			return hear.Decisions{Objects: h.objects, Batch: h.batch, Judges: h.judges, Meter: m}.Drive(ctx, g)
		})
		if err != nil {
			return line, err
		}
		got = append(got, j)
	}
	line.PerSecond = middle(got, func(j hear.Judged) float64 { return float64(j.Deliveries) / j.Wall.Seconds() })
	line.CPU = middle(got, func(j hear.Judged) float64 { return cpu(j.Cost, j.Deliveries) })
	line.Load += " … " + loadAverage()
	return line, nil
}

// onFresh opens something on an empty database, measures it and removes the database.
func onFresh[S io.Closer, R any](ctx context.Context, h hearing, s *stage, database, name string, open func(context.Context, string) (S, error),
	measure func(context.Context, S, cost.Meter) (R, error),
) (result R, err error) {
	address, remove, err := s.fresh(ctx, database)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := s.settle(ctx); err != nil {
		return result, err
	}
	opened, err := open(ctx, address)
	if err != nil {
		return result, err
	}
	c := cell{Ledger: database, Address: address, Postmaster: s.postmaster}
	meter, err := c.meter(ctx)
	if err != nil {
		return result, errors.Join(err, opened.Close())
	}
	if h.profiles != "" {
		c.Profile = filepath.Join(h.profiles, name+".pprof")
	}
	stop, err := c.profile()
	if err == nil {
		result, err = measure(ctx, opened, meter)
		err = errors.Join(err, stop())
	}
	return result, errors.Join(err, meter.Close(), opened.Close())
}

// middle is the median of one figure.
func middle[R any](rounds []R, figure func(R) float64) float64 {
	v := make([]float64, len(rounds))
	for i, r := range rounds {
		v[i] = figure(r)
	}
	slices.SortFunc(v, cmp.Compare[float64])
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// loadAverage is how busy the machine was during the last minute.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
