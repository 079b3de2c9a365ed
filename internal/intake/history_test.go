package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/asking"
)

// history is what happened to one object, and the events that told of it. The source shows the last
// state.
type history struct {
	name   string
	policy Policy
	events []Event
	source Fetched
}

// histories are six changes each, as sources of all kinds tell them.
func histories() []history {
	event := func(v Version) Version { v.Clock = EventClock; return v }
	told := func(version func(n int) Version, tell func(ev Event) Event) []Event {
		var events []Event
		for n := 1; n <= 6; n++ {
			events = append(events, tell(says(version(n), fmt.Sprint("state ", n))))
		}
		return events
	}
	whole := func(ev Event) Event { return ev }
	counter := func(n int) Version { return Counter(int64(n)) }
	pairs := func(n int) Version { return clocked((n + 1) / 2) }
	none := func(int) Version { return Version{} }
	dense := Policy{Dense: true, Merge: mergeObjects}
	deltas := []Event{says(Counter(1), "state 1"), delta(2), delta(3), delta(4), delta(5), delta(6)}
	sum, err := Fingerprint(json.RawMessage(`{"is":"state 1","n2":2,"n3":3,"n4":4,"n5":5,"n6":6}`))
	if err != nil {
		panic(err)
	}
	return []history{
		{"a second for each state", Policy{}, told(clocked, whole), shows(clocked(6), "state 6")},
		{"two states in each second", Policy{}, told(pairs, whole), shows(clocked(3), "state 6")},
		{"a counter", Policy{}, told(counter, whole), shows(Counter(6), "state 6")},
		{"no version at all", Policy{}, told(none, whole), shows(Version{}, "state 6")},
		{"the time of the event", Policy{}, told(func(n int) Version { return event(clocked(n)) }, whole), shows(Version{}, "state 6")},
		{"only hints", Policy{}, told(clocked, func(ev Event) Event { return thin(ev.Version) }), shows(clocked(6), "state 6")},
		{"always asked", Policy{AlwaysFetch: true}, told(clocked, whole), shows(clocked(6), "state 6")},
		{"deltas", dense, deltas, Fetched{Version: Counter(6), Fingerprint: sum, Body: json.RawMessage(`{"is":"state 1","n2":2,"n3":3,"n4":4,"n5":5,"n6":6}`)}},
		{"deleted at last", Policy{}, append(told(clocked, whole)[:5], deletes(clocked(6))), gone},
		{"deleted at last, without a version", Policy{}, append(told(clocked, whole)[:5], deletes(Version{})), gone},
		{"deltas of an object that is gone", dense, append(slices.Clone(deltas[:5]), deletes(Version{})), gone},
		{"deleted and restored", Policy{}, slices.Insert(slices.Delete(told(clocked, whole), 3, 4), 3, deletes(clocked(4))), shows(clocked(6), "state 6")},
	}
}

// settle works on the entry until nothing is owed.
func settle(t testing.TB, e Entry, now time.Time, source *Fetched, p *Policy) (Entry, time.Time) {
	t.Helper()
	for range 100 {
		if e.Due.IsZero() {
			return e, now
		}
		now = Latest(now, e.Due)
		e = workOnce(e, now, source, p)
	}
	t.Fatalf("it never comes to rest: %+v", e)
	return e, now
}

// workOnce is one lease.
func workOnce(e Entry, now time.Time, source *Fetched, p *Policy) Entry {
	Lease(&e, "me", now, time.Minute, p)
	r := Round{FetchSeq: e.FetchRequested}
	if p.MustFetch(&e, now) {
		e, _, r.Fetch = Receive(e, source, r.FetchSeq, now, p)
	}
	r.Accepted = e.Accepted
	Finish(&e, &r, now, p)
	return e
}

// is reports whether the entry is what the source shows.
func is(e *Entry, source *Fetched) bool {
	if source.Gone || e.Deleted {
		return source.Gone == e.Deleted
	}
	return e.Fingerprint == source.Fingerprint && e.Version.Compare(source.Version) == 0
}

