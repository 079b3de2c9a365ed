package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/examples/orders-to-accounting/world"
)

// cancels is the share of orders whose customer changes their mind once the invoice is booked.
const cancels = 0.05

// answer is how long an attempt waits for its answer, well below the two seconds for which a silent server
// holds one back.
const answer = time.Second

// perform runs both syncs over equal worlds, audits both and reports. It says whether the audit of the amends
// run is clean.
func perform(ctx context.Context, o options, stdout, stderr io.Writer) (clean bool, err error) {
	talk := stdout
	if o.json {
		talk = stderr
	}
	dir, err := os.MkdirTemp("", "orders-to-accounting-")
	if err != nil {
		return false, err
	}
	if o.db == "" {
		o.db = filepath.Join(dir, "ledger.db")
	}
	began := time.Now()
	fmt.Fprintf(talk, "%d paid orders, seed %d, %.0f %% of requests meet a fault, %d kills. Everything is on this machine.\n\n",
		o.orders, o.seed, 100*o.faults, o.kills)
	r := report{Seed: o.seed, Ledger: o.db, Folder: dir}
	group, both := errgroup.WithContext(ctx) // two worlds that do not know of each other
	group.Go(func() error {
		if err := runAmends(both, o, dir, talk, stderr, &r); err != nil {
			return fmt.Errorf("the amends run (its log is in %s): %w", dir, err)
		}
		return nil
	})
	group.Go(func() error {
		if err := runNaive(both, o, dir, &r); err != nil {
			return fmt.Errorf("the naive run (its log is in %s): %w", dir, err)
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return false, err
	}
	r.Seconds = time.Since(began).Seconds()
	if o.json {
		err = r.json(stdout)
	} else {
		err = r.text(stdout)
	}
	return r.Clean(), err
}

// stage is one sync over one world.
type stage struct {
	world  *world.World
	procs  *supervisor
	random *rand.Rand
	log    *os.File
	bar    progress
}

func newStage(ctx context.Context, o options, dir, role string, bar progress) (*stage, error) {
	w, err := world.Start(ctx, world.Config{
		Dir: filepath.Join(dir, role), Seed: o.seed, Orders: o.orders, Faults: o.faults, Cancels: cancels,
	})
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, role+".log"))
	if err != nil {
		return nil, err
	}
	p := place{Shop: w.ShopURL, Books: w.BooksURL, Mail: w.MailAddr, Ledger: o.db, Answer: answer, Settle: w.Timing().Settled()}
	return &stage{
		world: w, log: log, random: rand.New(rand.NewPCG(o.seed, uint64(len(role)))),
		procs: &supervisor{role: role, place: p, log: log}, bar: bar,
	}, nil
}

func (s *stage) close() {
	s.log.Close()
	s.world.Close()
}

// killAt chooses the points of progress at which a process is killed.
func (s *stage) killAt(kills, orders int) []int {
	at := make([]int, kills)
	for i := range at {
		at[i] = s.random.IntN(max(1, orders*95/100))
	}
	slices.Sort(at)
	return at
}

// watch kills at the chosen points until progress says that the work is done.
func (s *stage) watch(ctx context.Context, killAt []int, progress func() (done int, finished bool, err error)) error {
	for {
		done, finished, err := progress()
		if err != nil {
			return err
		}
		s.bar.set(done)
		if _, err := s.procs.done(); err != nil {
			return err
		}
		if finished {
			s.bar.end()
			return nil
		}
		if len(killAt) > 0 && done >= killAt[0] && s.procs.kill(s.random) {
			killAt = killAt[1:]
		}
		if err := pause(ctx, time.Duration(10+s.random.IntN(60))*time.Millisecond); err != nil {
			return err
		}
	}
}

// runAmends is the sync with a ledger, and the person at its end.
func runAmends(ctx context.Context, o options, dir string, talk, stderr io.Writer, r *report) error {
	l, err := openLedger(ctx, o.db)
	if err != nil {
		return err
	}
	defer l.Close()
	if before, err := count(ctx, l); err != nil || before.works > 0 {
		if err == nil {
			err = fmt.Errorf("the ledger %s holds %d works already; give -db a new one", o.db, before.works)
		}
		return err
	}
	s, err := newStage(ctx, o, dir, "sync", newProgress(stderr, "amends", o.orders))
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.procs.start(ctx, o.workers); err != nil {
		return err
	}
	var c census
	err = s.watch(ctx, s.killAt(o.kills, o.orders), func() (int, bool, error) {
		c, err = count(ctx, l)
		return c.finished + len(c.review), c.works >= o.orders && c.live == 0, err
	})
	r.Unconfirmed = len(c.review)
	if err == nil {
		err = r.person(ctx, talk, &operator{
			settled: answer + s.world.Timing().Settled(),
			desk:    coordinator.NewOperator(l), mailbox: s.world.Mailbox(), out: talk,
			by: coordinator.By{Actor: "operator of the example", Reason: "looked into the mailbox"},
		}, l)
	}
	r.Kills, r.Restarts = s.procs.counts()
	if stopped := s.procs.stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return err
	}
	r.Faults = s.world.Faults()
	r.Result, err = s.world.Audit(ctx)
	return err
}

// runNaive is the same without a ledger, beside it and without a word.
func runNaive(ctx context.Context, o options, dir string, r *report) error {
	s, err := newStage(ctx, o, dir, "naive", progress{})
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.procs.start(ctx, 1); err != nil {
		return err
	}
	err = s.watch(ctx, s.killAt(o.kills, o.orders), func() (int, bool, error) {
		t, err := s.world.Progress(ctx)
		if err != nil {
			return 0, false, err
		}
		ended, err := s.procs.done()
		return t.Synced + t.Cancelled, ended && t.Synced == t.Paid, err
	})
	if stopped := s.procs.stop(); err == nil {
		err = stopped
	}
	if err == nil {
		r.Naive.Result, err = s.world.Audit(ctx)
	}
	r.Naive.Kills, r.Naive.Restarts = s.procs.counts()
	return err
}
