package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var claimCases = []testCase{
	{name: "due works", run: claimDue, breaks: broken{"claim-once": func(s Store) Store { return sharer{s} }}},
	{name: "the longest overdue first, up to the limit", run: claimOrder},
	{name: "by class", run: claimClasses, breaks: broken{"class-order": func(s Store) Store { return impatient{s} }}},
	{name: "places for works that have not begun", run: claimFresh},
	{name: "works of dead sessions", run: claimOrphans},
	{name: "works of expired sessions", run: claimExpired},
	{name: "works of dead sessions in their order", run: claimOrphanOrder},
	{name: "parked and terminal works", run: claimParked},
	{name: "what hung, of a dead session", run: claimHung},
	{name: "a work that begins parked", run: claimBegunParked},
	{name: "unknown definitions", run: claimUnknown, breaks: broken{"unknown-left": func(s Store) Store { return knowAll{s} }}},
	{name: "unknown definitions of dead sessions", run: claimUnknownOrphans},
	{name: "ended works of this version and older ones", run: claimEnded},
	{name: "signalled works", run: claimSignalled},
	{name: "many signalled works", run: claimManySignalled},
	{name: "once each", run: claimRace},
}

// Claim "gives session t up to c.Limit works that are due". A claimed work is held: it is not due,
// and no other session gets it.
func claimDue(b *bench) {
	t, other := b.session(), b.session()
	now := b.start(t, "now", started(), release)
	b.start(t, "later", due(started(), time.Hour), release)
	b.start(t, "held", started(), hold)
	before := now.now()
	got := b.claim(other, 10)
	if len(got) != 1 || got[0].ID != now.id {
		b.Fatalf("claimed %v, want the one work that is due", works(got))
	}
	want := before
	want.Session, want.Due, want.Updated = other, time.Time{}, got[0].Updated
	if diff := headDiff(got[0], want); diff != "" {
		b.Errorf("the claimed head, as Claim returns it:%s", diff)
	}
	if diff := headDiff(now.now(), got[0]); diff != "" {
		b.Errorf("the claimed head, as it is stored:%s", diff)
	}
	for _, s := range []machine.Token{other, t} {
		if again := b.claim(s, 10); len(again) != 0 {
			b.Errorf("claimed %v, which are held or not due", works(again))
		}
	}
	now.view(other).add(arming(doing(machine.KindDispatched, saga.Running), 1), hold) // a claim does not touch the chain
}

// A work may begin parked: no session is given it before a record releases it. What was posted
// meanwhile makes it due then.
func claimBegunParked(b *bench) {
	t := b.session()
	r := started()
	r.Status = saga.Adopting
	c := b.start(0, "adopted", r, release)
	if h := c.now(); h.Status != saga.Adopting || h.Session != 0 || !h.Due.IsZero() || !h.Finished.IsZero() {
		b.Errorf("a work that begins parked: %+v", h)
	}
	c.add(doing(machine.KindAdopted, saga.Adopting), keep)
	if got := b.claim(t, 10); len(got) != 0 {
		b.Fatalf("claimed %v, which is parked", works(got))
	}
	b.post(c.id, "news")
	c.add(doing(machine.KindAdopted, saga.Completed), release)
	h := c.now()
	if h.Status != saga.Completed || h.Finished.IsZero() || h.Due.IsZero() {
		b.Errorf("a work that was released with an unread signal: %+v", h)
	}
	if got := b.claim(t, 10); len(got) != 1 || got[0].ID != c.id {
		b.Errorf("claimed %v, want the work that has an unread signal", works(got))
	}
}

