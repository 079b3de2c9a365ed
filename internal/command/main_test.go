package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// The scripts run the program in this process. Where they need another one (a terminal, a signal, a
// working directory), the test binary is also the program: exec process amends show.
func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // of the programs that run sagas beside it
	testscript.Main(m, map[string]func(){"process": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		status := exec(ctx, os.Getenv, os.Args[2:], os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(int(status))
	}})
}

// The statuses, as scripts know them.
const (
	exitFailed      = exit(1)
	exitUsage       = exit(2)
	exitNotFound    = exit(3)
	exitNotAllowed  = exit(4)
	exitConflict    = exit(5)
	exitFindings    = exit(6)
	exitTimedOut    = exit(7)
	exitInterrupted = exit(130)
)

type store = ledger.Ledger

func exec(ctx context.Context, env func(string) string, args []string, stdin io.Reader, stdout, stderr io.Writer) exit {
	return exit(Run(ctx, &Line{Args: args, Env: env, In: stdin, Out: stdout, Err: stderr}))
}

// Every verb, as a person or a script uses it, on a SQLite ledger with the works of seed: ledger.db
// in the script's folder, named by AMENDS_DB.
func TestSQLite(t *testing.T) {
	dir := t.TempDir()
	l, err := sqlite.Open(t.Context(), filepath.Join(dir, "ledger.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(seed(t.Context(), l), listen(t.Context(), l), reconciled(t.Context(), l), l.Close()); err != nil {
		t.Fatal(err)
	}
	scripts(t, func(env *testscript.Env) error {
		env.Setenv("AMENDS_DB", filepath.Join(env.WorkDir, "ledger.db"))
		return errors.Join(known(env, migrations.SQLite), os.CopyFS(env.WorkDir, os.DirFS(dir)))
	}, "script/*.txtar", "sqlite/*.txtar")
}

// Those that ask the database for most on Postgres, and at night all, each script in a database of
// its own. EMPTY is one without a ledger, LATIN1 one that cannot have one.
func TestPostgres(t *testing.T) {
	server := pgtest.URL(t) // skips here where there is no Postgres, not in every script
	seeded := &pgtest.Template{Prepare: seedPostgres}
	seeded.URL(t) // it stays until the last script has ended
	patterns := []string{"postgres/*.txtar", "script/inbox.txtar", "script/list.txtar", "script/reconcile.txtar", "script/runbook.txtar"}
	if pace.AtNight() {
		patterns = []string{"postgres/*.txtar", "script/*.txtar"}
	}
	latin1 := inLatin1(t, server)
	scripts(t, func(env *testscript.Env) error {
		empty, drop, err := pgtest.Database(t.Context(), server)
		if err != nil {
			return err
		}
		env.Defer(func() { _ = drop(context.Background()) })
		env.Setenv("EMPTY", empty)
		env.Setenv("LATIN1", latin1)
		env.Setenv("AMENDS_DB", seeded.URL(t))
		return known(env, migrations.Postgres)
	}, patterns...)
}

// inLatin1 is an empty database in that encoding.
func inLatin1(t *testing.T, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlx.ConnectContext(t.Context(), "postgres", server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path += "_latin1"
	name := strings.TrimPrefix(u.Path, "/")
	if _, err := db.ExecContext(t.Context(), `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	return u.String()
}

// seedPostgres fills a database with what the scripts look at.
func seedPostgres(ctx context.Context, address string) error {
	l, err := postgres.Open(ctx, address, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	return errors.Join(seed(ctx, l), listen(ctx, l), reconciled(ctx, l), l.Close())
}

// known tells a script what other packages decide: the version of the schema, and the id of the
// plan of orders; and in which month the works were started.
func known(env *testscript.Env, d migrations.Dialect) error {
	plan, err := ordersPlan().plan()
	if err != nil {
		return err
	}
	env.Setenv("SCHEMA", fmt.Sprint(migrations.Latest(d)))
	env.Setenv("PLANID", plan.ID)
	env.Setenv("MONTH", time.Now().UTC().Format("2006-01"))
	env.Setenv("PLAN", desk.Brief(plan.ID))
	return nil
}

// scripts runs scripts from testdata.
func scripts(t *testing.T, setup func(*testscript.Env) error, patterns ...string) {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no scripts %s (%v)", pattern, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files: files, UpdateScripts: *update, RequireExplicitExec: true, Cmds: commands, Setup: func(env *testscript.Env) error {
			env.Values[besideKey{}] = &beside{}
			return setup(env)
		},
	})
}

// commands are what scripts can do beside testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"amends":  amends,
	"change":  change,
	"exits":   exitStatus,
	"pages":   pages,
	"serve":   serve,
	"jobs":    jobs,
	"ended":   ended,
	"hear":    hear,
	"rebuild": rebuild,
	"scrub":   scrub,
	"sql":     execSQL,
	"field":   field,
	"follow":  follow,
	"down":    down,
	"up":      up,
	"keep":    keep,
	"settles": settles,
	"tries":   tries,
	"queued":  queued,
	"stands":  stands,
	"waits":   waitsFor,
}

// run runs the program in this process, without a terminal and with nothing to read.
func run(ts *testscript.TestScript, args []string, stdout io.Writer) exit {
	return exec(context.Background(), ts.Getenv, args, strings.NewReader(""), stdout, ts.Stderr())
}

// amends runs the program and wants it to do what was asked: amends show shop:order:3.
func amends(ts *testscript.TestScript, neg bool, args []string) {
	if code := run(ts, args, ts.Stdout()); (code == exitDone) == neg {
		ts.Fatalf("exit status %d", code)
	}
}

// exitStatus wants a certain exit status of the program: exits 3 amends show nothing. Another one is
// a process.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if args[1] == "amends" {
		got = int(run(ts, args[2:], ts.Stdout()))
	} else {
		var ended interface {
			error
			ExitCode() int
		}
		if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
			got = ended.ExitCode()
		} else {
			ts.Check(err)
		}
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// pages runs the program page by page, as another program does that reads JSON, and prints the keys
// of the items: pages drift list --limit 2.
func pages(ts *testscript.TestScript, _ bool, args []string) {
	next := ""
	for range 100 { // a cursor that does not move on ends, too
		page := append(slices.Clone(args), "-o", "json")
		if next != "" {
			page = append(page, "--after", next)
		}
		var out bytes.Buffer
		if code := run(ts, page, &out); code != exitDone {
			ts.Fatalf("exit status %d", code)
		}
		var read struct {
			Items []struct {
				Key string `json:"key"`
			} `json:"items"`
			Next string `json:"next"`
		}
		ts.Check(json.Unmarshal(out.Bytes(), &read))
		for _, item := range read.Items {
			fmt.Fprintln(ts.Stdout(), item.Key)
		}
		if next = read.Next; next == "" {
			return
		}
	}
	ts.Fatalf("and so on")
}

// beside is a program that runs beside a script, on its database.
type beside struct {
	stop  context.CancelFunc
	ended chan error
}

type besideKey struct{}

// begin runs a program until the script says ended.
func begin(ts *testscript.TestScript, program func(context.Context, stores.DB) error) {
	b := ts.Value(besideKey{}).(*beside) //nolint:forcetypeassert // scripts sets it
	if b.stop != nil {
		ts.Fatalf("one runs already")
	}
	address := ts.Getenv("AMENDS_DB")
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.ended = stop, make(chan error, 1)
	go func() { b.ended <- over(ctx, address, program) }()
	ts.Defer(func() { // a script that failed
		if b.stop != nil {
			stop()
			b.stop = nil // there may have been one before it
			<-b.ended
		}
	})
}

// ended stops the program that runs beside a script, which ends without an error.
func ended(ts *testscript.TestScript, _ bool, _ []string) {
	b := ts.Value(besideKey{}).(*beside) //nolint:forcetypeassert // scripts sets it
	b.stop()
	b.stop = nil
	ts.Check(<-b.ended)
}

// over does something over the database at an address.
func over(ctx context.Context, address string, do func(context.Context, stores.DB) error) error {
	ad, err := parseAddress(address)
	if err != nil {
		return err
	}
	l, err := ad.open(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, l), l.Close())
}

// serve runs a coordinator beside the script. The older one knows version 1 only: serve older.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	version := 2
	if len(args) > 0 {
		version = 1
	}
	begin(ts, func(ctx context.Context, l stores.DB) error {
		return running(ctx, l, version, func(ctx context.Context, _ *coordinator.Coordinator) error {
			<-ctx.Done()
			return nil
		})
	})
}

// jobs runs a process beside the script that has the job orders.
func jobs(ts *testscript.TestScript, _ bool, _ []string) {
	begin(ts, func(ctx context.Context, d stores.DB) error {
		r, err := schedule.New(d, []schedule.Job{ordersJob(d)}, &schedule.Options{Holder: "test", Poll: 20 * time.Millisecond, Log: silent()})
		if err != nil {
			return err
		}
		return r.Run(ctx)
	})
}

// hear hears until nothing is left to do now.
func hear(ts *testscript.TestScript, _ bool, _ []string) {
	patiently(ts, func(ctx context.Context, l stores.DB) error { return hearUntilQuiet(ctx, l) })
}

// rebuild puts on record what stands of two orders whose works were forgotten.
func rebuild(ts *testscript.TestScript, _ bool, _ []string) {
	patiently(ts, func(ctx context.Context, l stores.DB) error { return adopt(ctx, l) })
}

// changing is what differs from run to run, and by what a golden text replaces it.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d{3}\b`), "CLOCK"},
	{regexp.MustCompile(`\((\d+[smhd])+ ago\)|\(now\)|\(in (\d+[smhd])+\)`), "(AGE)"},
	{regexp.MustCompile(`(?m)^(took      )\S+$`), "${1}SPAN"},
	{regexp.MustCompile(`("hash": )"[0-9a-f]{32}"`), `$1"HASH"`},
	{regexp.MustCompile(`("seq": )\d+(,\s+"advice")`), "${1}0${2}"}, // one more where the session was not open yet
	{regexp.MustCompile(`"day": "[\d-]+"`), `"day": "DAY"`},
	{regexp.MustCompile(`("session": )"[0-9a-f]{16}"`), `$1"SESSION"`},
	{regexp.MustCompile(`("nonce": )"-?\d+"`), `$1"NONCE"`},
	{regexp.MustCompile(`("number": )"\d+"`), `$1"REF"`},
	{regexp.MustCompile(`("records": )\d+`), `$1"RECORDS"`},
	{regexp.MustCompile(`conflict:[0-9a-f]{32}`), `conflict:IDENTITY`},
}

// scrub writes what a program printed to a file, with what changes from run to run replaced, so
// that the rest can be compared whole: scrub stdout got.
func scrub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: scrub (stdout|stderr) FILE")
	}
	text := strings.NewReplacer(ts.Getenv("PLANID"), "PLANID", ts.Getenv("PLAN"), "PLAN").Replace(ts.ReadFile(args[0]))
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.by)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// execSQL changes a SQLite ledger behind everybody's back: sql ledger.db 'UPDATE …'.
func execSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sqlx.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	db.MustExec(args[1])
}

