package retention_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/retention"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

const day = 24 * time.Hour

type order struct{ Customer string }

// What docs/expiry.md shows is a definition and a job.
func TestShown(t *testing.T) {
	t.Parallel()
	d, err := saga.Define("orders", 1,
		saga.Subject(func(o order) string { return "customer:" + o.Customer }), // whose data an instance holds
		saga.Do("invoice", func(context.Context, saga.Call[order]) (string, error) { return "inv_1", nil }).Idempotent().NoUndo("it stays"),
		saga.Retain[order](saga.Retention{Bodies: 90 * day, Records: 2 * 365 * day}), // Key: for ever
	)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "l.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Describe(t.Context(), d.Spec()); err != nil {
		t.Fatal(err)
	}
	job :=
		schedule.Job{Name: "retention", Schedule: "17 3 * * *", Work: retention.Work(db, nil)}
	for _, approved := range []bool{false, true} {
		out, err := job.Work(t.Context(), &schedule.Run{Approved: approved})
		if err != nil || out.Result != schedule.OK || out.Applied != 0 {
			t.Errorf("approved %t: %+v, %v", approved, out, err)
		}
	}
	plan, err := retention.Plan(t.Context(), db, time.Time{})
	if said := fmt.Sprint(plan.Policies); err != nil || said != "[{orders {2160h0m0s 17520h0m0s 0s} true true}]" {
		t.Errorf("it keeps %s, %v", said, err)
	}
}

// What is said is checked when it is said.
func TestRetainIsInOrder(t *testing.T) {
	t.Parallel()
	for _, r := range []saga.Retention{{Bodies: time.Minute}, {Bodies: 2 * day, Records: day}, {Bodies: 2 * day, Key: day}, {Records: -day}} {
		_, err := saga.Define("orders", 1,
			saga.Do("invoice", func(context.Context, saga.Call[order]) (string, error) { return "", nil }).Idempotent().NoUndo("it stays"),
			saga.Retain[order](r))
		if err == nil {
			t.Errorf("%+v is taken", r)
		}
	}
}