// The longest overdue work comes first, and no more than Limit.
func claimOrder(b *bench) {
	t := b.session()
	dues := map[string]time.Time{}
	var names []string
	var last time.Time
	for i, wait := range []time.Duration{4 * time.Millisecond, 0, 6 * time.Millisecond, 2 * time.Millisecond, 8 * time.Millisecond} {
		h := b.start(t, order(i), due(started(), wait), release).now()
		names, dues[h.ID.Work] = append(names, h.ID.Work), h.Due
		if h.Due.After(last) {
			last = h.Due
		}
	}
	b.until(b.clock, last)
	slices.SortFunc(names, func(a, c string) int { return dues[a].Compare(dues[c]) })
	first, second, none := b.claim(t, 2), b.claim(t, 10), b.claim(t, 10)
	if len(first) != 2 || len(second) != 3 || len(none) != 0 {
		b.Fatalf("claimed %d, %d and %d works, want 2, 3 and 0", len(first), len(second), len(none))
	}
	if got := works(first); !slices.Contains(got, names[0]) || !slices.Contains(got, names[1]) {
		b.Errorf("claimed first %v, want the longest overdue %v", got, names[:2])
	}
	b.start(t, "zero", started(), release)
	if got := b.claim(t, 0); len(got) != 0 {
		b.Errorf("claimed %v with limit 0", works(got))
	}
}

// class releases a work in a class.
func class(c ledger.Class) *ledger.Schedule { return &ledger.Schedule{Class: c} }

// Works are given "in the order of their class, and within one the longest due first": what is to
// be undone, what has begun, what has not.
func claimClasses(b *bench) {
	t := b.session()
	for _, nth := range []string{"first", "second"} {
		b.start(t, "unbegun "+nth, started(), class(ledger.ClassUnbegun))
		b.start(t, "begun "+nth, started(), class(ledger.ClassBegun))
		b.start(t, "compensating "+nth, started(), class(ledger.ClassCompensating))
		b.until(b.clock, b.clock())
	}
	for _, want := range []string{
		"compensating first", "compensating second", "begun first", "begun second", "unbegun first", "unbegun second",
	} {
		if got := works(b.claim(t, 1)); !slices.Equal(got, []string{want}) {
			b.Fatalf("claimed %v, want %s", got, want)
		}
	}
}

// "Of them, up to this many go first to works that have not begun", so that a backlog of begun ones
// does not keep new ones waiting for ever; a place that no such work wants goes to the others.
func claimFresh(b *bench) {
	t := b.session()
	begin := func(kind string, n int, c ledger.Class) {
		for i := range n {
			b.start(t, fmt.Sprint(kind, " ", i), started(), class(c))
		}
	}
	begin("begun", 4, ledger.ClassBegun)
	begin("unbegun", 3, ledger.ClassUnbegun)
	begin("compensating", 1, ledger.ClassCompensating)
	b.until(b.clock, b.clock())
	for i, step := range []struct {
		c    ledger.Claim
		want []string
	}{
		{ledger.Claim{Limit: 3, Fresh: 1}, []string{"begun 0", "compensating 0", "unbegun 0"}},
		{ledger.Claim{Limit: 1, Fresh: 5}, []string{"unbegun 1"}},
		{ledger.Claim{Limit: 9, Fresh: 5}, []string{"begun 1", "begun 2", "begun 3", "unbegun 2"}},
	} {
		step.c.Known = known
		got := works(b.claimAs(t, step.c))
		if slices.Sort(got); !slices.Equal(got, step.want) {
			b.Errorf("claim %d gave %v, want %v", i+1, got, step.want)
		}
	}
}

// Claim "releases what dead ones held", and gives it with what is due.
func claimOrphans(b *bench) {
	dead, live, other := b.session(), b.session(), b.session()
	b.start(dead, "running", started(), hold)
	c := b.start(dead, "compensating", started(), hold)
	c.add(doing(machine.KindRefused, saga.Compensating), hold)
	b.start(live, "live", started(), hold)
	b.start(dead, "released", due(started(), time.Hour), release)
	b.bury(dead)
	got := works(b.claim(other, 10))
	slices.Sort(got)
	if !slices.Equal(got, []string{"compensating", "running"}) {
		b.Errorf("claimed %v, want the two works that the dead session held", got)
	}
}

