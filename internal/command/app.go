package command

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/desk"
)

// verbs is the one table of what amends can do, in the order of the help text.
var verbs = []maker{
	statusVerb, listVerb, showVerb, historyVerb, duplicatesVerb, actsVerb,
	retryVerb, resolveVerb, skipVerb, pauseVerb, resumeVerb, wakeVerb, completeVerb, failedVerb, extendVerb, deliverVerb,
	approvalsVerb, approveVerb, rejectVerb, cancelVerb, undoVerb, rerunVerb, single((*app).start),
	destinationVerb, inboxVerb, reconcileVerb, driftVerb, scheduleVerb,
	checkVerb, catchUpVerb, recoveryVerb, migrateVerb, single((*app).serve), single((*app).token), versionVerb,
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
}

func newApp(l *Line) *app {
	return &app{given: l, env: l.Env, out: l.Out, err: l.Err, now: time.Now, screen: screenOf(l.Out, l.Env)}
}

const intro = `amends reads the ledger of sagas and lets a person act on it: what was attempted for an order, what succeeded
with which external ids, and what is safe to do next. It needs the database only, not the program that runs
the sagas, and works while that program runs.`

const example = `  export AMENDS_DB=/var/lib/shop/ledger.db      # or postgres://user@host/db
  amends status                                 # does a coordinator run, and does everything move?
  amends list --review                          # what waits for a person
  amends show shop:order:10492                  # one work: steps, external ids, what to do
  amends show --external-id inv_5530            # who made inv_5530?
  amends history shop:order:10492               # everything that happened, record by record
  amends destination list                       # what fails, what is paused, and what waits for it
  amends schedule list                          # which jobs reconcile, and is anything wrong?
  amends reconcile plan orders                  # what differs between source, ledger and destination?`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "amends", Short: "Read and steer the ledger of sagas", Long: intro + "\n\n" + exitHelp(), Example: example,
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
	var wrong []string
	switch ids := cmd.CommandPath() == "amends list"; {
	case a.output == "ids" && !ids:
		wrong = append(wrong, "-o ids is for amends list")
	case a.output != "ids" && !slices.Contains([]string{"table", "json"}, a.output):
		wrong = append(wrong, fmt.Sprintf("there is no output %q: -o takes table or json", a.output))
	}
	if !slices.Contains([]string{"auto", "relative", "iso"}, a.times) {
		wrong = append(wrong, fmt.Sprintf("--time takes auto, relative or iso, not %q", a.times))
	}
	if len(wrong) > 0 {
		return usage("", wrong...)
	}
	if err := flagsSaid(cmd.Flags()); err != nil {
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
func (a *app) address() (address, error) {
	name := a.db
	if name == "" {
		name = a.env("AMENDS_DB")
	}
	return parseAddress(name)
}

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
