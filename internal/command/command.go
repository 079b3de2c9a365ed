// Package command is the command amends: each verb, what it takes, and how it prints what the desk returns. The fields of the JSON are in
// json.txt, which TestReference makes of the documents.
package command

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/docs"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/serving"
	unseen "github.com/amends-dev/amends/internal/visible"
	stores "github.com/amends-dev/amends/store"
)

// Line is one command line, and what it runs with.
type Line struct {
	Args     []string // without the name of the program
	Env      func(string) string
	In       io.Reader
	Out, Err io.Writer
	// DB is the database to use, instead of the one that --db or AMENDS_DB names. It stays open.
	DB stores.DB
	// Serve and Token are what the verbs serve and token do: package console has it. Nil: they are refused.
	Serve func(context.Context, *serving.Console) error
	Token func(file, name string, roles []string, valid time.Duration) (string, error)
}

// Run runs one verb, and returns the status to end with. Nothing below it reads the command line of
// the process or ends it.
func Run(ctx context.Context, l *Line) (status int) {
	a := newApp(l)
	root := a.root()
	root.SetArgs(l.Args)
	root.SetIn(l.In)
	root.SetOut(l.Out)
	root.SetErr(l.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return int(exitDone)
	}
	if !a.begun {
		a.json = wantsJSON(l.Args)
	}
	return int(a.fail(a.classify(ctx, err)))
}

// Verbs is the command with all its verbs and their flags, to be read and not to be run.
func Verbs() *cobra.Command {
	return newApp(&Line{Env: func(string) string { return "" }, Out: io.Discard, Err: io.Discard}).root()
}

// jsonHelp is the promise of the JSON, and every field.
//
//go:embed json.txt
var jsonHelp string

// helpTexts are the words of all verbs: behind "== " and the path of one how it is typed, what it is, what there is to know, and examples. What
// several say stands below a name with @.
//
//go:embed help.txt
var helpTexts string

// texts are what the help of a verb says.
type texts struct{ use, short, long, example string }

// helps are the words of help.txt, by the paths of verbs.
var helps = sync.OnceValue(func() map[string]texts {
	all, parts := map[string]texts{}, strings.Split("\n\n"+strings.TrimSpace(helpTexts), "\n\n== ")[1:]
	var shared []string
	for _, text := range parts {
		if path, words, _ := strings.Cut(text, "\n"); strings.HasPrefix(path, "@") {
			all[path], shared = texts{long: words}, append(shared, path, words)
		}
	}
	names := strings.NewReplacer(shared...)
	for _, text := range parts {
		path, words, _ := strings.Cut(text, "\n")
		use, words, _ := strings.Cut(names.Replace(names.Replace(words)), "\n") // what is shared may name another one
		short, long, _ := strings.Cut(words, "\n\n")
		if last := strings.LastIndex("\n\n"+long, "\n\n"); strings.HasPrefix(long[last:], "  ") {
			all[path] = texts{use, short, strings.TrimSpace(long[:last]), long[last:]}
		} else if all[path].long == "" {
			all[path] = texts{use, short, long, ""}
		}
	}
	return all
})

// topics are what amends help has beside the verbs.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "json", Short: "What -o json prints, field by field, and what is promised of it", Long: strings.TrimSpace(jsonHelp)},
		{Use: "situations", Short: "Every reason of a review and every finding of status: what happened, and what to do", Long: strings.TrimSpace(docs.Situations)},
	}
}

// verbs is the one table of what amends can do, in the order of the help text.
var verbs = []maker{
	plain("status", noWork, (*desk.Desk).Status, (*app).printStatus).exits("end with 6 when something does not move"),
	listing("stats", noWork, (*desk.Desk).Stats, "no works match", "", "saga=Saga, status=Status, reason=Reason, works=Works, oldest due=Oldest"),
	listVerb, plain("show", theWork.named(0, 1), (*desk.Desk).Show, (*app).printInstance), historyVerb, duplicatesVerb,
	listing("acts", noArguments, (*desk.Desk).Acts, "no person did anything", "before", "at=At, who=Actor, act=Act, what=About, why=Reason"),
	order("retry"), order("resolve"), order("skip"), scoped("pause", (*desk.Desk).Hold), scoped("resume", (*desk.Desk).Release),
	order("wake"), order("complete"), order("fail"), order("extend"), plain("deliver", messageSaid, (*desk.Desk).Deliver, (*app).printDelivered),
	approvalsVerb, deciding("approve"), deciding("reject"), order("cancel"), order("undo"), order("rerun"), batchVerb, startVerb,
	destinationVerb, alertsVerb, inboxVerb, reconcileVerb, driftVerb, scheduleVerb, checkVerb, exportVerb, verifyVerb, reportVerb,
	retentionVerb, plain("hold", theWork.named(1, 1), (*desk.Desk).HoldWork, (*app).printHeldWork),
	plain("erase", theWork.named(0, 1), (*desk.Desk).Erase, (*app).printErased),
	plain("catch-up", noArguments, (*desk.Desk).CatchUp, (*app).printCaughtUp), plain("recover", noArguments, (*desk.Desk).Recover, (*app).printRecovered),
	migrateVerb, serveVerb, tokenVerb, versionVerb,
}

// sortByUse leaves the verbs in the order of the table above. The switch is cobra's, for the process.
var sortByUse = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

// app is one run of the program: where it writes, and what the flags common to all verbs say.
type app struct {
	env   func(string) string
	out   io.Writer // what was asked for
	err   io.Writer // talk: errors, hints, progress
	now   func() time.Time
	begun bool // the command line was understood and a verb runs
	given *Line
	cmd   *cobra.Command // the verb that runs

	db     string // --db
	output string // -o
	json   bool   // -o json
	screen screen // what stdout is
	times  string // --time

	exitCode bool // --exit-code
}

