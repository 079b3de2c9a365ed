package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

var raceCases = []testCase{
	{name: "ten writers on twelve chains", run: raceAppend},
	{name: "one start", run: raceStart},
	{name: "append, claim, post and bury", run: raceAll},
	{name: "a claim gives each once", run: raceClaim},
	{name: "posted while it is released", run: raceRelease},
	{name: "signals are numbered", run: raceNumbers},
	{name: "one of two signals under a number", run: raceNumbered},
	{name: "a message is used once in each saga", run: raceUse, breaks: broken{"used-by-all": func(s Store) Store { return sharing{s} }}},
	{name: "a message and a wait meet", run: raceMeet},
	{name: "duplicates are counted", run: raceCount},
	{name: "definitions", run: raceDescribe},
	{name: "acts make one chain", run: raceActs, breaks: broken{"acts-once": func(s Store) Store { return repeating{s} }}},
	{name: "a chain at one moment", run: raceLoad, breaks: broken{"one-moment": func(s Store) Store { return tornLoad{s} }}},
	{name: "behind a stale answer", run: behindStale, breaks: broken{"load-current": func(s Store) Store { return &lagging{Store: s} }}},
	{name: "taken over at its end", run: sessionEnd, breaks: broken{"end-awaited": func(s Store) Store { return early{s} }}},
}

// settle appends, and what is blocked again: "append the same again later". On a busy machine a
// writer may keep its locks for longer than the others wait.
func (b *bench) settle(s Store, t machine.Token, es []ledger.Entry) []ledger.Answer {
	as := of(s.Append(b.Context(), t, es))
	for i := range as {
		for as[i].Result == ledger.Blocked {
			as[i] = of(s.Append(b.Context(), t, es[i:i+1]))[0]
		}
	}
	return as
}

// racer appends to many chains from its own, mostly stale views.
type racer struct {
	b     *bench
	store Store
	token machine.Token
	views []*chain
}

// round appends to a random part of the chains, in a random order, each at the tail this racer
// knows, and returns what was stored.
func (r *racer) round(round int) (stored []machine.Hash) {
	var es []ledger.Entry
	var vs []*chain
	for _, i := range rand.Perm(len(r.views))[:1+rand.IntN(len(r.views))] {
		rec := arming(doing(machine.KindDispatched, saga.Running), round+1)
		es, vs = append(es, r.views[i].entry(rec, []*ledger.Schedule{keep, hold, release}[rand.IntN(3)])), append(vs, r.views[i])
	}
	for i, a := range r.b.settle(r.store, r.token, es) {
		switch v := vs[i]; a.Result {
		case ledger.Appended:
			v.moved(es[i], a)
			stored = append(stored, es[i].Record.Hash)
		case ledger.Stale:
			rs := of(r.store.Load(r.b.Context(), []saga.ID{v.id}))[0].Records
			v.seq, v.tail = rs[len(rs)-1].Seq, rs[len(rs)-1].Hash // it may be stale again before the next round
		default:
			r.b.Errorf("append record %d of %s: got %+v, want appended or stale", es[i].Record.Seq, es[i].ID, a)
		}
	}
	return stored
}

// Ten writers race on twelve chains from stale views: no fork, no gap, no foreign link, nothing
// lost and nothing that was refused is there.
func raceAppend(b *bench) {
	const chains = 12
	t := b.session()
	var all []*chain
	for i := range chains {
		all = append(all, b.start(t, order(i), hold))
	}
	var mu sync.Mutex
	stored := map[machine.Hash]bool{}
	stores := b.stores()
	b.atOnce(10, func(i int) {
		r := &racer{b: b, store: stores[i%2], token: b.session()}
		for _, c := range all {
			r.views = append(r.views, c.view(r.token))
		}
		for round := range 12 {
			hashes := r.round(round)
			mu.Lock()
			for _, h := range hashes {
				stored[h] = true
			}
			mu.Unlock()
		}
	})
	found := 0
	for _, c := range all {
		prev := machine.Hash{}
		for i, rec := range c.history() {
			if rec.Seq != int64(i)+1 || rec.Sum(c.id, theSalt, prev) != rec.Hash || i > 0 && !stored[rec.Hash] {
				b.Errorf("%s: record %d at place %d does not follow, or no writer was told of it", c.id, rec.Seq, i+1)
			}
			prev = rec.Hash
			found++
		}
	}
	if want := len(stored) + chains; found != want {
		b.Errorf("%d records in the chains, %d were answered appended", found, want)
	}
}

