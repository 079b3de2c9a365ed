package inbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// §2.8: bodies are forgotten first, then dispositions, then what recognises a copy; a redelivery
// years later meets the gate and is still a duplicate. Forever keeps.
func TestRetention(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		keep         inbox.Retention
		body, digest bool // still there after 92 days
	}{
		"by default":      {inbox.Retention{}, false, true},
		"bodies for ever": {inbox.Retention{Bodies: inbox.Forever, Rows: inbox.Forever}, true, true},
		"for a week":      {inbox.Retention{Bodies: day, Rows: 7 * day, Digests: 30 * day}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.opts.Retention, b.opts.Poll = c.keep, time.Hour
				b.pushes("1", 1)
				_, stop := b.run()
				defer stop()
				b.after(92 * day)
				left := b.deliveries()
				if kept := len(left) == 1 && len(left[0].Body) > 0; kept != c.body {
					t.Errorf("after 92 days there are %+v", left)
				}
				b.number-- // the same event once more
				b.pushes("1", 1)
				b.after(2 * time.Hour)
				again := b.deliveries()
				if recognised := len(again) == len(left); recognised != c.digest {
					t.Errorf("a redelivery after 92 days: %d deliveries, before %d", len(again), len(left))
				}
				if len(again) > len(left) && again[0].Outcome != intake.Duplicate {
					t.Errorf("a redelivery that nobody recognises is %s", again[0].Outcome)
				}
				if n := len(b.delivered); n != 1 {
					t.Errorf("%d deliveries to the saga", n)
				}
			})
		})
	}
}

// A process that lives for minutes forgets what is old, too.
func TestRetentionOfAShortLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.opts.Retention = inbox.Retention{Bodies: time.Hour, Rows: 2 * time.Hour}
		b.pushes("1", 1)
		_, stop := b.run()
		b.after(30 * time.Second)
		stop()
		b.after(48 * time.Hour)
		_, stop = b.run()
		b.after(2 * time.Minute)
		stop()
		if left := b.deliveries(); len(left) > 0 {
			t.Errorf("there are %+v", left)
		}
	})
}

// deliveries are those in the inbox.
func (b *bench) deliveries() []intake.Delivery {
	b.t.Helper()
	ds, err := b.store.Deliveries(context.Background(), intake.DeliveryFilter{})
	if err != nil {
		b.t.Fatal(err)
	}
	return ds
}
