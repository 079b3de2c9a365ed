package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/examples/orders-to-accounting/play"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/outside"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store"
)

// programVariable makes this test binary the program. The processes that the program starts are
// this binary too, and know it by their role.
const programVariable = "AMENDS_EXAMPLE_PROGRAM"

func TestMain(m *testing.M) {
	if is := os.Getenv(programVariable); is != "" {
		if is == stranger {
			staged.Sync = bookToo
		}
		main()
	}
	var err error
	if bin, err = os.MkdirTemp("", "amends-bin-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

// command is the program as a process of its own, in a temporary folder of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), programVariable+"=1", "TMPDIR="+t.TempDir())
	cmd.WaitDelay = 10 * time.Second // for children that keep our pipes open: they should not
	return cmd
}

// finish runs it to its end and returns its exit status and what it says.
func finish(t *testing.T, cmd *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}

// seed is a fixed one under which some of the orders are cancelled meanwhile.
const seed = 5

// cancelled counts the orders that the world will cancel: meanwhile, and after they were marked.
func cancelled(t *testing.T, orders int) (meanwhile, late int) {
	t.Helper()
	c := outside.Config{Seed: seed, Orders: orders}
	c.Cancels, c.LateCancels, c.Deletes = 0.05, 0.05, 0.01 // the last two are half and a tenth of the default of -edits
	for _, o := range outside.Orders(c) {
		switch {
		case c.Cancelled(o.ID):
			meanwhile++
		case c.CancelledLate(o.ID), c.Deleted(o.ID):
			late++
		}
	}
	if meanwhile == 0 {
		t.Fatalf("seed %d cancels no order of %d; choose another", seed, orders)
	}
	return meanwhile, late
}

// A run with faults and kills ends with one invoice and one receipt for each paid order and none
// for cancelled ones, says so in one JSON object, and leaves a ledger in which everything follows
// from what is before it. The sync without a ledger leaves at least the invoices of cancelled
// orders, whatever the kills hit.
func TestRunOnSQLite(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	r := jsonRun(t, "-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-json")
	checkRun(t, r, 60, 4, 1)
}

// The same when the sync never asks the shop for new orders: every webhook comes in the end, and
// that is enough.
func TestRunOnWebhooksOnly(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	r := jsonRun(t, "-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-webhooks-only", "-chaos", "0.6", "-json")
	checkRun(t, r, 60, 4, 1)
}

// The same with three processes on one Postgres, where large orders wait for a decision before they are invoiced.
func TestRunOnPostgres(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	db := pgtest.URL(t)
	r := jsonRun(t, "-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-json", "-approve", "-db", db)
	checkRun(t, r, 60, 4, 3)
	if n, ok := r["approved"].(float64); !ok || n < 1 {
		t.Errorf("approved of: %v", r["approved"])
	}
}

// The same when no webhook ever arrives: the sweeps find every change by themselves.
func TestRunOnSweepsOnly(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	r := jsonRun(t, "-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-reconcile-only", "-json")
	if h, ok := r["webhooks"].(map[string]any); !ok || h["made"] == float64(0) || h["sent"] != float64(0) {
		t.Errorf("the webhooks: %v", r["webhooks"])
	}
	checkReconciled(t, r)
	checkLeftBehind(t, r)
}

// Half-way the books are out of order for longer than a step may be tried. What wants them waits:
// nothing is undone or given up because of it, and all is well in the end.
func TestOutage(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	for name, args := range map[string][]string{"SQLite": nil, "Postgres": {"-db", pgtest.URL(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := jsonRun(t, append(args, "-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-outage", "-json")...)
			o, ok := r["outage"].(map[string]any)
			if !ok || o["waiting"] == float64(0) || o["requests"] == float64(0) || o["undone"] != float64(0) || o["review"] != float64(0) {
				t.Errorf("the outage: %v", r["outage"])
			}
			checkReconciled(t, r)
			checkLeftBehind(t, r)
		})
	}
}

// Half-way everything that the sync remembers is deleted. What it has made by then is learned again
// from shop and books: no order gets a second invoice or receipt. The receipts whose outcome is
// unknown count as sent.
func TestLoseLedger(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	for _, on := range []string{"SQLite", "Postgres"} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			args := []string{"-orders", "60", "-kills", "4", "-seed", strconv.Itoa(seed), "-lose-ledger", "-json"}
			if on == "Postgres" {
				pace.Night(t)
				args = append(args, "-db", pgtest.URL(t))
			}
			r := jsonRun(t, args...)
			lost, ok := r["lost"].(map[string]any)
			if !ok || lost["works"] == float64(0) || lost["adopted"] == float64(0) || lost["adopted"].(float64) > lost["works"].(float64) { //nolint:forcetypeassert // the panic says what it is
				t.Errorf("what was lost: %v", r["lost"])
			}
			checkReconciled(t, r)
			checkLeftBehind(t, r)
		})
	}
}

