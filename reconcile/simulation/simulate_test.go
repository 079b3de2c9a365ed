package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/store/memory"
)

// size is how large a run is.
type size struct {
	objects, deliveries, lives int
	seeds                      []uint64
}

// sizeOf is the reduced run, unless AMENDS_SIMULATE=full. AMENDS_SEED chooses one seed.
func sizeOf(t *testing.T) size {
	t.Helper()
	s := size{objects: 900, deliveries: 9000, lives: 15, seeds: []uint64{1}}
	if pace.AtNight() {
		s.seeds = []uint64{1, 2}
	}
	if os.Getenv("AMENDS_SIMULATE") == "full" {
		s = size{objects: 10_000, deliveries: 100_000, lives: 60, seeds: []uint64{1, 2, 3, 4, 5}}
	}
	if text := os.Getenv("AMENDS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("AMENDS_SEED: %v", err)
		}
		s.seeds = []uint64{seed}
	}
	return s
}

// scene is one run.
type scene struct {
	world *world
	mail  *mail
	store store
	gate  *watched
	works *works
	nodes nodes
	told  tally

	settle, poll time.Duration // of the processes; zero: as an operator would have them
}

// store is all of a store.
type store interface {
	intake.Inbox
	intake.Gate
	intake.Reader
	Close() error
}

// The invariants of the design's section 7 that need no reconciler, after everything was delivered:
//
//	I-3   the gate's state is the source's, for every object whose last change somebody was told of
//	I-4   versions never go down
//	I-5   nothing is resurrected
//	I-10  with every payload stripped, the end is the same
//	I-13  what was acknowledged is there
//
// and one chain of works for each object, in order, ending with the source's state, with no
// revision twice.
func TestSimulate(t *testing.T) {
	t.Parallel()
	size := sizeOf(t)
	for _, seed := range size.seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			full := simulate(t, seed, size, false)
			hints := simulate(t, seed, size, true)
			if !maps.Equal(full.end, hints.end) {
				t.Errorf("seed %d: I-10: hints alone end otherwise than payloads", seed)
			}
		})
	}
}

// simulate runs one world to its end and judges it.
func simulate(t *testing.T, seed uint64, size size, stripped bool) *disposition {
	t.Helper()
	var v *disposition
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := newScene(seed, size, began)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		for i := range 2 {
			running.Go(func() { s.nodes.keep(ctx, s, i, size.lives) })
		}
		acked, retries := s.mail.post(ctx, &flaky{s.store, rand.New(rand.NewPCG(seed, 4))}, stripped, s.nodes.wake)
		s.calmDown()
		_ = pause(ctx, 4*time.Hour) // backoffs are up to an hour
		cancel()
		running.Wait()
		var err error
		if v, err = s.judge(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.unheard = s.missing(t.Context(), acked)
		s.report(t, v, seed, stripped, retries, time.Since(began))
	})
	return v
}

func newScene(seed uint64, size size, start time.Time) *scene {
	w := newWorld(seed, size.objects, start.Add(time.Second))
	s := &scene{world: w, mail: newMail(w, size.deliveries), store: memory.New(nil)}
	s.gate = &watched{Gate: s.store, world: w}
	s.works = &works{chance: rand.New(rand.NewPCG(seed, 5)), chains: map[intake.Object][]inbox.Snapshot{}}
	return s
}

// calmDown lets nothing fail any more.
func (s *scene) calmDown() {
	s.world.mu.Lock()
	s.world.calm = true
	s.world.mu.Unlock()
	s.works.mu.Lock()
	s.works.calm = true
	s.works.mu.Unlock()
}

// missing returns what was acknowledged and cannot be found. I-13.
func (s *scene) missing(ctx context.Context, acked map[intake.Digest]intake.Object) []string {
	all, err := s.store.Deliveries(ctx, intake.DeliveryFilter{Limit: 10 * len(s.mail.deliveries)})
	if err != nil {
		return []string{err.Error()}
	}
	copies := 0
	for i := range all {
		delete(acked, all[i].Dedupe)
		copies += all[i].Copies
		if all[i].Judged.IsZero() {
			return []string{fmt.Sprintf("delivery %d of %s was never judged", all[i].Number, all[i].Object)}
		}
	}
	if copies < len(s.mail.deliveries) {
		return []string{fmt.Sprintf("%d deliveries are counted, %d were acknowledged", copies, len(s.mail.deliveries))}
	}
	var missing []string
	for _, o := range acked {
		missing = append(missing, o.String())
	}
	return missing
}

// report prints the figures and fails for whatever does not hold.
func (s *scene) report(t *testing.T, v *disposition, seed uint64, stripped bool, retries int, took time.Duration) {
	t.Helper()
	c := &s.told
	var dispositions []string
	for _, name := range slices.Sorted(maps.Keys(c.dispositions)) {
		dispositions = append(dispositions, fmt.Sprintf("%s %d", name, c.dispositions[name]))
	}
	starts := 0
	for _, chain := range s.works.chains {
		starts += len(chain)
	}
	t.Logf("seed %d, payloads stripped: %t: %d deliveries of %d objects, %d events never came, %d were forged, %d knocks were not acknowledged; %d crashes; %s of the world's time",
		seed, stripped, len(s.mail.deliveries), len(s.world.objects), s.mail.dropped, s.mail.forged, retries, s.nodes.crashes, took.Round(time.Second))
	t.Logf("dispositions of the processes that told: %s", strings.Join(dispositions, ", "))
	t.Logf("%d requests to the sources, %d refused; %d hints coalesced; %d leases lost; %d revisions started, %d handed over again; %d objects told of, %d not; %d kB of heap",
		s.world.fetches, s.world.refused, c.coalesced(), c.lost, starts, s.works.repeated, v.told, v.untold, heap())
	reasons := s.world.refused + len(s.world.objects)
	for _, name := range []intake.Disposition{intake.Hint, intake.Tie, intake.Conflict, intake.Parked} {
		reasons += int(c.dispositions[name])
	}
	if s.world.fetches > 3*reasons {
		t.Errorf("seed %d: the sources were asked %d times for %d reasons", seed, s.world.fetches, reasons)
	}
	for what, list := range map[string][]string{
		"I-3: differs from its source":           v.different,
		"I-4, I-5 or the fence":                  s.gate.broken,
		"I-13: acknowledged and lost":            v.unheard,
		"the works do not follow":                v.works,
		"a work was handed over out of order":    s.works.broken,
		"something is still owed, or never ends": v.unfinished,
	} {
		if len(list) > 0 {
			t.Errorf("seed %d: %s: %d, as\n%s", seed, what, len(list), strings.Join(list[:min(3, len(list))], "\n"))
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc / 1024
}
