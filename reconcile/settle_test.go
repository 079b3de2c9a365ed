package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// tardy is a destination that shows a document only when it has settled: to a listing, and to a
// question.
type tardy struct {
	*world
	born map[string]time.Time // by id
}

// tardily makes the destination tardy. What it has by now it shows at once.
func (w *world) tardily() *tardy {
	l := &tardy{w, map[string]time.Time{}}
	for _, d := range w.docs {
		l.born[d.ID] = time.Time{}
	}
	return l
}

// shown leaves out what is too young to be shown. What it has never seen was made just now.
func (l *tardy) shown(docs []plan.Document, settle time.Duration) []plan.Document {
	defer l.lock()()
	for _, d := range l.docs {
		if _, known := l.born[d.ID]; !known {
			l.born[d.ID] = time.Now()
		}
	}
	return slices.DeleteFunc(docs, func(d plan.Document) bool { return time.Since(l.born[d.ID]) < settle })
}

// settings are those of a job over it.
func (l *tardy) settings(c *settings) {
	many(c)
	d := &c.sweep.Destination
	find, marked, deliver := d.Find, d.Marked, c.Deliver
	d.Find = func(ctx context.Context, key string) ([]plan.Document, error) {
		docs, err := find(ctx, key)
		return l.shown(docs, d.Settle), err
	}
	d.Marked = func(ctx context.Context, q scan.Query) (scan.Documents, error) {
		p, err := marked(ctx, q)
		p.Documents = l.shown(p.Documents, d.Settle)
		return p, err
	}
	c.Deliver = func(ctx context.Context, ch inbox.Snapshot) error {
		defer l.shown(nil, 0)
		return deliver(ctx, ch)
	}
}

// That the destination shows no document twice proves something only if it had
// the time to show it in between. One that was made just now is adopted, and not made again.
func TestMissesAreApartByTheSettling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(0)
		l := w.tardily()
		w.done(keyOf(500))
		delete(w.works, keyOf(500))
		j := w.job(t, l.settings)
		r := j.mustRun()
		if row := j.row(keyOf(500)); row.Class != plan.LedgerLost || row.Action != plan.Adopt || r.Applied != 1 {
			t.Errorf("%s, %s (%s); %+v", row.Class, row.Action, row.Reason, r)
		}
		if len(w.delivered) > 0 || len(w.live(keyOf(500))) != 1 || w.mails[keyOf(500)] != 1 {
			t.Errorf("%d started, %d documents, %d mails", len(w.delivered), len(w.live(keyOf(500))), w.mails[keyOf(500)])
		}
	})
}

// A rebuild, too, gives the destination time to show what the listing and the
// first look did not.
func TestRebuildWaitsForTheSettling(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]bool{"listed, and not found": true, "neither listed nor found": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wide(0)
				l := w.tardily()
				w.done(keyOf(500))
				clear(w.works)
				j := w.job(t, func(c *settings) {
					marked := c.sweep.Destination.Marked
					if l.settings(c); listed {
						c.sweep.Destination.Marked = marked
					}
				})
				r := j.must(j.Rebuild(t.Context(), time.Time{}, anna))
				if w.works[keyOf(500)] == nil || r.Result != schedule.OK {
					t.Errorf("it stands, and is not recorded: %+v", r)
				}
			})
		})
	}
}

// A first action is read back when the destination had the time to show what it
// made.
func TestReadingBackWaitsForTheSettling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wide(60)
		if r := w.job(t, w.tardily().settings).mustRun(); r.Applied != 60 || r.Result != schedule.OK {
			t.Errorf("%+v", r)
		}
	})
}