// "Permutations of a 6-event history with drops and copies: final state identical for all 6!
// orders after quiescence". Every kind of source, every order; in each order some events are copied
// and some dropped, but never the last, and the work is done after some of the events.
func TestEveryOrderEndsEqual(t *testing.T) {
	t.Parallel()
	for _, h := range histories() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := h.policy.WithDefaults()
			chance, orders := rand.New(rand.NewPCG(20, 720)), 0
			permute(6, func(order []int) {
				orders++
				for _, eager := range []float64{0, 0.3, 1} {
					e, now, told := Entry{Object: h.events[0].Object}, noon, ""
					for _, i := range arrivals(order, chance) {
						ev := h.events[i]
						ev.Received = now
						var disposition Disposition
						e, disposition, _ = Judge(e, &Delivery{Event: ev}, now, &p)
						told += fmt.Sprintf(" %d:%s", i+1, disposition)
						if chance.Float64() < eager {
							e, now = settle(t, e, now, &h.source, &p)
						}
						now = now.Add(time.Duration(chance.IntN(3000)) * time.Millisecond)
					}
					if e, _ = settle(t, e, now, &h.source, &p); !is(&e, &h.source) || e.Owing() || len(e.Parked) > 0 {
						t.Fatalf("order %v (eager %g) ended otherwise:%s\n%+v", order, eager, told, e)
					}
				}
			})
			if orders != 720 {
				t.Fatalf("%d orders", orders)
			}
		})
	}
}

// arrivals copies some of the events in the order, and drops some, but never the last of the
// history.
func arrivals(order []int, chance *rand.Rand) []int {
	var come []int
	for _, i := range order {
		switch n := chance.IntN(10); {
		case n < 3 && i != 5:
		case n < 6:
			come = append(come, i, i)
		default:
			come = append(come, i)
		}
	}
	for range 2 { // and copies that come late
		come = append(come, come[chance.IntN(len(come))])
	}
	return come
}

// permute calls visit with every order of 0 to n-1.
func permute(n int, visit func([]int)) {
	var place func(order []int)
	place = func(order []int) {
		if len(order) == n {
			visit(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				place(append(slices.Clone(order), i))
			}
		}
	}
	place(nil)
}

// Whatever is heard and whatever the source answers, in any order: versions never go down (I-4),
// only the source brings an object back (I-5), what is clean was asked for, what is parked is
// bounded and in order, and what was given to the pure functions is as it was.
func TestGateInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Dense: true, ParkMost: 3, AlwaysFetch: rapid.IntRange(0, 9).Draw(t, "always") == 0,
		}.WithDefaults()
		if rapid.Bool().Draw(t, "merges") {
			p.Merge = mergeObjects
		}
		kind := rapid.SampledFrom([]Clock{NoClock, CounterClock, ObjectClock, EventClock}).Draw(t, "clock")
		g := gateMachine{e: Entry{Object: order}, p: &p, now: noon, kind: kind}
		t.Repeat(map[string]func(*rapid.T){
			"hear": g.hear,
			"ask":  g.ask,
			"sleep": func(t *rapid.T) {
				g.now = g.now.Add(time.Duration(rapid.IntRange(0, 60000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(*rapid.T) {},
		})
	})
}

type gateMachine struct {
	e    Entry
	p    *Policy
	now  time.Time
	kind Clock
}

func (g *gateMachine) version(t *rapid.T, kind Clock) Version {
	v := clocked(rapid.IntRange(0, 8).Draw(t, "version"))
	switch kind {
	case NoClock:
		return Version{}
	case CounterClock:
		v = Counter(rapid.Int64Range(0, 8).Draw(t, "counter"))
	case ObjectClock:
		v.N += int64(rapid.SampledFrom([]time.Duration{0, 0, 0, 500 * time.Millisecond, time.Hour}).Draw(t, "more"))
		v.Step = rapid.SampledFrom([]time.Duration{time.Second, time.Millisecond, 1}).Draw(t, "step")
	case EventClock:
		v.Clock = EventClock
	}
	v.Epoch = rapid.Int64Range(0, 9).Draw(t, "epoch") / 9
	return v
}

func (g *gateMachine) hear(t *rapid.T) {
	kind := g.kind
	if rapid.IntRange(0, 9).Draw(t, "other clock") == 0 {
		kind = rapid.SampledFrom([]Clock{NoClock, CounterClock, ObjectClock, EventClock}).Draw(t, "clock")
	}
	ev := says(g.version(t, kind), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "content"))
	ev.Payload = rapid.SampledFrom([]Payload{Whole, Whole, Thin, Delta}).Draw(t, "payload")
	ev.Deleted = rapid.IntRange(0, 4).Draw(t, "deleted") == 0
	ev.Disposition = rapid.SampledFrom([]Disposition{"", "", "", "", Conflict, Unknown, Malformed}).Draw(t, "door")
	ev.Received = g.now
	before := clone(&g.e)
	after, disposition, why := Judge(g.e, &Delivery{Event: ev}, g.now, g.p)
	if disposition == "" || (why == "" && disposition != Malformed) {
		t.Fatalf("no disposition, or no reason: %q %q", disposition, why)
	}
	if before.Deleted && !after.Deleted {
		t.Fatalf("%s brought the object back", disposition)
	}
	if (disposition == Stale || disposition == Duplicate) && (after.Accepted != before.Accepted || after.FetchRequested != before.FetchRequested) {
		t.Fatalf("%s had an effect", disposition)
	}
	if after.Owing() && after.Blocked == "" && after.Due.IsZero() {
		t.Fatalf("something is owed and nobody will look: %+v", after)
	}
	g.check(t, before, after)
}

