package reconcile_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/store/memory"
	"github.com/amends-dev/amends/store/sqlite"
)

// A job does in a database what it does in memory: it plans, does and notes the same.
func TestOnSQLite(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "amends.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	run := func(s store) []plan.Row {
		w := mess()
		for n := range 60 {
			w.sold(keyOf(2000 + n)) // enough for a trial
		}
		j := w.jobOver(t, s, func(c *settings) {
			many(c)
			c.sweep.Destination.Settle = time.Millisecond
			c.Workers = 4
		})
		if r := j.mustRun(); r.Applied != 65 {
			t.Errorf("report: %+v", r)
		}
		rows := j.rows()
		if r := j.mustRun(); r.Planned != 0 {
			t.Errorf("the second report: %+v", r)
		}
		for i := range rows {
			rows[i].At = time.Time{}
		}
		return rows
	}
	if want, got := run(memory.New(nil)), run(db); !reflect.DeepEqual(want, got) {
		t.Errorf("on SQLite:\n%+v\nin memory:\n%+v", got, want)
	}
}
