package scan_test

import (
	"testing"
	"time"
)

// I2 with a stamp that is ahead by less than Skew (one server of the source has a wrong clock): the
// overlap is counted from it, so nothing of it is left for what is shown late.
func TestAStampAheadEatsTheOverlap(t *testing.T) {
	b := newBench(t)
	b.fill(10)
	b.now = b.now.Add(time.Hour)
	b.ok(b.changed())
	b.put("late", 1, 7*time.Minute) // within the overlap of ten
	b.now = b.now.Add(2 * time.Minute)
	b.put("odd", 1, 0).changed = b.now.Add(9 * time.Minute)
	b.ok(b.changed())
	for range 12 {
		b.now = b.now.Add(time.Minute)
		b.ok(b.changed())
	}
	b.current()
}

// With a Begin nothing older is heard, not at first and not after a rebuild; what changes later is.
func TestBegin(t *testing.T) {
	b := newBench(t)
	b.fill(10)
	b.config.Begin = b.now.Add(time.Minute)
	b.now = b.now.Add(time.Hour)
	b.put("new", 1, 0)
	for range 2 {
		b.now = b.now.Add(time.Minute)
		r := b.changed()
		b.ok(r)
		if r.Seen != 1 {
			t.Errorf("%d were heard, want the new one alone", r.Seen)
		}
		if err := b.sweep().Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
