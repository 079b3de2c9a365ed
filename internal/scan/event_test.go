package scan_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/saga"
)

// An object that has no version and goes back to what it said is heard again: the gate stands on
// what came between.
func TestBackToWhatItSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inner := b.config.Source.Changed
	b.config.Source.Changed = func(ctx context.Context, q scan.Query) (scan.Page, error) {
		p, err := inner(ctx, q)
		for i := range p.Objects {
			p.Objects[i].Version = intake.Version{}
		}
		return p, err
	}
	for _, total := range []int{1, 2, 1} {
		b.put("1", total, 0)
		b.now = b.now.Add(time.Minute)
		b.ok(b.changed())
		b.ok(b.changed())
	}
	if h := b.heard()["1"]; !slices.Equal(h, []int{1, 2, 1}) {
		t.Errorf("heard %v", h)
	}
}

// Two states of one second, which the source cannot tell apart by version, are two events: the gate
// asks the source.
func TestTwoStatesOfOneSecond(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.step = time.Minute
	for _, total := range []int{1, 2} {
		b.put("1", total, 0)
		b.now = b.now.Add(10 * time.Second)
		b.ok(b.changed())
	}
	if h := b.heard()["1"]; !slices.Equal(h, []int{1, 2}) {
		t.Errorf("heard %v", h)
	}
}

// What a sweep reads is an event like one that a webhook brings: whole, with its version, and
// recognisable by its topic. A body that nobody can read is a hint.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("1", 1, 0)
	b.put("2", 1, 0)
	b.put("3", 1, 0)
	b.now = b.now.Add(time.Minute)
	b.after = func(_ *scan.Query, p *scan.Page) {
		p.Objects[1].Body = json.RawMessage("<html>")
		p.Objects[2].Body, p.Objects[2].Deleted = nil, true
	}
	b.ok(b.changed())
	ds, err := b.store.Deliveries(t.Context(), intake.DeliveryFilter{})
	if err != nil || len(ds) != 3 {
		t.Fatal(ds, err)
	}
	slices.Reverse(ds)
	for i, d := range ds {
		if d.Topic != scan.Topic || d.Object.Source != "shop" || d.Object.Type != "order" || d.Version.Clock != intake.ObjectClock || !d.Received.Equal(b.now) {
			t.Errorf("event %d is %+v", i, d.Event)
		}
	}
	if ds[0].Payload != intake.Whole || ds[0].Fingerprint.IsZero() || ds[1].Payload != intake.Thin || len(ds[1].Body) != 0 || !ds[2].Deleted {
		t.Errorf("events %+v", ds)
	}
}

// A Retry-After that is longer than the patience ends a run as partial; the next ones ask
// nothing until it is over, and then go on where it stopped.
func TestChangedHeedsALongRetryAfter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(20)
	b.config.Page = 2
	b.before = func(*scan.Query) error {
		if len(b.asked) == 7 {
			return saga.RetryAfter(time.Hour, errors.New("429"))
		}
		return nil
	}
	if r := b.changed(); r.Result != scan.Partial || r.Calls != 7 || !strings.Contains(r.Why, "429") {
		t.Errorf("report %+v", r)
	}
	for range 5 {
		if r := b.changed(); r.Result != scan.Partial || r.Calls != 0 || !strings.Contains(r.Why, "asked not to be asked before") {
			t.Errorf("while it is not to be asked: %+v", r)
		}
	}
	b.asked, b.before = nil, nil
	b.config.Source.Quota = asking.NewQuota(asking.Limits{PerSecond: 1e6})
	b.ok(b.changed())
	if b.current(); b.asked[0].Cursor == "" {
		t.Error("it began anew, as if the cursor were to blame")
	}
}
