package sweep_test

import (
	"context"
	"testing"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/store/memory"
)

// Where Want leaves the revision to the object's version, a listing has it, too: otherwise a comparison would take every
// newer version of the source for somebody's doing at the destination, and refuse the plan when there are many.
func TestListedRevisionIsTheVersion(t *testing.T) {
	t.Parallel()
	store := memory.New(nil)
	s, err := sweep.New(sweep.Config{Name: "orders", Store: store, Source: sweep.Source{
		Object: reconcile.Object{Source: "shop", Type: "order"},
		All: func(context.Context, sweep.Query) (sweep.Page, error) {
			return sweep.Page{Objects: []sweep.Object{{ID: "1", Version: reconcile.Counter(3), Body: []byte(`{}`)}}}, nil
		},
		Want: func(*sweep.Object) (drift.Truth, error) { return drift.Truth{Key: "shop:order:1", Wanted: true}, nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), sweep.SourceSide); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Sightings(t.Context(), sweep.SightingQuery{Name: "orders", Side: sweep.SourceSide})
	if err != nil || len(rows) != 1 || rows[0].Revision != "3" {
		t.Errorf("the listing has %+v, %v; want one row of revision 3", rows, err)
	}
}
