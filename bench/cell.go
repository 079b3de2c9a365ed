package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/bench/report"
	"github.com/amends-dev/amends/bench/workload"
)

// maxSagas is how many sagas one cell can count, warm-up included.
const maxSagas = 4 << 20

// patience is how long a cell may take beyond its load. It opens a ledger, waits
// for the last sagas and closes again.
const patience = 2 * time.Minute

var errStuck = errors.New("it did not end; its goroutines are above")

// A cell is one engine at one load in one round. It runs in a process of its
// own, which reads it from its argument and prints a report.Sample.
type cell struct {
	Ledger     string
	Engine     string
	Address    string // of the ledger
	Postmaster int    // process id, 0 if unknown
	Round      int
	First      int // number of the first saga
	InFlight   int
	WarmUp     time.Duration
	Duration   time.Duration
	Profile    string // file for a CPU profile, "" for none

	program string // another build of this program, which runs the cell; "": this one
}

// start runs the cell in a process of its own and returns what it measured.
func (c cell) start(ctx context.Context) (s report.Sample, err error) {
	program := c.program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return s, err
		}
	}
	arg, err := json.Marshal(c)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.WarmUp+c.Duration+patience, errStuck)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "cell", string(arg))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it tells where it was
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		if context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		return s, fmt.Errorf("%s on %s, %d in flight: %w", c.Engine, c.Ledger, c.InFlight, err)
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("%s printed no sample: %w", c.Engine, err)
	}
	return s, nil
}

func cellCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "cell JSON",
		Short:  "Measure one engine at one load; the other commands start this",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c cell
			if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
				return err
			}
			stop, err := c.profile()
			if err != nil {
				return err
			}
			sample, err := c.measure(cmd.Context())
			if err := errors.Join(err, stop()); err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(sample)
		},
	}
}

// profile starts the CPU profile, if one is wanted.
func (c cell) profile() (stop func() error, err error) {
	if c.Profile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(c.Profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// measure runs the load in this process.
func (c cell) measure(ctx context.Context) (report.Sample, error) {
	e, err := find(c.Ledger, c.Engine)
	if err != nil {
		return report.Sample{}, err
	}
	steps := workload.NewSteps(c.First, maxSagas)
	engine, err := e.open(ctx, c.Address, steps)
	if err != nil {
		return report.Sample{}, err
	}
	meter, err := c.meter(ctx)
	if err != nil {
		return report.Sample{}, errors.Join(err, engine.Close())
	}
	load := workload.Load{InFlight: c.InFlight, WarmUp: c.WarmUp, Duration: c.Duration, First: c.First}
	result, err := load.Drive(ctx, engine, steps, meter)
	if err := errors.Join(err, meter.Close()); err != nil {
		return report.Sample{}, err
	}
	return c.sample(e, result)
}

func (c cell) meter(ctx context.Context) (cost.Meter, error) {
	if c.Ledger == onPostgres {
		return cost.OpenPostgres(ctx, c.Address, c.Postmaster)
	}
	return cost.OpenSQLite(c.Address)
}

// sample turns what was measured into figures per saga.
func (c cell) sample(e entry, r workload.Result) (report.Sample, error) {
	if r.Sagas == 0 {
		return report.Sample{}, errors.New("not one saga ended in the measured time")
	}
	memory, err := cost.PeakMemory()
	if err != nil {
		return report.Sample{}, err
	}
	n := float64(r.Sagas)
	return report.Sample{
		Ledger:         e.ledger,
		Engine:         e.name,
		Role:           e.role,
		Round:          c.Round,
		InFlight:       c.InFlight,
		Sagas:          r.Sagas,
		SagasPerSecond: n / r.Wall.Seconds(),
		P50:            milliseconds(r.P50),
		P99:            milliseconds(r.P99),
		Commits:        float64(r.Cost.Commits) / n,
		LogBytes:       float64(r.Cost.LogBytes) / n,
		EngineCPU:      milliseconds(r.Cost.EngineCPU) / n,
		DatabaseCPU:    milliseconds(r.Cost.DatabaseCPU) / n,
		PeakMemory:     float64(memory) / (1 << 20),
	}, nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
