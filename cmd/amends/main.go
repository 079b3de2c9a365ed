package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, &command.Line{
		Args: os.Args[1:], Env: os.Getenv, In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Serve: func(ctx context.Context, s *command.Serving) error { return console.Serve(ctx, s, nil) },
		Token: issue,
	})
	stop()
	os.Exit(code)
}

func issue(file, name string, roles []string, valid time.Duration) (string, error) {
	tokens, err := console.OpenTokens(file)
	if err != nil {
		return "", err
	}
	return tokens.Issue(console.Person{Name: name, Roles: roles}, valid)
}
