package command

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

// knownVerb refuses a verb that does not exist, and names the one that was meant, or those there are.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	path := cmd.CommandPath()
	said := fmt.Sprintf("%s knows no %q", path, args[0])
	cmd.SuggestionsMinimumDistance = 2 // letters
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage(fmt.Sprintf("did you mean: %s %s", path, strings.Join(near, ", ")), said)
	}
	if !cmd.HasParent() {
		return usage("try: "+path+" --help", said)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	return usage("try: "+path+" --help", said+": it knows "+strings.Join(names, ", "))
}