// "A work whose holder died counts as due since the end of its holder's lease", in its class.
func claimOrphanOrder(b *bench) {
	dying, t := b.session(), b.session()
	b.start(dying, "orphaned", started(), hold)
	b.start(dying, "orphaned, compensating", started(), &ledger.Schedule{Hold: true, Class: ledger.ClassCompensating})
	b.start(t, "due before", started(), release)
	b.until(b.clock, b.clock())
	b.expire(dying)
	b.until(b.clock, b.clock())
	b.start(t, "due since", started(), release)
	for _, want := range []string{"orphaned, compensating", "due before", "orphaned", "due since"} {
		if got := works(b.claim(t, 1)); !slices.Equal(got, []string{want}) {
			b.Fatalf("claimed %v, want %s", got, want)
		}
	}
}

// "Claim buries expired sessions", which frees their works.
func claimExpired(b *bench) {
	dying, other := b.session(), b.session()
	c := b.start(dying, "w", started(), hold)
	if got := b.claim(other, 10); len(got) != 0 {
		b.Fatalf("claimed %v from a live session", works(got))
	}
	b.expire(dying)
	if got := b.claim(other, 10); len(got) != 1 || got[0].ID != c.id || got[0].Session != other {
		b.Errorf("claimed %+v, want the work of the expired session", got)
	}
	b.isDead(dying)
}

// A review whose action has not returned goes on when the session is over that waits for it; another does not.
func claimHung(b *bench) {
	dying, other := b.session(), b.session()
	hung, parked := b.start(dying, "hung", started(), hold), b.start(dying, "parked", started(), hold)
	for c, why := range map[*chain]saga.Reason{hung: saga.ReasonHung, parked: saga.ReasonPoison} {
		r := doing(machine.KindParked, saga.Review)
		r.Reason = why
		c.add(r, hold)
	}
	if got := b.claim(other, 10); len(got) != 0 {
		b.Errorf("claimed %v of a live session", works(got))
	}
	b.expire(dying)
	if got := works(b.claim(other, 10)); !slices.Equal(got, []string{"hung"}) {
		b.Errorf("claimed %v, want what hung", got)
	}
}

// A work that is parked or has ended is claimed only for a signal, and keeps its status.
func claimParked(b *bench) {
	t := b.session()
	parked, signalled := b.start(t, "parked", started(), hold), b.start(t, "signalled", started(), hold)
	paused, held := b.start(t, "paused", started(), hold), b.start(t, "paused, and spoken to", started(), hold)
	ended := b.start(t, "ended", started(), hold)
	parked.add(reviewed(), release)
	signalled.add(reviewed(), release)
	paused.add(doing(machine.KindPaused, saga.Paused), release)
	held.add(doing(machine.KindPaused, saga.Paused), release)
	ended.add(doing(machine.KindDone, saga.Completed), release)
	if got := b.claim(t, 10); len(got) != 0 {
		b.Fatalf("claimed %v, want nothing: parked or terminal, without a signal", works(got))
	}
	b.post(signalled.id, "go")
	b.post(held.id, "go on")
	b.post(ended.id, "too late")
	got := b.claim(t, 10)
	if len(got) != 3 || got[0].ID != signalled.id || got[0].Status != saga.Review || got[0].Reason != saga.ReasonInDoubt ||
		got[1].ID != held.id || got[1].Status != saga.Paused || got[1].Reason != "" ||
		got[2].ID != ended.id || got[2].Status != saga.Completed || got[2].Finished.IsZero() {
		b.Errorf("claimed %+v, want the signalled works, still in review, paused and completed", got)
	}
	b.bury(t)
	other := b.session()
	if got := b.claim(other, 10); len(got) != 3 || got[0].ID != signalled.id || got[1].ID != held.id || got[2].ID != ended.id {
		b.Errorf("claimed %v, want the works whose holder died, with their signals unread", works(got))
	}
}

