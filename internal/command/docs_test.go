package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
)

// Adoption 7.8: what the READMEs tell people to type works outside of a clone, where `go install`
// needs a version, and the statuses they explain are those that there are.
func TestWhatTheReadmesSay(t *testing.T) {
	t.Parallel()
	var top string
	for _, name := range []string{"../../docs/operating.md", "../../cmd/amends/README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		top += string(text)
		installs := regexp.MustCompile(`go install github\.com/amends-dev/amends/\S+`).FindAllString(string(text), -1)
		if len(installs) == 0 {
			t.Errorf("Adoption 7.8: %s does not say how to install", name)
		}
		for _, line := range installs {
			if !strings.Contains(line, "@") {
				t.Errorf("Adoption 7.8: %s says %q, which names no version", name, line)
			}
		}
	}
	_, said, _ := strings.Cut(top, "\nStatuses: ")
	said, _, _ = strings.Cut(said, " A review has a reason")
	var named []string
	for _, match := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(said, -1) {
		named = append(named, match[1])
	}
	want := slices.Sorted(slices.Values(desk.Statuses))
	if slices.Sort(named); !slices.Equal(named, want) {
		t.Errorf("Adoption 7.8: docs/operating.md explains the statuses %q; there are %q", named, want)
	}
}

// docs/situations.md has a section for each reason of a review and for each finding of status.
func TestSituations(t *testing.T) {
	t.Parallel()
	named := func(file, pattern string) (names []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	want := slices.Concat(desk.Reasons, finding.Kinds)
	slices.Sort(want)
	if told := named("../../docs/situations.md", "(?m)^## `([a-z-]+)`$"); !slices.Equal(told, want) {
		t.Errorf("docs/situations.md has sections on\n%q; there are\n%q", told, want)
	}
}

// docs/webhooks.md says of every disposition what it means.
func TestDispositionsAreTold(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## When a webhook does nothing\n")
	for _, name := range desk.Dispositions() {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/webhooks.md does not say what %s means", name)
		}
	}
}
