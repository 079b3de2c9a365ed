package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/saga"
)

// Rule: numbers compare as numbers and times as times, whatever their zone or precision; within an
// epoch every time is newer than every number; a sub-revision is newer than its version and older
// than the next; a newer epoch beats both; no revision is older than every one, and no revision
// text at all is older still.
func TestCompareRevisions(t *testing.T) {
	t.Parallel()
	ascending := [][]string{ // what stands together is the same version
		{"garbage"},
		{""},
		{"+1"},
		{"+2"},
		{"0", "00", "0/0"},
		{"9", "09", "0/9", "00/9"},
		{"9+1", "09+1", "0/9+1"},
		{"9+2"},
		{"9+10"},
		{"10"},
		{"18446744073709551615"},
		{"2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00", "2026-03-01T12:00:00.000Z", "0/2026-03-01T12:00:00Z"},
		{"2026-03-01T12:00:00Z+1", "2026-03-01T13:00:00+01:00+1", "0/2026-03-01T12:00:00.0Z+1"},
		{"2026-03-01T12:00:00.25Z", "2026-03-01T12:00:00.250Z"},
		{"2026-03-01T12:00:00.250000001Z"},
		{"1/0"},
		{"1/2020-01-01T00:00:00Z"},
		{"2/0", "02/0"},
		{"10/0"},
	}
	for i, as := range ascending {
		for j, bs := range ascending {
			for _, a := range as {
				for _, b := range bs {
					if got := sign(saga.CompareRevisions(a, b)); got != sign(i-j) {
						t.Errorf("%q against %q: %d, want %d", a, b, got, sign(i-j))
					}
				}
			}
		}
	}
}

func sign(n int) int { return min(max(n, -1), 1) }

// Rule: what is no revision is refused, and the refusal names the text and what would do.
func TestCheckRevision(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "0", "17", "2/17", "2026-11-20T10:00:00.25Z", "3/2026-11-20T10:00:00+02:00", "18446744073709551615",
		"+1", "17+1", "2/17+2147483647", "2026-11-20T10:00:00+02:00+7",
	} {
		if err := saga.CheckRevision(s); err != nil {
			t.Errorf("%q is refused: %v", s, err)
		}
	}
	for _, s := range []string{
		"v7", "-1", "+0", "+", "17+", "17+0", "17+01", "17+1+1", "17+-1", "17+x", "17+2147483648", "1/+1", "+1/1", "2026-11-20T10:00:00+1", "1.5", " 1", "1 ", "0x10", "1_000", "18446744073709551616", "2026-11-20", "2026-11-20 10:00:00Z", "/", "1/", "/1", "1/2/3",
		"-1/1", "2147483648/1", "1/garbage", "\x00",
	} {
		err := saga.CheckRevision(s)
		if err == nil {
			t.Errorf("%q is accepted", s)
			continue
		}
		if !strings.Contains(err.Error(), "whole number") {
			t.Errorf("%q: the refusal does not say what would do: %v", s, err)
		}
	}
}

// drawRevision draws a revision, or a text that is nearly one.
func drawRevision(t *rapid.T, name string) string {
	epoch := rapid.SampledFrom([]string{"", "", "0/", "1/", "02/", "/", "x/"}).Draw(t, name+" epoch")
	switch rapid.IntRange(0, 3).Draw(t, name+" kind") {
	case 0:
		return epoch + rapid.StringMatching(`0{0,2}[0-9]{1,21}`).Draw(t, name)
	case 1:
		at := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, name), rapid.Int64Range(0, 999).Draw(t, name+" ns")*1e6)
		zone := time.FixedZone("", rapid.IntRange(-12, 12).Draw(t, name+" zone")*3600)
		return epoch + at.In(zone).Format(rapid.SampledFrom([]string{time.RFC3339, time.RFC3339Nano}).Draw(t, name+" layout"))
	case 2:
		return epoch + rapid.StringOfN(rapid.RuneFrom([]rune("0123456789TZ:-/+. ")), 0, 12, -1).Draw(t, name)
	default:
		sub := rapid.SampledFrom([]string{"", "+1", "+2", "+10", "+0"}).Draw(t, name+" count")
		return rapid.SampledFrom([]string{"", "0", "1", "2", "10", "2026-11-20T10:00:00+01:00"}).Draw(t, name) + sub
	}
}

