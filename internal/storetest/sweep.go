package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
)

var sweepCases = []testCase{
	{name: "a page is one transaction", run: sweepPage, breaks: broken{"sweep-one-transaction": func(s Store) Store { return torn{s} }}},
	{name: "of two one moves on", run: sweepRace},
	{name: "sightings come back whole", run: sweepWhole},
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
