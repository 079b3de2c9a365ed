package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/reconcile/schedule"
)

const said = `Five orders are in the shop, and no webhook has come. A new job only plans.
  orders-compared: refused, 5 seen, 5 planned, 0 applied; the job is not approved yet: it only plans until a person approves it, or applies a plan of it; 5 left for the next run
  books: 0 mails sent
Anna has read the plan, and approves the job.
  orders-compared: ok, 5 seen, 5 planned, 5 applied
  books: inv-41 20.00, inv-42 25.00, inv-43 8.50, inv-44 12.00, inv-45 99.00, 5 mails sent
  orders-compared: ok, 5 seen, 0 planned, 0 applied
One more comes in, and its webhook is lost. The listing of what changed shows it.
  orders-changed: ok, 6 seen
  books: inv-41 20.00, inv-42 25.00, inv-43 8.50, inv-44 12.00, inv-45 99.00, inv-46 5.00, 6 mails sent
A bookkeeper edits one invoice and deletes another. One order is cancelled, and one is not there any more.
  plan: ok, 6 seen, 1 planned, 0 applied; 2 for a person to decide
  books: inv-41 20.00, inv-42 2.50, inv-44 12.00, inv-45 99.00, inv-46 5.00, 6 mails sent
Plan 94b46f08936e838a628cba2edc29173c of orders, mapping 1, generation 4
6 keys: the source has 5, the destination 5, the ledger 6

class         to be done  keys
in-sync       nothing     2
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
  orders-compared: ok, 6 seen, 1 planned, 1 applied; 2 for a person to decide
  books: inv-41 20.00, inv-42 2.50, inv-44 void, inv-45 99.00, inv-46 5.00, 6 mails sent
Anna knows that 43 was deleted by mistake, and has it made again.
  books: inv-41 20.00, inv-42 2.50, inv-43-2 8.50, inv-44 void, inv-45 99.00, inv-46 5.00, 6 mails sent
  orders-compared: ok, 6 seen, 0 planned, 0 applied; 1 for a person to decide
The ledger is deleted. It is rebuilt from the shop and the books, while nothing runs.
  rebuild: ok, 6 seen; 1 do not match, and are in review; 2 for a person to decide
  books: inv-41 20.00, inv-42 2.50, inv-43-2 8.50, inv-44 void, inv-45 99.00, inv-46 5.00, 6 mails sent
Then all goes on.
  orders-changed: ok, 5 seen
  orders-compared: ok, 6 seen, 0 planned, 0 applied; 1 for a person to decide
`

// What is missing is made once; what people did is a list for people; a ledger that is lost is rebuilt without a second
// invoice and without a second mail; and a run behind a run plans nothing.
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

// The story asks for every run. By the clock the jobs would run as well: their schedules can be read, and say what was
// meant. The one that repairs does nothing before a person has approved it.
func TestSchedulesCanBeRead(t *testing.T) {
	t.Parallel()
	var jobs []schedule.Job
	err := during(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), NewShop(), NewBooks(), func(_ context.Context, p *process) (err error) {
		jobs, err = p.jobs()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		s, err := schedule.Parse(j.Schedule, j.Zone)
		if err != nil {
			t.Fatalf("%s: %v", j.Name, err)
		}
		if w := s.Warnings(); len(w) > 0 {
			t.Errorf("%s: %v", j.Name, w)
		}
		if j.Name == "orders-compared" && j.Approved {
			t.Errorf("%s repairs before anybody has approved it", j.Name)
		}
	}
}

// The README shows jobs.go from its first function on, and what the program prints: word for word.
func TestReadmeShowsJobs(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("jobs.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(program), "// jobs are")
	for what, text := range map[string]string{"jobs.go of examples/reconcile": "```go\n// jobs are" + shown + "```\n", "what it prints": "```\n" + said + "```\n"} {
		if !strings.Contains(string(readme), text) {
			t.Errorf("README.md does not show %s", what)
		}
	}
}