func newApp(l *Line) *app {
	return &app{given: l, env: l.Env, out: l.Out, err: l.Err, now: time.Now, screen: screenOf(l.Out, l.Env)}
}

func (a *app) root() *cobra.Command {
	says := helps()["amends"]
	root := &cobra.Command{
		Use: says.use, Short: says.short, Long: says.long + "\n\n" + exitHelp(), Example: says.example,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true, Version: desk.ThisVersion().Version,
		Args: knownVerb, RunE: help,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begin(cmd) },
	}
	sortByUse()
	f := root.PersistentFlags()
	f.StringVar(&a.db, "db", "", "the ledger: a SQLite file, sqlite:FILE or postgres://… (default $AMENDS_DB)")
	f.StringVarP(&a.output, "output", "o", "table", "table, or json: stable, times in UTC")
	f.StringVar(&a.times, "time", "auto", "times in tables: relative, iso, or auto: relative on a terminal")
	f.SortFlags = false
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("try: "+cmd.CommandPath()+" --help", err.Error())
	})
	a.add(root, verbs)
	root.InitDefaultHelpFlag() // known before a command line is read: what stands behind -o is no topic
	root.InitDefaultVersionFlag()
	root.AddCommand(topics()...)
	root.SetVersionTemplate(versionLine() + "\n")
	return root
}

// begin looks at the common flags once they are known.
func (a *app) begin(cmd *cobra.Command) error {
	var wrong desk.Wrong
	switch ids := cmd.CommandPath() == "amends list"; {
	case a.output == "ids" && !ids:
		wrong = append(wrong, "-o ids is for amends list")
	case a.output != "ids" && !slices.Contains([]string{"table", "json"}, a.output):
		wrong = append(wrong, fmt.Sprintf("there is no output %q: -o takes table or json", a.output))
	}
	wrong.If(!slices.Contains([]string{"auto", "relative", "iso"}, a.times), fmt.Sprintf("--time takes auto, relative or iso, not %q", a.times))
	if err := cmp.Or(usage("", wrong...), flagsSaid(cmd.Flags())); err != nil {
		return err
	}
	a.begun, a.json = true, a.output == "json"
	return nil
}

// mayBeEmpty are flags that mean the same when they are empty as when they are not given, or say
// themselves what is wrong with that.
var mayBeEmpty = []string{"db", "actor", "zone", "ask", "after", "before", "happened", "result"}

// flagsSaid refuses a name or a bound that is empty, as [desk.Empty] does: it would select all there is.
func flagsSaid(fl *pflag.FlagSet) (err error) {
	words := fl.Lookup("actor") != nil // --reason is what a person says, and else a filter
	fl.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name) && !(words && f.Name == "reason") {
			err = desk.Empty("--" + f.Name)
		}
	})
	return err
}

// address is the ledger that was named: by the flag, else by the environment.
func (a *app) address() (address, error) { return parseAddress(cmp.Or(a.db, a.env("AMENDS_DB"))) }

// wantsJSON looks for -o json on a command line that could not be understood, so that its error
// comes in the form the caller can read.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			return i+1 < len(args) && args[i+1] == "json"
		}
	}
	return false
}

// exit is the status amends ends with. Scripts depend on the numbers and on the words: neither
// changes.
type exit int

const exitDone exit = 0

// exits is the one table of what amends can end with. The help text and the errors in JSON are made
// from it.
var exits = []struct {
	word  desk.Code // "code" of an error in JSON
	means string
}{
	{"done", "done; a list may be empty"},
	{desk.Failed, "failed: no connection, no ledger there, a schema that does not fit; a run that failed"},
	{desk.Misuse, "the command line is wrong, or does not say which of several is meant; a question was not answered"},
	{desk.NotFound, "no such work, delivery, object, job or plan"},
	{desk.NotAllowed, "not allowed: credentials, permissions, a read-only database"},
	{desk.Conflict, "refused: things do not stand as the command takes for granted, or a person decides"},
	{desk.Findings, "check found something; other commands only with --exit-code"},
	{desk.TimedOut, "--wait ran out; what was asked for is stored, and goes on without the command"},
	{desk.Interrupted, "stopped by Ctrl-C or a signal"},
}

func exitOf(code desk.Code) exit {
	if n, known := desk.Exits[code]; known {
		return exit(n)
	}
	return 1
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("It ends with\n")
	for _, x := range exits {
		fmt.Fprintf(&b, "  %3d  %-12s %s\n", exitOf(x.word), x.word, x.means)
	}
	b.WriteString("Errors go to stderr. With -o json everything is JSON: amends help json.")
	return b.String()
}

// classify makes a failure of an error. What cobra refuses before a verb has begun is a mistake
// on the command line.
func (a *app) classify(ctx context.Context, err error) *desk.Failure {
	var f *desk.Failure
	if !a.begun && !errors.As(err, &f) && ctx.Err() == nil {
		return &desk.Failure{Code: desk.Misuse, What: err.Error(), Next: "try: amends --help"}
	}
	return desk.FailureOf(ctx, err)
}

// fail tells the failure on stderr, as a line or as JSON, and returns its status.
func (a *app) fail(f *desk.Failure) exit {
	if !a.json || unseen.JSON(a.err, desk.Versioned(f.Told()), "") != nil {
		fmt.Fprintln(a.err, "amends: "+oneLine(f.Told().Message))
	}
	return exitOf(f.Code)
}
