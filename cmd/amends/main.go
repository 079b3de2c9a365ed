package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/console"
	"github.com/amends-dev/amends/internal/command"
	"github.com/amends-dev/amends/internal/serving"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, &command.Line{
		Args: os.Args[1:], Env: os.Getenv, In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Serve: func(ctx context.Context, s *serving.Console) error {
			reg := prometheus.NewRegistry()
			amendsprom.Ledger(reg, s.DB, nil)
			return console.Serve(ctx, s, promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
		},
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
