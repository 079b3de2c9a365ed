package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// These variables make a test binary a child that runs jobs until it is killed.
const (
	childStore = "AMENDS_SCHEDULE_CHILD" // the address of the store
	childLog   = "AMENDS_SCHEDULE_LOG"   // the file to which every process appends
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // what is not under test logs to no reader
	address := os.Getenv(childStore)
	if address == "" {
		m.Run()
		return
	}
	if err := child(address, os.Getenv(childLog)); err != nil {
		panic(err)
	}
}

// database is a store on a database.
type database interface {
	schedule.Store
	schedule.Reader
	Close() error
}

func openAt(ctx context.Context, address string) (database, error) {
	if strings.HasPrefix(address, "postgres") {
		return postgres.Open(ctx, address, nil)
	}
	return sqlite.Open(ctx, address, nil)
}

// childLease is short, so that a test sees many takeovers, and long enough for a machine that is
// busy.
const childLease = 3 * time.Second

// child runs the jobs until it is told to stop, or killed.
func child(address, log string) error {
	schedule.SetShortest(time.Second)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := openAt(ctx, address)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	w := &writer{file}
	r, err := schedule.New(store, w.jobs(), &schedule.Options{Poll: 200 * time.Millisecond, Listener: &schedule.Listener{
		Ended: func(r *schedule.RunRow) {
			if r.Attempt > 0 {
				w.line("ended", r.Job, r.Fence, r.Instant)
			}
		},
	}})
	if err == nil {
		err = r.Run(ctx)
	}
	return errors.Join(err, store.Close(), file.Close())
}

// writer appends lines, each in one write.
type writer struct{ file *os.File }

func (w *writer) line(what, job string, fence int64, rest string) {
	if _, err := fmt.Fprintf(w.file, "%s %s %d %d %s\n", what, job, fence, os.Getpid(), rest); err != nil {
		panic(err)
	}
}

// jobs are due every second: one is quick, one is slower than its schedule and waits, one outlives
// its lease.
func (w *writer) jobs() []schedule.Job {
	var jobs []schedule.Job
	for name, most := range map[string]int{"quick": 3, "slow": 30, "long": 100} {
		j := schedule.Job{
			Name: name, Schedule: "@every 1s", Lease: childLease, Approved: true,
			Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
				return w.work(ctx, r, rand.IntN(most))
			},
		}
		if name == "slow" {
			j.Overlap = schedule.BufferOne
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// work takes steps, and says so before and behind.
func (w *writer) work(ctx context.Context, r *schedule.Run, steps int) (schedule.Outcome, error) {
	w.line("begin", r.Job, r.Fence, r.Instant)
	for n := range steps {
		if err := r.Proceed(ctx); err != nil {
			return schedule.Outcome{}, err
		}
		w.line("step", r.Job, r.Fence, r.Instant)
		r.Report(schedule.Outcome{Seen: int64(n)})
		if err := rest(ctx, 50*time.Millisecond); err != nil {
			return schedule.Outcome{}, err
		}
	}
	if err := r.Proceed(ctx); err != nil {
		return schedule.Outcome{}, err
	}
	w.line("end", r.Job, r.Fence, r.Instant)
	return schedule.Outcome{Result: schedule.OK, Seen: int64(steps)}, nil
}
