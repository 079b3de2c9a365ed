// Withpostgres runs a command with a PostgreSQL beside it:
//
//	withpostgres go test ./...
//	withpostgres -fresh sh -c './load -db "$AMENDS_TEST_POSTGRES"'
//	withpostgres -where
//
// The command finds the server's URL in AMENDS_TEST_POSTGRES. Is that set already,
// it stays; otherwise a private cluster is started and ends with the command. See
// package pgtest. The exit status is that of the command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/amends-dev/amends/internal/pgtest"
)

func main() {
	status, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	}
	os.Exit(status)
}

// run returns the exit status: the command's own, 1 if it could not be run, 2 if
// it was not understood.
func run(args []string, stdout, stderr io.Writer) (int, error) {
	flags := flag.NewFlagSet("withpostgres", flag.ContinueOnError)
	flags.SetOutput(stderr)
	where := flags.Bool("where", false, "print where the PostgreSQL would come from, and end")
	fresh := flags.Bool("fresh", false, "give the command a new, empty database and drop it afterwards")
	settings := make(pgtest.Settings)
	flags.Func("set", "server parameter `name=value` for a private cluster; may be repeated", settings.Set)
	if err := flags.Parse(args); err != nil {
		return 2, nil // the flag set has said why
	}
	switch {
	case *where:
		return printWhere(stdout)
	case flags.NArg() == 0:
		return 2, errors.New("say which command to run")
	}

	// A Ctrl-C reaches the command by itself. We stay until it is done.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)

	server, stop, err := serverFor(stderr, settings)
	if err != nil {
		return 1, err
	}
	status, err := withDatabase(server, *fresh, func(url string) (int, error) {
		return execute(flags.Args(), url, stdout, stderr, interrupts)
	})
	return status, errors.Join(err, stop())
}

func printWhere(stdout io.Writer) (int, error) {
	if os.Getenv(pgtest.Env) != "" {
		fmt.Fprintln(stdout, "given in "+pgtest.Env)
		return 0, nil
	}
	bin, err := pgtest.Find()
	if err != nil {
		return 1, err
	}
	fmt.Fprintln(stdout, bin)
	return 0, nil
}

// serverFor returns the URL of the given server or of a new cluster, and how to
// stop it. Where there is no PostgreSQL the URL is empty: the command decides what
// it can do without one. Where CI is set that is an error.
func serverFor(stderr io.Writer, settings pgtest.Settings) (string, func() error, error) {
	nothing := func() error { return nil }
	if given := os.Getenv(pgtest.Env); given != "" {
		if len(settings) > 0 {
			return "", nothing, errors.New("-set needs a private cluster: unset " + pgtest.Env)
		}
		return given, nothing, nil
	}
	cluster, err := pgtest.Start(context.Background(), "", settings)
	switch {
	case err == nil:
		return cluster.URL(), cluster.Stop, nil
	case errors.Is(err, pgtest.ErrNotInstalled) && os.Getenv("CI") == "":
		fmt.Fprintf(stderr, "SKIPPED: everything that needs PostgreSQL. %v\n", err)
		return "", nothing, nil
	default:
		return "", nothing, err
	}
}

// withDatabase calls use with the server's URL, or with that of a fresh database.
func withDatabase(server string, fresh bool, use func(url string) (int, error)) (int, error) {
	if !fresh {
		return use(server)
	}
	if server == "" {
		return 1, pgtest.ErrNotInstalled
	}
	url, drop, err := pgtest.Database(context.Background(), server)
	if err != nil {
		return 1, err
	}
	status, err := use(url)
	return status, errors.Join(err, drop(context.Background()))
}

// execute runs the command to its end and passes our signals on to it.
func execute(args []string, url string, stdout, stderr io.Writer, signals <-chan os.Signal) (int, error) {
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	state, err := os.MkdirTemp("", "amends-state-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(state) }()
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state) // witnesses of databases that end with the command
	if url != "" {
		cmd.Env = append(cmd.Env, pgtest.Env+"="+url)
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended meanwhile
		case err := <-ended:
			return statusOf(cmd.ProcessState, err)
		}
	}
}

// statusOf turns the end of a command into our exit status: its own, or as shells
// do 128 and the signal that ended it.
func statusOf(state *os.ProcessState, err error) (int, error) {
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return 1, err
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal()), nil
	}
	return state.ExitCode(), nil
}
