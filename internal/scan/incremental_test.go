package scan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/scan"
)

// fill makes n orders, one a second, and lets them age.
func (b *bench) fill(n int) {
	for i := range n {
		b.put(fmt.Sprintf("%03d", i), 1, 0)
		b.now = b.now.Add(time.Second)
	}
	b.now = b.now.Add(time.Minute)
}

// ok fails unless the run was one that counts, and asks for nothing more.
func (b *bench) ok(r scan.Report) {
	b.Helper()
	if r.Result != scan.OK || r.Why != "" || r.FullWanted != "" || r.Violations != 0 {
		b.Errorf("report %+v", r)
	}
}

// I1: "same-timestamp rows across a page edge not lost": orders of one second lie on both sides of
// every edge, and pages are of any size.
func TestI1TiesAcrossPages(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2, 3, 7} {
		b := newBench(t)
		b.step, b.most = time.Second, most
		for i := range 30 {
			b.put(fmt.Sprint(i), 1, 0)
			b.now = b.now.Add(130 * time.Millisecond)
		}
		b.now = b.now.Add(time.Minute)
		b.ok(b.changed())
		b.current()
	}
}

// I1: the lower bound is inclusive: what shares the second of the last one that was seen is listed
// by the next run.
func TestI1InclusiveBound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.step = time.Second
	b.config.Overlap = time.Nanosecond
	b.put("1", 1, 0)
	b.put("2", 1, 8*time.Second) // of the same second, and shown later
	b.now = b.now.Add(7 * time.Second)
	b.changed()
	b.now = b.now.Add(7 * time.Second)
	b.changed()
	b.current()
}

// I2: "late commits caught": what the source shows minutes after it happened is found, because
// every run looks behind its cursor, not only the first.
func TestI2LateCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 50 {
		b.put(fmt.Sprint("late ", i), 1, 9*time.Minute)
		b.put(fmt.Sprint("prompt ", i), 1, 0)
		b.now = b.now.Add(time.Minute)
		b.ok(b.changed())
	}
	b.now = b.now.Add(20 * time.Minute)
	b.ok(b.changed())
	b.current()
}

// I3: "cursor advances to max version seen, never to now": after a quiet time the cursor still
// stands on the last change.
func TestI3CursorIsWhatWasSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(3)
	last := b.orders["002"].changed.Format(time.RFC3339Nano)
	for range 3 {
		b.now = b.now.Add(24 * time.Hour)
		if r := b.changed(); r.After != last {
			t.Errorf("the cursor is %s, the last change was %s", r.After, last)
		}
	}
}

// I3: "upper bound fixed at run start": what changes while the sweep runs is the next run's, and
// keeps no run from ending.
func TestI3ChangesWhileItRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(30)
	b.config.Page = 10
	n := 0
	b.after = func(*scan.Query, *scan.Page) { // with every page, as many change as were read
		if n++; n > 100 {
			t.Fatal("the sweep never ends")
		}
		for i := range 10 {
			b.put(fmt.Sprintf("%03d", (n*10+i)%30), n, 0)
		}
		b.now = b.now.Add(time.Second)
	}
	began := b.now
	r := b.changed()
	b.ok(r)
	if after, err := time.Parse(time.RFC3339Nano, r.After); err != nil || after.After(began) {
		t.Errorf("the cursor is %s, the run began at %s", r.After, began)
	}
	b.after = nil
	b.now = b.now.Add(time.Minute)
	b.ok(b.changed())
	b.current()
}

// I3: a state that a page shows and that is younger than the safety lag is heard, and moves no
// cursor.
func TestI3SafetyLag(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("old", 1, 0)
	b.now = b.now.Add(time.Minute)
	b.put("young", 1, 0)
	if r := b.changed(); r.After != b.orders["old"].changed.Format(time.RFC3339Nano) {
		t.Errorf("the cursor stands on %s", r.After)
	}
	b.current()
}

// "Resume repeats at most one page": a run that is killed behind any page is gone on with, by
// another process.
func TestI4ResumesAtThePage(t *testing.T) {
	t.Parallel()
	for kill := 1; kill <= 5; kill++ {
		b := newBench(t)
		b.fill(50)
		b.config.Page = 10
		pages := 0
		stopped := errors.New("the process was killed")
		b.config.Proceed = func(context.Context) error {
			if pages++; pages > kill {
				return stopped
			}
			return nil
		}
		if _, err := b.sweep().Changed(t.Context()); kill < 5 && !errors.Is(err, stopped) {
			t.Fatalf("kill at %d: %v", kill, err)
		}
		b.config.Proceed, b.asked = nil, nil
		b.ok(b.changed())
		b.current()
		if first := b.asked[0]; kill < 5 && !strings.HasSuffix(first.Cursor, fmt.Sprintf("%03d", kill*10-1)) {
			t.Errorf("killed behind page %d it went on behind %q", kill, first.Cursor)
		}
	}
}