// The same work started by many at once is started once: one is told appended, the others that it
// exists.
func raceStart(b *bench) {
	var counts [2]atomic.Int64
	stores := b.stores()
	b.atOnce(8, func(i int) {
		var es []ledger.Entry
		t := b.session()
		for w := range 20 {
			es = append(es, b.fresh(t, order((w*7+i)%20)).entry(started(), hold))
		}
		for _, a := range b.settle(stores[i%2], t, es) {
			if a.Result == ledger.Appended {
				counts[0].Add(1)
			} else if a.Result == ledger.Exists {
				counts[1].Add(1)
			}
		}
	})
	if n := len(b.list(ledger.Filter{})); counts[0].Load() != 20 || counts[1].Load() != 140 || n != 20 {
		b.Errorf("%d appended, %d exist, %d works; want 20, 140 and 20", counts[0].Load(), counts[1].Load(), n)
	}
}

// A claim takes a work away from a dead session: what the dead one still appends on the tail it
// knows competes with the new holder, and only one of them gets the place.
func raceAll(b *bench) {
	const n = 24
	dead, heir := b.session(), b.session()
	stores := b.stores()
	var all [n]*chain
	var told [2][n]ledger.Result
	for i := range all {
		all[i] = b.start(dead, order(i), hold)
	}
	do := []func(){
		func() {
			for i, c := range all {
				told[0][i] = b.settle(stores[0], dead, []ledger.Entry{c.view(dead).entry(doing(machine.KindDone, saga.Running), hold)})[0].Result
			}
		},
		func() {
			for _, c := range all {
				c.post(stores[1], "k")
			}
		},
		func() {
			ok(stores[1].Bury(b.Context(), dead))
			for _, h := range of(stores[1].Claim(b.Context(), heir, ledger.Claim{Limit: n, Known: known})).Instances {
				i := slices.IndexFunc(all[:], func(c *chain) bool { return c.id == h.ID })
				told[1][i] = b.settle(stores[1], heir, []ledger.Entry{all[i].view(heir).entry(doing(machine.KindLost, saga.Running), hold)})[0].Result
			}
		},
	}
	b.atOnce(len(do), func(i int) { do[i]() })
	for i, c := range all {
		won := 0
		for _, r := range []ledger.Result{told[0][i], told[1][i]} {
			if r == ledger.Appended {
				won++
			} else if r != ledger.Stale && r != "" { // "": the work was not claimed
				b.Errorf("%s: got %s, want appended or stale", c.id, r)
			}
		}
		if rs := c.history(); won != 1 || len(rs) != 2 {
			b.Errorf("%s: %d writers were told appended and the chain has %d records, want 1 and 2", c.id, won, len(rs))
		}
	}
}

