package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes cmd a verb that has verbs of its own. A new one is a new file and a line in its
// table.
func (a *app) group(cmd *cobra.Command, table []func(*app) *cobra.Command) *cobra.Command {
	cmd.Use = cmd.Use + " VERB [flags]"
	cmd.Args = knownVerb
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, verb := range table {
		c := verb(a)
		c.Flags().SortFlags = false
		c.DisableFlagsInUseLine = true
		cmd.AddCommand(c)
	}
	return cmd
}

// knownVerb refuses a verb that does not exist.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s knows no %q: it knows %s", cmd.CommandPath(), args[0], strings.Join(names, ", ")))
}
