package scan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/scan"
)

// A reading that is ended early ends with an error: rows that were not read are not absent.
func TestReadingEndsWhole(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.list()
	ctx, cancel := context.WithCancel(t.Context())
	r := scan.Read(ctx, b.store, scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Limit: 7})
	defer r.Close()
	read := 0
	var err error
	for {
		var row *scan.Sighting
		if row, err = r.Next(); row == nil || err != nil {
			break
		}
		if read++; read == 10 {
			cancel()
		}
	}
	if err == nil {
		t.Errorf("after %d of 100 rows it came to an end", read)
	}
	all := 0
	for _, err := range sightings(t.Context(), b.store, scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Limit: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		all++
	}
	if all != 100 {
		t.Errorf("in chunks of 7 there are %d rows", all)
	}
	cancel()
}

// Chunks that end in the middle of a key lose none of its rows.
func TestReadingOneKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rows := make([]scan.Sighting, 50)
	for i := range rows {
		rows[i] = scan.Sighting{Key: "shop:order:1", ID: strings.Repeat("i", i+1), Generation: 1}
	}
	_, err := b.store.Advance(t.Context(), scan.Position{Name: "orders/source"}, scan.Catch{Name: "orders", Side: scan.SourceSide, Sightings: rows})
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, err := range sightings(t.Context(), b.store, scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Limit: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		all++
	}
	if all != len(rows) {
		t.Errorf("%d of %d rows", all, len(rows))
	}
}