// However many claim at once, from however many processes, a work is given to one, and none is passed
// over for good, whether it waits for a destination, was released, or its holder died.
func raceClaim(b *bench) {
	const n = 210
	t, dead := b.session(), b.session()
	b.many(dead, n, hold)
	var back []ledger.Return
	for i, h := range b.list(ledger.Filter{Limit: n}) {
		if wait := []string{"books", "mail", ""}[i%3]; i%7 > 0 {
			back = append(back, ledger.Return{Number: h.Number, WaitsFor: wait})
		}
	}
	ok(b.GiveBack(b.Context(), dead, back))
	ok(b.Bury(b.Context(), dead))
	var mu sync.Mutex
	given := map[saga.ID]machine.Token{}
	take := func(s Store, t machine.Token, c ledger.Claim) int {
		got := of(s.Claim(b.Context(), t, c)).Instances
		mu.Lock()
		defer mu.Unlock()
		for _, h := range got {
			if first, twice := given[h.ID]; twice {
				b.Errorf("%s was given to %s and to %s", h.ID, first, t)
			}
			given[h.ID] = t
		}
		return len(got)
	}
	stores := b.stores()
	b.atOnce(6, func(i int) {
		me := b.session()
		for empty := 0; empty < 2; {
			if take(stores[i%2], me, ledger.Claim{Limit: 7, Known: known, Rooms: map[string]int{"books": 5, "mail": 2}}) == 0 {
				empty++
			}
		}
	})
	take(b, t, ledger.Claim{Limit: n, Known: known, Rooms: map[string]int{"books": n, "mail": n}}) // a lock may have hidden one
	for _, h := range b.list(ledger.Filter{Limit: n}) {
		if h.Session == 0 || h.Session != given[h.ID] {
			b.Errorf("%s is held by %s, but was given to %s", h.ID, h.Session, given[h.ID])
		}
	}
}

// Whichever comes first, the post or the release: the signal is found.
func raceRelease(b *bench) {
	const n = 60
	t := b.session()
	stores := b.stores()
	later := doing(machine.KindNotSent, saga.Retrying)
	later.Wait = time.Hour
	ways := []machine.Record{later, doing(machine.KindPaused, saga.Paused), doing(machine.KindDone, saga.Completed)}
	b.atOnce(n, func(i int) {
		c := b.start(t, order(i), hold)
		e := c.entry(ways[i%3], release)
		b.atOnce(2, func(side int) {
			if side == 0 {
				c.post(stores[1], "k")
			} else if a := b.settle(b, t, []ledger.Entry{e})[0]; a.Result != ledger.Appended {
				b.Errorf("release %s: %+v", c.id, a)
			}
		})
	})
	if got := b.claim(b.session(), 1000); len(got) != n {
		b.Errorf("%d of %d signalled works can be claimed: the others' signals are lost", len(got), n)
	}
}

// "Signals are numbered within their work, from 1 and without a gap": sixteen posts of one key at
// the same time take one number, and sixteen of different keys one each.
func raceNumbers(b *bench) {
	c := b.start(b.session(), "w", hold)
	numbers := func(want int, key func(i int) string) {
		b.atOnce(16, func(i int) { c.post(b, key(i)) })
		got := c.signals()
		for i, s := range got {
			if s.ID != int64(i)+1 {
				b.Errorf("signal %d has number %d", i+1, s.ID)
			}
		}
		if h := c.now(); len(got) != want || h.Posted != int64(want) {
			b.Errorf("%d signals and a count of %d, want %d", len(got), h.Posted, want)
		}
	}
	numbers(1, func(int) string { return "one" })
	numbers(17, func(i int) string { return fmt.Sprint("each ", i) })
	numbers(17, func(int) string { return "one" })
}

// Of those who post under one number at the same moment one is stored, and the others are told.
func raceNumbered(b *bench) {
	c := b.start(b.session(), "w", release)
	var stored atomic.Int64
	b.atOnce(8, func(i int) {
		_, err := b.Post(b.Context(), c.id, machine.Signal{ID: 1, Kind: machine.SignalCancel, Key: fmt.Sprint("k", i)})
		if err == nil {
			stored.Add(1)
		} else if !errors.Is(err, ledger.ErrChanged) {
			b.Errorf("post %d: %v", i, err)
		}
	})
	if n := len(c.signals()); stored.Load() != 1 || n != 1 {
		b.Errorf("%d of 8 were told that they are stored, and %d are", stored.Load(), n)
	}
}

func wait(work, key string) ledger.Wait {
	return ledger.Wait{Name: "paid", Key: key, ID: saga.ID{Saga: theSaga, Work: work}, Step: "paid"}
}

