package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/desk"
	unseen "github.com/amends-dev/amends/internal/visible"
)

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
