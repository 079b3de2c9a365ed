package saga_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The model of the protocol, saga.pml, is checked by Spin: as it stands it holds, and every mutant, which
// lacks one rule, is caught. The head of saga.pml says what is modelled and what each switch means.
//
// AMENDS_MODEL=full takes the larger budgets (make nightly), AMENDS_MODEL=small, like -short, the smallest
// scene and no mutants.

// A scene is a set of switches under which the protocol must hold.
type scene struct {
	name     string
	switches string
	full     string // the switches of AMENDS_MODEL=full; empty: the same
}

var scenes = []scene{
	{name: "pivot last", full: "-DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=2"},
	{name: "fallible step behind the pivot", switches: "-DAFTER", full: "-DAFTER -DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=2"},
	{name: "cancel by key", switches: "-DTOMB", full: "-DTOMB -DCRASHES=2 -DEARLY=2 -DLOSSES=2 -DAMBIG=1"},
	{name: "fail-over", switches: "-DREGRESS", full: "-DREGRESS -DCRASHES=1 -DEARLY=1 -DLOSSES=2 -DAMBIG=1"},
	{name: "fail-over, fallible step", switches: "-DREGRESS -DAFTER -DAMBIG=0", full: "-DREGRESS -DAFTER -DCRASHES=2 -DEARLY=1 -DLOSSES=2 -DAMBIG=1"},
	{name: "verdicts", switches: "-DVERDICT -DEARLY=0 -DAMBIG=0", full: "-DVERDICT"},
	{name: "verdicts, fallible step", switches: "-DVERDICT -DAFTER -DAMBIG=0", full: "-DVERDICT -DAFTER"},
}

// A mutant lacks one rule. Spin must find the assertion that breaks.
type mutant struct {
	name   string
	scene  string // the switches beside the mutant's own
	breaks string
}

var mutants = []mutant{
	{"NOFENCE", "", "finishedIsFinal"},
	{"TOKENONLY", "-DREGRESS", "noLostWork"},
	{"NOINTENT", "", "compensatedIsClean"},
	{"NOMARGIN", "", "noDoubleEffect"},
	{"NOSETTLE", "", "compensatedIsClean"},
	{"DONEONLY", "", "compensatedIsClean"},
	{"BLIND", "", "noDoubleEffect"},
	{"TRUSTREFUSAL", "", "compensatedIsClean"},
	{"NOQUAR", "-DREGRESS", "compensatedIsClean"},
	{"LATECANCEL", "", "noWayBackAfterPivot"},
	{"NOLIVE", "-DREGRESS", "compensatedIsClean"},
	{"NOWAIT", "", "noDoubleEffect"},
	{"DROPRESULT", "", "nothingDropped"},
	{"DROPSTALE", "", "nothingDropped"},
	{"DROPLATE", "", "nothingDropped"},
	{"OLDLATE", "", "compensatedIsClean"},
	{"RESEND", "", "compensatedIsClean"},
	{"RETRYWRITE", "", "noDoubleEffect"},
	{"FORGETMAYBE", "-DLOSSES=2", "compensatedIsClean"},
	{"UNDOAFTER", "-DAFTER", "noWayBackAfterPivot"},
	{"TURNARM", "-DREGRESS", "chainTellsTheTruth"},
	{"TAILONLY", "-DREGRESS", "noDoubleEffect"},
	{"HASTY", "-DVERDICT -DEARLY=0 -DAMBIG=0", "noDoubleEffect"},
	{"OLDVERDICT", "-DVERDICT -DAFTER -DAMBIG=0", "noDoubleEffect"},
}

// Rule: the protocol holds in every scene, whatever the faults within the budget.
func TestModelHolds(t *testing.T) {
	t.Parallel()
	requireSpin(t)
	chosen := scenes
	if small() {
		chosen = scenes[:1]
	}
	for _, s := range chosen {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			switches := s.switches
			if full() && s.full != "" {
				switches = s.full
			}
			mustHold(t, verify(t, safety("-O1"), switches))
		})
	}
	if full() {
		t.Run("every fair execution ends", func(t *testing.T) {
			t.Parallel()
			mustHold(t, verify(t, liveness, "-DLIVE"))
		})
	}
}

func mustHold(t *testing.T, v verdict) {
	t.Helper()
	t.Log(v)
	if v.errors != 0 || !v.complete {
		t.Fatalf("the protocol does not hold, see it with\n%s\n%s", v.replay(), v.output)
	}
}

