package spin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A checker is a way to build and run pan, the program that Spin makes of a model.
type checker struct{ build, run string }

// What gcc takes to optimise must be won back by the run. States that are collapsed take two thirds
// of the memory and half as much time again.
var (
	// soonFound looks for a broken assertion that is expected.
	soonFound = checker{"-O0 -DSAFETY", "-m100000"}

	// safety looks for broken assertions among some million states, longSafety among more.
	safety     = checker{"-Og -DSAFETY", "-m100000"}
	longSafety = checker{"-O1 -DSAFETY -DCOLLAPSE", "-m100000"}

	// liveness looks for fair executions that never end.
	liveness = checker{"-O1 -DNFAIR=3 -DCOLLAPSE", "-a -f -m1000000"}
)

// result is what pan had to say.
type result struct {
	file     string
	checker  checker
	switches string
	states   int
	steps    int // transitions
	depth    int
	errors   int
	broken   string // the assertion
	complete bool
	seconds  string
	output   string
}

func (v result) String() string {
	what := "holds"
	if v.errors > 0 {
		what = "breaks " + v.broken
	}
	return fmt.Sprintf("%s: %d states, %d transitions, depth %d, %s s [%s]", what, v.states, v.steps, v.depth, v.seconds, v.switches)
}

// replay is how a person looks at a counterexample.
func (v result) replay() string {
	dir, base := filepath.Split(v.file)
	return fmt.Sprintf("cd %[1]s && spin %[2]s -a %[3]s && gcc %[4]s -w -o pan pan.c && ./pan %[5]s; spin %[2]s -t -p -g %[3]s",
		filepath.Base(dir), v.switches, base, v.checker.build, v.checker.run)
}

var (
	panDepth   = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	panStates  = regexp.MustCompile(`([\d.e+]+) states, stored`)
	panSteps   = regexp.MustCompile(`([\d.e+]+) transitions`)
	panBroken  = regexp.MustCompile(`(?m)^pan:\d+: (?:assertion violated \(?\s*(\w+)|(.*?) \(at depth)`)
	panSeconds = regexp.MustCompile(`elapsed time ([\d.]+) seconds`)
	panCutOff  = regexp.MustCompile(`max search depth too small|reached -DMEMLIM|out of memory|Search not completed`)
)

// slots bounds how many checkers run at the same time: each may take a gigabyte, and four with
// AMENDS_MODEL=full.
var slots = make(chan struct{}, 2)

// verify builds the checker for the model under the switches and runs it to its end or to the first
// error.
func verify(t *testing.T, file string, c checker, switches string) result {
	t.Helper()
	slots <- struct{}{}
	defer func() { <-slots }()

	model, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run(t, dir, "spin", append(strings.Fields(switches), "-a", model)...)
	run(t, dir, "gcc", append(strings.Fields(c.build), "-w", "-DMEMLIM=4000", "-o", "pan", "pan.c")...)
	out := run(t, dir, filepath.Join(dir, "pan"), strings.Fields(c.run)...)

	v := result{file: model, checker: c, switches: switches, complete: !panCutOff.MatchString(out), seconds: "0"}
	m := panDepth.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("pan did not report what it found:\n%s", out)
	}
	v.depth, v.errors = number(t, m[1]), number(t, m[2])
	v.states = number(t, panStates.FindStringSubmatch(out)[1])
	v.steps = number(t, panSteps.FindStringSubmatch(out)[1])
	v.output, _, _ = strings.Cut(out, "\nunreached in ")
	if m := panBroken.FindStringSubmatch(out); m != nil {
		v.broken = m[1] + m[2]
	}
	if m := panSeconds.FindStringSubmatch(out); m != nil {
		v.seconds = m[1]
	}
	return v
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// number reads a count. Pan rounds those of a hundred million or more, as in 1.4813923e+08.
func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// require skips the test where the model checker cannot be had, and fails it in CI.
func require(t *testing.T) {
	t.Helper()
	for _, program := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		const words = "the model is not checked, because %s is not installed: apt-get install spin gcc libc6-dev"
		if os.Getenv("CI") != "" {
			t.Fatalf(words, program)
		}
		t.Skipf(words, program)
	}
}
