// Command charge-and-provision sells servers. An order comes by a signed webhook; the customer is charged, the order is placed, and a
// provisioner is asked for a server, which it makes in its own time and calls back: early, late, twice, or never. What fails, at
// whichever step, is undone: the server is released, the order is cancelled, the money is paid back.
//
//	go run ./examples/charge-and-provision
//	go run ./examples/charge-and-provision -db postgres://… -orders 100 -seed 7
//
// The partners fail and lie, and the program that runs the saga is killed again and again. In the end the partners are asked what they
// have. Large orders wait for two people of finance before money moves. saga.go is the saga, worker.go the program around it.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/charge-and-provision/outside"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// patience is how long a server may take.
const patience = 6 * time.Second

// workerEnv makes this program a worker: DATABASE PARTNERS PUBLIC PATIENCE.
const workerEnv = "AMENDS_EXAMPLE_WORKER"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := start(ctx, os.Args[1:], os.Stdout)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the deferred only stops what ends with the process
	}
}

func start(ctx context.Context, args []string, out io.Writer) error {
	if s := strings.Fields(os.Getenv(workerEnv)); len(s) == 4 {
		patience, err := time.ParseDuration(s[3])
		if err != nil {
			return err
		}
		return work(ctx, settings{s[0], s[1], s[2], patience})
	}
	flags := flag.NewFlagSet("charge-and-provision", flag.ContinueOnError)
	orders, seed := flags.Int("orders", 26, "how many customers order"), flags.Uint64("seed", uint64(time.Now().UnixNano()), "of the faults and the kills")
	db := flags.String("db", "", "a SQLite file, or postgres://…; without it a new file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *db == "" {
		dir, err := os.MkdirTemp("", "amends-provision-")
		if err != nil {
			return err
		}
		*db = filepath.Join(dir, "amends.db")
	}
	return play(ctx, *db, *orders, *seed, patience, out)
}

// play lets customers order, kills the workers meanwhile, and asks the partners in the end.
func play(ctx context.Context, db string, orders int, seed uint64, patience time.Duration, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	fmt.Fprintf(out, "%d customers order, seed %d. The ledger is %s; to look at one: go run ./cmd/amends --db %[3]s show shop:order:1\n", orders, seed, shown(db))
	c := &crew{ctx: ctx, db: db, rng: rand.New(rand.NewPCG(seed, 1)), size: 1} //nolint:gosec // a story, told again by its seed
	if strings.HasPrefix(db, "postgres") {
		c.size = 2 // a SQLite file belongs to one process
	}
	front := httptest.NewServer(c.door())
	defer front.Close()
	w := outside.New(seed, orders, front.URL)
	defer w.Close()
	defer c.end()
	c.say = workerEnv + "=" + strings.Join([]string{db, w.URL, front.URL, patience.String()}, " ")
	if err := c.hire(); err != nil {
		return err
	}
	sold := make(chan error, 1)
	go func() { sold <- w.Sell(ctx) }()
	for range 6 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(400+c.rng.IntN(900)) * time.Millisecond):
		}
		if err := c.replace(); err != nil {
			return err
		}
	}
	if err := <-sold; err != nil {
		return err
	}
	fmt.Fprintf(out, "Every webhook is taken. %d workers were killed meanwhile; what is left is finished without.\n", c.killed)
	status, err := c.settle(w.Orders())
	if err != nil {
		return err
	}
	w.Wait()
	return report(w, c, status, out)
}

func shown(db string) string {
	if u, err := url.Parse(db); err == nil && u.User != nil {
		return u.Redacted()
	}
	return db
}

// report says what the partners have, and whether it is right.
func report(w *outside.World, c *crew, status map[saga.Status]int, out io.Writer) error {
	served, spared, wrongs := w.Audit()
	fmt.Fprintf(out, "\nThe ledger: %d sagas completed, %d compensated, %d in review.\n", status[saga.Completed], status[saga.Compensated], status[saga.Review])
	fmt.Fprintf(out, "The partners: %d customers are served, each charged once, with one server.\n", served)
	for _, why := range slices.Sorted(maps.Keys(spared)) {
		fmt.Fprintf(out, "  %d got nothing and paid nothing: %s\n", spared[why], why)
	}
	fmt.Fprintf(out, "Callbacks: %d sent once, %d twice, %d lost, %d with a token that nothing gave out.\n", w.Once, w.Twice, w.Lost, w.Forged)
	fmt.Fprintf(out, "Finance: %d mails asked about large orders, %d votes were taken, %d of people without one, or on something else, were not.\n", w.Mails, w.Votes, w.Refused)
	fmt.Fprintf(out, "Faults: %d requests failed before or behind their effect, %d workers were killed.\n", w.Faults, c.killed)
	if len(wrongs) > 0 {
		return fmt.Errorf("the audit found what must not be:\n  %s", strings.Join(wrongs, "\n  "))
	}
	fmt.Fprintln(out, "Nothing was done twice, nothing is left over: the audit is clean.")
	return nil
}

// crew are the workers: processes of this program.
type crew struct {
	ctx  context.Context
	db   string
	say  string // what a worker is told
	size int
	rng  *rand.Rand

	killed int

	mu      sync.Mutex
	workers []*worker
	next    int
}

type worker struct {
	cmd *exec.Cmd
	at  *url.URL
}

// door brings what comes from outside to a worker, as a load balancer does.
func (c *crew) door() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.workers) > 0 {
				c.next++
				r.SetURL(c.workers[c.next%len(c.workers)].at)
			}
		},
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(rw, "no worker", http.StatusBadGateway)
		},
	}
}

// hire starts workers until there are enough.
func (c *crew) hire() error {
	for {
		c.mu.Lock()
		n := len(c.workers)
		c.mu.Unlock()
		if n >= c.size {
			return nil
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(c.ctx, self)
		cmd.Env, cmd.Stderr = append(os.Environ(), c.say), os.Stderr
		said, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		line, err := bufio.NewReader(said).ReadString('\n')
		if err != nil {
			return errors.Join(fmt.Errorf("a worker did not start: %w", err), cmd.Wait())
		}
		at, err := url.Parse(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.workers = append(c.workers, &worker{cmd, at})
		c.mu.Unlock()
	}
}

// replace kills one worker, and starts another.
func (c *crew) replace() error {
	c.mu.Lock()
	i := c.rng.IntN(len(c.workers))
	w := c.workers[i]
	c.workers = slices.Delete(c.workers, i, i+1)
	c.mu.Unlock()
	c.killed++
	_ = w.cmd.Process.Kill() // SIGKILL: it has no time to say goodbye
	_ = w.cmd.Wait()
	return c.hire()
}

// end kills all of them.
func (c *crew) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	}
	c.workers = nil
}

// settle waits until every saga is at rest, and counts where they stand.
func (c *crew) settle(orders int) (map[saga.Status]int, error) {
	db, err := store.Open(c.ctx, c.db, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	op := coordinator.NewOperator(db)
	for {
		status := map[saga.Status]int{}
		for s, err := range op.List(c.ctx, coordinator.Filter{Saga: "charge-and-provision"}) {
			if err != nil {
				return nil, err
			}
			status[s.Status]++
		}
		if status[saga.Completed]+status[saga.Compensated]+status[saga.Review] == orders {
			return status, nil
		}
		select {
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
