package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/outside"
)

// cancels is the share of orders whose customer changes their mind once the invoice is booked, and pace
// how long customers think before any other change, and how long webhooks take, at most.
const (
	cancels = 0.05
	pace    = time.Second
)

// answer is how long an attempt waits for its answer, well below the two seconds for which a silent
// server holds one back.
const answer = time.Second

// approveAbove is from how many cents on an order waits for approval, with -approve.
const approveAbove = 10_000

// slack is added to the time after which the world has settled, for a machine too busy to let a server
// answer.
const slack = time.Second

// secret is what the shop signs its webhooks with. A real one is in no source code.
const secret = "whsec_YS1zaG9wLW9uLXRoaXMtbWFjaGluZQ==" //nolint:gosec // it opens a shop that exists for ten seconds

// stage is one sync over one world of its own. Two stages of one seed are equal: the same orders, the
// same faults, the same kills.
type stage struct {
	world  *outside.World
	config outside.Config // of the world
	dir    string
	role   string
	procs  *supervisor
	random *rand.Rand
	killAt []int // how many orders are done when a process is killed
	stops  []int // and when one is stopped for a while

	disaster disaster
}

// disaster is what happens to a stage once. The zero value never does.
type disaster struct {
	due    func(done int) bool                              // whether it begins, when so many orders are done
	strike func(ctx context.Context) (over bool, err error) // is called until it is over
}

// newStage sets up a stage in dir, for processes of the given role. Those that listen at doors are told
// of changes by webhooks, under path; customers change nothing after the fact where the sync would not
// hear of it.
func newStage(o options, dir, role, path string, doors []string) (*stage, error) {
	s := &stage{dir: dir, role: role, random: rand.New(rand.NewPCG(o.seed, 1))}
	letters, err := os.Create(s.file("mailbox.txt"))
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, role+".log"))
	if err != nil {
		return nil, errors.Join(err, letters.Close())
	}
	c := outside.Config{
		Seed: o.seed, Orders: o.orders, Faults: o.faults, Timing: outside.DefaultTiming, Letters: letters,
		People: outside.People{Cancels: cancels, Pace: pace},
	}
	if len(doors) > 0 {
		c.Edits, c.LateCancels, c.Deletes = o.edits, o.edits/2, o.edits/10
		c.Hooks = outside.Hooks{Secret: secret, Drops: o.chaos, Duplicates: o.chaos, Forgeries: o.chaos / 3}
		if o.sweepsAlone { // no webhook ever leaves
			c.Hooks = outside.Hooks{Secret: secret, Drops: 1, Once: true}
		}
		for _, door := range doors {
			c.Hooks.Receivers = append(c.Hooks.Receivers, "http://"+door+path)
		}
	}
	s.config, s.world = c, outside.Start(c)
	at := Place{
		Shop: s.world.ShopURL, Books: s.world.BooksURL, Mail: s.world.MailURL, Ledger: o.db,
		Answer: answer, Settle: c.Timing.Settled() + slack, Secret: secret, Sweep: !o.deaf,
	}
	if o.approve {
		at.ApproveAbove = approveAbove
	}
	s.procs = &supervisor{role: role, place: at, doors: doors, log: log}
	s.killAt = killPoints(s.random, o.kills, o.orders)
	s.stops = killPoints(s.random, o.stalls, o.orders)
	return s, nil
}

// file is where the stage leaves something.
func (s *stage) file(name string) string { return filepath.Join(s.dir, s.role+"-"+name) }

// close stops what is still running, and leaves what shop and books had for a person to read.
func (s *stage) close() error {
	_ = s.procs.stop() // watch and audit have told what it says
	s.world.Close()
	err := s.procs.log.Close()
	for name, all := range map[string]any{"shop.json": s.world.Shop.Orders(), "books.json": s.world.Books.Invoices()} {
		text, failed := json.MarshalIndent(all, "", "  ")
		err = errors.Join(err, failed, os.WriteFile(s.file(name), text, 0o600))
	}
	return err
}

// killPoints chooses how many orders are done at each kill. None comes in the last tenth: a kill when
// there is nothing left to do proves nothing.
func killPoints(r *rand.Rand, kills, orders int) []int {
	at := make([]int, kills)
	for i := range at {
		at[i] = r.IntN(max(1, orders*9/10))
	}
	slices.Sort(at)
	return at
}

// watch kills a process at each of the chosen points. It returns when progress says that all is done,
// every kill has hit a process, and every process whose job can end has ended.
func (s *stage) watch(ctx context.Context, progress func() (done int, finished bool, err error)) error {
	for {
		ended, err := s.procs.done() // asked before looking at what they did
		if err != nil {
			return err
		}
		began := time.Now()
		done, finished, err := progress()
		if err != nil {
			return err
		}
		looked := time.Since(began)
		switch {
		case s.disaster.due != nil && s.disaster.due(done):
			over, err := s.disaster.strike(ctx)
			if err != nil {
				return err
			}
			if over {
				s.disaster = disaster{}
			} else {
				s.killNext(false, done)
			}
		case ended && !finished:
			return fmt.Errorf("the %s process ended before its work did; its log is %s", s.procs.role, s.procs.log.Name())
		case ended, finished && len(s.killAt)+len(s.stops) == 0 && !s.procs.once:
			return nil
		default:
			s.killNext(finished, done)
		}
		// Looking must not be what keeps the machine busy.
		if err := outside.Pause(ctx, max(4*looked, time.Duration(10+s.random.IntN(60))*time.Millisecond)); err != nil {
			return err
		}
	}
}

// killNext kills a process when as many orders are done as was chosen for the next kill, or all are,
// and one is alive.
func (s *stage) killNext(all bool, done int) {
	if len(s.killAt) > 0 && (all || done >= s.killAt[0]) && s.procs.kill(s.random) {
		s.killAt = s.killAt[1:]
	}
	if len(s.stops) > 0 && (all || done >= s.stops[0]) && s.procs.stall(s.random) {
		s.stops = s.stops[1:]
	}
}