// "In each saga one wait uses a message, the first that says so", however many say so at once.
func raceUse(b *bench) {
	of(b.Keep(b.Context(), program.Message{Name: "paid", Key: "7", ID: "evt_1"}, time.Hour))
	var wins atomic.Int64
	b.atOnce(8, func(i int) {
		if of(b.Use(b.Context(), "paid", "evt_1", wait(order(i), "7"))) {
			wins.Add(1)
		}
	})
	if uses := of(b.Uses(b.Context(), "paid", "evt_1")); wins.Load() != 1 || len(uses) != 1 {
		b.Errorf("of eight that use one message %d do, and it is used by %+v", wins.Load(), uses)
	}
}

// "One of the two finds the other": a wait that is made findable and then looks for messages, beside a message that is stored
// and then looks for waits.
func raceMeet(b *bench) {
	for i := range 50 {
		key := fmt.Sprint(i)
		var found [2]int
		b.atOnce(2, func(side int) {
			if side == 0 {
				ok(b.Await(b.Context(), []ledger.Wait{wait("w", key)}))
				found[0] = len(of(b.Messages(b.Context(), "paid", key, theSaga)))
				return
			}
			of(b.Keep(b.Context(), program.Message{Name: "paid", Key: key, ID: key}, time.Hour))
			found[1] = len(of(b.Waits(b.Context(), "paid", key)))
		})
		if found[0]+found[1] == 0 {
			b.Fatalf("round %d: neither found the other", i)
		}
	}
}

// Processes that flush together lose nothing.
func raceCount(b *bench) {
	stores := b.stores()
	b.atOnce(6, func(i int) {
		for round := range 5 {
			var ds []ledger.Duplicate
			for w := range 5 { // in another order each time
				for _, source := range []string{"poll", "Cron"} {
					ds = append(ds, ledger.Duplicate{ID: b.fresh(0, order((w*(1+i%4)+round)%5)).id, Source: source, Count: int64(round + 1)})
				}
			}
			ok(stores[i%2].Count(b.Context(), ledger.Counter(1+i), ds))
		}
	})
	var sum int64
	for _, d := range of(b.Duplicates(b.Context(), ledger.Filter{})) {
		sum += d.Count
	}
	if want := int64(6 * 5 * 5 * 2); sum != want {
		b.Errorf("%d duplicates counted, want %d", sum, want)
	}
	b.wantBlocked(ledger.ByStart, "poll", sum/2)
	b.wantBlocked(ledger.ByStart, "Cron", sum/2)
	b.atOnce(6, func(i int) {
		for range 5 {
			ok(stores[i%2].Blocked(b.Context(), ledger.ByLookup, "books", 2))
			ok(stores[i%2].Blocked(b.Context(), ledger.ByLookup, "Mail", 1))
		}
	})
	b.wantBlocked(ledger.ByLookup, "books", 60)
	b.wantBlocked(ledger.ByLookup, "Mail", 30)
}

// wantBlocked wants so many duplicates of a source to have been blocked by a layer: the days are listed by day, layer and source, each once.
func (b *bench) wantBlocked(by, source string, want int64) {
	b.Helper()
	days := of(b.BlockedDays(b.Context(), time.Time{}))
	for i, d := range days {
		if d.By == by && d.Source == source {
			want -= d.Count
		}
		if i > 0 && cmp.Or(days[i-1].Day.Compare(d.Day), cmp.Compare(days[i-1].By, d.By), cmp.Compare(days[i-1].Source, d.Source)) >= 0 {
			b.Errorf("%+v is listed behind %+v", d, days[i-1])
		}
	}
	if want != 0 {
		b.Errorf("%d duplicates of %s too few were blocked by %s", want, source, by)
	}
}

