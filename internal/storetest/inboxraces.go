package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

var inboxRaceCases = []testCase{
	{name: "one row of many identical deliveries", run: raceIdentical},
	{name: "stored when answered", run: inboxStored, breaks: broken{"commit-first": func(s Store) Store { return hasty{s} }}},
	{name: "two processes judge one inbox", run: raceJudge},
	{name: "entries are locked", run: judgeLocks, breaks: broken{"judge-locks": func(s Store) Store { return unlocked{s} }}},
	{name: "a judgement is one transaction", run: judgeOnce, breaks: broken{"one-transaction": func(s Store) Store { return halver{s} }}},
	{name: "two processes lease", run: raceLease},
	{name: "a late write finds another fence", run: updateFence},
	{name: "withdrawals are counted by one at a time", run: raceWeigh, breaks: broken{"withdrawals-alone": func(s Store) Store { return apart{s} }}},
	{name: "everything at once", run: raceInbox},
	{name: "of two one moves a sweep on", run: raceSweep},
	{name: "a page is one transaction", run: sweepPage, breaks: broken{"sweep-one-transaction": func(s Store) Store { return torn{s} }}},
	{name: "drafts", run: raceDraft},
	{name: "a job is locked", run: raceTurn, breaks: broken{"turn-locks": func(s Store) Store { return turnOverwriter{s} }}},
	{name: "a turn is one transaction", run: turnOnce, breaks: broken{"turn-one-transaction": func(s Store) Store { return piecemeal{s} }}},
}

// C1: "N identical deliveries, concurrent, over several nodes: exactly one row".
func raceIdentical(b *bench) {
	stores := b.stores()
	es := events(5)
	for i := range es {
		es[i].Object.Source = []string{"shop", "Till"}[i%2]
	}
	b.atOnce(100, func(i int) {
		shuffled := append([]intake.Event(nil), es...)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		ok(stores[i%2].Accept(b.Context(), shuffled))
	})
	ds := b.all()
	for _, d := range ds {
		if len(ds) != len(es) || d.Copies != 100 || d.Disposition != "" {
			b.Errorf("%d rows; %s has %d copies (%s), want 5 of 100", len(ds), d.Object, d.Copies, d.Disposition)
		}
	}
	b.wantBlocked(ledger.ByReceiver, "shop", 99*3)
	b.wantBlocked(ledger.ByReceiver, "Till", 99*2)
}

// "has them on disk when it returns": another process finds them, also in a transaction of several. C2: of
// two that say something else both are there. What came again is counted by source.
func inboxStored(b *bench) {
	s := b.raw
	if b.harness.Again != nil {
		s = b.again()
	}
	e, next := event("1"), event("2")
	next.Object.Source = "Till"
	other := e
	other.Fingerprint = intake.DigestOf("another")
	ok(b.Accept(b.Context(), []intake.Event{e, next, e, other, other, next, e}))
	got := map[intake.Disposition]int{}
	for _, d := range of(s.Deliveries(b.Context(), intake.DeliveryFilter{})) {
		got[d.Disposition] += d.Copies
	}
	if got[""] != 5 || got[intake.Conflict] != 2 {
		b.Errorf("copies of each disposition: %v, want five and two in conflict", got)
	}
	b.wantBlocked(ledger.ByReceiver, "shop", 3)
	b.wantBlocked(ledger.ByReceiver, "Till", 1)
}

// "Two processes share one inbox without doubling": every delivery is judged once, no count on an entry
// is lost, and what one judged another counts, and takes back.
func raceJudge(b *bench) {
	stores := b.stores()
	es := events(300)
	for i := range es {
		es[i].Object = object(fmt.Sprint(i % 7))
	}
	ok(b.Accept(b.Context(), es))
	var judged atomic.Int64
	b.atOnce(6, func(i int) {
		for judged.Load() < int64(len(es)) {
			judged.Add(int64(of(stores[i%2].Judge(b.Context(), 13, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
				for i := range ds {
					ds[i].Outcome = intake.Duplicate
					es[ds[i].Object].Accepted++
				}
				return nil
			}))))
		}
	})
	b.wantBlocked(ledger.ByVersion, "shop", int64(len(es)))
	var sum int64
	for i := range 7 {
		sum += of(b.Entry(b.Context(), object(fmt.Sprint(i)))).Accepted
	}
	if n := judged.Load(); n != int64(len(es)) || sum != n {
		b.Errorf("%d were judged of %d, and the entries count %d", n, len(es), sum)
	}
	of(stores[0].Replay(b.Context(), intake.DeliveryFilter{}, "once more"))
	if counts := of(stores[1].Counts(b.Context())); len(counts) != 1 || counts[0].Disposition != "" || counts[0].Count != int64(len(es)) {
		b.Errorf("after a replay there are counted %+v", counts)
	}
}

