package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/amends"
	"github.com/amends-dev/amends/bench/workload"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/postgres"
)

// processEnv tells the test binary to be a process of a ledger.
const processEnv = "AMENDS_BENCH_PROCESS"

// process is one that is killed, or goes on for one that was.
type process struct {
	Saga    string // resume, answers or load
	Address string // of the ledger
	LockDir string // of [postgres.Options]; "" for a SQLite ledger, and for the default
	Step    string // what the step of the saga is
	Start   int    // so many instances are started, and their requests are never answered; 0: it goes on for another
	Again   int    // so many are submitted again, as a client does that did not hear of their end
	First   int    // the number of its first saga, of load
}

// What a process tells of itself, a line for each.
const (
	running  = "running"   // it has its session
	inFlight = "in flight" // every instance that it started has sent its request; of load: what warms it up is over
	ended    = "ended"     // of all, behind their last line
)

// beProcess is the process that an environment describes, until it is killed.
func beProcess(ctx context.Context, text string) error {
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	switch p.Saga {
	case "answers":
		return p.answer(ctx)
	case "load":
		return p.load(ctx)
	default:
		return p.resume(ctx)
	}
}

// start starts the process. heard is told each line of its.
func (p process) start(ctx context.Context, heard func(line string)) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env, cmd.Stderr = append(os.Environ(), processEnv+"="+string(arg)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for said := bufio.NewScanner(out); said.Scan(); {
			heard(said.Text())
		}
		heard(ended)
	}()
	return cmd, nil
}

// kill ends a process as kill -9 does, once.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
}

// BenchmarkProcesses is 1, 2 and 4 processes on one Postgres, 1,024 sagas in flight in all. One iteration is one second: -benchtime 10x.
// Whether a step ran twice is not looked at: they are killed, and go on with each other's.
func BenchmarkProcesses(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			b.StopTimer()
			address := fresh(b, onPostgres)
			db := database(b, onPostgres, address, "")
			defer db.Close()
			told := make(chan string, 2*n)
			for i := range n {
				cmd, err := process{Saga: "load", Address: address, Start: 1024 / n, First: i * mostSagas}.start(b.Context(), func(line string) { told <- line })
				must(b, err)
				defer kill(cmd)
			}
			for range n {
				if <-told == ended {
					b.Fatal("a process ended")
				}
			}
			time.Sleep(time.Second) // all are in flight again
			settle(b)
			completed := func() (there int) {
				must(b, db.GetContext(b.Context(), &there, `SELECT count(*) FROM amends_instances WHERE status = 'completed'`))
				return there
			}
			before := completed()
			b.StartTimer()
			time.Sleep(time.Duration(b.N) * time.Second)
			after := completed()
			b.StopTimer()
			if len(told) > 0 {
				b.Fatal("a process ended")
			}
			report(b, map[string]float64{"sagas/s": float64(after-before) / b.Elapsed().Seconds()})
		})
	}
}

// mostSagas is how many sagas a process of [BenchmarkProcesses] runs at most.
const mostSagas = 1_000_000

// load keeps p.Start sagas in flight.
func (p process) load(ctx context.Context) error {
	steps, free := workload.NewSteps(0, 4*mostSagas) // they go on with each other's, too
	defer free()
	e, err := amends.Open(ctx, p.Address, steps, amends.Variant{})
	if err != nil {
		return err
	}
	s := subject{do: func(ctx context.Context, i int) error { return e.Run(ctx, workload.NewSaga(p.First+i)) }}
	if _, err := s.loop(ctx, 0, warm(p.Start), p.Start, nil); err != nil {
		return err
	}
	fmt.Println(inFlight)
	_, err = s.loop(ctx, warm(p.Start), mostSagas-warm(p.Start), p.Start, nil)
	return errors.Join(err, e.Close())
}

// over runs a coordinator with a saga over the ledger at address while fn does.
func over(ctx context.Context, db store.DB, opts coordinator.Options, d saga.Program, fn func(context.Context, *coordinator.Coordinator) error) error {
	log := logrus.New()
	log.SetOutput(io.Discard)
	opts.Log = log
	c, err := coordinator.New(db, &opts) //nolint:contextcheck // it ends with its Run
	if err == nil {
		err = c.Register(ctx, d)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	g.Go(func() error { return c.Run(ctx) })
	g.Go(func() error { defer stop(); return fn(ctx, c) })
	return errors.Join(g.Wait(), db.Close())
}

// begun starts n instances.
func begun(ctx context.Context, c *coordinator.Coordinator, name string, n int, opts func(i int) *saga.StartOptions) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1024)
	for i := range n {
		g.Go(func() error {
			_, err := c.Start(ctx, name, fmt.Sprint(i), i, opts(i))
			return err
		})
	}
	return g.Wait()
}

func atOnce(int) *saga.StartOptions { return nil }

func open(tb testing.TB, address string) store.DB {
	tb.Helper()
	db, err := store.Open(context.Background(), address, &store.Options{Migrate: true})
	must(tb, err)
	return db
}

func (p process) open(ctx context.Context) (store.DB, error) {
	if p.LockDir == "" {
		return store.Open(ctx, p.Address, &store.Options{Migrate: true})
	}
	return postgres.Open(ctx, p.Address, &postgres.Options{Migrate: true, LockDir: p.LockDir})
}
