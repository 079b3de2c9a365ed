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

// testingPage has a table of what is held when.
const (
	testingPage = top + "/docs/testing.md"
	tableBegins = "<!-- rules: go test ./internal/house -rules -->\n"
	tableEnds   = "\n<!-- end of rules -->"
)

// inventory lists every numbered rule with the tests that quote it.
const inventory = top + "/docs/rules.txt"

var write = flag.Bool("rules", false, "write the inventory of rules")

// defines is how a package states a numbered rule in its doc.go or RULES.md: the number, then the
// rule.
var defines = regexp.MustCompile(`^(?://|-)?\s*(?:- )?([A-Z]{1,2}\d{1,2})(?::| {1,4})\s*\S`)

// quotes is how a test names rules: by the room that states them, and several of a room in a row, as in
// saga/A1, A2 and machine/F11 to F19. In its own room a rule needs no more than its number.
var quotes = regexp.MustCompile(`(?:\b(machine|saga|intake|scan|schedule)/)?\b([A-Z]{1,2}\d{1,2}(?:(?:, and |, | and | to )[A-Z]{1,2}\d{1,2})*)\b`)

// rooms are the packages that state rules, by the names under which others quote them.
var rooms = map[string]string{
	"machine": "internal/machine", "saga": "saga", "intake": "internal/intake", "scan": "internal/scan", "schedule": "reconcile/schedule",
}

// held by no test, and why.
var unheld = map[string]string{
	"internal/scan I6": "it says what a listing by offset cannot do; there is nothing of ours to break",
}

// A rule that loses its last test is a rule no more: the code can change, and nothing fails. The
// inventory says which files quote a rule, and the first of make check, make test and make nightly
// that runs one of the tests; docs/testing.md has the same in short.
func TestEveryRuleHasATest(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	quoted := quotations(t)
	rules := numbered(t)
	table := map[string]map[pace][]string{}
	for _, pkg := range slices.Sorted(maps.Keys(rules)) {
		table[pkg] = map[pace][]string{}
		for _, rule := range rules[pkg] {
			name, said := pkg+" "+rule, path.Base(pkg)+"/"+rule
			files, first := quotedBy(quoted, name)
			why, excused := unheld[name]
			switch {
			case len(files) == 0 && !excused:
				t.Errorf("%s: no test quotes it. Quote it where it is held, or say in this file why nothing can hold it", said)
			case len(files) > 0 && excused:
				t.Errorf("%s: a test quotes it now, so it is excused no longer", said)
			case excused:
				fmt.Fprintf(&list, "%-14s %-8s (%s)\n", said, "", why)
				continue
			}
			fmt.Fprintf(&list, "%-14s %-8s %s\n", said, first, strings.Join(files, " "))
			table[pkg][first] = append(table[pkg][first], rule)
		}
	}
	upToDate(t, inventory, list.Bytes())
	page, err := os.ReadFile(testingPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), tableBegins)
	_, after, ended := strings.Cut(rest, tableEnds)
	if !begun || !ended {
		t.Fatalf("docs/testing.md has no place for the table: %s, %s", tableBegins, tableEnds)
	}
	upToDate(t, testingPage, []byte(before+tableBegins+inShort(table)+tableEnds+after))
}

// upToDate holds that a file is what the tests say, or writes it.
func upToDate(t *testing.T, file string, want []byte) {
	t.Helper()
	if *write {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not what the tests say (%v). Read the difference, then write it: go test ./internal/house -rules", file, err)
	}
}

// inShort is the table of docs/testing.md: which rules of a package are held by which target first.
func inShort(table map[string]map[pace][]string) string {
	var b strings.Builder
	b.WriteString("\n| rules of | `make check` | `make test` | `make nightly` |\n|---|---|---|---|\n")
	for _, pkg := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", pkg, rows(table[pkg][check]), rows(table[pkg][day]), rows(table[pkg][night]))
	}
	return b.String()
}

// rows writes rules that follow each other as a row: F1 to F4, F7.
func rows(rules []string) string {
	var said []string
	for i := 0; i < len(rules); {
		j := i + 1
		for j < len(rules) && follows(rules[j-1], rules[j]) {
			j++
		}
		switch j - i {
		case 1:
			said = append(said, rules[i])
		default:
			said = append(said, rules[i]+" to "+rules[j-1])
		}
		i = j
	}
	return strings.Join(said, ", ")
}

func follows(a, b string) bool {
	letters := strings.TrimRight(a, "0123456789")
	n, _ := strconv.Atoi(a[len(letters):])
	return b == letters+strconv.Itoa(n+1)
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

// quotations are the rules that each file with tests names, and when the first test that names it
// runs.
func quotations(t *testing.T) map[string]map[string]pace {
	t.Helper()
	quoted := make(map[string]map[string]pace)
	for _, name := range tree(t, "_test.go", ".txtar", ".txt", "test.go") {
		if strings.HasPrefix(name, "internal/house/") {
			continue
		}
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

// named are the rules that a file names, each with its room's package before it.
func named(t *testing.T, name string) map[string]pace {
	t.Helper()
	rules, at := map[string]pace{}, paces(t, name)
	for number, line := range lines(t, name) {
		for _, m := range quotes.FindAllStringSubmatch(line, -1) {
			room := path.Dir(name)
			if m[1] != "" {
				room = rooms[m[1]]
			}
			for _, id := range inRow(m[2]) {
				rule := room + " " + id
				if before, ok := rules[rule]; !ok || at(number+1) < before {
					rules[rule] = at(number + 1)
				}
			}
		}
	}
	return rules
}

var numbers = regexp.MustCompile(`( to )?([A-Z]{1,2})(\d{1,2})`)

// inRow are the ids of a row: A1, A2 and F11 to F19.
func inRow(text string) (ids []string) {
	last := 0
	for _, m := range numbers.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[3])
		from := n
		if m[1] != "" {
			from = last + 1
		}
		for i := from; i <= n; i++ {
			ids = append(ids, m[2]+strconv.Itoa(i))
		}
		last = n
	}
	return ids
}

// quotedBy are the files that quote a package's rule, sorted, and when the first of them does.
func quotedBy(quoted map[string]map[string]pace, name string) (files []string, first pace) {
	first = night
	for file, rules := range quoted {
		if at, ok := rules[name]; ok {
			files = append(files, file)
			first = min(first, at)
		}
	}
	slices.Sort(files)
	return files, first
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
