package storetest

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

var overviewCases = []testCase{
	{name: "sessions", run: overviewSessions},
	{name: "what no process knows", run: overviewUnknown, breaks: broken{"knows-kept": func(s Store) Store { return forgetful{s} }}},
	{name: "what a dead process left", run: overviewOrphans},
	{name: "what was not touched for longest", run: overviewOldest},
	{name: "what waits for destinations", run: overviewWaiting, breaks: broken{"wait-counted": func(s Store) Store { return waitBlind{s} }}},
	{name: "nothing is ahead of the clock", run: overviewAhead},
}

func (b *bench) overview() ledger.Overview {
	b.Helper()
	o, err := b.Overview(b.Context())
	if err != nil {
		b.Fatalf("overview: %v", err)
	}
	return o
}

// Sessions returns "the live sessions, then the dead ones that still hold works; each kind by its
// opening", with what they know and hold. A dead one that holds nothing is gone.
func overviewSessions(b *bench) {
	open := func(label string, knows ...ledger.Version) machine.Token {
		lease, err := b.OpenSession(b.Context(), time.Hour, label, knows)
		if err != nil {
			b.Fatal(err)
		}
		b.until(b.clock, lease.At)
		return lease.Token
	}
	first := open("first", known...)
	dying, gone := open("dying"), open("gone")
	second := open("second", ledger.Version{Saga: "ö \"x\"", Version: 1}, ledger.Version{Saga: "b", Version: 2})
	b.start(first, "a", started(), hold)
	b.start(first, "b", started(), hold)
	b.start(dying, "c", started(), hold)
	b.start(gone, "d", started(), release)
	b.expire(dying)
	b.bury(gone)
	knows := []ledger.Version{{Saga: theSaga, Version: 1}, {Saga: theSaga, Version: 2}}
	lease, err := b.Renew(b.Context(), first, ledger.Renewal{TTL: time.Minute, Knows: knows})
	if err != nil {
		b.Fatal(err)
	}
	got, err := b.Sessions(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(s ledger.Session) bool { return s.Token == b.witness })
	want := []ledger.Session{
		{Token: first, Label: "first", Knows: knows, Holds: 2},
		{Token: second, Label: "second", Knows: []ledger.Version{{Saga: "ö \"x\"", Version: 1}, {Saga: "b", Version: 2}}},
		{Token: dying, Label: "dying", Dead: true, Holds: 1},
	}
	if len(got) != len(want) {
		b.Fatalf("%d sessions, want %d: %+v", len(got), len(want), got)
	}
	for i, s := range got {
		w := want[i]
		if s.Token != w.Token || s.Label != w.Label || s.Dead != w.Dead || s.Holds != w.Holds || !slices.Equal(s.Knows, w.Knows) ||
			s.Opened.IsZero() || s.Renewed.Before(s.Opened) || !s.Expires.After(s.Renewed) {
			b.Errorf("session %d is %+v, want %+v with its times", i, s, w)
		}
	}
	if s := got[0]; !s.Renewed.Equal(lease.At) || !s.Expires.Equal(lease.At.Add(time.Minute)) {
		b.Errorf("renewed %v until %v, want %v and a minute more", s.Renewed, s.Expires, lease.At)
	}
	if o := b.overview(); len(o.Sessions) != 2 && b.witness == 0 || slices.ContainsFunc(o.Sessions, func(s ledger.Session) bool { return s.Dead }) {
		b.Errorf("the overview has sessions %+v, want the live ones", o.Sessions)
	}
}

