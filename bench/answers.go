package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/bench/report"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// answering is what `bench answers` was asked for.
type answering struct {
	instances, times, kills int
	watch                   time.Duration
	dir                     string
	ledgers                 []string
}

func answersCommand() *cobra.Command {
	var a answering
	cmd := &cobra.Command{
		Use:   "answers",
		Short: "Instances that wait for callbacks: what an idle process costs beside them, and a storm of callbacks while processes are killed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&a.instances, "instances", 100_000, "instances that wait")
	f.IntVar(&a.times, "times", 5, "callbacks for each; 0: only the idle process is watched")
	f.IntVar(&a.kills, "kills", 3, "processes that are killed meanwhile")
	f.DurationVar(&a.watch, "watch", 30*time.Second, "how long an idle process is watched")
	f.StringVar(&a.dir, "dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	f.StringSliceVar(&a.ledgers, "ledgers", []string{onSQLite, onPostgres}, "where the ledger is")
	return cmd
}

// answersLine is one line of JSON.
type answersLine struct {
	Ledger    string  `json:"ledger"`
	Instances int     `json:"instances"`
	IdleCPU   float64 `json:"idle_cpu_ms_a_minute"`
	IdleDB    float64 `json:"idle_cpu_ms_a_minute_db"`
	Callbacks int     `json:"callbacks"`
	PerSecond float64 `json:"callbacks_per_second"`
	Kills     int     `json:"kills"`
	Completed int64   `json:"completed"`
	Twice     int64   `json:"answered_twice"`
	Resent    int64   `json:"resent_after_a_kill"` // requests behind the wait that were sent again under their key
}

func (a answering) run(ctx context.Context, out, people io.Writer) (err error) {
	stage, err := openStage(ctx, a.dir, slices.Contains(a.ledgers, onPostgres))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := heading(ctx, people, stage); err != nil {
		return err
	}
	var lines []answersLine
	for _, ledger := range a.ledgers {
		line, err := a.storm(ctx, stage, ledger)
		if err != nil {
			return fmt.Errorf("%d wait on %s: %w", a.instances, ledger, err)
		}
		fmt.Fprintf(people, "%+v\n", line)
		lines = append(lines, line)
	}
	return report.WriteJSON(out, lines)
}

// waiting runs a process over the ledger at address while fn does, with a saga that waits for a callback.
func waiting(ctx context.Context, address string, token func(work, token string), sent func(work string), fn func(context.Context, *coordinator.Coordinator) error) error {
	db, err := store.Open(ctx, address, &store.Options{Migrate: true})
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(db, &coordinator.Options{Log: log, Lease: 3 * time.Second, CallbackSecrets: [][]byte{[]byte("a secret of the benchmark")}})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	d, err := saga.Define("wait", 1,
		saga.Do("submit", func(_ context.Context, call saga.Call[int]) (string, error) {
			token(call.Work, call.CallbackToken())
			return call.Key, nil
		}).Idempotent().NoUndo("nothing was made"),
		saga.Await("answer", func(_ saga.Call[int], m saga.Message) (out string, err error) {
			return out, json.Unmarshal(m.Body, &out)
		}).Callback("submit").Within(24*time.Hour, saga.Compensate),
		saga.Do("finish", func(_ context.Context, call saga.Call[int]) (string, error) {
			sent(call.Work)
			return call.Key, nil
		}).Idempotent().NoUndo("nothing was made"))
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

// storm has instances wait, watches an idle process beside them, and then calls back, several times each and in any order, while
// processes are killed.
func (a answering) storm(ctx context.Context, stage *stage, ledger string) (line answersLine, err error) {
	line = answersLine{Ledger: ledger, Instances: a.instances, Kills: a.kills}
	address, remove, err := stage.fresh(ctx, ledger)
	if err != nil {
		return line, err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	tokens := make([]string, a.instances)
	fill := func(ctx context.Context, c *coordinator.Coordinator) error {
		g, starting := errgroup.WithContext(ctx)
		g.SetLimit(1024)
		for i := range a.instances {
			g.Go(func() error {
				_, err := c.Start(starting, "wait", strconv.Itoa(i), i, nil)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for n := 0; n < a.instances; {
			time.Sleep(time.Second)
			n = 0
			for _, err := range c.List(ctx, coordinator.Filter{Status: saga.Waiting}) {
				if n++; err != nil {
					return err
				}
			}
		}
		return nil
	}
	note := func(work, token string) {
		i, _ := strconv.Atoi(work) // it is one of ours
		tokens[i] = token
	}
	none := func(string) {}
	if err := errors.Join(waiting(ctx, address, note, none, fill), stage.settle(ctx)); err != nil {
		return line, err
	}
	idle := sleepLine{Ledger: ledger}
	err = waiting(ctx, address, note, none, func(ctx context.Context, _ *coordinator.Coordinator) error {
		return sleeping{watch: a.watch}.watched(ctx, stage, address, &idle)
	})
	line.IdleCPU, line.IdleDB = idle.CPU, idle.DB
	if err != nil || a.times == 0 {
		return line, err
	}
	return line, a.call(ctx, address, ledger, tokens, &line)
}

func (a answering) call(ctx context.Context, address, ledger string, tokens []string, line *answersLine) error {
	db, err := store.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	op := coordinator.NewOperator(db)
	seen := &sync.Map{}
	many := 3
	if ledger == onSQLite {
		many = 1 // a file belongs to one process
	}
	var crew []*exec.Cmd
	hire := func() error {
		cmd, err := a.process(ctx, address, func(work string) {
			if _, again := seen.LoadOrStore(work, true); again {
				atomic.AddInt64(&line.Resent, 1)
			}
		})
		crew = append(crew, cmd)
		return err
	}
	for range many {
		if err := hire(); err != nil {
			return err
		}
	}
	fire := func() {
		_ = crew[0].Process.Kill()
		_ = crew[0].Wait()
		crew = crew[1:]
	}
	defer func() {
		for len(crew) > 0 {
			fire()
		}
	}()
	order := rand.Perm(len(tokens) * a.times)
	began, stride := time.Now(), len(order)/(a.kills+1)
	for i := 0; i < len(order); i += stride {
		g, calling := errgroup.WithContext(ctx)
		g.SetLimit(64)
		for _, n := range order[i:min(i+stride, len(order))] {
			g.Go(func() error {
				_, err := op.Complete(calling, tokens[n%len(tokens)], []byte(`"done"`))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if i/stride < a.kills {
			fire()
			if err := hire(); err != nil {
				return err
			}
		}
	}
	line.Callbacks, line.PerSecond = len(order), float64(len(order))/time.Since(began).Seconds()
	for line.Completed < int64(len(tokens)) {
		time.Sleep(time.Second)
		line.Completed = 0
		for _, err := range op.List(ctx, coordinator.Filter{Status: saga.Completed}) {
			if line.Completed++; err != nil {
				return err
			}
		}
	}
	return a.recount(ctx, db, len(tokens), line)
}

// recount counts the answers on record of a sample of the instances.
func (a answering) recount(ctx context.Context, db store.DB, n int, line *answersLine) error {
	for range min(n, 2000) {
		rs, err := db.History(ctx, saga.ID{Saga: "wait", Work: strconv.Itoa(rand.IntN(n))})
		if err != nil {
			return err
		}
		answered := 0
		for i := range rs {
			if rs[i].Kind == "answered" {
				answered++
			}
		}
		if answered != 1 {
			line.Twice++
		}
	}
	return nil
}

// process starts a process of the ledger, which says each request behind the wait in a line.
func (a answering) process(ctx context.Context, address string, sent func(string)) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "answers-process", address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			var work string
			if _, err := fmt.Fscanln(out, &work); err != nil {
				return
			}
			sent(work)
		}
	}()
	return cmd, cmd.Start()
}

func answersProcessCommand() *cobra.Command {
	return &cobra.Command{
		Use: "answers-process ADDRESS", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var mu sync.Mutex
			sent := func(work string) { mu.Lock(); defer mu.Unlock(); fmt.Fprintln(cmd.OutOrStdout(), work) }
			return waiting(cmd.Context(), args[0], func(string, string) {}, sent, func(ctx context.Context, _ *coordinator.Coordinator) error {
				<-ctx.Done()
				return nil
			})
		},
	}
}
