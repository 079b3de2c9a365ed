// Package prove shows that a conformance suite can fail: for each rule it runs the suite once more
// in a process of its own, in which that rule is broken, and fails unless the suite notices. A
// suite that cannot fail proves nothing.
package prove

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/pace"
)

// ruleVariable tells a test binary which rule it is to break.
const ruleVariable = "AMENDS_BREAK_RULE"

// Broken is the rule that this process is to break, "" in all but those that [Rules] starts.
func Broken() string { return os.Getenv(ruleVariable) }

// Rules runs, for each rule, the part of the test named test that is named for it, with that rule
// broken, and fails unless just that part notices. Each rule costs a process, so that it is done at
// night.
func Rules[R ~string](t *testing.T, test string, rules map[R]string) {
	t.Helper()
	if Broken() != "" {
		return // this is the process in which the rule is broken
	}
	pace.Night(t)
	for rule, part := range rules {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			out, err := rerun(t, test+"/"+part, string(rule))
			switch {
			case err == nil:
				t.Fatalf("the suite passes what breaks the rule %q:\n%s", rule, out)
			case strings.Contains(out, "panic:"):
				t.Fatalf("the suite did not find the broken rule %q but broke itself:\n%s", rule, out)
			case !strings.Contains(out, "--- FAIL: "+test+"/"+part):
				t.Fatalf("with the rule %q broken something failed, but not %s, which is named for it:\n%s", rule, part, out)
			}
		})
	}
}

// rerun runs one test of this very binary, given by its full name, with a rule broken.
func rerun(t *testing.T, test, rule string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), self, "-test.run="+pattern, "-test.count=1", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), ruleVariable+"="+rule)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
