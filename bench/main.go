// Command bench measures what amends costs, beside the cheapest durable ledger
// there can be. See the README of this folder; `make bench` and `make growth` run it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Measure amends beside the cheapest durable ledger there can be",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(compareCommand(), growthCommand(), inboxCommand(), reconcileCommand(), claimsCommand(), resumeCommand(), sleepCommand(), pagesCommand(), answersCommand(), answersProcessCommand(), sizeCommand(), cellCommand(), claimsCellCommand(), resumeProcessCommand())
	return root
}