// checkReconciled holds that the audit is clean, that the comparison of everything found nothing to
// do, and that each deed of people in the books was found then, called by its name, and nothing
// beside.
func checkReconciled(t *testing.T, r map[string]any) {
	t.Helper()
	for _, name := range []string{"duplicates", "missing", "orphans", "mismatches"} {
		if r[name] != float64(0) {
			t.Errorf("%s is %v: %v", name, r[name], r["findings"])
		}
	}
	if c, ok := r["reconciled"].(map[string]any); !ok || c["result"] != "ok" || c["planned"] != float64(0) || c["seen"] == float64(0) {
		t.Errorf("the comparison of everything: %v", r["reconciled"])
	}
	found, _ := r["found"].([]any)
	if r["beside"] != nil || len(found) != 12 {
		t.Errorf("%d deeds were found, want 12; beside them %v", len(found), r["beside"])
	}
	want := map[string]string{"edited": "diverged", "voided": "phantom-done", "deleted": "phantom-done", "copied": "duplicate", "noted": "", "handmade": ""}
	for _, f := range found {
		if f, ok := f.(map[string]any); !ok || f["class"] != want[f["deed"].(string)] { //nolint:forcetypeassert // the panic says what it is
			t.Errorf("found %v", f)
		}
	}
}

func jsonRun(t *testing.T, args ...string) map[string]any {
	t.Helper()
	status, stdout, stderr := finish(t, command(t, args...))
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	t.Log("on standard error:\n" + stderr)
	read := json.NewDecoder(strings.NewReader(stdout))
	var r map[string]any
	if err := read.Decode(&r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if err := read.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("after the object there is more (%v):\n%s", err, stdout)
	}
	return r
}

