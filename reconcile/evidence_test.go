package reconcile_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/amends-dev/amends/internal/plan"
)

// Each piece of the evidence counts for itself. An action is superseded also when one of them
// alone is another, and everything else is as it was planned.
func TestEachPieceOfEvidenceCounts(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(w *world, key string){
		"SourceRevision": func(w *world, key string) { w.changed(key, "12.00") },
		"LedgerRevision": func(w *world, key string) { w.works[key].Revision = "2" },
		"Changes":        func(w *world, key string) { w.live(key)[0].Fields["total"] = "10.50" },
		"Documents":      func(w *world, key string) { w.live(key)[0].Void = true; w.make(key, "10.00", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wide(0)
				w.changed(keyOf(1), "11.00")
				w.changed(keyOf(1), "12.00")
				j := w.job(t, nil)
				plan := j.mustPlan()
				was := j.row(keyOf(1)).Finding
				since(w, keyOf(1))
				j.mustPlan()
				if other := differences(was, j.row(keyOf(1)).Finding); !slices.Equal(other, []string{name}) {
					t.Fatalf("%q differ; the test proves nothing about %s", other, name)
				}
				w.frozen = errors.New("somebody acted")
				if r := j.must(j.Apply(t.Context(), plan.Plan)); w.broke || r.Superseded != 1 || r.Applied != 0 {
					t.Errorf("acted: %t; report: %+v", w.broke, r)
				}
			})
		})
	}
}

// differences names the fields in which two findings differ, but for their words.
func differences(a, b plan.Finding) (names []string) {
	a.Reason, b.Reason = "", ""
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}
