package command

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/address/addresstest"
)

// eachVerb is a command line for each verb.
var eachVerb = [][]string{
	{"status"}, {"list"}, {"show", "w"}, {"history", "w"}, {"duplicates"}, {"retry", "w", "--reason", "r"},
	{"resolve", "w", "--step", "s", "--did-not-happen", "--reason", "r"}, {"skip", "w", "--step", "s", "--reason", "r"},
	{"pause", "w", "--reason", "r"}, {"resume", "w", "--reason", "r"}, {"wake", "w", "--reason", "r"},
	{"complete", "w", "--body", "{}", "--reason", "r"}, {"fail", "w", "--reason", "r"}, {"extend", "w", "--by", "1h", "--reason", "r"}, {"deliver", "n", "k", "--id", "i"},
	{"stats"}, {"approvals"}, {"approve", "w"}, {"reject", "w", "--shown", "d", "--reason", "r"},
	{"cancel", "w", "--reason", "r"}, {"undo", "w", "--reason", "r"}, {"rerun", "w", "--reason", "r"}, {"batch", "b"}, {"start", "s", "w", "--input", "-"},
	{"destination", "list"}, {"alerts", "list"}, {"inbox", "list"}, {"reconcile", "runs"}, {"drift", "list"}, {"schedule", "list"}, {"check"}, {"export"}, {"verify"}, {"report"}, {"retention", "plan"}, {"hold", "w", "--reason", "r"}, {"erase", "w", "--reason", "r"}, {"catch-up"},
	{"recover", "--restored", "--dry-run"},
	{"acts"}, {"serve"}, {"token", "--file", "f", "--name", "n", "--role", "reader"},
	{"migrate"}, {"migrate", "up"}, {"migrate", "status"}, {"version"},
}

// No verb prints the password of its address, however that is written and wherever it was said; nor
// does it make a file of it. The last two are an address where none belongs.
func TestNoVerbShowsAPassword(t *testing.T) {
	t.Chdir(t.TempDir())
	said := map[string]bool{}
	for _, words := range eachVerb {
		said[words[0]] = true
		for _, address := range addresstest.Secrets {
			if strings.Contains(address, "127.0.0.1") && !slices.Contains([]string{"list", "cancel", "migrate"}, words[0]) {
				continue // to find out that nothing listens there takes a moment
			}
			env := func(string) string { return "" }
			shown(t, env, append(words, "--db", address))
			shown(t, func(name string) string { return map[string]string{"AMENDS_DB": address}[name] }, append(words, "-o", "json"))
		}
	}
	for _, verb := range newApp(&Line{Env: os.Getenv}).root().Commands() {
		if verb.Runnable() && !said[verb.Name()] {
			t.Errorf("the verb %s was not tried", verb.Name())
		}
	}
	for _, address := range addresstest.Secrets[:1] {
		shown(t, os.Getenv, []string{"migrate", "up", address})
		shown(t, os.Getenv, []string{address, "-o", "json"})
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("there are files now: %v, %v", left, err)
	}
}

// shown fails when the password comes out.
func shown(t *testing.T, env func(string) string, args []string) {
	t.Helper()
	var out, errs bytes.Buffer
	status := exec(t.Context(), env, args, strings.NewReader(""), &out, &errs)
	if all := out.String() + errs.String(); strings.Contains(all, addresstest.Canary) || status == exitDone && args[0] != "version" {
		t.Errorf("%q ends with %d and says %s", args, status, all)
	}
}
