package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amends-dev/amends/examples/reconcile/town"
	"github.com/amends-dev/amends/reconcile/schedule"
)

const said = `Five orders are in the shop, and no webhook has come. A new job only plans.
  orders-compared: refused, 5 seen, 5 planned, 0 applied; the job is not approved yet: it only plans until a person approves it, or applies a plan of it; 5 left for the next run
  books: 0 mails sent
Anna has read the plan, and approves the job.
  orders-compared: ok, 5 seen, 5 planned, 5 applied
  books: inv-41 20.00, inv-42 25.00, inv-43 8.50, inv-44 12.00, inv-45 99.00, 5 mails sent
  orders-compared: ok, 5 seen, 0 planned, 0 applied
One more comes in, and its webhook with it.
  books: inv-41 20.00, inv-42 25.00, inv-43 8.50, inv-44 12.00, inv-45 99.00, inv-46 5.00, 6 mails sent
Another comes in, and its webhook is lost. The listing of what changed shows it.
  orders-changed: ok, 7 seen
  books: inv-41 20.00, inv-42 25.00, inv-43 8.50, inv-44 12.00, inv-45 99.00, inv-46 5.00, inv-47 7.00, 7 mails sent
A bookkeeper edits one invoice and deletes another. One order is cancelled, and one is not there any more.
  plan: ok, 7 seen, 1 planned, 0 applied; 2 for a person to decide
  books: inv-41 20.00, inv-42 2.50, inv-44 12.00, inv-45 99.00, inv-46 5.00, inv-47 7.00, 7 mails sent
Plan 1ecd70b09209026f1e849a8aa75a40a3 of orders, generation 4
7 keys: the source has 6, the destination 6, the ledger 7

class         to be done  keys
in-sync       nothing     3
phantom-done  review      1
diverged      review      1
orphan        nothing     1
source-gone   withdraw    1

phantom-done
  shop:order:43  review: the ledger says done, and the document is not there
    > was it deleted on purpose? If not, make it again

diverged
  shop:order:42  review: fields of ours were changed at the destination (inv-42)
    - total: 2.50
    + total: 25.00
    > keep the change and correct the source, or write ours again

orphan
  shop:order:45  nothing: the source did not list it; that is not proven yet (inv-45)

source-gone
  shop:order:44  withdraw: the source cancelled it at 2 (inv-44)
  orders-compared: ok, 7 seen, 1 planned, 1 applied; 2 for a person to decide
  books: inv-41 20.00, inv-42 2.50, inv-44 void, inv-45 99.00, inv-46 5.00, inv-47 7.00, 7 mails sent
Anna knows that 43 was deleted by mistake, and has it made again.
  books: inv-41 20.00, inv-42 2.50, inv-43-2 8.50, inv-44 void, inv-45 99.00, inv-46 5.00, inv-47 7.00, 7 mails sent
  orders-compared: ok, 7 seen, 0 planned, 0 applied; 1 for a person to decide
The ledger is deleted. It is rebuilt from the shop and the books, while nothing runs.
  rebuild: ok, 7 seen; 1 do not match, and are in review; 2 for a person to decide
  books: inv-41 20.00, inv-42 2.50, inv-43-2 8.50, inv-44 void, inv-45 99.00, inv-46 5.00, inv-47 7.00, 7 mails sent
Then all goes on.
  orders-changed: ok, 6 seen
  orders-compared: ok, 7 seen, 0 planned, 0 applied; 1 for a person to decide
`

// What is missing is made once; what people did is a list for people; a ledger that is lost is
// rebuilt without a second invoice and without a second mail; and a run behind a run plans nothing.
func TestWhatBecomesOfDrift(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != said {
		t.Errorf("it printed\n%swant\n%s", out.String(), said)
	}
}

// While the story is told it asks for every run. By the clock the jobs would run as well: their
// schedules can be read, and say what was meant.
func TestSchedulesCanBeRead(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("program.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`story\.Or\("([^"]+)"\)`).FindAllStringSubmatch(string(program), -1)
	if len(found) != 2 {
		t.Fatalf("program.go has %d schedules", len(found))
	}
	for _, f := range found {
		if got := (town.Story{}).Or(f[1]); got != f[1] {
			t.Errorf("without a story %q is %q", f[1], got)
		}
		s, err := schedule.Parse(f[1], map[bool]string{true: "Europe/Vienna"}[strings.HasPrefix(f[1], "15")])
		if err != nil || len(s.Warnings()) > 0 {
			t.Errorf("%s: %v, %v", f[1], s.Warnings(), err)
		}
	}
}

// docs/reconciling.md shows what is done by the clock, and what the program prints: word for word.
func TestDocsShowJobs(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../docs/reconciling.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("program.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(program), "\t// What is done by the clock")
	jobs, _, _ := strings.Cut(rest, "\treturn story.Tell")
	shown := strings.ReplaceAll("// What is done by the clock"+strings.TrimSpace(jobs), "\n\t", "\n")
	shown = regexp.MustCompile(`story\.Or\(("[^"]+")\)`).ReplaceAllString(shown, "$1")
	for what, text := range map[string]string{"the jobs of examples/reconcile": "```go\n" + shown + "\n```\n", "what it prints": "```\n" + said + "```\n"} {
		if !strings.Contains(string(readme), text) {
			t.Errorf("docs/reconciling.md does not show %s:\n%s", what, text)
		}
	}
}
