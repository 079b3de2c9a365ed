package scan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/scan"
)

// A sweep reads what changed, page by page, and a second one reads nothing anew.
func TestChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 25 {
		b.put(fmt.Sprint(i), 1, 0)
		b.now = b.now.Add(time.Second)
	}
	b.now = b.now.Add(time.Minute)
	b.config.Page = 10
	if r := b.changed(); r.Result != scan.OK || r.Pages != 3 || r.Seen != 25 || r.Calls != 3 || r.Before != "the beginning" || r.After != "2026-11-20T10:00:24Z" {
		t.Errorf("report %+v", r)
	}
	b.current()
	b.put("7", 2, 0)
	b.now = b.now.Add(time.Minute)
	if r := b.changed(); r.Result != scan.OK || r.FullWanted != "" {
		t.Errorf("report %+v", r)
	}
	b.current()
	if h := b.heard(); len(h["6"]) != 1 || len(h["7"]) != 2 {
		t.Errorf("heard %v of 6 and %v of 7", h["6"], h["7"])
	}
}

// A full sweep sees all there is.
func TestList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 25 {
		b.put(fmt.Sprint(i), i, 0)
	}
	b.put("broken", -1, 0)
	b.config.Page = 10
	r := b.list()
	if r.Result != scan.OK || r.Pages != 3 || r.Seen != 26 || r.Listed.Open || r.Listed.Complete == nil || r.Listed.Complete.Rows != 26 {
		t.Errorf("report %+v, complete %+v", r, r.Listed.Complete)
	}
	seen := b.sightings(1)
	if len(seen) != 26 || seen["broken"].Flags != scan.Unreadable || seen["0"].Flags != 0 || seen["1"].Flags != scan.Wanted || seen["7"].Key != "shop:order:7" {
		t.Errorf("%d rows: %+v", len(seen), seen)
	}
}