func (g *gateMachine) ask(t *rapid.T) {
	if g.e.Due.IsZero() || g.e.Due.After(g.now) {
		return
	}
	leased := clone(&g.e)
	Lease(&leased, "me", g.now, time.Minute, g.p)
	ticket := leased.FetchRequested
	f := shows(g.version(t, g.kind), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "shown"))
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		f = gone
	}
	r := Round{FetchSeq: ticket}
	after := leased
	if g.p.MustFetch(&leased, g.now) {
		before := clone(&leased)
		after, _, r.Fetch = Receive(leased, &f, ticket, g.now, g.p)
		if after.FetchCompleted > ticket || (r.Fetch != nil && after.FetchCompleted > before.FetchCompleted) {
			t.Fatalf("clean %d after a fetch for %d that ended with %v", after.FetchCompleted, ticket, r.Fetch)
		}
		g.check(t, before, after)
	}
	if r.Accepted = after.Accepted; rapid.Bool().Draw(t, "refused") {
		r.Deliver = asking.Permanent(errBehind)
	}
	Finish(&after, &r, g.now, g.p)
	if after.Owing() && after.Blocked == "" && after.Due.IsZero() {
		t.Fatalf("something is owed and nobody will look: %+v", after)
	}
	g.e = after
}

// check compares what was with what is. before was cloned before the call, g.e was given to it.
func (g *gateMachine) check(t *rapid.T, before, after Entry) {
	switch {
	case after.Version.Compare(before.Version) < 0 || after.Version.Epoch < before.Version.Epoch:
		t.Fatalf("the version went down from %q to %q", before.Version.Revision(), after.Version.Revision())
	case after.Version.Compare(before.Version) == 0 && after.Version.N < before.Version.N:
		t.Fatalf("within its resolution the version went down from %q to %q", before.Version.Revision(), after.Version.Revision())
	case after.FetchCompleted > after.FetchRequested || after.FetchCompleted < before.FetchCompleted || after.FetchRequested < before.FetchRequested:
		t.Fatalf("dirty %d to %d, clean %d to %d", before.FetchRequested, after.FetchRequested, before.FetchCompleted, after.FetchCompleted)
	case after.Newest.Compare(after.Version) < 0:
		t.Fatalf("the newest word %q is older than the state %q", after.Newest.Revision(), after.Version.Revision())
	case len(after.Parked) > g.p.ParkMost:
		t.Fatalf("%d parked", len(after.Parked))
	case !slices.IsSortedFunc(after.Parked, func(a, b Event) int { return a.Version.Compare(b.Version) }):
		t.Fatal("what is parked is out of order")
	}
	if was, now := text(t, before), text(t, g.e); g.e.Fence == before.Fence && !bytes.Equal(was, now) {
		t.Fatalf("what was given has changed:\n%s\n%s", was, now)
	}
	if g.e.Fence == before.Fence {
		g.e = after
	}
}

func text(t *rapid.T, e Entry) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func clone(e *Entry) Entry {
	c := *e
	c.Body = bytes.Clone(e.Body)
	c.Parked = slices.Clone(e.Parked)
	return c
}