// change replaces what an expression finds in a file: change FILE EXPRESSION TEXT.
func change(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: change FILE EXPRESSION TEXT")
	}
	was := ts.ReadFile(args[0])
	is := regexp.MustCompile(args[1]).ReplaceAllString(was, args[2])
	if is == was {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(is), 0o600))
}

// keep stores what an expression finds in what a program printed, for later lines: keep NAME
// (stdout|stderr) '--after (\S+)$'.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: keep NAME (stdout|stderr) EXPRESSION")
	}
	m := regexp.MustCompile(args[2]).FindStringSubmatch(strings.TrimSpace(ts.ReadFile(args[1])))
	if len(m) != 2 {
		ts.Fatalf("no match for %s", args[2])
	}
	ts.Setenv(args[0], m[1])
}

// field compares one value of the JSON a program printed: field steps.invoice.externalId inv_1.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] field PATH VALUE")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for name := range strings.SplitSeq(args[0], ".") {
		switch inner := v.(type) {
		case map[string]any:
			value, ok := inner[name]
			if !ok {
				ts.Fatalf("%s: there is no field %q", args[0], name)
			}
			v = value
		case []any:
			i, err := strconv.Atoi(name)
			ts.Check(err)
			if i >= len(inner) {
				ts.Fatalf("%s: there are %d items", args[0], len(inner))
			}
			v = inner[i]
		default:
			ts.Fatalf("%s: %v has no fields", args[0], v)
		}
	}
	if got := fmt.Sprint(v); (got == args[1]) == neg {
		ts.Fatalf("%s is %q; want %q (negated: %t)", args[0], got, args[1], neg)
	}
}

