package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/cost"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// limit is how many requests a second the bank takes.
const limit = 2000

// sleepers runs a process over the ledger at address while fn does, with a saga of one step that is told of each request.
func sleepers(b *testing.B, address string, sent func(work string), fn func(context.Context, *coordinator.Coordinator) error) {
	b.Helper()
	d, err := saga.Define("sleep", 1, saga.Do("send", func(_ context.Context, call saga.Call[int]) (string, error) {
		sent(call.Work)
		return call.Key, nil
	}).Idempotent().NoUndo("nothing was made").To("bank"))
	must(b, err)
	bank := map[string]coordinator.Limit{"bank": {PerSecond: limit, Burst: limit / 10}}
	must(b, over(b.Context(), open(b, address), coordinator.Options{Destinations: bank}, d, fn))
}

func unheard(string) {}

// BenchmarkAsleep is what an idle process costs beside none and a million instances that sleep for a year, watched for half a
// minute. One iteration is one watch: -benchtime 1x.
func BenchmarkAsleep(b *testing.B) {
	for _, ledger := range ledgers {
		for _, n := range []int{0, number(b, "INSTANCES", 1_000_000)} {
			b.Run(fmt.Sprintf("ledger=%s/asleep=%d", ledger, n), func(b *testing.B) {
				address, year := fresh(b, ledger), time.Now().AddDate(1, 0, 0)
				sleepers(b, address, unheard, func(ctx context.Context, c *coordinator.Coordinator) error {
					return begun(ctx, c, "sleep", n, func(int) *saga.StartOptions { return &saga.StartOptions{NotBefore: year} })
				})
				settle(b)
				sleepers(b, address, unheard, func(ctx context.Context, _ *coordinator.Coordinator) error { return idle(ctx, b, ledger, address) })
			})
		}
	}
}

// idle reports what the process, which does nothing, and its database take for that.
func idle(ctx context.Context, b *testing.B, ledger, address string) (err error) {
	b.Helper()
	time.Sleep(5 * time.Second) // its session is open, and what came before is done
	m := cost.Process()
	if ledger == onPostgres {
		if m, err = cost.OpenPostgres(ctx, address, place.pid); err != nil {
			return err
		}
		defer m.Close()
	}
	before, err := m.Read(ctx)
	if err != nil {
		return err
	}
	const watch = 30 * time.Second
	time.Sleep(watch)
	after, err := m.Read(ctx)
	if err != nil {
		return err
	}
	spent := after.Sub(before)
	report(b, map[string]float64{
		"cpu-ms/min": ms(spent.EngineCPU) / watch.Minutes(), "db-cpu-ms/min": ms(spent.DatabaseCPU) / watch.Minutes(), "commits/min": float64(spent.Commits) / watch.Minutes(),
	})
	return nil
}

// line is in what order instances go on that have one.
type line struct {
	seen            []atomic.Bool
	place           atomic.Int64
	twice, furthest atomic.Int64
	done            chan struct{}
}

func (l *line) sent(work string) {
	i, _ := strconv.Atoi(work) // it is one of ours
	if l.seen[i].Swap(true) {
		l.twice.Add(1)
		return
	}
	n := l.place.Add(1)
	for away := max(n-int64(i), int64(i)-n); ; {
		if most := l.furthest.Load(); away <= most || l.furthest.CompareAndSwap(most, away) {
			break
		}
	}
	if n == int64(len(l.seen)) {
		close(l.done)
	}
}

// BenchmarkDueTogether is how INSTANCES (100,000) go on that fell due one after the other while no process lived, at a
// destination that takes 2,000 requests a second; and how far from its place in the line the furthest went, as a part of all.
// -benchtime 1x.
func BenchmarkDueTogether(b *testing.B) {
	n := number(b, "INSTANCES", 100_000)
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			b.StopTimer()
			address, first := fresh(b, ledger), time.Now().Add(time.Minute)
			due := func(i int) time.Time { return first.Add(time.Duration(i) * 10 * time.Microsecond) }
			sleepers(b, address, unheard, func(ctx context.Context, c *coordinator.Coordinator) error {
				return begun(ctx, c, "sleep", n, func(i int) *saga.StartOptions { return &saga.StartOptions{NotBefore: due(i)} })
			})
			settle(b)
			if late := time.Since(first); late > 0 {
				b.Fatalf("the instances were started %s after they were due: fewer, or a faster disk", late)
			}
			time.Sleep(time.Until(due(n)) + time.Second)
			l := &line{seen: make([]atomic.Bool, n), done: make(chan struct{})}
			b.StartTimer()
			sleepers(b, address, l.sent, func(ctx context.Context, _ *coordinator.Coordinator) error {
				select {
				case <-l.done:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			b.StopTimer()
			if l.twice.Load() > 0 {
				b.Errorf("%d instances went on twice", l.twice.Load())
			}
			report(b, map[string]float64{"instances/s": float64(n) / b.Elapsed().Seconds(), "furthest-overtaken": float64(l.furthest.Load()) / float64(n)})
		})
	}
}