// Unknown is what waits for a process that knows its definition "while no live session does": by
// saga and version, with the oldest due time. A backlog of a definition that a live session knows
// is not that.
func overviewUnknown(b *bench) {
	lease, err := b.OpenSession(b.Context(), time.Hour, "knows one", known)
	if err != nil {
		b.Fatal(err)
	}
	t, none := lease.Token, b.session()
	begin := func(name, work string, version int, s *ledger.Schedule, r machine.Record) *chain {
		c := b.fresh(t, work)
		c.id.Saga, r.Version = name, version
		c.add(r, s)
		return c
	}
	begin(theSaga, "known", 1, release, started())
	first := begin("a", "first", 1, class(ledger.ClassUnbegun), started()).now()
	begin("a", "second", 1, release, started())
	begin("a", "third", 1, release, due(started(), time.Hour))
	later := begin("a", "other version", 3, release, due(started(), time.Hour)).now()
	begin("c", "held", 1, hold, started())
	ended := begin("b", "ended", 7, hold, started())
	ended.add(doing(machine.KindDone, saga.Completed), release)
	old := begin(theSaga, "ended", 9, hold, started())
	old.add(doing(machine.KindDone, saga.Completed), release)
	b.post(ended.id, "k")
	b.post(old.id, "k")
	want := []ledger.Backlog{
		{Saga: "a", Version: 1, Works: 3, Oldest: first.Due},
		{Saga: "a", Version: 3, Works: 1, Oldest: later.Due},
		{Saga: "b", Version: 7, Ended: true, Works: 1, Oldest: ended.now().Due},
		{Saga: theSaga, Version: 9, Ended: true, Works: 1, Oldest: old.now().Due},
	}
	same := func(a, c ledger.Backlog) bool {
		return a.Saga == c.Saga && a.Version == c.Version && a.Ended == c.Ended && a.Works == c.Works && a.Oldest.Equal(c.Oldest)
	}
	if got := b.overview().Unknown; !slices.EqualFunc(got, want, same) {
		b.Errorf("unknown are %+v, want %+v", got, want)
	}
	if _, err := b.Renew(b.Context(), none, ledger.Renewal{TTL: time.Hour, Knows: []ledger.Version{
		{Saga: "a", Version: 1}, {Saga: "a", Version: 4}, {Saga: "b", Version: 8}, {Saga: theSaga, Version: 10}, // a newer one knows what has ended only
	}}); err != nil {
		b.Fatal(err)
	}
	if got := b.overview().Unknown; !slices.EqualFunc(got, want[1:2], same) {
		b.Errorf("with another session unknown are %+v, want %+v", got, want[1:2])
	}
}

// What a dead session holds waits, too, before and after a claim has released it.
func overviewOrphans(b *bench) {
	dying := b.session()
	b.start(dying, "w", started(), hold)
	b.start(dying, "at rest", started(), hold).add(reviewed(), release)
	b.expire(dying)
	look := func(when string) {
		b.Helper()
		got := b.overview().Unknown
		if len(got) != 1 || got[0].Saga != theSaga || got[0].Version != 1 || got[0].Works != 1 || got[0].Oldest.IsZero() || got[0].Oldest.After(b.clock()) {
			b.Errorf("%s: unknown are %+v, want the one work of the dead session", when, got)
		}
	}
	look("held")
	if got := b.claimAs(b.session(), ledger.Claim{Limit: 1}); len(got) != 0 {
		b.Fatalf("claimed %v, knowing nothing", works(got))
	}
	look("released")
}

// Oldest are "the live works whose latest record is oldest, of those that are held or overdue".
func overviewOldest(b *bench) {
	t := b.session()
	moved := b.start(t, "moved", started(), hold)
	b.until(b.clock, b.clock())
	still := b.start(t, "still", started(), hold)
	b.until(b.clock, b.clock())
	b.start(t, "overdue", started(), release)
	b.start(t, "not due", due(started(), time.Hour), release)
	b.start(t, "parked", started(), hold).add(reviewed(), release)
	b.start(t, "ended", started(), hold).add(doing(machine.KindDone, saga.Completed), release)
	b.until(b.clock, b.clock())
	at := moved.add(doing(machine.KindDone, saga.Running), keep).At
	got := b.overview().Oldest
	if w := works(got); !slices.Equal(w, []string{"still", "overdue", "moved"}) {
		b.Fatalf("the oldest are %v", w)
	}
	if !got[0].Updated.Equal(still.history()[0].At) || !got[2].Updated.Equal(at) {
		b.Errorf("they were last touched at %v and %v, want the times of their latest records", got[0].Updated, got[2].Updated)
	}
	for i := range 2 * ledger.MaxOldest {
		b.start(t, order(i), started(), hold)
	}
	if got := b.overview().Oldest; len(got) != ledger.MaxOldest || got[0].ID.Work != "still" {
		b.Errorf("the oldest are %v, want %d of them", works(got), ledger.MaxOldest)
	}
}

