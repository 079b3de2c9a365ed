package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
)

var inboxRaceCases = []testCase{
	{name: "one row of many identical deliveries", run: inboxRaceIdentical},
	{name: "two processes judge one inbox", run: inboxRaceJudge},
	{name: "two processes lease", run: inboxRaceLease},
	{name: "everything at once", run: inboxRaceAll},
}

// C1: "N identical deliveries, concurrent, over several nodes: exactly one row".
func inboxRaceIdentical(b *bench) {
	stores := []Store{b.Store, b.again()}
	es := events(5)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			shuffled := append([]intake.Event(nil), es...)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if err := stores[i%2].Accept(b.Context(), shuffled); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	ds := b.all()
	if len(ds) != len(es) {
		b.Fatalf("%d rows of %d events", len(ds), len(es))
	}
	for _, d := range ds {
		if d.Copies != 100 || d.Disposition != "" {
			b.Errorf("%s has %d copies (%s), want 100", d.Object, d.Copies, d.Disposition)
		}
	}
	b.wantBlocked("at the same time", ledger.ByReceiver, 99*int64(len(es)))
}

// "Two processes share one inbox without doubling": every delivery is judged once, and no count on
// an entry is lost.
func inboxRaceJudge(b *bench) {
	stores := []Store{b.Store, b.again()}
	es := events(300)
	for i := range es {
		es[i].Object = object(fmt.Sprint(i % 7))
	}
	b.accept(es...)
	var judged atomic.Int64
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for judged.Load() < int64(len(es)) {
				n, err := stores[i%2].Judge(b.Context(), 13, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
					for i := range ds {
						ds[i].Outcome = intake.Duplicate
						es[ds[i].Object].Accepted++
					}
					return nil
				})
				if err != nil {
					b.Error(err)
					return
				}
				judged.Add(int64(n))
			}
		})
	}
	wg.Wait()
	if n := judged.Load(); n != int64(len(es)) {
		b.Errorf("%d were judged of %d", n, len(es))
	}
	b.wantBlocked("judged at the same time", ledger.ByVersion, int64(len(es)))
	var sum int64
	for i := range 7 {
		sum += b.known(object(fmt.Sprint(i))).Accepted
	}
	if sum != int64(len(es)) {
		b.Errorf("the entries count %d deliveries of %d", sum, len(es))
	}
}

// G5: of what is due every entry is claimed by one.
func inboxRaceLease(b *bench) {
	stores := []Store{b.Store, b.again()}
	const n = 60
	for i := range n {
		b.put(object(fmt.Sprint(i)), overdue(b))
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for empty := 0; empty < 3; {
				es, err := stores[i%2].Lease(b.Context(), 5, take(fmt.Sprint(i)))
				if err != nil {
					b.Error(err)
					return
				}
				if len(es) == 0 {
					empty++ // others may have had them locked
				}
				mu.Lock()
				for _, e := range es {
					claimed[e.Object.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	es, err := b.Lease(b.Context(), n, take("the rest"))
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range es {
		claimed[e.Object.ID]++
	}
	if len(claimed) != n {
		b.Errorf("%d of %d were claimed", len(claimed), n)
	}
	for id, times := range claimed {
		if times != 1 {
			b.Errorf("%s was claimed %d times", id, times)
		}
	}
}

// count counts deliveries on their entries, but for replays.
func count(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
	for i := range ds {
		if ds[i].Outcome == "" {
			es[ds[i].Object].Accepted++
		}
		ds[i].Outcome = intake.Applied
	}
	return nil
}

// Receivers, judges, workers, operators and retention at once end without an error, and every event
// is there once.
func inboxRaceAll(b *bench) {
	stores := []Store{b.Store, b.again()}
	const receivers, each, objects = 4, 60, 5
	var receiving, judging sync.WaitGroup
	var over atomic.Bool
	fail := func(what string, err error) {
		if err != nil {
			b.Errorf("%s: %v", what, err)
		}
	}
	for r := range receivers {
		receiving.Go(func() {
			for i := range each {
				e := event(fmt.Sprint(i % objects))
				e.Dedupe = intake.DigestOf(fmt.Sprint(r/2, i)) // every event comes twice
				fail("accept", stores[r%2].Accept(b.Context(), []intake.Event{e}))
			}
		})
	}
	for i := range 2 {
		s := stores[i]
		judging.Go(func() {
			for !over.Load() {
				_, err := s.Judge(b.Context(), 20, count)
				fail("judge", err)
				fail("update", s.Update(b.Context(), object(fmt.Sprint(i)), func(now time.Time, e *intake.Entry) error {
					e.Delivered, e.Due = e.Accepted, now
					return nil
				}))
				_, err = s.Lease(b.Context(), 3, func(_ time.Time, e *intake.Entry) error {
					e.Due = time.Time{}
					return nil
				})
				fail("lease", err)
			}
		})
	}
	judging.Go(func() {
		for !over.Load() {
			_, err := stores[1].Replay(b.Context(), intake.DeliveryFilter{Object: object("0")}, "again")
			fail("replay", err)
			_, err = stores[0].Purge(b.Context(), intake.Retention{Bodies: soon, Rows: time.Hour, Digests: time.Hour}, 10)
			fail("purge", err)
			_, err = stores[1].Counts(b.Context())
			fail("counts", err)
		}
	})
	receiving.Wait()
	over.Store(true)
	judging.Wait()
	for {
		if n, err := b.Judge(b.Context(), 1000, count); n == 0 {
			fail("judge the rest", err)
			break
		}
	}
	ds := b.all()
	if len(ds) != each*receivers/2 {
		b.Errorf("%d deliveries, want %d", len(ds), each*receivers/2)
	}
	var sum int64
	for i := range objects {
		sum += b.known(object(fmt.Sprint(i))).Accepted
	}
	if sum != int64(len(ds)) {
		b.Errorf("the entries count %d deliveries of %d", sum, len(ds))
	}
}
