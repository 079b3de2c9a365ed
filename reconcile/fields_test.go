package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/store/memory"
)

// counting counts the questions to a store.
type counting struct {
	scan.Store

	asked int
}

func (c *counting) Sightings(ctx context.Context, q scan.SightingQuery) ([]scan.Sighting, error) {
	c.asked++
	return c.Store.Sightings(ctx, q)
}

// The fields of a key are those of its one row that counts, whichever keys are asked for, in their
// order, and however many void rows stand before it. What is gone has none.
func TestFieldsAreReadAhead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var rows []scan.Sighting
		want := map[string]string{}
		for n := range rapid.IntRange(0, 60).Draw(t, "keys") {
			key := fmt.Sprintf("shop:order:%02d", n)
			for v := range rapid.SampledFrom([]int{0, 0, 0, 1, 3, 20}).Draw(t, "void rows") {
				rows = append(rows, scan.Sighting{Key: key, ID: fmt.Sprintf("%s-%02d", key, v), Flags: scan.Void, Fields: plan.Fields{"total": "void"}})
			}
			if rapid.IntRange(0, 5).Draw(t, "gone") > 0 {
				want[key] = fmt.Sprint(n)
				rows = append(rows, scan.Sighting{Key: key, ID: fmt.Sprintf("%s-live", key), Fields: plan.Fields{"total": fmt.Sprint(n)}})
			}
		}
		for i := range rows {
			rows[i].Generation = 1
		}
		store := memory.New(nil)
		if _, err := store.Advance(t.Context(), scan.Position{Name: "orders/destination/all"}, scan.Catch{Name: "orders", Side: scan.DestinationSide, Sightings: rows}); err != nil {
			t.Fatal(err)
		}
		f := &fields{store: store, query: scan.SightingQuery{Name: "orders", Side: scan.DestinationSide, Generation: 1}}
		for n := range 60 {
			key := fmt.Sprintf("shop:order:%02d", n)
			if rapid.Bool().Draw(t, "plainly in sync") {
				continue
			}
			got, err := f.of(t.Context(), key)
			if err != nil || got["total"] != want[key] {
				t.Fatalf("%s: %v, %v; want %q of %q", key, got, err, want[key], slices.Sorted(maps.Keys(want)))
			}
		}
	})
}

// Where every key differs they are read by the thousand; where one in a thousand does, by a few.
func TestFieldsReadAsMuchAsIsUsed(t *testing.T) {
	t.Parallel()
	var rows []scan.Sighting
	for n := range 20_000 {
		rows = append(rows, scan.Sighting{Key: fmt.Sprintf("%05d", n), ID: "1", Generation: 1, Fields: plan.Fields{"n": "1"}})
	}
	store := &counting{Store: memory.New(nil)}
	if _, err := store.Advance(t.Context(), scan.Position{Name: "orders/source/all"}, scan.Catch{Name: "orders", Side: scan.SourceSide, Sightings: rows}); err != nil {
		t.Fatal(err)
	}
	for step, most := range map[int]int{1: 20, 1000: 20} {
		f := &fields{store: store, query: scan.SightingQuery{Name: "orders", Side: scan.SourceSide, Generation: 1}}
		store.asked = 0
		for n := 0; n < len(rows); n += step {
			if got, err := f.of(t.Context(), rows[n].Key); err != nil || got["n"] != "1" {
				t.Fatalf("%s: %v, %v", rows[n].Key, got, err)
			}
		}
		if store.asked > most {
			t.Errorf("one key in %d: the store was asked %d times", step, store.asked)
		}
		if step > 1 && f.size > 100 {
			t.Errorf("one key in %d: %d rows are read at once", step, f.size)
		}
	}
}

// What an untyped input holds is compared with the digits that it is written with.
func TestFieldsOfUntypedInputs(t *testing.T) {
	t.Parallel()
	fields := FieldsOf(func(in map[string]any) Fields { return Fields{"customer": fmt.Sprint(in["customer"])} })
	for _, n := range []string{"9007199254740993", "616581622363398142", "-9007199254740993", "5"} {
		if got, err := fields(json.RawMessage(`{"customer":` + n + `}`)); err != nil || got["customer"] != n {
			t.Errorf("%s is compared as %v, %v", n, got, err)
		}
	}
}
