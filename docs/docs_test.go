package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the pages that people read, by their paths from here.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(docs, "../README.md", "../CONTRIBUTING.md", "../cmd/amends/README.md", "../bench/README.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// code is what a page shows as code, in which a bracket is no link.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// Every link to a file of the repository leads to one, and to a heading where it names one.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`).FindAllStringSubmatch(code.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			to := page
			if link[1] != "" {
				to = filepath.Join(filepath.Dir(page), link[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s leads to %s: %v", page, link[1], err)
			} else if link[2] != "" && !slices.Contains(headings(read(t, to)), link[2]) {
				t.Errorf("%s leads to %s, which has no heading %s", page, to, link[2])
			}
		}
	}
}

// headings are the headings of a page as GitHub names them in links.
func headings(page string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// The README is read in ten minutes.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if n := len(strings.Fields(read(t, "../README.md"))); n > 1300 {
		t.Errorf("README.md has %d words; 1300 at most", n)
	}
}

// go doc ./saga shows its index within a screen: what more there is to say is in RULES.md.
func TestTheIndexOfSagaIsSeen(t *testing.T) {
	t.Parallel()
	comment, _, _ := strings.Cut(read(t, "../saga/doc.go"), "\npackage saga")
	if n := strings.Count(comment, "\n"); n > 45 {
		t.Errorf("the comment of package saga has %d lines; 45 at most", n)
	}
}

// Every Go program of a page is compiled somewhere: in a program, an example or a test.
func TestSnippets(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, root := range []string{".", "../examples", "../console", "../callback", "../approval", "../alert", "../retention", "../reconcile", "../saga", "../store", "../coordinator", "../amendsprom", "../amendsotel"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				all.WriteString(flat(read(t, path)))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	known := all.String()
	for _, page := range pages(t) {
		if page == "reconciling.md" || slices.Contains(slices.Concat(played...), page) {
			continue // examples/reconcile compares the first: its times are of the story; the others are played
		}
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
			for part := range strings.SplitSeq(block[1], "\n\n") {
				if !strings.Contains(known, flat(part)) {
					t.Errorf("%s shows what no file has:\n%s", page, part)
				}
			}
		}
	}
}

// flat is a text without indentation and empty lines.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
