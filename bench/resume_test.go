package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// Who goes on for a process that was killed.
const (
	restart = "restart" // on the same host
	client  = "client"  // the same, and its client submits every key again and waits for it
	another = "another" // which runs already, of another host
)

// BenchmarkResume is kill -9 with INSTANCES (2,000) in flight: seconds until another process has finished them, with everything at
// its default, but as many places as INSTANCES in the first. One iteration is one kill: -benchtime 1x.
func BenchmarkResume(b *testing.B) {
	n := number(b, "INSTANCES", 2000)
	for _, ledger := range ledgers {
		for _, by := range []string{restart, client, another} {
			for _, step := range []string{"Idempotent", "Keyed", "Find", "AtMostOnce"} {
				if ledger == onSQLite && by == another {
					continue // there is only one
				}
				b.Run(fmt.Sprintf("ledger=%s/by=%s/step=%s", ledger, by, step), func(b *testing.B) {
					b.StopTimer()
					for range b.N {
						killed(b, ledger, by, step, n)
					}
					report(b, map[string]float64{"s": b.Elapsed().Seconds() / float64(b.N)})
				})
			}
		}
	}
}

// killed kills a process with all its instances in flight. The timer runs until another has finished them.
func killed(b *testing.B, ledger, by, step string, n int) {
	b.Helper()
	p := process{Saga: "resume", Address: fresh(b, ledger), Step: step, Start: n}
	if by == another {
		p.LockDir = filepath.Join(os.DevNull, "none") // nothing is to be found on another host
	}
	began := func(until string) (kills func()) {
		said := make(chan struct{})
		cmd, err := p.start(b.Context(), func(line string) {
			if line == until {
				close(said)
			}
		})
		must(b, err)
		if until != "" {
			<-said
		}
		return func() { kill(cmd) }
	}
	kills := began(inFlight)
	p.Start = 0
	if by == client {
		p.Again = n
	}
	if by == another {
		defer began(running)()
	}
	b.StartTimer()
	kills()
	if by != another {
		defer began("")()
	}
	db := database(b, ledger, p.Address, "_pragma=busy_timeout(10000)&_pragma=query_only(1)")
	defer db.Close()
	status := saga.Completed
	if step == "AtMostOnce" {
		status = saga.Review
	}
	for there := 0; there < n; time.Sleep(20 * time.Millisecond) {
		must(b, db.GetContext(b.Context(), &there, `SELECT count(*) FROM amends_instances WHERE status = '`+string(status)+`'`))
	}
	b.StopTimer()
}

// resume is the process.
func (p process) resume(ctx context.Context) error {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	var sent atomic.Int64
	do := func(ctx context.Context, c saga.Call[int]) (string, error) {
		if err := c.Sending(); err != nil {
			return "", err
		}
		if p.Start == 0 {
			return fmt.Sprintf("inv_%d", c.Input), nil
		}
		if sent.Add(1) == int64(p.Start) {
			fmt.Println(inFlight)
		}
		<-ctx.Done()
		return "", ctx.Err()
	}
	step := saga.Do("invoice", do).NoUndo("it is measured, and not undone")
	switch p.Step {
	case "Idempotent":
		step.Idempotent()
	case "Keyed":
		step.Keyed(24 * time.Hour).EachRun()
	case "Find":
		step.Find(func(context.Context, saga.Call[int]) (saga.Finding[string], error) {
			return saga.NotFound[string](), nil
		}).EachRun()
	case "AtMostOnce":
		step.AtMostOnce()
	}
	d, err := saga.Define("order-to-invoice", 1, step)
	if err != nil {
		return err
	}
	opened := coordinator.Listener{SessionOpened: func(string) { fmt.Println(running) }}
	return over(ctx, db, coordinator.Options{Listener: &opened, MaxWorks: max(p.Start, 4096)}, d, func(ctx context.Context, c *coordinator.Coordinator) error {
		if err := begun(ctx, c, "order-to-invoice", p.Start, atOnce); err != nil {
			return err
		}
		if err := again(ctx, c, "order-to-invoice", p.Again); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
}

// again submits n keys that exist, all at once, and waits for the end of each.
func again(ctx context.Context, c *coordinator.Coordinator, name string, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() error {
			if _, err := c.Start(ctx, name, fmt.Sprint(i), i, nil); err != nil {
				return err
			}
			_, err := c.Wait(ctx, name, fmt.Sprint(i))
			return err
		})
	}
	return g.Wait()
}

// BenchmarkRepeats is starts of works that are known, 64 at a time: of 10,000, and all of one.
func BenchmarkRepeats(b *testing.B) {
	for _, ledger := range ledgers {
		for _, keys := range []int{10_000, 1} {
			b.Run(fmt.Sprintf("ledger=%s/keys=%d", ledger, keys), func(b *testing.B) {
				b.StopTimer()
				sleepers(b, fresh(b, ledger), unheard, func(ctx context.Context, c *coordinator.Coordinator) error {
					if err := begun(ctx, c, "sleep", keys, atOnce); err != nil {
						return err
					}
					g, ctx := errgroup.WithContext(ctx)
					g.SetLimit(64)
					b.StartTimer()
					for i := range b.N {
						g.Go(func() error {
							known, err := c.Start(ctx, "sleep", fmt.Sprint(i%keys), i%keys, nil)
							if err == nil && !known.Duplicate {
								err = fmt.Errorf("work %d is new", i%keys)
							}
							return err
						})
					}
					err := g.Wait()
					b.StopTimer()
					report(b, map[string]float64{"repeats/s": float64(b.N) / b.Elapsed().Seconds()})
					return err
				})
			})
		}
	}
}