func checkRun(t *testing.T, r map[string]any, orders, kills, workers int) {
	t.Helper()
	void, late := cancelled(t, orders)
	number := func(of map[string]any, name string) int {
		n, ok := of[name].(float64)
		if !ok {
			t.Errorf("%s is %v, no number", name, of[name])
		}
		return int(n)
	}
	handmade := 0 // by people, which are no business of the sync; whatever else they did was decided on, and made good
	if found, is := r["found"].([]any); is {
		handmade = len(found) / 6
	}
	for name, want := range map[string]int{
		"orders": orders, "invoices": orders - void - late + handmade, "compensated": void + late,
		"duplicates": 0, "missing": 0, "orphans": 0, "mismatches": 0, "kills": kills, "seed": seed,
	} {
		if got := number(r, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if n := number(r, "receipts"); n < orders-void-late || n > orders-void { // who cancels late may have had one
		t.Errorf("%d receipts for %d orders, of which %d were cancelled meanwhile and %d late", n, orders, void, late)
	}
	checkWebhooks(t, r)
	if r["found"] != nil { // with webhooks alone there are no sweeps
		checkReconciled(t, r)
	}
	if n := number(r, "restarts"); n > kills || n < kills-workers { // who dies last need not come back
		t.Errorf("%d restarts after %d kills", n, kills)
	}
	if unconfirmed, resolved := number(r, "unconfirmed"), number(r, "resolved"); resolved < unconfirmed {
		t.Errorf("%d unconfirmed, but %d resolved", unconfirmed, resolved)
	}
	naive, ok := r["naive"].(map[string]any)
	if !ok {
		t.Fatalf("naive is %v", r["naive"])
	}
	if n := number(naive, "orphans"); n < void || number(naive, "orders") != orders {
		t.Errorf("the naive run: %v, want an orphan for each of %d cancelled orders", naive, void)
	}
	_, _ = number(naive, "duplicates"), number(naive, "missing")
	checkLeftBehind(t, r)
}

// checkWebhooks holds that every webhook was heard in the end, and no forged one was believed.
func checkWebhooks(t *testing.T, r map[string]any) {
	t.Helper()
	h, ok := r["webhooks"].(map[string]any)
	if !ok || h["made"] == float64(0) || h["made"] != h["acknowledged"] || h["forged"] == float64(0) || h["forged"] != h["refused"] || h["believed"] != float64(0) {
		t.Errorf("the webhooks: %v", r["webhooks"])
	}
	if c, ok := r["changes"].(map[string]any); !ok || c["edits"] == float64(0) {
		t.Errorf("no order was edited: %v", r["changes"])
	}
}

// checkLeftBehind reads what a run leaves: a sound ledger and the folder with everything else.
func checkLeftBehind(t *testing.T, r map[string]any) {
	t.Helper()
	db, folder := r["ledger"].(string), r["folder"].(string) //nolint:forcetypeassert // the panic says what it is
	l, err := store.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found, err := ledger.Check(t.Context(), l, nil)
	if err != nil || len(found.Findings) > 0 {
		t.Errorf("the ledger: %v, %v", found.Findings, err)
	}
	for _, name := range []string{"sync.log", "naive.log", "sync-shop.json", "naive-books.json", "sync-mailbox.txt"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 && name != "naive.log" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"sync.log", "naive.log"} {
		if log, err := os.ReadFile(filepath.Join(folder, name)); err != nil || bytes.Contains(log, []byte("DATA RACE")) || bytes.Contains(log, []byte("panic: ")) {
			t.Errorf("%s: %v\n%s", name, err, log[max(0, len(log)-4096):])
		}
	}
}

// The text is a table of both audits, then what to look at next. The six commands do what they say,
// and nothing is wider than it need be.
func TestRunAsText(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	status, text, stderr := finish(t, command(t, "-orders", "30", "-kills", "2", "-seed", strconv.Itoa(seed)))
	if status != 0 {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	void, late := cancelled(t, 30)
	for _, want := range []string{
		`^30 paid orders go from a shop into the books, and a receipt goes out for each\.\n`,
		`the sync is killed 2 times`, `Seed 5\.\n`,
		`\n +with amends   without a ledger\n  orders +30 +30\n`,
		`\n  cancelled, invoice voided +` + strconv.Itoa(void+late) + ` +0\n  edits after the order was invoiced +\d+ +0\n`,
		`\n\n  duplicates: one too many +0 +\d+\n  missing: .* +0 +\d+\n  orphans: .* +0 +[1-9]\d*\n  mismatches: .* +0 +\d+\n\n`,
		`\nWith amends: each paid order has one invoice, over what the order says now, and\none receipt; others have no invoice\.\nWithout a ledger, for example:\n`,
		`\nThe shop's \d+ webhooks took \d+ deliveries, `, `\nOf \d+ forged ones, \d+ refused and 0 believed\.\n`,
		`\n  orphan: shop:order:\d+: the order was cancelled, but inv_\d+ is live\n`,
		`\nThe ledger is \S+/ledger\.db\. Ask it:\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("there is no %q", want)
		}
	}
	for line := range strings.Lines(text) {
		if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
			t.Errorf("spaces at the end of %q", line)
		}
		if len(line) > 81 && !strings.Contains(line, "shop:order:") && !strings.Contains(line, "/") {
			t.Errorf("wider than a terminal: %q", line)
		}
	}
	if n := strings.Count(text, "\n"); n > 62 {
		t.Errorf("%d lines are more than a screen", n)
	}
	tryCommands(t, text)
	if t.Failed() {
		t.Log(text)
	}
}

// tryCommands runs the commands that the text names.
func tryCommands(t *testing.T, text string) {
	t.Helper()
	amends, err := built()
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^  go run ./cmd/amends (list|show \S+|history \S+|inbox list --object \S+|acts|drift list|reconcile runs) (--db .*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) != 6 {
		t.Fatalf("there are %d commands to try, want 6", len(commands))
	}
	for _, c := range commands {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", amends+" "+c[1]+" "+c[2]).Output()
		work := c[1][strings.LastIndex(c[1], " ")+1:]
		switch c[1] {
		case "list":
			work = "shop:order:10001"
		case "drift list":
			work = ""
		case "acts":
			work = "operator of the example"
		case "reconcile runs":
			work = jobAll
		}
		if err != nil || !bytes.Contains(out, []byte(work)) {
			t.Errorf("%s: %v\n%s", c[0], err, out)
		}
	}
}

// bin is where built builds.
var bin string

// built is the command, built once for all tests.
var built = sync.OnceValues(func() (string, error) {
	amends := filepath.Join(bin, "amends")
	if out, err := exec.Command("go", "build", "-o", amends, "../../cmd/amends").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return amends, nil
})

// When the audit finds anything, it is printed and the exit status is 1. Here another program books an
// invoice for the first order while the sync is at work.
func TestFindingsExitWithOne(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	cmd := command(t, "-orders", "5", "-kills", "0", "-faults", "0", "-seed", "1")
	cmd.Env = append(cmd.Env, programVariable+"="+stranger)
	status, text, _ := finish(t, cmd)
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	const found = "\nWith amends, the audit found:\n  duplicate: shop:order:10001: inv_"
	if !strings.Contains(text, found) || strings.Contains(text, "With amends: each") {
		t.Errorf("there is no %q in\n%s", found, text)
	}
}

// stranger is the value of programVariable with which the sync process books an invoice too many.
const stranger = "stranger"

func bookToo(ctx context.Context, at play.Place, log logrus.FieldLogger) error {
	draft := `{"reference":"shop:order:10001","totalCents":890}`
	answer, err := http.Post(at.Books+"/invoices", "application/json", strings.NewReader(draft)) //nolint:noctx // one request of a test
	if err != nil {
		return err
	}
	return errors.Join(answer.Body.Close(), runSync(ctx, at, log))
}

// A ledger in which there is something is not touched: a second run over the works of a first would
// prove nothing.
func TestLedgerMustBeEmpty(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	db := filepath.Join(t.TempDir(), "it's a ledger.db")
	args := []string{"-orders", "1", "-kills", "0", "-faults", "0", "-db", db}
	status, text, stderr := finish(t, command(t, args...))
	if status != 0 {
		t.Errorf("the first run: exit status %d\n%s", status, stderr)
	}
	tryCommands(t, text)
	status, _, stderr = finish(t, command(t, args...))
	if status != 1 || !strings.Contains(stderr, "holds works already") || !strings.Contains(stderr, db) {
		t.Errorf("the second run: exit status %d\n%s", status, stderr)
	}
}
