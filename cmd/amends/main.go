package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exec(ctx, os.Getenv, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(int(code))
}

// exec is the whole program: it runs one verb and returns the status to end with. Nothing below it
// reads the command line or ends the process, and env is where it finds AMENDS_DB.
func exec(ctx context.Context, env func(string) string, args []string, stdin io.Reader, stdout, stderr io.Writer) exit {
	a := newApp(env, stdout, stderr)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if !a.begun {
		a.json = wantsJSON(args)
	}
	return a.fail(a.classify(ctx, err))
}
