// Package command is the command amends: each verb, what it reads, prints and refuses. Program
// cmd/amends runs it on a command line of the shell, package console on what a browser or another
// program asks for: there is one code for both. The fields of the JSON are in the comment of
// cmd/amends.
package command

import (
	"context"
	"io"

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
}

// Run runs one verb, and returns the status to end with. Nothing below it reads the command line of
// the process or ends it.
func Run(ctx context.Context, l *Line) (status int) {
	a := newApp(l.Env, l.Out, l.Err)
	a.open = l.DB
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