// Waiting is "what waits for a destination", by destination, whatever is known here; of it what no
// live session knows is among the unknown, too, and none of it among what was not touched for
// longest.
func overviewWaiting(b *bench) {
	lease, err := b.OpenSession(b.Context(), time.Hour, "knows one", known)
	if err != nil {
		b.Fatal(err)
	}
	t := lease.Token
	first := b.wait(t, books, class(ledger.ClassUnbegun), "1", "2")[1].now() // given back before the other
	b.wait(t, books, class(ledger.ClassCompensating), "3")
	later := b.start(t, "later", started(), hold)
	at := b.clock().Add(time.Hour)
	b.giveBack(t, ledger.Return{Number: later.head, Due: at, WaitsFor: "Books"})
	newer, other := started(), b.fresh(t, "of another saga")
	newer.Version = 2
	unknown := b.start(t, "of a newer version", newer, hold)
	other.id.Saga = "order-to-crm"
	other.add(started(), hold)
	b.giveBack(t, ledger.Return{Number: unknown.head, WaitsFor: mail}, ledger.Return{Number: other.head, WaitsFor: mail})
	b.post(b.wait(t, mail, release, "spoken to")[0].id, "k")
	o := b.overview()
	want := []ledger.Waiting{
		{Destination: "Books", Works: 1, Oldest: at},
		{Destination: books, Works: 3, Oldest: first.Due},
		{Destination: mail, Works: 2, Oldest: unknown.now().Due},
	}
	if !slices.EqualFunc(o.Waiting, want, func(a, c ledger.Waiting) bool {
		return a.Destination == c.Destination && a.Works == c.Works && a.Oldest.Equal(c.Oldest)
	}) {
		b.Errorf("waiting are %+v, want %+v", o.Waiting, want)
	}
	if got := works(o.Oldest); !slices.Equal(got, []string{"spoken to"}) {
		b.Errorf("the oldest are %v, want the one that waits for no destination any more", got)
	}
	if len(o.Unknown) != 2 || o.Unknown[0].Saga != "order-to-crm" || o.Unknown[1].Version != 2 || o.Unknown[0].Works+o.Unknown[1].Works != 2 {
		b.Errorf("unknown are %+v, want those that wait for mail", o.Unknown)
	}
	b.claimRooms(t, 9, map[string]int{books: 9})
	if o := b.overview(); len(o.Waiting) != 2 {
		b.Errorf("after a claim waiting are %+v", o.Waiting)
	}
}

// While the clock is right nothing is ahead of it, and there is nothing to catch up with.
func overviewAhead(b *bench) {
	t := b.session()
	b.start(t, "later", due(started(), time.Hour), release)
	b.start(t, "held", due(started(), time.Hour), hold)
	waits := b.start(t, "waits", started(), hold)
	b.giveBack(t, ledger.Return{Number: waits.head, Due: b.clock().Add(time.Hour), WaitsFor: books})
	before := b.list(ledger.Filter{})
	if o := b.overview(); len(o.Ahead.Works)+len(o.Ahead.Sessions) != 0 || o.At.IsZero() {
		b.Errorf("at %v ahead are %+v", o.At, o.Ahead)
	}
	if works, sessions, err := b.CatchUp(b.Context()); err != nil || works != 0 || sessions != 0 {
		b.Errorf("caught up with %d works and %d sessions, %v", works, sessions, err)
	}
	for i, h := range b.list(ledger.Filter{}) {
		if diff := headDiff(h, before[i]); diff != "" {
			b.Errorf("%s changed:%s", h.ID, diff)
		}
	}
}