// Rule: CompareRevisions is a total order over every text: exactly one of older, same and newer,
// either way round; what is the same is interchangeable; and older is transitive. So news in any
// order end at the same version.
func TestCompareRevisionsIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawRevision(t, "a"), drawRevision(t, "b"), drawRevision(t, "c")
		orders(t, a, b, c)
		news := []string{a, b, c}
		newest := func(order ...int) (heard string) {
			for _, i := range order {
				if saga.CompareRevisions(news[i], heard) > 0 {
					heard = news[i]
				}
			}
			return heard
		}
		if x, y := newest(0, 1, 2), newest(2, 1, 0); saga.CompareRevisions(x, y) != 0 {
			t.Fatalf("%q heard one way round end at %q, the other at %q", news, x, y)
		}
	})
}

func orders(t tester, a, b, c string) {
	t.Helper()
	ab, bc, ac := saga.CompareRevisions(a, b), saga.CompareRevisions(b, c), saga.CompareRevisions(a, c)
	switch {
	case saga.CompareRevisions(a, a) != 0:
		t.Fatalf("%q is not the same as itself", a)
	case sign(ab) != -sign(saga.CompareRevisions(b, a)):
		t.Fatalf("%q against %q is %d, and the other way round %d", a, b, ab, saga.CompareRevisions(b, a))
	case ab <= 0 && bc <= 0 && ac > 0, ab < 0 && bc <= 0 && ac >= 0:
		t.Fatalf("%q ≤ %q ≤ %q, and yet %d", a, b, c, ac)
	case ab == 0 && sign(bc) != sign(ac):
		t.Fatalf("%q and %q are the same, and against %q they are %d and %d", a, b, c, ac, bc)
	case saga.CheckRevision(a) == nil && saga.CheckRevision(b) != nil && ab <= 0:
		t.Fatalf("%q is a revision, %q is none, and yet %d", a, b, ab)
	}
	sorted := []string{a, b, c}
	slices.SortFunc(sorted, saga.CompareRevisions)
	if !slices.IsSortedFunc(sorted, saga.CompareRevisions) {
		t.Fatalf("%q cannot be sorted", sorted)
	}
}

// FuzzCompareRevisions holds the same over whatever the fuzzer thinks of.
func FuzzCompareRevisions(f *testing.F) {
	for _, seed := range [][3]string{{"1", "2", "10"}, {"", "x", "/"}, {"1/2", "2026-11-20T10:00:00Z", "0/7"}, {"2026-11-20T24:00:00Z", "9999-12-31T23:59:59Z", "\xff"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) { orders(t, a, b, c) })
}

// V15: the next sub-revision is a revision, newer than what it repeats, and older than every later
// version of the source.
func TestSubRevision(t *testing.T) {
	for revision, want := range map[string]string{
		"": "+1", "+1": "+2", "17": "17+1", "17+1": "17+2", "17+9": "17+10", "2/17": "2/17+1",
		"2026-11-20T10:00:00Z": "2026-11-20T10:00:00Z+1", "2026-11-20T10:00:00+01:00": "2026-11-20T10:00:00+01:00+1",
	} {
		if got := saga.SubRevision(revision); got != want {
			t.Errorf("behind %q comes %q, want %q", revision, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRevision(t, "a"), drawRevision(t, "b")
		if saga.CheckRevision(a) != nil || saga.CheckRevision(b) != nil {
			t.Skip("no revisions")
		}
		sub := saga.SubRevision(a)
		switch {
		case saga.CheckRevision(sub) != nil || saga.CompareRevisions(sub, a) <= 0 || saga.BaseRevision(sub) != saga.BaseRevision(a):
			t.Fatalf("%q behind %q", sub, a)
		case saga.CompareRevisions(saga.BaseRevision(b), saga.BaseRevision(a)) > 0 && saga.CompareRevisions(sub, b) >= 0:
			t.Fatalf("%q is not older than %q", sub, b)
		}
	})
}