// "Works of others are left alone", however long they are due: what no process knows stays as it is
// (CORE-1, CORE-2). A version is part of a definition.
func claimUnknown(b *bench) {
	t := b.session()
	second, third := started(), started()
	second.Version, third.Version = 2, 3
	b.start(t, "version 3", third, release) // for longer than the others
	b.start(t, "version 2", second, release)
	other := b.fresh(t, "other saga")
	other.id.Saga = "order-to-crm"
	other.add(started(), release)
	b.post(other.id, "hello")
	parked := b.start(t, "parked", second, hold)
	parked.add(reviewed(), release)
	b.post(parked.id, "hello")
	before := b.list(ledger.Filter{})
	for _, knows := range [][]ledger.Version{known, nil, {{Saga: "x", Version: 2}, {Saga: "order-to-crm", Version: 2}}} {
		if got := b.claimAs(t, ledger.Claim{Limit: 10, Fresh: 10, Known: knows}); len(got) != 0 {
			b.Fatalf("claimed %v, knowing %v", works(got), knows)
		}
	}
	for i, h := range b.list(ledger.Filter{}) {
		if diff := headDiff(h, before[i]); diff != "" {
			b.Errorf("a claim changed the head of %s:%s", h.ID, diff)
		}
	}
	mine := ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: "x", Version: 2}, {Saga: theSaga, Version: 2}}}
	got := works(b.claimAs(t, mine))
	if slices.Sort(got); !slices.Equal(got, []string{"parked", "version 2"}) {
		b.Errorf("claimed %v, want the works of the known version", got)
	}
}

// What a dead session held waits for a process that knows it, due since the end of the lease.
func claimUnknownOrphans(b *bench) {
	dying, t := b.session(), b.session()
	second := started()
	second.Version = 2
	c := b.start(dying, "w", second, hold)
	quiet := b.start(dying, "quiet", second, hold)
	quiet.add(reviewed(), hold)
	b.expire(dying)
	b.bury(dying)
	now := b.clock()
	if got := b.claim(t, 10); len(got) != 0 {
		b.Fatalf("claimed %v, which are not known", works(got))
	}
	if h := c.now(); h.Session != 0 || h.Due.IsZero() || h.Due.After(now) {
		b.Errorf("the head is %+v, want released and due since the end of the lease, before %v", h, now)
	}
	if got := works(b.claimAs(t, ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: theSaga, Version: 2}}})); !slices.Equal(got, []string{"w"}) {
		b.Errorf("claimed %v, want the work whose holder died", got)
	}
}

// "A work that has ended is known to a process that knows its version or a newer one of its saga",
// and to no other: it could not tell what the work did.
func claimEnded(b *bench) {
	t := b.session()
	newer := b.fresh(t, "of a newer version") // for longer than the others
	first := started()
	first.Version = 9
	newer.add(first, hold)
	newer.add(doing(machine.KindDone, saga.Completed), release)
	b.post(newer.id, "hello")
	for i := range 3 {
		c := b.start(t, order(i), started(), hold)
		c.add(doing(machine.KindDone, saga.Completed), release)
		b.post(c.id, "hello")
	}
	for _, knows := range [][]ledger.Version{nil, {{Saga: "order-to-crm", Version: 10}}} {
		if got := b.claimAs(t, ledger.Claim{Limit: 10, Known: knows}); len(got) != 0 {
			b.Fatalf("claimed %v, knowing %v", works(got), knows)
		}
	}
	c := ledger.Claim{Limit: 2, Known: []ledger.Version{{Saga: theSaga, Version: 7}, {Saga: theSaga, Version: 8}}}
	if got := works(b.claimAs(t, c)); !slices.Equal(got, []string{order(0), order(1)}) {
		b.Errorf("claimed %v, want two that have ended", got)
	}
	b.start(t, "unbegun", started(), class(ledger.ClassUnbegun)) // due after them, and behind them
	other := b.session()
	for _, want := range []string{order(2), "unbegun"} { // what has ended counts as begun, and what is not known is passed
		if got := works(b.claim(other, 1)); !slices.Contains(got, want) {
			b.Errorf("claimed %v, want %s", got, want)
		}
	}
}

