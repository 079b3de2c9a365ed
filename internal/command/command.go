// Package command is the command amends: each verb, what it takes, and how it prints what the desk returns. The fields of the JSON are in
// json.txt, which TestReference makes of the documents.
package command

import (
	"context"
	_ "embed"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/docs"
	"github.com/amends-dev/amends/internal/serving"
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

// topics are what amends help has beside the verbs.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "json", Short: "What -o json prints, field by field, and what is promised of it", Long: strings.TrimSpace(jsonHelp)},
		{Use: "situations", Short: "Every reason of a review and every finding of status: what happened, and what to do", Long: strings.TrimSpace(docs.Situations)},
	}
}