// waiters are options and saga of instances that wait for a callback each.
func waiters(token, sent func(work, token string)) (coordinator.Options, saga.Program, error) {
	d, err := saga.Define("wait", 1,
		saga.Do("submit", func(_ context.Context, call saga.Call[int]) (string, error) {
			token(call.Work, call.CallbackToken())
			return call.Key, nil
		}).Idempotent().NoUndo("nothing was made"),
		saga.Await("answer", func(_ saga.Call[int], m saga.Message) (out string, err error) {
			return out, json.Unmarshal(m.Body, &out)
		}).Callback("submit").Within(24*time.Hour, saga.Compensate),
		saga.Do("finish", func(_ context.Context, call saga.Call[int]) (string, error) {
			sent(call.Work, "")
			return call.Key, nil
		}).Idempotent().NoUndo("nothing was made"))
	return coordinator.Options{Lease: 3 * time.Second, CallbackSecrets: [][]byte{[]byte("a secret of the benchmark")}}, d, err
}

// answer is a process of the storm, which says each request behind the wait in a line.
func (p process) answer(ctx context.Context) error {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	opts, d, err := waiters(func(string, string) {}, func(work, _ string) { fmt.Println(work) })
	if err != nil {
		return err
	}
	return over(ctx, db, opts, d, func(ctx context.Context, _ *coordinator.Coordinator) error {
		<-ctx.Done()
		return nil
	})
}

// BenchmarkAnswers is INSTANCES (100,000) that wait for callbacks: an idle process beside them, and then five callbacks for each in
// any order, 64 at a time, while three processes are killed. Each wait must end once. -benchtime 1x.
func BenchmarkAnswers(b *testing.B) {
	n := number(b, "INSTANCES", 100_000)
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			b.StopTimer()
			address, tokens := fresh(b, ledger), make([]string, n)
			note := func(work, token string) {
				i, _ := strconv.Atoi(work) // it is one of ours
				tokens[i] = token
			}
			opts, d, err := waiters(note, func(string, string) {})
			must(b, err)
			must(b, over(b.Context(), open(b, address), opts, d, func(ctx context.Context, c *coordinator.Coordinator) error {
				if err := begun(ctx, c, "wait", n, atOnce); err != nil {
					return err
				}
				return until(ctx, c, saga.Waiting, n)
			}))
			settle(b)
			must(b, over(b.Context(), open(b, address), opts, d, func(ctx context.Context, _ *coordinator.Coordinator) error {
				return idle(ctx, b, ledger, address)
			}))
			storm(b, ledger, address, tokens)
		})
	}
}

// lister is a coordinator or an operator.
type lister interface {
	List(ctx context.Context, f coordinator.Filter) iter.Seq2[coordinator.Instance, error]
}

// until waits until n instances have a status.
func until(ctx context.Context, op lister, status saga.Status, n int) error {
	for there := 0; there < n; {
		time.Sleep(time.Second)
		there = 0
		for _, err := range op.List(ctx, coordinator.Filter{Status: status}) {
			if there++; err != nil {
				return err
			}
		}
	}
	return nil
}

// storm calls back. The timer runs until the last callback is acknowledged.
func storm(b *testing.B, ledger, address string, tokens []string) {
	b.Helper()
	db := open(b, address)
	defer db.Close()
	op := coordinator.NewOperator(db)
	var seen sync.Map
	var again atomic.Int64
	var crew []*exec.Cmd
	hire := func() {
		cmd, err := process{Saga: "answers", Address: address}.start(b.Context(), func(work string) {
			if _, before := seen.LoadOrStore(work, true); before && work != ended {
				again.Add(1)
			}
		})
		must(b, err)
		crew = append(crew, cmd)
	}
	fire := func() {
		kill(crew[0])
		crew = crew[1:]
	}
	defer func() {
		for len(crew) > 0 {
			fire()
		}
	}()
	hire()
	if ledger == onPostgres { // a file belongs to one process
		hire()
		hire()
	}
	const kills, times = 3, 5
	order := rand.Perm(len(tokens) * times)
	b.StartTimer()
	for i, stride := 0, max(1, len(order)/(kills+1)); i < len(order); i += stride {
		g, ctx := errgroup.WithContext(b.Context())
		g.SetLimit(64)
		for _, n := range order[i:min(i+stride, len(order))] {
			g.Go(func() error {
				_, err := op.Complete(ctx, tokens[n%len(tokens)], []byte(`"done"`))
				return err
			})
		}
		must(b, g.Wait())
		if i/stride < kills {
			fire()
			hire()
		}
	}
	b.StopTimer()
	report(b, map[string]float64{"callbacks/s": float64(len(order)) / b.Elapsed().Seconds()})
	must(b, until(b.Context(), op, saga.Completed, len(tokens)))
	report(b, map[string]float64{"sent-again": float64(again.Load())}) // behind a kill, under their key
	for range min(len(tokens), 2000) {
		rs, err := db.History(b.Context(), saga.ID{Saga: "wait", Work: strconv.Itoa(rand.IntN(len(tokens)))})
		must(b, err)
		answered := 0
		for i := range rs {
			if rs[i].Kind == "answered" {
				answered++
			}
		}
		if answered != 1 {
			b.Errorf("a wait has %d answers on record", answered)
		}
	}
}

