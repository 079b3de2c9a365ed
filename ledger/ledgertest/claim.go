package ledgertest

import (
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

var claimCases = []testCase{
	{"due works", claimDue},
	{"the longest overdue first, up to the limit", claimOrder},
	{"works of dead sessions", claimOrphans},
	{"works of expired sessions", claimExpired},
	{"parked and terminal works", claimParked},
	{"a work that begins parked", claimBegunParked},
	{"unknown definitions", claimUnknown},
	{"unknown definitions of dead sessions", claimUnknownOrphans},
	{"parked for an unknown definition", claimParkedUnknown},
	{"signalled works", claimSignalled},
	{"all held works", claimAll},
	{"once each", claimRace},
}

// Claim "gives session t up to Limit works that are due". A claimed work is held: it is not due, and nobody else
// gets it.
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
	for _, s := range []saga.Token{other, t} {
		if again := b.claim(s, 10); len(again) != 0 {
			b.Errorf("claimed %v, which are held or not due", works(again))
		}
	}
	now.view(other).add(arming(doing(saga.KindArmed, saga.Running), 1), hold) // a claim does not touch the chain
}

// A work may begin parked: nobody is given it before a record releases it. What was posted meanwhile makes it due then.
func claimBegunParked(b *bench) {
	t := b.session()
	r := started()
	r.Status = saga.Paused
	c := b.start(0, "adopted", r, release)
	if h := c.now(); h.Status != saga.Paused || h.Session != 0 || !h.Due.IsZero() || !h.Finished.IsZero() {
		b.Errorf("a work that begins parked: %+v", h)
	}
	c.add(doing(saga.KindAdopted, saga.Paused), keep)
	if got := b.claim(t, 10); len(got) != 0 {
		b.Fatalf("claimed %v, which is parked", works(got))
	}
	b.post(c.id, "news")
	c.add(doing(saga.KindAdopted, saga.Completed), release)
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
	b.until(last)
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

// Claim also gives works "whose holder is dead", at once and whatever their status.
func claimOrphans(b *bench) {
	dead, live, other := b.session(), b.session(), b.session()
	b.start(dead, "running", started(), hold)
	c := b.start(dead, "compensating", started(), hold)
	c.add(doing(saga.KindRefused, saga.Compensating), hold)
	b.start(live, "live", started(), hold)
	b.start(dead, "released", due(started(), time.Hour), release)
	b.bury(dead)
	got := works(b.claim(other, 10))
	slices.Sort(got)
	if !slices.Equal(got, []string{"compensating", "running"}) {
		b.Errorf("claimed %v, want the two works that the dead session held", got)
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

// A work that is parked or has ended is claimed only for a signal, and keeps its status.
func claimParked(b *bench) {
	t := b.session()
	parked, signalled := b.start(t, "parked", started(), hold), b.start(t, "signalled", started(), hold)
	paused, ended := b.start(t, "paused", started(), hold), b.start(t, "ended", started(), hold)
	parked.add(reviewed(), release)
	signalled.add(reviewed(), release)
	paused.add(doing(saga.KindParked, saga.Paused), release)
	ended.add(doing(saga.KindDone, saga.Completed), release)
	if got := b.claim(t, 10); len(got) != 0 {
		b.Fatalf("claimed %v, want nothing: parked or terminal, without a signal", works(got))
	}
	b.post(signalled.id, "go")
	b.post(ended.id, "too late")
	got := b.claim(t, 10)
	if len(got) != 2 || got[0].ID != signalled.id || got[0].Status != saga.Review || got[0].Reason != saga.ReasonInDoubt ||
		got[1].ID != ended.id || got[1].Status != saga.Completed || got[1].Finished.IsZero() {
		b.Errorf("claimed %+v, want the signalled works, still in review and completed", got)
	}
	b.bury(t)
	other := b.session()
	if got := b.claim(other, 10); len(got) != 2 || got[0].ID != signalled.id || got[1].ID != ended.id {
		b.Errorf("claimed %v, want the works whose holder died", works(got))
	}
}

// "Works of other definitions are claimed only once they have been overdue for Grace, so that some process which
// knows them can take them first." A version is part of a definition.
func claimUnknown(b *bench) {
	t := b.session()
	second := started()
	second.Version = 2
	b.start(t, "version 2", second, release)
	other := b.fresh(t, "other saga")
	other.id.Saga = "order-to-crm"
	a := other.add(started(), release)
	if got := b.claimAs(t, ledger.Claim{Limit: 10, Known: known, Grace: time.Hour}); len(got) != 0 {
		b.Fatalf("claimed %v within their grace", works(got))
	}
	if got := b.claimAs(t, ledger.Claim{Limit: 10, Grace: time.Hour}); len(got) != 0 {
		b.Fatalf("claimed %v within their grace, knowing nothing", works(got))
	}
	mine := ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: "x", Version: 2}, {Saga: theSaga, Version: 2}}, Grace: time.Hour}
	if got := works(b.claimAs(t, mine)); !slices.Equal(got, []string{"version 2"}) {
		b.Errorf("claimed %v, want the work of the known version", got)
	}
	b.until(a.At.Add(2 * time.Millisecond))
	if got := works(b.claimAs(t, ledger.Claim{Limit: 10, Known: known, Grace: time.Millisecond})); !slices.Equal(got, []string{"other saga"}) {
		b.Errorf("claimed %v, want the work that is overdue for longer than its grace", got)
	}
}

