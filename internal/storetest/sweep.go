package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
)

var sweepCases = []testCase{
	{name: "who is behind stores nothing", run: sweepMoved, breaks: broken{"sweep-compares": func(s Store) Store { return overtaker{s} }}},
	{name: "a page is one transaction", run: sweepPage, breaks: broken{"sweep-one-transaction": func(s Store) Store { return torn{s} }}},
	{name: "a repeated page is known", run: sweepRepeated, breaks: broken{"sweep-repeatable": func(s Store) Store { return unsure{s} }}},
	{name: "of two one moves on", run: sweepRace},
	{name: "positions by name", run: sweepPositions},
	{name: "sightings in the order of bytes", run: sweepOrder, breaks: broken{"byte-order": func(s Store) Store { return alphabetic{s} }}},
	{name: "sightings replace each other", run: sweepReplace},
	{name: "sightings come back whole", run: sweepWhole},
	{name: "generations", run: sweepGenerations},
	{name: "old ones are discarded in parts", run: sweepDiscard, breaks: broken{"newer-kept": func(s Store) Store { return eraser{s} }}},
	{name: "a second process sees it", run: sweepAgain},
}

func position(name string, serial int64, state string) scan.Position {
	return scan.Position{Name: name, Serial: serial, State: json.RawMessage(state)}
}

// sighting is a row of a listing.
func sighting(key, id string, generation int64) scan.Sighting {
	f := plan.Fields{"total": "10"}
	return scan.Sighting{Key: key, ID: id, Partition: "p", Generation: generation, Revision: "r", Flags: scan.Wanted,
		Fingerprint: scan.Fingerprint("1", f), Fields: f}
}

func (b *bench) advance(p scan.Position, page scan.Catch) scan.Position {
	b.Helper()
	next, err := b.Advance(b.Context(), p, page)
	if err != nil {
		b.Fatalf("advance %s: %v", p.Name, err)
	}
	return next
}

// see stores sightings of the source.
func (b *bench) see(rows ...scan.Sighting) {
	b.Helper()
	p, err := b.Position(b.Context(), "orders/source")
	if err != nil {
		b.Fatal(err)
	}
	p.State = json.RawMessage(fmt.Sprintf(`{"n": %d}`, p.Serial))
	b.advance(p, scan.Catch{Name: "orders", Side: scan.SourceSide, Sightings: rows})
}