// BenchmarkCallback is what lies between a callback and the next step, IN_FLIGHT (64) instances in flight, each called back within WITHIN_MS (600) of its
// request: by the process that has the instance, and by another handle of the ledger. On Postgres it counts transactions, too: a statement of
// its own is one. One iteration is one instance.
func BenchmarkCallback(b *testing.B) {
	for _, ledger := range ledgers {
		for _, by := range []string{"itself", "another"} {
			if ledger == onSQLite && by == "another" {
				continue // there is only one
			}
			b.Run(fmt.Sprintf("ledger=%s/by=%s", ledger, by), func(b *testing.B) {
				b.StopTimer()
				address, within := fresh(b, ledger), time.Duration(number(b, "WITHIN_MS", 600))*time.Millisecond
				called, took := make([]atomic.Int64, b.N), make([]time.Duration, b.N)
				var op func(context.Context, string, []byte) (coordinator.Ack, error)
				back := func(work, token string) {
					i, _ := strconv.Atoi(work) // it is one of ours
					time.AfterFunc(rand.N(within), func() {
						called[i].Store(time.Now().UnixNano())
						_, err := op(b.Context(), token, []byte(`"done"`))
						if err != nil {
							b.Error(err)
						}
					})
				}
				opts, d, err := waiters(back, func(work, _ string) {
					i, _ := strconv.Atoi(work)
					took[i] = time.Duration(time.Now().UnixNano() - called[i].Load())
				})
				must(b, err)
				other := open(b, address)
				defer other.Close()
				before := transactions(b, ledger, address)
				must(b, over(b.Context(), open(b, address), opts, d, func(ctx context.Context, c *coordinator.Coordinator) error {
					if op = c.Complete; by == "another" {
						op = coordinator.NewOperator(other).Complete
					}
					g, ctx := errgroup.WithContext(ctx)
					g.SetLimit(number(b, "IN_FLIGHT", 64))
					b.StartTimer()
					for i := range b.N {
						g.Go(func() error {
							_, err := c.Start(ctx, "wait", strconv.Itoa(i), i, nil)
							if err == nil {
								_, err = c.Wait(ctx, "wait", strconv.Itoa(i))
							}
							return err
						})
					}
					err := g.Wait()
					b.StopTimer()
					return err
				}))
				slices.Sort(took)
				all := map[string]float64{"p50-ms": ms(took[len(took)/2]), "p99-ms": ms(took[len(took)*99/100])}
				if ledger == onPostgres {
					all["transactions/saga"] = float64(transactions(b, ledger, address)-before) / float64(b.N)
				}
				report(b, all)
			})
		}
	}
}

// transactions is how many the server has ended; 0 of a file.
func transactions(b *testing.B, ledger, address string) (n int64) {
	b.Helper()
	if ledger != onPostgres {
		return 0
	}
	db := database(b, ledger, address, "")
	must(b, db.GetContext(b.Context(), &n, `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`), db.Close())
	return n
}

// BenchmarkInFlight is what a process holds for INSTANCES (10,000) whose one request hangs: heap and stacks behind a collection. -benchtime 1x.
func BenchmarkInFlight(b *testing.B) {
	n := number(b, "INSTANCES", 10_000)
	for _, ledger := range ledgers {
		b.Run("ledger="+ledger, func(b *testing.B) {
			var sent atomic.Int64
			all := make(chan struct{})
			d, err := saga.Define("hang", 1, saga.Do("send", func(ctx context.Context, _ saga.Call[string]) (string, error) {
				if sent.Add(1) == int64(n) {
					close(all)
				}
				<-ctx.Done()
				return "", ctx.Err()
			}).Idempotent().NoUndo("nothing was made").Timeout(time.Hour))
			must(b, err)
			input := strings.Repeat("x", 200)
			err = over(b.Context(), open(b, fresh(b, ledger)), coordinator.Options{MaxWorks: n, Drain: time.Millisecond}, d, func(ctx context.Context, c *coordinator.Coordinator) error {
				g, ctx := errgroup.WithContext(ctx)
				g.SetLimit(1024)
				for i := range n {
					g.Go(func() error {
						_, err := c.Start(ctx, "hang", strconv.Itoa(i), input, nil)
						return err
					})
				}
				if err := g.Wait(); err != nil {
					return err
				}
				<-all
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				report(b, map[string]float64{"heap-MB": float64(m.HeapAlloc) / 1e6, "stacks-MB": float64(m.StackInuse) / 1e6, "goroutines": float64(runtime.NumGoroutine())})
				return nil
			})
			if err != nil && !strings.Contains(err.Error(), "did not come to rest") { // they hang
				b.Fatal(err)
			}
		})
	}
}
