package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/report"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// sleeping is what `bench sleep` was asked for.
type sleeping struct {
	instances, due int
	perSecond      float64
	watch          time.Duration
	dir            string
	ledgers        []string
}

func sleepCommand() *cobra.Command {
	var s sleeping
	cmd := &cobra.Command{
		Use:   "sleep",
		Short: "What an idle process costs beside sleeping instances, and how those go on that fell due while no process lived",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.instances, "instances", 1_000_000, "instances that sleep for a year")
	f.IntVar(&s.due, "due", 100_000, "instances that fall due together while no process lives")
	f.Float64Var(&s.perSecond, "limit", 2000, "requests a second that their destination takes")
	f.DurationVar(&s.watch, "watch", 30*time.Second, "how long an idle process is watched")
	f.StringVar(&s.dir, "dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	f.StringSliceVar(&s.ledgers, "ledgers", []string{onSQLite, onPostgres}, "where the ledger is")
	return cmd
}

// sleepLine is one line of JSON: an idle process, or the end of a common sleep.
type sleepLine struct {
	Ledger    string  `json:"ledger"`
	Instances int     `json:"instances"` // that sleep, or that fell due
	CPU       float64 `json:"cpu_ms_a_minute,omitempty"`
	DB        float64 `json:"cpu_ms_a_minute_db,omitempty"`
	Commits   float64 `json:"commits_a_minute,omitempty"`
	PerSecond float64 `json:"per_second,omitempty"`
	Limit     float64 `json:"limit,omitempty"`
	Twice     int64   `json:"twice"`
	Overtaken float64 `json:"furthest_place_overtaken,omitempty"` // of all, as a part: how far from its place in the line the furthest went
}

func (s sleeping) run(ctx context.Context, out, people io.Writer) (err error) {
	stage, err := openStage(ctx, s.dir, slices.Contains(s.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	var lines []sleepLine
	for _, ledger := range s.ledgers {
		for _, n := range []int{0, s.instances} {
			line, err := s.idle(ctx, stage, ledger, n)
			if err != nil {
				return fmt.Errorf("%d sleep on %s: %w", n, ledger, err)
			}
			fmt.Fprintf(people, "%+v\n", line)
			lines = append(lines, line)
		}
		line, err := s.together(ctx, stage, ledger)
		if err != nil {
			return fmt.Errorf("%d fall due on %s: %w", s.due, ledger, err)
		}
		fmt.Fprintf(people, "%+v\n", line)
		lines = append(lines, line)
	}
	writeSleep(people, lines)
	return report.WriteJSON(out, lines)
}

func writeSleep(people io.Writer, lines []sleepLine) {
	w := tabwriter.NewWriter(people, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ledger\tinstances\tCPU ms a minute\tof the database\tcommits a minute\tgone on per second\tlimit\ttwice\tfurthest place overtaken")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%.3f\n", l.Ledger, l.Instances, l.CPU, l.DB, l.Commits, l.PerSecond, l.Limit, l.Twice, l.Overtaken)
	}
	w.Flush()
}

// sleepers runs a process over the ledger at address while fn does, with a saga of one step that is told of each request.
func (s sleeping) sleepers(ctx context.Context, address string, sent func(work string), fn func(context.Context, *coordinator.Coordinator) error) error {
	db, err := store.Open(ctx, address, &store.Options{Migrate: true})
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	o := &coordinator.Options{Log: log, Destinations: map[string]coordinator.Limit{"bank": {PerSecond: s.perSecond, Burst: int(s.perSecond / 10)}}}
	c, err := coordinator.New(db, o)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	d, err := saga.Define("sleep", 1, saga.Do("send", func(_ context.Context, call saga.Call[int]) (string, error) {
		sent(call.Work)
		return call.Key, nil
	}).Idempotent().NoUndo("nothing was made").To("bank"))
	if err == nil {
		err = c.Register(ctx, d)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	g, running := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(running)
	g.Go(func() error { return c.Run(running) })
	g.Go(func() error { defer stop(); return fn(running, c) })
	return errors.Join(g.Wait(), db.Close())
}

// begun starts n instances for later, with the numbers of their order.
func begun(ctx context.Context, c *coordinator.Coordinator, n int, at func(i int) time.Time) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1024)
	for i := range n {
		g.Go(func() error {
			_, err := c.Start(ctx, "sleep", strconv.Itoa(i), i, &saga.StartOptions{NotBefore: at(i)})
			return err
		})
	}
	return g.Wait()
}

// idle measures a process beside n instances that sleep for a year.
func (s sleeping) idle(ctx context.Context, stage *stage, ledger string, n int) (line sleepLine, err error) {
	line = sleepLine{Ledger: ledger, Instances: n}
	address, remove, err := stage.fresh(ctx, ledger)
	if err != nil {
		return line, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	year := time.Now().AddDate(1, 0, 0)
	fill := func(ctx context.Context, c *coordinator.Coordinator) error {
		return begun(ctx, c, n, func(int) time.Time { return year })
	}
	none := func(string) {}
	if err := errors.Join(s.sleepers(ctx, address, none, fill), stage.settle(ctx)); err != nil {
		return line, err
	}
	return line, s.sleepers(ctx, address, none, func(ctx context.Context, _ *coordinator.Coordinator) error {
		return s.watched(ctx, stage, address, &line)
	})
}

// watched measures the process, which is idle, and its database.
func (s sleeping) watched(ctx context.Context, stage *stage, address string, line *sleepLine) error {
	time.Sleep(5 * time.Second) // its session is open, and what the fill left is done
	meters := []cost.Meter{cost.Process()}
	if line.Ledger == onPostgres {
		m, err := cost.OpenPostgres(ctx, address, stage.postmaster)
		if err != nil {
			return err
		}
		defer m.Close()
		meters = append(meters, m)
	}
	before, err := readAll(ctx, meters)
	if err != nil {
		return err
	}
	time.Sleep(s.watch)
	after, err := readAll(ctx, meters)
	if err != nil {
		return err
	}
	minutes := s.watch.Minutes()
	line.CPU = float64(after[0].Sub(before[0]).EngineCPU.Milliseconds()) / minutes
	if len(meters) > 1 {
		db := after[1].Sub(before[1])
		line.DB, line.Commits = float64(db.DatabaseCPU.Milliseconds())/minutes, float64(db.Commits)/minutes
	}
	return nil
}

func readAll(ctx context.Context, meters []cost.Meter) (rs []cost.Reading, err error) {
	for _, m := range meters {
		r, err := m.Read(ctx)
		if err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	return rs, nil
}

// together has instances fall due, one after the other, while no process lives, and measures how they go on.
func (s sleeping) together(ctx context.Context, stage *stage, ledger string) (line sleepLine, err error) {
	line = sleepLine{Ledger: ledger, Instances: s.due, Limit: s.perSecond}
	address, remove, err := stage.fresh(ctx, ledger)
	if err != nil {
		return line, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	first := time.Now().Add(time.Minute)
	fill := func(ctx context.Context, c *coordinator.Coordinator) error {
		return begun(ctx, c, s.due, func(i int) time.Time { return first.Add(time.Duration(i) * 10 * time.Microsecond) })
	}
	if err := errors.Join(s.sleepers(ctx, address, func(string) {}, fill), stage.settle(ctx)); err != nil {
		return line, err
	}
	last := first.Add(time.Duration(s.due) * 10 * time.Microsecond)
	if late := time.Since(first); late > 0 {
		return line, fmt.Errorf("the instances were started %s after they were due: fewer, or a faster disk", late)
	}
	time.Sleep(time.Until(last) + time.Second)
	var place, twice atomic.Int64
	var furthest atomic.Int64
	seen := make([]atomic.Bool, s.due)
	done := make(chan struct{})
	var begin time.Time
	sent := func(work string) {
		i, _ := strconv.Atoi(work) // it is one of ours
		if seen[i].Swap(true) {
			twice.Add(1)
			return
		}
		n := place.Add(1)
		for away := max(n-int64(i), int64(i)-n); ; {
			if most := furthest.Load(); away <= most || furthest.CompareAndSwap(most, away) {
				break
			}
		}
		if n == int64(s.due) {
			close(done)
		}
	}
	err = s.sleepers(ctx, address, sent, func(ctx context.Context, _ *coordinator.Coordinator) error {
		begin = time.Now()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	line.PerSecond, line.Twice = float64(s.due)/time.Since(begin).Seconds(), twice.Load()
	line.Overtaken = float64(furthest.Load()) / float64(s.due)
	return line, err
}