// Rule: no rule of the protocol is idle. Without it, something that must hold breaks.
func TestModelMutants(t *testing.T) {
	t.Parallel()
	requireSpin(t)
	if small() {
		t.Skip("small: no mutants")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			switches := strings.TrimSpace("-D" + m.name + " " + m.scene)
			v := verify(t, safety("-O0"), switches) // found soon: the compiler would take longer
			t.Log(v)
			if v.errors == 0 {
				t.Fatalf("no counterexample: the rule that %s removes is idle\n%s", m.name, v.output)
			}
			if v.broken != m.breaks {
				t.Fatalf("%q breaks, not %q, see it with\n%s", v.broken, m.breaks, v.replay())
			}
		})
	}
}

// Rule: every mutant that saga.pml names is run, and every one that is run is explained there.
func TestModelNamesItsMutants(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("saga.pml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "* MUTANTS:")
	list, _, _ = strings.Cut(list, "* BY HAND")
	var named, tested []string
	for _, m := range regexp.MustCompile(`(?m)^ \*   ([A-Z]+) `).FindAllStringSubmatch(list, -1) {
		named = append(named, m[1])
	}
	for _, m := range mutants {
		tested = append(tested, m.name)
	}
	slices.Sort(named)
	slices.Sort(tested)
	if !slices.Equal(named, tested) {
		t.Errorf("saga.pml explains %q\nthe test runs     %q", named, tested)
	}
}

// A checker is a way to build and run pan, the program that Spin makes of a model.
type checker struct{ build, run string }

// liveness looks for fair executions that never end.
var liveness = checker{"-O1 -DNFAIR=3", "-a -f -m1000000"}

// safety looks for broken assertions. What gcc takes to optimise must be won back by the run.
func safety(optimise string) checker { return checker{optimise + " -DSAFETY", "-m100000"} }

// verdict is what pan had to say.
type verdict struct {
	checker  checker
	switches string
	states   int
	depth    int
	errors   int
	broken   string // the assertion
	complete bool
	seconds  string
	output   string
}

func (v verdict) String() string {
	what := "holds"
	if v.errors > 0 {
		what = "breaks " + v.broken
	}
	return fmt.Sprintf("%s: %d states, depth %d, %s s [%s]", what, v.states, v.depth, v.seconds, v.switches)
}

var (
	panDepth   = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	panStates  = regexp.MustCompile(`(\d+) states, stored`)
	panBroken  = regexp.MustCompile(`(?m)^pan:\d+: (?:assertion violated \(?\s*(\w+)|(.*?) \(at depth)`)
	panSeconds = regexp.MustCompile(`elapsed time ([\d.]+) seconds`)
	panCutOff  = regexp.MustCompile(`max search depth too small|reached -DMEMLIM|out of memory|Search not completed`)
)

// slots bounds how many checkers run at the same time: each may take a gigabyte.
var slots = make(chan struct{}, 2)

// verify builds the checker for saga.pml under the switches and runs it to its end or to the first error.
func verify(t *testing.T, c checker, switches string) verdict {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()

	model, err := filepath.Abs("saga.pml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run(t, dir, "spin", append(strings.Fields(switches), "-a", model)...)
	run(t, dir, "gcc", append(strings.Fields(c.build), "-w", "-DCOLLAPSE", "-DMEMLIM=4000", "-o", "pan", "pan.c")...)
	out := run(t, dir, filepath.Join(dir, "pan"), strings.Fields(c.run)...)

	v := verdict{checker: c, switches: switches, complete: !panCutOff.MatchString(out)}
	m := panDepth.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("pan did not report what it found:\n%s", out)
	}
	v.depth, v.errors = number(t, m[1]), number(t, m[2])
	v.states = number(t, panStates.FindStringSubmatch(out)[1])
	v.output, _, _ = strings.Cut(out, "\nunreached in ")
	if m := panBroken.FindStringSubmatch(out); m != nil {
		v.broken = m[1] + m[2]
	}
	v.seconds = "0"
	if m := panSeconds.FindStringSubmatch(out); m != nil {
		v.seconds = m[1]
	}
	return v
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// replay is how a person looks at a counterexample.
func (v verdict) replay() string {
	return fmt.Sprintf("cd saga && spin %[1]s -a saga.pml && gcc %[2]s -w -DCOLLAPSE -o pan pan.c && ./pan %[3]s; spin %[1]s -t -p -g saga.pml",
		v.switches, v.checker.build, v.checker.run)
}

func full() bool { return os.Getenv("AMENDS_MODEL") == "full" }

func small() bool { return testing.Short() || os.Getenv("AMENDS_MODEL") == "small" }

// requireSpin skips the test where the model checker cannot be had, and fails it in CI.
func requireSpin(t *testing.T) {
	t.Helper()
	for _, program := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		const words = "the model of the protocol is not checked, because %s is not installed: apt-get install spin gcc libc6-dev"
		if os.Getenv("CI") != "" {
			t.Fatalf(words, program)
		}
		t.Skipf(words, program)
	}
}
