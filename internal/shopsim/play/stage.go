package play

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/hooks"
	"github.com/amends-dev/amends/internal/shopsim/world"
)

// cancels is the share of orders whose customer changes their mind once the invoice is booked.
const cancels = 0.05

// answer is how long an attempt waits for its answer, well below the two seconds for which a silent
// server holds one back.
const answer = time.Second

// approveAbove is from how many cents on an order waits for approval, with -approve.
const approveAbove = 10_000

// slack is added to the time after which the world has settled, for a machine too busy to let a
// server answer.
const slack = time.Second

// secret is what the shop signs its webhooks with. A real one is in no source code.
const secret = "whsec_YS1zaG9wLW9uLXRoaXMtbWFjaGluZQ==" //nolint:gosec // it opens a shop that exists for ten seconds

// stage is one sync over one world of its own. Two stages of one seed are equal: the same orders,
// the same faults, the same kills.
type stage struct {
	world  *world.World
	config world.Config // of the world
	procs  *supervisor
	random *rand.Rand
	killAt []int // how many orders are done when a process is killed
	stops  []int // and when one is stopped for a while
	show   func(done int)

	disaster disaster
}

// disaster is what happens to a stage once. The zero value never does.
type disaster struct {
	due    func(done int) bool                              // whether it begins, when so many orders are done
	strike func(ctx context.Context) (over bool, err error) // is called until it is over
}

// newStage sets up a stage in a folder of dir, for processes of the given role. Those that listen
// at doors are told of changes by webhooks, under path; customers change nothing after the fact
// where the sync would not hear of it.
func newStage(ctx context.Context, o options, dir, role, path string, doors []string) (*stage, error) {
	c := world.Config{Dir: filepath.Join(dir, role), Seed: o.seed, Orders: o.orders, Faults: o.faults, Cancels: cancels, Tampering: o.tampering()}
	if len(doors) > 0 {
		c.Edits, c.LateCancels = o.edits, o.edits/2
		c.Deletes = o.edits / 10
		c.Webhooks = hooks.Options{
			Secret: secret, Plan: hooks.Plan{Drops: o.chaos, Duplicates: o.chaos, Forgeries: o.chaos / 3},
		}
		if o.sweepsAlone { // no webhook ever leaves
			c.Webhooks.Plan, c.Webhooks.Once = hooks.Plan{Drops: 1}, true
		}
		for _, door := range doors {
			c.Webhooks.Receivers = append(c.Webhooks.Receivers, "http://"+door+path)
		}
	}
	w, err := world.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, role+".log"))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	at := Place{
		Shop: w.ShopURL, Books: w.BooksURL, Mail: w.MailAddr, Ledger: o.db, Answer: answer, Settle: w.Timing().Settled() + slack,
		Secret: secret, Sweep: !o.deaf,
	}
	if o.approve {
		at.ApproveAbove = approveAbove
	}
	s := &stage{
		world: w, config: c, random: rand.New(rand.NewPCG(o.seed, 1)),
		procs: &supervisor{role: role, place: at, doors: doors, log: log},
	}
	s.killAt = killPoints(s.random, o.kills, o.orders)
	s.stops = killPoints(s.random, o.stalls, o.orders)
	return s, nil
}

// close stops what is still running. The data stays.
func (s *stage) close() error {
	_ = s.procs.stop() // watch and audit have told what it says
	return errors.Join(s.procs.log.Close(), s.world.Close())
}

// killPoints chooses how many orders are done at each kill. None comes in the last tenth: a kill
// when there is nothing left to do proves nothing.
func killPoints(r *rand.Rand, kills, orders int) []int {
	at := make([]int, kills)
	for i := range at {
		at[i] = r.IntN(max(1, orders*9/10))
	}
	slices.Sort(at)
	return at
}

// watch kills a process at each of the chosen points. It returns when progress says that all is
// done, every kill has hit a process, and every process whose job can end has ended.
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
		s.show(done)
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
		if err := pause(ctx, max(4*looked, time.Duration(10+s.random.IntN(60))*time.Millisecond)); err != nil {
			return err
		}
	}
}

// killNext kills a process when as many orders are done as was chosen for the next kill, or all
// are, and one is alive.
func (s *stage) killNext(all bool, done int) {
	if len(s.killAt) > 0 && (all || done >= s.killAt[0]) && s.procs.kill(s.random) {
		s.killAt = s.killAt[1:]
	}
	if len(s.stops) > 0 && (all || done >= s.stops[0]) && s.procs.stall(s.random) {
		s.stops = s.stops[1:]
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
