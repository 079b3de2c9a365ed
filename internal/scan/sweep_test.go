package scan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// The destination is listed as the source is; what does not carry our mark is none of ours, and yet
// it counts.
func TestDestination(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	docs := []plan.Document{
		{ID: "1", Key: "shop:order:1", Fields: plan.Fields{"total": "10"}, Void: true},
		{ID: "2", Key: "shop:order:1", Fields: plan.Fields{"total": "10"}, Locked: true, Revision: "7"},
		{ID: "3", Fields: plan.Fields{"total": "10"}},
		{ID: "4", Key: "shop:order:0", Foreign: true},
	}
	b.config.Destination = scan.Destination{
		Limits: inbox.Limits{PerSecond: 1e6},
		Marked: func(context.Context, scan.Query) (scan.Documents, error) {
			return scan.Documents{Documents: docs}, nil
		},
		Partitions: func(context.Context) ([]scan.Partition, error) {
			return []scan.Partition{{Name: "all", Count: 4}}, nil
		},
	}
	r, err := b.sweep().List(t.Context(), scan.DestinationSide)
	if b.ok(r); err != nil || r.Listed.Complete == nil || r.Listed.Complete.Rows != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	var got []string
	for row, err := range sightings(t.Context(), b.store, scan.SightingQuery{Name: "orders", Side: scan.DestinationSide}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(row.Key, " ", row.ID, " ", row.Flags, " ", row.Revision))
	}
	want := []string{"shop:order:0 4 8 ", "shop:order:1 1 2 ", "shop:order:1 2 4 7"}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if _, err := b.sweep().List(t.Context(), scan.SourceSide); err != nil {
		t.Error(err)
	}
}

// An adapter that panics, about an object or a page, is no reason for the process to end.
func TestPanics(t *testing.T) {
	t.Parallel()
	b := divided(t)
	b.config.Source.Want = func(o *scan.Listed) (plan.Truth, error) {
		if o.ID == "42" {
			panic("no")
		}
		return want(o)
	}
	b.ok(b.list())
	if row := b.sightings(1)["42"]; row.Flags != scan.Unreadable || row.Key != "shop:order:42" {
		t.Errorf("what could not be read is %+v", row)
	}
	b.before = func(*scan.Query) error { panic("no") }
	if r := b.changed(); r.Result != scan.Partial || !strings.Contains(r.Why, "panicked") {
		t.Errorf("report %+v", r)
	}
}

// A sweep that cannot work is refused with every reason at once.
func TestFaults(t *testing.T) {
	t.Parallel()
	_, err := scan.New(scan.Config{Name: "a/b", Page: -1, Source: scan.Source{All: newShop().All}})
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("got %v", err)
	}
	b := newBench(t)
	b.config.Source.Changed, b.config.Source.All = nil, nil
	if _, err := b.sweep().Changed(t.Context()); err == nil {
		t.Error("there is nothing to list by")
	}
	if _, err := b.sweep().List(t.Context(), scan.SourceSide); err == nil {
		t.Error("there is nothing to list by")
	}
}
