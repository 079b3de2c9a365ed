package coordinator

import (
	"testing"
	"time"
	"unsafe"
)

// suspended returns the time whose time of day is d before t's, and whose monotonic clock shows
// what t's does: as if the machine had been suspended for d since then.
func suspended(t time.Time, d time.Duration) time.Time {
	earlier := t.Add(-d)
	type layout struct { // of a time.Time
		wall uint64
		ext  int64
		loc  *time.Location
	}
	(*layout)(unsafe.Pointer(&earlier)).ext += int64(d)
	return earlier
}

// The monotonic clock stands still while a machine is suspended. What the time of day calls
// over is over.
func TestASuspendedMachine(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		at   time.Time
		want bool
	}{
		"not yet":       {now.Add(time.Second), false},
		"by both":       {now.Add(-time.Second), true},
		"suspended":     {suspended(now.Add(time.Minute), time.Hour), true},
		"set back only": {suspended(now.Add(-time.Second), -time.Hour), true},
	} {
		if got := passed(now, c.at); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