// settles waits until the work of saga order-to-invoice has ended, with a coordinator running:
// settles shop:order:3.
func settles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: settles WORK")
	}
	patiently(ts, func(ctx context.Context, l stores.DB) error {
		return settled(ctx, coordinator.NewOperator(l), args[0], saga.Status.Terminal)
	})
}

// tries waits until a step of a work was attempted so often: tries shop:order:3 invoice 2.
func tries(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tries WORK STEP NUMBER")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	patiently(ts, func(ctx context.Context, l stores.DB) error {
		op, id := coordinator.NewOperator(l), saga.ID{Saga: "order-to-invoice", Work: args[0]}
		for {
			s, err := op.Show(ctx, id)
			if err != nil || s.Steps[args[1]].Attempts >= n {
				return err
			}
			if err := moment(ctx); err != nil {
				return err
			}
		}
	})
}

// queued waits until a work has so many unread signals: queued shop:order:3 2.
func queued(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: queued WORK NUMBER")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	patiently(ts, func(ctx context.Context, l stores.DB) error {
		return heard(ctx, l, args[0], func(h *ledger.Instance) bool { return h.Posted-h.Consumed >= n })
	})
}

// waitsFor waits until a work waits in the ledger for a destination or a pause: waits shop:order:3
// saga:order-to-invoice.
func waitsFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waits WORK NAME")
	}
	patiently(ts, func(ctx context.Context, l stores.DB) error {
		return heard(ctx, l, args[0], func(h *ledger.Instance) bool { return h.WaitsFor == args[1] })
	})
}

// patiently opens the script's ledger for something that may take a while on a busy machine.
func patiently(ts *testscript.TestScript, fn func(context.Context, stores.DB) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ts.Check(over(ctx, ts.Getenv("AMENDS_DB"), fn))
}

// stands waits until the newest run of a job stands at something: stands orders running.
func stands(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: stands JOB (waiting|running|RESULT)")
	}
	patiently(ts, func(ctx context.Context, d stores.DB) error {
		for {
			runs, err := d.Runs(ctx, schedule.RunFilter{Job: args[0], Limit: 1})
			if err != nil || len(runs) == 1 && runs[0].Status() == args[1] {
				return err
			}
			if err := moment(ctx); err != nil {
				return err
			}
		}
	})
}