// seen returns what is there of a listing, read in pages of n.
func (b *bench) seen(q scan.SightingQuery, n int) []scan.Sighting {
	b.Helper()
	q.Name, q.Side, q.Limit = "orders", scan.SourceSide, n
	var all []scan.Sighting
	for {
		rows, err := b.Sightings(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		if all = append(all, rows...); len(rows) < n {
			return all
		}
		q.After, q.AfterID = rows[len(rows)-1].Key, rows[len(rows)-1].ID
	}
}

// "One that is unknown has Serial 0 and no State". "It fails with ErrMoved, and stores nothing,
// unless the stored Serial is p.Serial; it returns p with the next one".
func sweepMoved(b *bench) {
	p, err := b.Position(b.Context(), "orders")
	if err != nil || p.Name != "orders" || p.Serial != 0 || len(p.State) != 0 {
		b.Fatalf("an unknown position is %+v, %v", p, err)
	}
	one := b.advance(position("orders", 0, `{"at":  1}`), scan.Catch{})
	two := b.advance(position("orders", one.Serial, `{"at": 2}`), scan.Catch{})
	if one.Serial != 1 || two.Serial != 2 {
		b.Errorf("the serials are %d and %d", one.Serial, two.Serial)
	}
	for _, serial := range []int64{0, 1, 3, 99} {
		_, err := b.Advance(b.Context(), position("orders", serial, `{"at": 3}`),
			scan.Catch{Events: events(1), Name: "orders", Side: scan.SourceSide, Sightings: []scan.Sighting{sighting("k", "i", 1)}})
		if !errors.Is(err, scan.ErrMoved) {
			b.Errorf("from serial %d: %v", serial, err)
		}
	}
	if _, err := b.Advance(b.Context(), position("new", 7, `{}`), scan.Catch{}); !errors.Is(err, scan.ErrMoved) {
		b.Errorf("an unknown one from serial 7: %v", err)
	}
	if p, err := b.Position(b.Context(), "orders"); err != nil || p.Serial != 2 || string(p.State) != `{"at": 2}` {
		b.Errorf("the position is %+v (%s), %v", p, p.State, err)
	}
	if n := len(b.all()) + len(b.seen(scan.SightingQuery{}, 10)); n != 0 {
		b.Errorf("%d rows of a page that was refused are there", n)
	}
}

// "In one transaction": a page that cannot be stored whole is not stored at all.
func sweepPage(b *bench) {
	es := events(2)
	b.advance(position("orders", 0, `{}`), scan.Catch{Events: es, Name: "orders", Side: scan.SourceSide,
		Sightings: []scan.Sighting{sighting("k", "i", 1)}})
	if len(b.all()) != 2 || len(b.seen(scan.SightingQuery{}, 10)) != 1 {
		b.Errorf("of a page there are %d events and %d sightings", len(b.all()), len(b.seen(scan.SightingQuery{}, 10)))
	}
	es = events(4)
	es[3].Dedupe = intake.Digest{}
	_, err := b.Advance(b.Context(), position("orders", 1, `{"next": 1}`), scan.Catch{Events: es, Name: "orders", Side: scan.SourceSide,
		Sightings: []scan.Sighting{sighting("l", "i", 1)}})
	if err == nil || errors.Is(err, scan.ErrMoved) {
		b.Errorf("a page with an event that is none: %v", err)
	}
	if p, _ := b.Position(b.Context(), "orders"); p.Serial != 1 || len(b.all()) != 2 || len(b.seen(scan.SightingQuery{}, 10)) != 1 {
		b.Errorf("something of it was stored: %d events, %d sightings, serial %d", len(b.all()), len(b.seen(scan.SightingQuery{}, 10)), p.Serial)
	}
}

// "It may be repeated after an error": "when the first try was stored after all, with that very
// State, the second one says so and stores nothing".
func sweepRepeated(b *bench) {
	page := scan.Catch{Events: events(1), Name: "orders", Side: scan.SourceSide, Sightings: []scan.Sighting{sighting("k", "i", 1)}}
	for range 2 {
		if next := b.advance(position("orders", 0, `{"at": "<é>"}`), page); next.Serial != 1 {
			b.Errorf("the serial is %d", next.Serial)
		}
	}
	if ds := b.all(); len(ds) != 1 || ds[0].Copies != 1 {
		b.Errorf("the page was stored twice: %+v", ds)
	}
	if _, err := b.Advance(b.Context(), position("orders", 0, `{"at": "another"}`), page); !errors.Is(err, scan.ErrMoved) {
		b.Errorf("another page from there: %v", err)
	}
}

// Of processes that move one position on, at any moment one does, and nothing is there of what the
// others brought.
func sweepRace(b *bench) {
	stores := []Store{b.Store, b.again()}
	var won atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			s := stores[n%2]
			for i := range 10 {
				p, err := s.Position(b.Context(), "orders")
				if err != nil {
					b.Error(err)
					return
				}
				name := fmt.Sprintf("%d-%d", n, i)
				p.State = json.RawMessage(`"` + name + `"`)
				_, err = s.Advance(b.Context(), p, scan.Catch{Events: []intake.Event{event(name)}, Name: "orders", Side: scan.SourceSide,
					Sightings: []scan.Sighting{sighting("k", name, 1)}})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, scan.ErrMoved):
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p, err := b.Position(b.Context(), "orders")
	n, events, sightings := won.Load(), int64(len(b.all())), int64(len(b.seen(scan.SightingQuery{}, 100)))
	told := n == p.Serial || b.harness.LosesAnswers && n < p.Serial
	if err != nil || n < 10 || !told || events != p.Serial || sightings != p.Serial {
		b.Errorf("%d moved on; the serial is %d, and there are %d events and %d sightings; %v", n, p.Serial, events, sightings, err)
	}
}

// "Positions whose names begin with prefix, in the order of their bytes".
func sweepPositions(b *bench) {
	for _, name := range []string{"a_/x", "a/é", "a/Z", "a/b", "a", "a/", "ab", "a%/x", "A/x"} {
		b.advance(position(name, 0, `{}`), scan.Catch{})
	}
	for prefix, want := range map[string]string{"a/": "a/ a/Z a/b a/é", "a_": "a_/x", "a%": "a%/x", "none": "", "": "A/x a a%/x a/ a/Z a/b a/é a_/x ab"} {
		ps, err := b.Positions(b.Context(), prefix)
		var names []string
		for _, p := range ps {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			b.Errorf("of %q: %q, want %q; %v", prefix, got, want, err)
		}
	}
}

// "In the order of the bytes of (key, id)", whatever a language thinks of it, and so in every
// store: three listings are merged by it. Pages of any size show every row once.
func sweepOrder(b *bench) {
	var rows []scan.Sighting
	for _, key := range []string{"shop:2", "shop:10", "Shop:1", "shop", "shop-1", "shop 1", "shöp", "\U0001F600", "\uffee", "z", "ä", "a", "B"} {
		for _, id := range []string{"b", "B", "a", "é"} {
			rows = append(rows, sighting(key, id, 1))
		}
	}
	b.see(rows...)
	slices.SortFunc(rows, func(x, y scan.Sighting) int { return strings.Compare(x.Key+"\x00"+x.ID, y.Key+"\x00"+y.ID) })
	for _, n := range []int{1, 3, 7, 1000} {
		got := b.seen(scan.SightingQuery{}, n)
		if !slices.EqualFunc(got, rows, func(x, y scan.Sighting) bool { return x.Key == y.Key && x.ID == y.ID }) {
			b.Errorf("in pages of %d: %d rows, want %d: %+v", n, len(got), len(rows), got)
		}
	}
	behind := b.seen(scan.SightingQuery{After: "shop:10"}, 1000)
	if len(behind) == 0 || behind[0].Key != "shop:2" {
		b.Errorf("behind all of a key there is %+v", behind)
	}
	if other, err := b.Sightings(b.Context(), scan.SightingQuery{Name: "orders", Side: scan.DestinationSide}); err != nil || len(other) != 0 {
		b.Errorf("the other side has %d rows, %v", len(other), err)
	}
}

// "Sightings of one (name, side, key, id) replace each other", within a page too.
func sweepReplace(b *bench) {
	old, now := sighting("k", "i", 1), sighting("k", "i", 2)
	now.Partition, now.Revision, now.Flags, now.Fields, now.Fingerprint = "q", "s", 0, nil, intake.Digest{}
	now.Created = time.Date(2026, 11, 20, 10, 0, 0, 1000, time.UTC)
	b.see(old)
	b.see(old, now)
	if got := b.seen(scan.SightingQuery{}, 10); len(got) != 1 || !reflect.DeepEqual(got[0], now) {
		b.Errorf("there is %+v, want %+v", got, now)
	}
}

// Every value comes back as it was, or fit for a text column; Bare leaves the fields out.
func sweepWhole(b *bench) {
	row := sighting("k", "1", 3)
	row.Flags = scan.Void | scan.Locked | scan.Foreign
	row.Created = time.Date(1999, 1, 2, 3, 4, 5, 6000, time.UTC)
	row.Fields = plan.Fields{"a": `"<&>\`, "": "é\u2028", "b": ""}
	odd := sighting(strings.Repeat("k", 3000), strings.Repeat("i", 3000)+"\x00\xff", 3)
	odd.Revision, odd.Fields, odd.Created = "\x00\xff", plan.Fields{"\xff": "\x00"}, time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)
	b.see(row, odd)
	got := b.seen(scan.SightingQuery{}, 10)
	if len(got) != 2 || !reflect.DeepEqual(got[0], row) {
		b.Fatalf("there is %+v, want %+v", got, row)
	}
	if bare := b.seen(scan.SightingQuery{Bare: true}, 10); len(bare) != 2 || bare[0].Fields != nil || bare[0].Partition != "" || bare[0].Fingerprint != row.Fingerprint || bare[0].Flags != row.Flags {
		b.Errorf("bare there is %+v", bare)
	}
}

// "Of this one and newer"; they are counted by partition.
func sweepGenerations(b *bench) {
	moved := sighting("c", "i", 1)
	b.see(sighting("a", "i", 1), sighting("b", "i", 1), moved)
	moved.Generation, moved.Partition = 2, "q"
	b.see(sighting("b", "i", 2), moved)
	for generation, want := range map[int64]map[string]int64{0: {"p": 2, "q": 1}, 1: {"p": 2, "q": 1}, 2: {"p": 1, "q": 1}, 3: {}} {
		q := scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Generation: generation}
		counts, err := b.Tally(b.Context(), q)
		if err != nil || !maps.Equal(counts, want) {
			b.Errorf("generation %d counts %v, want %v; %v", generation, counts, want, err)
		}
		if got := b.seen(q, 1); int64(len(got)) != counts["p"]+counts["q"] {
			b.Errorf("generation %d shows %+v", generation, got)
		}
	}
}

// "Erases at most limit sightings of generations before q.Generation, and answers how many it
// erased".
func sweepDiscard(b *bench) {
	var rows []scan.Sighting
	for i := range 25 {
		rows = append(rows, sighting(fmt.Sprintf("%02d", i), "i", int64(1+i%2)))
	}
	b.see(rows...)
	q := scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Generation: 2}
	for _, want := range []int{10, 3, 0} {
		if n, err := b.Discard(b.Context(), q, 10); err != nil || n != want {
			b.Errorf("%d were discarded, want %d; %v", n, want, err)
		}
	}
	left := b.seen(scan.SightingQuery{}, 100)
	if len(left) != 12 || slices.ContainsFunc(left, func(s scan.Sighting) bool { return s.Generation < 2 }) {
		b.Errorf("%d rows are left: %+v", len(left), left)
	}
}

// What one process stored another one reads.
func sweepAgain(b *bench) {
	b.advance(position("orders", 0, `{"at": 1}`), scan.Catch{})
	b.see(sighting("k", "i", 1))
	other := b.again()
	p, err := other.Position(b.Context(), "orders")
	rows, err2 := other.Sightings(b.Context(), scan.SightingQuery{Name: "orders", Side: scan.SourceSide})
	if err != nil || err2 != nil || p.Serial != 1 || len(rows) != 1 {
		b.Errorf("it reads %+v and %d rows, %v, %v", p, len(rows), err, err2)
	}
}
