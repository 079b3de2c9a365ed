// Package command is the command amends: each verb, what it reads, prints and refuses. Program
// cmd/amends runs it on a command line of the shell, package console on what a browser or another
// program asks for: there is one code for both. The fields of the JSON are in the comment of
// cmd/amends.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	// Serve and Token are what the verbs serve and token do: package console has it, which imports
	// this one. Nil: they are refused.
	Serve func(context.Context, *Serving) error
	Token func(file, name string, roles []string, valid time.Duration) (string, error)
}

// Run runs one verb, and returns the status to end with. Nothing below it reads the command line of
// the process or ends it.
func Run(ctx context.Context, l *Line) (status int) {
	a, wrong := perform(ctx, l)
	if wrong == nil {
		return int(exitDone)
	}
	if !a.begun {
		a.json = wantsJSON(l.Args)
	}
	return int(a.fail(wrong))
}

func perform(ctx context.Context, l *Line) (*app, *failure) {
	a := newApp(l)
	root := a.root()
	root.SetArgs(l.Args)
	root.SetIn(l.In)
	root.SetOut(l.Out)
	root.SetErr(l.Err)
	if err := root.ExecuteContext(ctx); err != nil {
		return a, a.classify(ctx, err)
	}
	return a, nil
}

// Wrong is why a verb failed, for programs.
type Wrong struct {
	Code    string          // the word of the exit status
	Message string          // for people
	Details json.RawMessage // what there is to choose from; nil: nothing
}

// Ask runs one verb over db, with --output=json, and returns its document; also where it failed and wrote one.
func Ask(ctx context.Context, db stores.DB, args []string) (doc json.RawMessage, wrong *Wrong) {
	var out bytes.Buffer
	_, f := perform(ctx, &Line{
		Args: args, Env: func(string) string { return "" }, In: strings.NewReader(""), Out: &out, Err: io.Discard, DB: db,
	})
	if f == nil {
		return out.Bytes(), nil
	}
	said := f.json()
	wrong = &Wrong{Code: said.Code, Message: said.Message}
	if said.Details != nil {
		wrong.Details, _ = json.Marshal(said.Details) // what is printed otherwise
	}
	return out.Bytes(), wrong
}

// Verbs is the command with all its verbs and their flags, to be read and not to be run.
func Verbs() *cobra.Command {
	return newApp(&Line{Env: func(string) string { return "" }, Out: io.Discard, Err: io.Discard}).root()
}
