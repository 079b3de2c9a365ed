package storetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ruleVariable tells a test binary which rule [Harness.Run] breaks.
const ruleVariable = "AMENDS_BREAK_RULE"

// Prove runs the test named test, which must call [Harness.Run] directly, once for each rule with that rule broken,
// in a process of its own, and fails unless the suite notices every one. A suite that cannot fail proves nothing. Of
// the suite only the part that is named for the rule runs, so Prove costs little more than starting the process.
func (h Harness) Prove(t *testing.T, test string) {
	t.Helper()
	if os.Getenv(ruleVariable) != "" {
		return // this is the process in which the rule is broken
	}
	for rule, caught := range Rules {
		if rule == SurvivesKill && h.Address == nil {
			continue
		}
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			out, err := rerun(t, test+"/"+caught, rule)
			switch {
			case err == nil:
				t.Fatalf("the suite passes a store that breaks the rule %q:\n%s", rule, out)
			case strings.Contains(out, "panic:"):
				t.Fatalf("the suite did not find the broken rule %q but broke itself:\n%s", rule, out)
			case !strings.Contains(out, "--- FAIL: "+test+"/"+caught):
				t.Fatalf("with the rule %q broken something failed, but not %s, which is named for it:\n%s", rule, caught, out)
			}
		})
	}
}

// rerun runs one test of this very binary, given by its full name, with a rule broken.
func rerun(t *testing.T, test string, r Rule) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), self, "-test.run="+pattern, "-test.count=1", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), ruleVariable+"="+string(r))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
