package intake_test

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// Times are read in every way that sources write them, to one instant, with the resolution they
// were written in.
func TestParseTime(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]struct {
		at   time.Time
		step time.Duration
	}{
		"2026-11-20T12:00:00Z":           {noon, time.Second},
		"2026-11-20T21:00:00+09:00":      {noon, time.Second},
		"2026-11-20T21:00:00.250+0900":   {noon.Add(250 * time.Millisecond), time.Millisecond},
		"2026-11-20T12:00:00":            {noon, time.Second},
		"2026-11-20 12:00:00.5":          {noon.Add(500 * time.Millisecond), 100 * time.Millisecond},
		"2026-11-20T12:00:00.123456789Z": {noon.Add(123456789), time.Nanosecond},
		" 1795176000 ":                   {noon, time.Second},
		"1795176000250":                  {noon.Add(250 * time.Millisecond), time.Millisecond},
		"1795176000.0":                   {noon, time.Second}, // one number has one reading
		"1.795176e9":                     {noon, time.Second},
		"1795176000250.0":                {noon.Add(250 * time.Millisecond), time.Millisecond},
	} {
		got, err := intake.ParseTime(text)
		if err != nil || !got.Time().Equal(want.at) || got.Step != want.step || got.Clock != intake.ObjectClock {
			t.Errorf("%q is %v in steps of %s, %v; want %v in steps of %s", text, got.Time(), got.Step, err, want.at, want.step)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-11-20", "-5", "-5.0", "1e99", "1e999999999", "1/2", "0x10", "1795176000.0x", "9999-01-01T00:00:00Z", "1066-10-14T09:00:00Z"} {
		if v, err := intake.ParseTime(text); err == nil {
			t.Errorf("%q was taken for %v", text, v.Time())
		}
	}
}

// Versions are compared at the coarser of their resolutions, and an epoch counts before
// everything.
func TestVersionsCompareAtTheCoarserResolution(t *testing.T) {
	t.Parallel()
	second := time.Unix(1_795_176_000, 0)
	coarse, fine := intake.At(second, time.Second), intake.At(second.Add(999*time.Millisecond), time.Millisecond)
	later := intake.At(second.Add(time.Second), time.Millisecond)
	restored := coarse
	restored.Epoch = 1
	for _, c := range []struct {
		a, b intake.Version
		want int
	}{
		{coarse, fine, 0},
		{coarse, later, -1},
		{fine, later, -1},
		{later, fine, 1},
		{restored, later, 1},
		{intake.Version{}, coarse, -1},
		{intake.Counter(9), intake.Counter(10), -1},
		{intake.Counter(-1), intake.Version{}, 0},
	} {
		if got := c.a.Compare(c.b); got != c.want {
			t.Errorf("%q against %q is %d, want %d", c.a.Revision(), c.b.Revision(), got, c.want)
		}
	}
}