// Claim "returns them together with works t already holds that have an unread signal", until the
// signal is consumed, and beyond the limit.
func claimSignalled(b *bench) {
	t, other := b.session(), b.session()
	var held []*chain
	for i := range 5 {
		held = append(held, b.start(t, order(i), started(), hold))
	}
	theirs := b.start(other, "theirs", started(), hold)
	free := b.start(other, "free", due(started(), time.Hour), release)
	for _, c := range []*chain{held[1], held[3], theirs, free} {
		b.post(c.id, "hello")
	}
	for i, want := range [][]string{
		{order(1), order(3), "free"}, // the free work is now held, with its signal unread: named once
		{order(1), order(3), "free"},
	} {
		got := works(b.claim(t, 1))
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			b.Errorf("claim %d gave %v, want %v", i+1, got, want)
		}
	}
	if got := b.claim(t, 0); len(got) != 3 {
		b.Errorf("claimed %v, want the three signalled works, whatever the limit", works(got))
	}
	held[1].add(b.consuming(held[1].id, doing(machine.KindNoted, saga.Running), 0), keep)
	got := works(b.claim(t, 1))
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values([]string{order(3), "free"}))) {
		b.Errorf("claimed %v after the signal to %s was consumed", got, order(1))
	}
	if got := works(b.claim(other, 10)); !slices.Equal(got, []string{"theirs"}) {
		b.Errorf("the other session got %v, want its own signalled work", got)
	}
}

// However many works in hand have an unread signal, Claim names each: those that are read late hide
// no other (core.md, D4).
func claimManySignalled(b *bench) {
	t := b.session()
	const n = 1010
	var batch []ledger.Entry
	for i := range n {
		batch = append(batch, b.fresh(t, order(i)).entry(started(), hold))
	}
	b.append(t, batch...)
	for i := range n {
		b.post(id(order(i)), "hello")
	}
	seen := map[string]bool{}
	for _, h := range b.claim(t, 1) {
		seen[h.ID.Work] = true
	}
	if len(seen) != n {
		b.Errorf("named %d works, want all %d that have an unread signal", len(seen), n)
	}
}

// given remembers which session was given which work.
type given struct {
	rooms map[string]int // what each claim says of them
	mu    sync.Mutex
	works map[saga.ID]machine.Token
}

// take claims for session t, a few works at a time, until nothing is left twice in a row.
func (g *given) take(b *bench, s Store, t machine.Token) {
	for empty := 0; empty < 2 && !b.Failed(); {
		got, err := s.Claim(b.Context(), t, ledger.Claim{Limit: 7, Known: known, Rooms: g.rooms})
		if err != nil {
			b.Errorf("claim: %v", err)
			return
		}
		if len(got.Instances) == 0 {
			empty++
		}
		g.note(b, t, got.Instances)
	}
}

func (g *given) note(b *bench, t machine.Token, heads []ledger.Instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range heads {
		if first, twice := g.works[h.ID]; twice {
			b.Errorf("%s was given to %s and to %s", h.ID, first, t)
		}
		g.works[h.ID] = t
	}
}

// However many claim at once, from however many processes, a work is given to one.
func claimRace(b *bench) {
	const n, claimers = 200, 6
	t, dead := b.session(), b.session()
	var batch []ledger.Entry
	for i := range n {
		e := b.fresh(t, order(i)).entry(started(), release)
		if i%3 == 0 {
			e = b.fresh(dead, order(i)).entry(started(), hold)
		}
		batch = append(batch, e)
	}
	b.append(t, batch...)
	b.bury(dead)
	g := given{works: map[saga.ID]machine.Token{}}
	stores := []Store{b.Store, b.again()}
	var wg sync.WaitGroup
	for i := range claimers {
		me := b.session()
		wg.Go(func() { g.take(b, stores[i%2], me) })
	}
	wg.Wait()
	g.note(b, t, b.claim(t, n)) // a skipped lock may hide a work from one claim, never for good
	if len(g.works) != n {
		b.Errorf("%d works were given, want all %d", len(g.works), n)
	}
	for _, h := range b.list(ledger.Filter{Limit: n}) {
		if h.Session != g.works[h.ID] {
			b.Errorf("%s is held by %s, but was given to %s", h.ID, h.Session, g.works[h.ID])
		}
	}
}