// "what was handed to the callback is locked against every other process": who writes meanwhile
// writes after us. An entry that is new cannot be locked everywhere; there the callback may be
// called again, with what was written.
func judgeLocks(b *bench) {
	other := b.again()
	b.put(object("known"), func(e *intake.Entry) { e.Attempts = 1 })
	for _, id := range []string{"new", "known"} {
		o := object(id)
		ok(b.Accept(b.Context(), []intake.Event{event(id)}))
		var once sync.Once
		written := make(chan error, 1)
		of(b.Judge(b.Context(), 10, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
			es[o].FetchRequested++
			ds[0].Outcome = intake.Hint
			once.Do(func() {
				go func() {
					written <- other.Update(b.Context(), o, func(_ time.Time, e *intake.Entry) error { e.FetchRequested++; return nil })
				}()
				select { // it must not come through while we look, and we look long enough for it to try
				case err := <-written:
					if written <- err; id == "known" {
						b.Errorf("%s was written while a batch with it was judged", o)
					}
				case <-time.After(300 * time.Millisecond):
				}
			})
			return nil
		}))
		ok(<-written)
		if got := of(b.Entry(b.Context(), o)).FetchRequested; got != 2 {
			b.Errorf("after two processes counted, the count of %s is %d", o, got)
		}
	}
}

// watch looks again and again until do has returned, and once more.
func (b *bench) watch(look, do func()) {
	done := make(chan struct{})
	looking := make(chan struct{})
	b.atOnce(2, func(i int) {
		if i == 0 {
			defer close(done)
			<-looking
			do()
			return
		}
		close(looking)
		for over := false; !over; look() {
			select {
			case <-done:
				over = true
			default:
			}
		}
	})
}

// "Each method is one transaction": a reader that sees a disposition also sees the entry that it
// changed.
func judgeOnce(b *bench) {
	other := b.again()
	ok(b.Accept(b.Context(), []intake.Event{event("1")}))
	number := b.all()[0].Number
	b.watch(func() {
		d := of(other.Delivery(b.Context(), number))
		if e := of(other.Entry(b.Context(), d.Object)); !d.Judged.IsZero() && (e == nil || e.Accepted != 1) {
			b.Errorf("the delivery is judged %q, and its entry is %+v", d.Outcome, e)
		}
	}, func() {
		of(b.Judge(b.Context(), 10, func(_ time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
			ds[0].Outcome, es[ds[0].Object].Accepted = intake.Applied, 1
			return nil
		}))
	})
}

// take is how a process leases an entry.
func take(holder string) func(time.Time, *intake.Entry) error {
	return func(now time.Time, e *intake.Entry) error {
		e.Holder, e.Until, e.Fence = holder, now.Add(time.Hour), e.Fence+1
		return nil
	}
}

// G5: of what is due every entry is claimed by one, the longest due first.
func raceLease(b *bench) {
	const n = 60
	now := b.calendar()
	for i := range n {
		b.put(object(fmt.Sprint(i)), func(e *intake.Entry) { e.Due = now.Add(-time.Duration(i+1) * time.Minute) })
	}
	first := of(b.Lease(b.Context(), 2, take("first")))
	if len(first) != 2 || first[0].Object.ID != fmt.Sprint(n-1) || first[1].Object.ID != fmt.Sprint(n-2) {
		b.Errorf("claimed first %+v, want the two that are due longest", first)
	}
	var claimed atomic.Int64
	stores := b.stores()
	b.atOnce(6, func(i int) {
		for empty := 0; empty < 3; { // others may have had them locked
			es := of(stores[i%2].Lease(b.Context(), 5, take(fmt.Sprint(i))))
			if claimed.Add(int64(len(es))); len(es) == 0 {
				empty++
			}
		}
	})
	claimed.Add(int64(len(of(b.Lease(b.Context(), n, take("the rest"))))))
	for _, e := range of(b.Entries(b.Context(), intake.EntryFilter{})) {
		if claimed.Load() != n-2 || e.Fence != 1 {
			b.Errorf("of %d others %d were claimed; %s %d times", n-2, claimed.Load(), e.Object, e.Fence)
		}
	}
}

