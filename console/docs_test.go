package console

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/command"
)

// "amends token" knows the roles of the console, which it cannot ask for them.
func TestTokenKnowsTheRoles(t *testing.T) {
	t.Parallel()
	cmd, _, err := command.Verbs().Find([]string{"token"})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range Roles() {
		if !strings.Contains(cmd.Flag("role").Usage, role) || !strings.Contains(cmd.Long, role) {
			t.Errorf("amends token does not speak of the role %s", role)
		}
	}
}

// docs/console.md shows lines of a program that is compiled, and verbs and flags that there are.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(string(program), block[1]) {
			t.Errorf("example_test.go has no such lines:\n%s", block[1])
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^amends (.*)$`).FindAllStringSubmatch(string(text), -1) {
		cmd, rest, err := command.Verbs().Find(strings.Fields(line[1]))
		if err != nil {
			t.Errorf("amends %s: %v", line[1], err)
			continue
		}
		for _, flag := range rest {
			if name, is := strings.CutPrefix(flag, "--"); is && cmd.Flag(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
				t.Errorf("amends %s: there is no --%s", line[1], name)
			}
		}
	}
}
