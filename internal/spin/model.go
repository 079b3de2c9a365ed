package spin

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Model is a Promela file and what is expected of it.
type Model struct {
	File    string // in the folder of the test
	Scenes  []Scene
	Live    []Scene // checked with AMENDS_MODEL=full: every fair execution ends, as the file's ltl formula says
	Mutants []Mutant
}

// Scene is a set of switches under which a model must hold.
type Scene struct {
	Name     string
	Switches string
	Full     string // the switches of AMENDS_MODEL=full; empty: the same
}

// Mutant lacks one rule. Spin must find the assertion that breaks.
type Mutant struct {
	Name   string // its switch, without -D
	Scene  string // the other switches
	Breaks string
}

// Asked skips a test of a model unless make model runs it, which says so by AMENDS_MODEL: a model
// changes rarely, and takes longer than all else beside it.
func Asked(t *testing.T) {
	t.Helper()
	if os.Getenv("AMENDS_MODEL") == "" {
		t.Skip("make model runs it: AMENDS_MODEL is not set")
	}
}

// Holds checks every scene.
func (m Model) Holds(t *testing.T) {
	t.Helper()
	require(t)
	checker := safety
	if full() {
		checker = longSafety
	}
	for _, s := range m.Scenes {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			m.mustHold(t, checker, s)
		})
	}
	if !full() {
		return
	}
	for _, s := range m.Live {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			m.mustHold(t, liveness, s)
		})
	}
}

func (m Model) mustHold(t *testing.T, c checker, s Scene) {
	t.Helper()
	switches := s.Switches
	if full() && s.Full != "" {
		switches = s.Full
	}
	v := verify(t, m.File, c, switches)
	t.Log(v)
	if v.errors != 0 || !v.complete {
		t.Fatalf("%s does not hold, see it with\n%s\n%s", m.File, v.replay(), v.output)
	}
}

// Breaks checks that every mutant breaks what it should.
func (m Model) Breaks(t *testing.T) {
	t.Helper()
	require(t)
	for _, mutant := range m.Mutants {
		t.Run(mutant.Name, func(t *testing.T) {
			t.Parallel()
			switches := strings.TrimSpace("-D" + mutant.Name + " " + mutant.Scene)
			v := verify(t, m.File, soonFound, switches)
			t.Log(v)
			if v.errors == 0 {
				t.Fatalf("no counterexample: the rule that %s removes is idle\n%s", mutant.Name, v.output)
			}
			if v.broken != mutant.Breaks {
				t.Fatalf("%q breaks, not %q, see it with\n%s", v.broken, mutant.Breaks, v.replay())
			}
		})
	}
}

// Explains checks that the file explains every mutant that is run, and no other.
func (m Model) Explains(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	named := explained(string(text))
	var run []string
	for _, mutant := range m.Mutants {
		run = append(run, mutant.Name)
	}
	slices.Sort(named)
	slices.Sort(run)
	if !slices.Equal(named, run) {
		t.Errorf("%s explains %q\nthe test runs %q", m.File, named, run)
	}
}

var mutantLine = regexp.MustCompile(`(?m)^ \*   ([A-Z]+) `)

// explained returns the mutants that the head of a model lists.
func explained(text string) []string {
	_, list, _ := strings.Cut(text, "* MUTANTS:")
	list, _, _ = strings.Cut(list, "* BY HAND")
	var names []string
	for _, line := range mutantLine.FindAllStringSubmatch(list, -1) {
		names = append(names, line[1])
	}
	return names
}

func full() bool { return os.Getenv("AMENDS_MODEL") == "full" }
