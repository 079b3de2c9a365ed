package reconcile

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
)

// Five failures in a row, or more than a fifth of the last fifty outcomes, end a run; fewer
// never do. The figures are counted anew here, over the whole history.
func TestBreaker(t *testing.T) {
	t.Parallel()
	bounds := plan.Bounds{}.OrDefaults()
	rapid.Check(t, func(t *rapid.T) {
		b := newBreaker(&bounds, false)
		failed := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 3).Draw(t, "outcome") == 0 }), 1, 200).Draw(t, "failed")
		open := false
		for i := range failed {
			b.note(failed[i])
			open = open || failed[i] && (row(failed[:i+1]) >= 5 || count(failed[max(0, i-49):i+1]) > 10)
			if b.open() != open {
				t.Fatalf("after %v the breaker is open: %t; want %t", failed[:i+1], b.open(), open)
			}
		}
	})
}

func row(failed []bool) (n int) {
	for i := len(failed) - 1; i >= 0 && failed[i]; i-- {
		n++
	}
	return n
}

func count(failed []bool) (n int) {
	for _, f := range failed {
		if f {
			n++
		}
	}
	return n
}

// After a run that ended for its failures the first action decides: one more failure ends this
// run, too, and a success gives it the whole measure back.
func TestBreakerProbes(t *testing.T) {
	t.Parallel()
	bounds := plan.Bounds{}.OrDefaults()
	b := newBreaker(&bounds, true)
	if b.note(true); !b.open() || !strings.Contains(b.why, "the first action of this one failed") {
		t.Errorf("a probe that failed: %q", b.why)
	}
	b = newBreaker(&bounds, true)
	b.note(false)
	for range 4 {
		b.note(true)
	}
	if b.open() {
		t.Errorf("a probe that succeeded, then four failures: %q", b.why)
	}
	if b.note(true); !b.open() {
		t.Error("the fifth failure in a row did not end the run")
	}
}