// The grace of a work whose holder died counts from the end of its lease.
func claimUnknownOrphans(b *bench) {
	dying, t := b.session(), b.session()
	second := started()
	second.Version = 2
	b.start(dying, "w", second, hold)
	b.expire(dying)
	at := b.clock()
	if got := b.claim(t, 10); len(got) != 0 {
		b.Fatalf("claimed %v within their grace", works(got))
	}
	b.until(at.Add(2 * time.Millisecond))
	if got := b.claimAs(t, ledger.Claim{Limit: 10, Known: known, Grace: time.Millisecond}); len(got) != 1 {
		b.Errorf("claimed %v, want the work whose holder died longer ago than its grace", works(got))
	}
}

// "A work that is parked because nobody knew its definition is never given to another process that does not know it,
// whatever is posted to it": it could only park it again, with a record each time.
func claimParkedUnknown(b *bench) {
	dying, t := b.session(), b.session()
	park := func(name string) {
		c := b.start(dying, name, started(), hold)
		r := reviewed()
		r.Reason = saga.ReasonUnknownVersion
		c.add(r, release)
		b.post(c.id, "hello")
	}
	park("orphaned")
	knows := ledger.Claim{Limit: 10, Known: known, Grace: time.Millisecond}
	doesNot := ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: theSaga, Version: 2}}, Grace: time.Millisecond}
	if got := works(b.claimAs(dying, knows)); !slices.Equal(got, []string{"orphaned"}) {
		b.Fatalf("claimed %v, want the parked work, by who knows it", got)
	}
	park("released")
	b.expire(dying)
	b.until(b.clock().Add(2 * time.Millisecond))
	if got := b.claimAs(t, doesNot); len(got) != 0 {
		b.Errorf("claimed %v, not knowing their definition either", works(got))
	}
	got := works(b.claimAs(t, knows))
	if slices.Sort(got); !slices.Equal(got, []string{"orphaned", "released"}) {
		b.Errorf("claimed %v, want both parked works, by who knows them", got)
	}
}

// Claim "returns them together with works t already holds that somebody has posted a signal to", until the
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
	held[1].add(b.consuming(held[1].id, doing(saga.KindNoted, saga.Running), 0), keep)
	got := works(b.claim(t, 1))
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values([]string{order(3), "free"}))) {
		b.Errorf("claimed %v after the signal to %s was consumed", got, order(1))
	}
	if got := works(b.claim(other, 10)); !slices.Equal(got, []string{"theirs"}) {
		b.Errorf("the other session got %v, want its own signalled work", got)
	}
}

// All "returns every work t holds, not only those somebody has posted a signal to", however many there are:
// also those that a claim gave it whose answer was lost.
func claimAll(b *bench) {
	t, other := b.session(), b.session()
	const n = 1010
	var batch []ledger.Entry
	for i := range n {
		batch = append(batch, b.fresh(t, order(i)).entry(started(), hold))
	}
	b.append(t, batch...)
	b.start(other, "theirs", started(), hold)
	b.start(other, "free", started(), release)
	l := Faulty(b.Store, LoseAnswer(1, ClaimWorks))
	c := ledger.Claim{Limit: 1, Known: known, Grace: time.Hour}
	if _, err := l.Claim(b.Context(), t, c); err == nil {
		b.Fatal("the answer was not lost")
	}
	if got := b.claimAs(t, c); len(got) != 0 {
		b.Errorf("claimed %v, want nothing: the lost claim took it", works(got))
	}
	c.All = true
	seen := map[string]bool{}
	for _, h := range b.claimAs(t, c) {
		if h.Session != t || seen[h.ID.Work] {
			b.Errorf("%s is held by %s, or was named twice", h.ID, h.Session)
		}
		seen[h.ID.Work] = true
	}
	if len(seen) != n+1 || !seen["free"] || seen["theirs"] {
		b.Errorf("named %d works, want the %d held ones and the one the lost claim took", len(seen), n)
	}
}

// given remembers which session was given which work.
type given struct {
	mu    sync.Mutex
	works map[saga.ID]saga.Token
}

// take claims for session t, a few works at a time, until nothing is left twice in a row.
func (g *given) take(b *bench, s Store, t saga.Token) {
	for empty := 0; empty < 2 && !b.Failed(); {
		heads, err := s.Claim(b.Context(), t, ledger.Claim{Limit: 7, Known: known, Grace: time.Hour})
		if err != nil {
			b.Errorf("claim: %v", err)
			return
		}
		if len(heads) == 0 {
			empty++
		}
		g.note(b, t, heads)
	}
}

func (g *given) note(b *bench, t saga.Token, heads []ledger.Head) {
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
	g := given{works: map[saga.ID]saga.Token{}}
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