// I5: "page full of one timestamp and API has no id tie-break": the page is asked for wider, and
// nothing is stepped over.
func TestI5WiderPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.step, b.byTime = time.Second, true
	b.config.Page = 10
	b.put("before", 1, 0)
	b.now = b.now.Add(time.Second)
	for i := range 70 { // of one second
		b.put(fmt.Sprint(i), 1, 0)
	}
	b.now = b.now.Add(time.Second)
	b.put("behind", 1, 0)
	b.now = b.now.Add(time.Minute)
	b.ok(b.changed())
	b.current()
}

// I5: where no page is wide enough the run is partial and a full sweep is wanted; when that has
// seen what the other could not, the incremental one goes on behind it.
func TestI5FullSweepPassesATie(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.step, b.byTime, b.most = time.Second, true, 10
	b.config.Page = 10
	for i := range 70 {
		b.put(fmt.Sprint(i), 1, 0)
	}
	b.now = b.now.Add(time.Minute)
	for range 5 {
		if r := b.changed(); r.Result != scan.Partial || !strings.Contains(r.FullWanted, "10 objects changed at 2026-11-20T10:00:00Z") || r.After != "the beginning" {
			t.Fatalf("report %+v", r)
		}
		b.now = b.now.Add(time.Minute)
	}
	full := func() {
		b.byTime = false // by id it has a tie-break
		b.ok(b.list())
		b.byTime = true
	}
	full() // so early that not all of that time may be shown
	if r := b.changed(); r.Result != scan.Partial || r.FullWanted == "" {
		t.Errorf("report %+v", r)
	}
	b.now = b.now.Add(10 * time.Minute)
	full()
	b.now = b.now.Add(time.Hour)
	b.put("later", 2, 0)
	b.now = b.now.Add(time.Minute)
	b.ok(b.changed())
	if h := b.heard(); len(h["later"]) != 1 {
		t.Errorf("heard %v", h)
	}
}

// I7: "opaque cursor expires mid-sweep: restart from last durable keyset, not from zero".
func TestI7ExpiredCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	b.config.Page = 10
	b.expired = func(cursor string) bool { return strings.HasSuffix(cursor, "029") }
	b.ok(b.changed())
	b.current()
	i := slices.IndexFunc(b.asked, func(q scan.Query) bool { return strings.HasSuffix(q.Cursor, "029") })
	if next := b.asked[i+1]; next.Cursor != "" || !next.Since.Equal(b.orders["029"].changed) {
		t.Errorf("behind the expired cursor it asked for %+v", next)
	}
}

// I7: a provider that has no word for it: a cursor at which three runs in a row have failed is one
// that has expired.
func TestI7FailingCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	b.config.Page = 10
	b.before = func(q *scan.Query) error {
		if strings.HasSuffix(q.Cursor, "029") {
			return errors.New("400 bad request")
		}
		return nil
	}
	for range 3 {
		if r := b.changed(); r.Result != scan.Partial || !strings.Contains(r.Why, "400 bad request") {
			t.Fatalf("report %+v", r)
		}
	}
	b.before = func(q *scan.Query) error {
		if strings.HasSuffix(q.Cursor, "029") && q.Since.IsZero() {
			return errors.New("400 bad request")
		}
		return nil
	}
	b.ok(b.changed())
	b.current()
}

// I7: of a listing that is out of order the place of the last object says nothing; it begins anew.
func TestI7OutOfOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	b.config.Page = 10
	for id, o := range b.orders {
		o.changed = o.changed.Add(-time.Duration(id[2]) * time.Minute)
	}
	b.config.Source.Changed = func(ctx context.Context, q scan.Query) (scan.Page, error) {
		q.Partition = "all" // by id
		return b.All(ctx, q)
	}
	once := true
	b.expired = func(cursor string) bool {
		expired := once && strings.HasSuffix(cursor, "029")
		once = once && !expired
		return expired
	}
	if r := b.changed(); r.Result != scan.OK || r.Violations == 0 {
		t.Errorf("report %+v", r)
	}
	b.current()
	if i := slices.IndexFunc(b.asked[1:], func(q scan.Query) bool { return q.Cursor == "" }); i < 0 || !b.asked[i+1].Since.IsZero() {
		t.Errorf("it asked for %+v", b.asked)
	}
}
