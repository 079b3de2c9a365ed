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

// I8: "same page returned twice / empty page with has_more: abort run as partial".
func TestI8NoProgress(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(b *bench, q *scan.Query, p *scan.Page){
		"the same page again": func(b *bench, q *scan.Query, p *scan.Page) {
			if q.Cursor != "" {
				p.Objects = nil
				for i := range 10 {
					p.Objects = append(p.Objects, b.orders[fmt.Sprintf("%03d", i)].object(b.step))
				}
				p.Next = q.Cursor + "x"
			}
		},
		"the same cursor again": func(_ *bench, q *scan.Query, p *scan.Page) {
			if q.Cursor != "" {
				p.Next = q.Cursor
			}
		},
		"an empty page that is not the last": func(_ *bench, _ *scan.Query, p *scan.Page) {
			p.Objects, p.Next = nil, "more"
		},
	} {
		b := newBench(t)
		b.fill(50)
		b.config.Page = 10
		b.after = func(q *scan.Query, p *scan.Page) { spoil(b, q, p) }
		if r := b.changed(); r.Result != scan.Partial || r.After != "the beginning" || r.Violations == 0 || r.Calls > 3 {
			t.Errorf("%s: report %+v", name, r)
		}
		b.after = nil
		b.ok(b.changed())
		b.current()
	}
}

// I9: "server ignores the filter: client re-checks bounds; counts violations".
func TestI9FilterIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	b.now = b.now.Add(time.Hour)
	b.put("new", 1, 0)
	b.now = b.now.Add(time.Hour)
	b.ok(b.changed())
	b.deaf = true
	if r := b.changed(); r.Violations != 50 || r.Result != scan.OK {
		t.Errorf("report %+v", r)
	}
	if h := b.heard(); len(h["003"]) != 1 {
		t.Errorf("what is listed again is heard again: %v", h["003"])
	}
}

// A listing that is not in the order it promises is counted, and its cursor is not trusted to be a
// place in it.
func TestDisorderIsCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(20)
	b.after = func(_ *scan.Query, p *scan.Page) { slices.Reverse(p.Objects) }
	if r := b.changed(); r.Violations != 19 || r.After != b.orders["019"].changed.Format(time.RFC3339Nano) {
		t.Errorf("report %+v", r)
	}
	b.current()
}

// I10: "cursor never decreases; overlap covers small steps": a clock that goes back a little loses
// nothing.
func TestI10ClockGoesBackALittle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(10)
	before := b.changed().After
	b.ahead = -8 * time.Minute
	b.put("005", 2, 0)
	b.now = b.now.Add(time.Minute)
	r := b.changed()
	if b.ok(r); r.After != before {
		t.Errorf("the cursor went from %s to %s", before, r.After)
	}
	b.current()
}

// I10: "larger: full sweep requested", because what is stamped before the cursor is not listed;
// until there was one, and not more than once a day.
func TestI10ClockGoesFarBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(10)
	before := b.changed().After
	b.ahead = -5 * time.Hour
	for id := range b.orders {
		b.put(id, 2, 0)
	}
	b.now = b.now.Add(time.Minute)
	for range 2 {
		if r := b.changed(); r.After != before || !strings.Contains(r.FullWanted, "its clock went back") {
			t.Errorf("report %+v", r)
		}
		b.now = b.now.Add(time.Minute)
	}
	b.ok(b.list())
	b.now = b.now.Add(time.Minute)
	b.ok(b.changed())
}

// A stamp far in the future is one of a broken clock: it is heard, counted, and moves no cursor;
// else nothing would be listed until its time has come.
func TestFutureStampMovesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(10)
	b.put("odd", 1, 0).changed = b.now.AddDate(10, 0, 0)
	r := b.changed()
	if r.Violations != 1 || r.After != b.orders["009"].changed.Format(time.RFC3339Nano) {
		t.Errorf("report %+v", r)
	}
	b.now = b.now.Add(time.Hour)
	b.put("005", 2, 0)
	b.now = b.now.Add(time.Minute)
	b.changed()
	b.current()
}

// A source whose clock runs ahead of ours, within the skew, is not read that much later.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ahead = 9 * time.Minute
	b.config.Page = 10
	for range 5 {
		b.fill(30)
		b.ok(b.changed())
	}
	b.current()
	if at, err := time.Parse(time.RFC3339Nano, b.changed().After); err != nil || b.orders["029"].changed.Sub(at) > time.Minute {
		t.Errorf("the cursor is %s, the last change was %s", at, b.orders["029"].changed)
	}
}

// "Partial never advances past the first unprocessed item": whatever page fails, the cursor
// stays, what was read is heard, and the next run reads the rest.
func TestPartialKeepsTheCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	before := b.changed().After
	for i := range 50 {
		b.put(fmt.Sprintf("%03d", i), 2, 0)
		b.now = b.now.Add(time.Second)
	}
	b.now = b.now.Add(time.Minute)
	b.config.Page = 10
	b.before = func(q *scan.Query) error {
		if strings.HasSuffix(q.Cursor, "039") {
			return errors.New("503")
		}
		return nil
	}
	if r := b.changed(); r.Result != scan.Partial || r.After != before || !strings.Contains(r.Why, "503") {
		t.Errorf("report %+v", r)
	}
	b.before = nil
	b.ok(b.changed())
	b.current()
}

// Restart begins at the beginning, as after a ledger was lost.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	b.changed()
	b.now = b.now.Add(24 * time.Hour)
	if r := b.changed(); r.Seen > 50 {
		t.Errorf("report %+v", r)
	}
	if err := b.sweep().Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := b.changed(); r.Before != "the beginning" || r.Seen != 50 {
		t.Errorf("report %+v", r)
	}
}

// Two processes that sweep at once: one finds that the other has moved on, and stops.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fill(50)
	b.config.Page = 10
	first, inner := true, b.config.Source.Changed
	b.config.Source.Changed = func(ctx context.Context, q scan.Query) (scan.Page, error) {
		p, err := inner(ctx, q)
		if first {
			first = false
			b.ok(b.changed()) //nolint:contextcheck // it has the test's: the other one, from beginning to end
		}
		return p, err
	}
	if r, err := b.sweep().Changed(t.Context()); !errors.Is(err, scan.ErrMoved) || r.Result != scan.Partial {
		t.Errorf("%v, %+v", err, r)
	}
	b.current()
}
