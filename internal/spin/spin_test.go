package spin

import (
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
)

var tiny = Model{
	File:    "testdata/tiny.pml",
	Scenes:  []Scene{{Name: "two adders"}},
	Mutants: []Mutant{{Name: "TORN", Breaks: "nothingLost"}},
}

// Rule: a model that holds is said to hold.
func TestHolds(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	tiny.Holds(t)
}

// Rule: its mutant is caught at the assertion that it breaks.
func TestBreaks(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	tiny.Breaks(t)
}

// Rule: its mutants are those that it explains.
func TestExplains(t *testing.T) { t.Parallel(); tiny.Explains(t) }

// Rule: a counterexample is told from the absence of one, with the command that shows it.
func TestResult(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	require(t)
	good, bad := verify(t, tiny.File, soonFound, ""), verify(t, tiny.File, soonFound, "-DTORN")
	if good.errors != 0 || !good.complete || good.broken != "" || good.states == 0 || good.steps <= good.states {
		t.Errorf("what holds was judged as %+v", good)
	}
	if bad.errors != 1 || bad.broken != "nothingLost" || !strings.Contains(bad.String(), "breaks nothingLost") {
		t.Errorf("the mutant was judged as %+v", bad)
	}
	if want := "cd testdata && spin -DTORN -a tiny.pml && gcc "; !strings.HasPrefix(bad.replay(), want) {
		t.Errorf("see it with %q; want a command that begins with %q", bad.replay(), want)
	}
}

// Rule: a search that was cut off proves nothing, and does not count as one that held.
func TestCutOff(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	require(t)
	if v := verify(t, tiny.File, checker{"-O0 -DSAFETY", "-m3"}, ""); v.complete {
		t.Errorf("a search of depth 3 was taken for a whole one: %+v", v)
	}
}

// Rule: the mutants that a model explains are those between MUTANTS: and BY HAND.
func TestExplained(t *testing.T) {
	t.Parallel()
	const text = ` * BUDGETS
 *   CRASHES  how many
 * MUTANTS: some
 *   ONE    is explained
 *          in two lines
 *   TWO    as well
 * BY HAND
 *   THREE  is not
`
	if got, want := explained(text), []string{"ONE", "TWO"}; !slices.Equal(got, want) {
		t.Errorf("explained %q; want %q", got, want)
	}
}

// Rule: what pan rounds is read as what it rounds to.
func TestNumbers(t *testing.T) {
	t.Parallel()
	out := "1.0257345e+08 states, stored\n1.4813923e+08 transitions (= stored+matched)\n"
	states, steps := number(t, panStates.FindStringSubmatch(out)[1]), number(t, panSteps.FindStringSubmatch(out)[1])
	if states != 102573450 || steps != 148139230 {
		t.Errorf("read %d states, %d transitions", states, steps)
	}
}
