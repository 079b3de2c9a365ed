package house

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inventory lists every numbered rule with the tests that quote it.
const inventory = top + "/docs/rules.txt"

var write = flag.Bool("rules", false, "write the inventory of rules")

// defines is how a package states a numbered rule in its doc.go or RULES.md: the number, then the
// rule.
var defines = regexp.MustCompile(`^(?://|-)?\s*(?:- )?([A-Z]{1,2}\d{1,2})(?::| {1,4})\s*\S`)

// quotes is how a test names one, or several in a row: F11 to F19.
var quotes = regexp.MustCompile(`\b([A-Z]{1,2})(\d{1,2})(?: to ([A-Z]{1,2})(\d{1,2}))?\b`)

// holders says where the tests of a package's rules may stand besides the package itself and what
// lies below it: the suites of those that carry the rules out.
var holders = map[string][]string{
	"internal/machine": {"saga", "coordinator", "internal/ledger", "internal/ledgertest", "internal/storetest", "store", "reconcile"},
	"saga":             {"internal/machine", "coordinator"},
	"reconcile/inbox":  {"reconcile", "store"},
}

// held by no test, and why.
var unheld = map[string]string{
	"internal/scan I6": "it says what a listing by offset cannot do; there is nothing of ours to break",
}

// A rule that loses its last test is a rule no more: the code can change, and nothing fails.
func TestEveryRuleHasATest(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	quoted := quotations(t)
	rules := numbered(t)
	for _, pkg := range slices.Sorted(maps.Keys(rules)) {
		for _, rule := range rules[pkg] {
			name := pkg + " " + rule
			files := quotedBy(quoted, pkg, rule)
			why, excused := unheld[name]
			switch {
			case len(files) == 0 && !excused:
				t.Errorf("%s: no test quotes it. Quote it where it is held, or say in this file why nothing can hold it", name)
			case len(files) > 0 && excused:
				t.Errorf("%s: a test quotes it now, so it is excused no longer", name)
			case excused:
				files = []string{"(" + why + ")"}
			}
			fmt.Fprintf(&list, "%-24s %s\n", name, strings.Join(files, " "))
		}
	}
	if *write {
		if err := os.WriteFile(inventory, list.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(inventory); err != nil || !bytes.Equal(have, list.Bytes()) {
		t.Errorf("docs/rules.txt is not what the tests say (%v). Read the difference, then write it: go test ./internal/house -rules", err)
	}
}

// numbered are the rules of each package, in the order in which it states them.
func numbered(t *testing.T) map[string][]string {
	t.Helper()
	rules := make(map[string][]string)
	for _, name := range statements(t) {
		pkg := path.Dir(name)
		for _, line := range lines(t, name) {
			if m := defines.FindStringSubmatch(line); m != nil && !slices.Contains(rules[pkg], m[1]) {
				rules[pkg] = append(rules[pkg], m[1])
			}
		}
	}
	return rules
}

// statements are the files in which packages state rules.
func statements(t *testing.T) []string {
	t.Helper()
	return tree(t, "doc.go", "RULES.md")
}

// quotations are the rules that each file with tests names.
func quotations(t *testing.T) map[string][]string {
	t.Helper()
	quoted := make(map[string][]string)
	for _, name := range tree(t, "_test.go", ".txtar", ".txt", "test.go") {
		quoted[name] = named(t, name)
	}
	for _, dir := range []string{"internal/ledgertest/", "internal/storetest/"} { // suites that stores run
		for _, name := range tree(t, ".go") {
			if strings.HasPrefix(name, dir) {
				quoted[name] = named(t, name)
			}
		}
	}
	return quoted
}

// named are the rules that a file names.
func named(t *testing.T, name string) (rules []string) {
	t.Helper()
	for _, line := range lines(t, name) {
		for _, m := range quotes.FindAllStringSubmatch(line, -1) {
			from, _ := strconv.Atoi(m[2])
			to := from
			if m[3] == m[1] {
				to, _ = strconv.Atoi(m[4])
			}
			for n := from; n <= to; n++ {
				rules = append(rules, m[1]+strconv.Itoa(n))
			}
		}
	}
	return rules
}

// quotedBy are the files that quote a package's rule, sorted.
func quotedBy(quoted map[string][]string, pkg, rule string) (files []string) {
	for name, rules := range quoted {
		dir := path.Dir(name) + "/"
		near := slices.ContainsFunc(append([]string{pkg}, holders[pkg]...), func(p string) bool { return strings.HasPrefix(dir, p+"/") })
		if near && slices.Contains(rules, rule) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// tree are the files of the repository with one of the endings.
func tree(t *testing.T, endings ...string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "bench" || d.Name() == "docs") {
			return filepath.SkipDir
		}
		if !d.IsDir() && slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(p, e) }) {
			name, err := filepath.Rel(top, p)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func lines(t *testing.T, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		all = append(all, s.Text())
	}
	if s.Err() != nil {
		t.Fatalf("%s: %v", name, s.Err())
	}
	return all
}
