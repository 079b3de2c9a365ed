package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	want := slices.Sorted(slices.Values(statuses))
	if slices.Sort(named); !slices.Equal(named, want) {
		t.Errorf("Adoption 7.8: docs/operating.md explains the statuses %q; there are %q", named, want)
	}
}