// G6: "raised by every lease; a write with an older one is refused" by the callback, which sees the
// newest.
func updateFence(b *bench) {
	other, o := b.again(), object("1")
	ok(b.Update(b.Context(), o, take("me")))
	ok(other.Update(b.Context(), o, take("you")))
	b.wantError("the late write", b.Update(b.Context(), o, func(_ time.Time, e *intake.Entry) error {
		if e.Fence != 1 {
			return errRefused
		}
		e.Holder = ""
		return nil
	}), errRefused)
	if e := of(b.Entry(b.Context(), o)); e.Holder != "you" || e.Fence != 2 {
		b.Errorf("it is %+v", e)
	}
}

// few is the bound of the suite.
var few = intake.Bound{Count: 5, Percent: 50, Window: time.Hour}

// "Calls about one source that have a count exclude each other until they are stored": however many
// processes ask at once, no more than the bound are let through. Another source has its own.
func raceWeigh(b *bench) {
	c := b.start(b.session(), "w", hold)
	c.add(doing(machine.KindDone, saga.Completed), release)
	stores := b.stores()
	if _, broken := b.Store.(apart); broken {
		stores[1] = apart{stores[1]}
	}
	var through [2]atomic.Int64
	b.atOnce(40, func(i int) {
		o := object(fmt.Sprint(i))
		if i%4 == 3 {
			o.Source = "books"
		}
		var let bool
		ok(stores[i%2].Weigh(b.Context(), o, c.id, few, func(now time.Time, e *intake.Entry, t intake.Tally) error {
			e.Accepted, e.Delivered = 2, 1
			let = e.Weigh(2, now, t, &few)
			return nil
		}))
		if let {
			through[i%4/3].Add(1)
		}
	})
	if shop, books := through[0].Load(), through[1].Load(); shop != few.Count || books != few.Count {
		b.Errorf("%d withdrawals of one source were let through, and %d of the other; want %d each", shop, books, few.Count)
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
func raceInbox(b *bench) {
	const receivers, each, objects = 4, 60, 5
	stores := b.stores()
	var received atomic.Int64
	b.atOnce(receivers+3, func(r int) {
		if r < receivers {
			defer received.Add(1)
			for i := range each {
				e := event(fmt.Sprint(i % objects))
				e.Dedupe = intake.DigestOf(fmt.Sprint(r/2, i)) // every event comes twice
				ok(stores[r%2].Accept(b.Context(), []intake.Event{e}))
			}
			return
		}
		for s := stores[r%2]; received.Load() < receivers; {
			if r == receivers {
				of(s.Replay(b.Context(), intake.DeliveryFilter{Object: object("0")}, "again"))
				of(s.Purge(b.Context(), intake.Retention{Bodies: time.Millisecond, Rows: time.Hour, Digests: time.Hour}, 10))
				of(s.Counts(b.Context()))
				continue
			}
			of(s.Judge(b.Context(), 20, count))
			ok(s.Update(b.Context(), object(fmt.Sprint(r%2)), func(now time.Time, e *intake.Entry) error {
				e.Delivered, e.Due = e.Accepted, now
				return nil
			}))
			of(s.Lease(b.Context(), 3, func(_ time.Time, e *intake.Entry) error { e.Due = time.Time{}; return nil }))
		}
	})
	for of(b.Judge(b.Context(), 1000, count)) > 0 { // the rest
	}
	var sum int64
	for i := range objects {
		sum += of(b.Entry(b.Context(), object(fmt.Sprint(i)))).Accepted
	}
	if n := int64(len(b.all())); n != each*receivers/2 || sum != n {
		b.Errorf("%d deliveries, want %d, and the entries count %d", n, each*receivers/2, sum)
	}
}

// sighting is a row of a listing.
func sighting(key, id string, generation int64) scan.Sighting {
	f := plan.Fields{"total": "10"}
	return scan.Sighting{Key: key, ID: id, Partition: "p", Generation: generation, Revision: "r", Flags: scan.Wanted,
		Fingerprint: scan.Fingerprint("1", f), Fields: f}
}

// page is what a sweep brings, with one row named so.
func page(name string, es ...intake.Event) scan.Catch {
	return scan.Catch{Events: es, Name: "orders", Side: scan.SourceSide, Sightings: []scan.Sighting{sighting("k", name, 1)}}
}

func (b *bench) seen() []scan.Sighting {
	return of(b.Sightings(b.Context(), scan.SightingQuery{Name: "orders", Side: scan.SourceSide}))
}

// Of processes that move one position on, at any moment one does, and nothing is there of what the
// others brought.
func raceSweep(b *bench) {
	stores := b.stores()
	var won atomic.Int64
	b.atOnce(8, func(n int) {
		for i := range 10 {
			p := of(stores[n%2].Position(b.Context(), "orders"))
			name := fmt.Sprintf("%d-%d", n, i)
			p.State = json.RawMessage(`"` + name + `"`)
			if _, err := stores[n%2].Advance(b.Context(), p, page(name, event(name))); err == nil {
				won.Add(1)
			} else {
				b.wantError("a page", err, scan.ErrMoved)
			}
		}
	})
	serial := of(b.Position(b.Context(), "orders")).Serial
	n, events, sightings := won.Load(), int64(len(b.all())), int64(len(b.seen()))
	told := n == serial || b.harness.LosesAnswers && n < serial
	if n < 10 || !told || events != serial || sightings != serial {
		b.Errorf("%d moved on; the serial is %d, and there are %d events and %d sightings", n, serial, events, sightings)
	}
}

// "In one transaction": a page that cannot be stored whole is not stored at all.
func sweepPage(b *bench) {
	es := events(2)
	es[1].Dedupe = intake.Digest{}
	if _, err := b.Advance(b.Context(), scan.Position{Name: "orders", State: json.RawMessage(`{}`)}, page("i", es...)); err == nil || errors.Is(err, scan.ErrMoved) {
		b.Errorf("a page with an event that is none: %v", err)
	}
	if p := of(b.Position(b.Context(), "orders")); p.Serial != 0 || len(b.all())+len(b.seen()) != 0 {
		b.Errorf("something of it was stored: %d events, %d sightings, serial %d", len(b.all()), len(b.seen()), p.Serial)
	}
}

// A new draft ends the one that is still being written: of what that one adds at the same time
// nothing is left.
func raceDraft(b *bench) {
	stores := b.stores()
	for range 5 {
		old := of(b.Draft(b.Context(), "books"))
		started := make(chan struct{})
		ctx, stop := context.WithCancel(b.Context())
		b.atOnce(2, func(side int) {
			if side == 1 {
				<-started
				defer stop() // else it would write for ever
				of(stores[1].Draft(b.Context(), "books"))
				<-time.After(10 * time.Millisecond)
				return
			}
			var once sync.Once
			for i := 0; ; i++ {
				err := b.Find(ctx, old, missing(fmt.Sprintf("%04d", i)))
				once.Do(func() { close(started) })
				if errors.Is(err, plan.ErrNotFound) || ctx.Err() != nil {
					return
				}
				ok(err)
			}
		})
		if rows := of(b.Findings(b.Context(), plan.FindingQuery{Plan: old})); len(rows) != 0 {
			b.Fatalf("of the draft that died there is left %+v", rows)
		}
	}
}

// planned is a run that waits.
func planned(at time.Time, instant string) schedule.RunRow {
	return schedule.RunRow{Job: "sweep", Instant: instant, At: at, From: at, Instants: 1, Due: at, Created: at}
}

// R4: "the row of a job is locked against every other process", also when the store does not have
// the job yet. When many processes count at once, every count is kept.
func raceTurn(b *bench) {
	const each = 25
	stores := b.stores()
	b.atOnce(4, func(i int) {
		for range each {
			ok(stores[i%2].Turn(b.Context(), "sweep", func(_ time.Time, a *schedule.Agenda) error { a.State.Asked++; return nil }))
		}
	})
	ok(b.Turn(b.Context(), "sweep", func(_ time.Time, a *schedule.Agenda) error {
		if a.State.Asked != 4*each {
			b.Errorf("counted %d times, the count is %d", 4*each, a.State.Asked)
		}
		return nil
	}))
}

// "Turn is one transaction": a reader that sees the run also sees the job that planned it.
func turnOnce(b *bench) {
	other := b.again()
	b.watch(func() {
		rs := of(other.Runs(b.Context(), schedule.RunFilter{}))
		if board := of(other.Jobs(b.Context())); len(rs) == 1 && len(board.Jobs) == 0 {
			b.Errorf("there is a run, and its job is not known")
		}
	}, func() {
		ok(b.Turn(b.Context(), "sweep", func(now time.Time, a *schedule.Agenda) error {
			a.State.First, a.New = now, []schedule.RunRow{planned(now, "1")}
			return nil
		}))
	})
}