// Processes that start together describe together: one structure wins, the others are told.
func raceDescribe(b *bench) {
	stores := b.stores()
	specs := [2]*program.Spec{}
	for i := range specs {
		specs[i] = &program.Spec{Saga: "a", Version: 1, Steps: []program.StepSpec{{Name: []string{"customer", "client"}[i], Destination: "books"}}}
	}
	var errs [10]error
	b.atOnce(len(errs), func(i int) { errs[i] = stores[i%2].Describe(b.Context(), specs[i%2]) })
	ds := of(b.Definitions(b.Context()))
	if len(ds) != 1 {
		b.Fatalf("%d definitions, want one", len(ds))
	}
	for i, err := range errs {
		if specs[i%2].Structure() == ds[0].Structure {
			ok(err)
		} else {
			b.wantError("the other structure", err, ledger.ErrDefinitionChanged)
		}
	}
}

// Each chain is loaded as it was at one moment: head, records and unread signals belong
// together, whatever is appended and posted meanwhile.
func raceLoad(b *bench) {
	stores := b.stores()
	c := b.start(b.session(), "w", hold)
	looks, written := make(chan struct{}), make(chan struct{})
	b.atOnce(3, func(i int) {
		if i == 2 {
			defer close(written)
			for n := range 40 {
				<-looks
				c.post(b, order(n))
				c.add(c.consuming(doing(machine.KindNoted, []saga.Status{saga.Compensating, saga.Running}[n%2]), n), hold)
			}
			return
		}
		for {
			select {
			case looks <- struct{}{}: // now something is written
			case <-written:
				return
			}
			l := of(stores[i].Load(b.Context(), []saga.ID{c.id}))[0]
			read := int64(0)
			for k := range l.Records {
				read += int64(len(l.Records[k].Signals))
			}
			h, last := l.Instance, &l.Records[len(l.Records)-1]
			if h.Status != last.Status || h.Consumed != read || h.Posted-h.Consumed != int64(len(l.Signals)) {
				b.Errorf("the head is %+v; %d records end %s, have read %d, and %d are unread", h, len(l.Records), last.Status, read, len(l.Signals))
			}
		}
	})
}

// Who is told that another was first sees at the next load what that one wrote.
func behindStale(b *bench) {
	there, t := b.again(), b.session()
	c := b.start(t, "w", hold)
	for range 10 {
		of(b.Load(b.Context(), []saga.ID{c.id})) // what is known of it grows old
		late := c.view(b.session())
		e := c.entry(doing(machine.KindNoted, saga.Running), hold)
		c.moved(e, of(there.Append(b.Context(), t, []ledger.Entry{e}))[0])
		b.want(late.token, late.entry(doing(machine.KindUnknown, saga.Running), hold), ledger.Stale)
		if rs := of(b.Load(b.Context(), []saga.ID{c.id}))[0].Records; rs[len(rs)-1].Hash != c.tail {
			b.Fatalf("behind a stale answer the chain has %d records, and the one that was first is not the last of them", len(rs))
		}
	}
}

// "Claim buries sessions that expired, Skew after their end": until then what a session holds is
// its own, although its lease may be over by the clock of the node that looks. The clock is
// read behind the claim, so that it is never earlier than the claim's.
func sessionEnd(b *bench) {
	t, other := b.session(), b.session()
	b.start(t, "w", hold)
	if got := b.claim(other, 1); len(got) != 0 {
		b.Fatalf("claimed %v from a session an hour before its end", got)
	}
	lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: 20 * time.Millisecond})
	if b.harness.LosesAnswers && errors.Is(err, ledger.ErrSessionDead) {
		return // the answer was lost, and when the store asked again the lease was over: when is not known
	}
	ok(err)
	for end := lease.At.Add(lease.TTL + b.Limits().Skew); ; {
		got, at := b.claim(other, 1), b.clock()
		if len(got) == 1 && at.Before(end) {
			b.Errorf("claimed from another session %s before its end", end.Sub(at))
		}
		if len(got) == 1 {
			return
		}
		b.until(b.clock, at)
	}
}
