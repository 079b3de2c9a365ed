package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const reference = "../../docs/command.md"

// docs/command.md is made of the verbs: go test ./internal/command -run TestReference -update.
func TestReference(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The command\n\n%s\n\nThe fields of the JSON output are in `go doc github.com/amends-dev/amends/cmd/amends`; fields are added, never renamed or removed. "+
		"This page is made from the command itself.\n\n```\n%s```\n", paragraph(intro), exitHelp()+"\n")
	root := Verbs()
	fmt.Fprint(&b, "\nFlags of every verb:\n\n```\n", root.PersistentFlags().FlagUsages(), "```\n")
	for _, cmd := range root.Commands() {
		describe(&b, cmd)
	}
	if *update {
		if err := os.WriteFile(reference, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := os.ReadFile(reference); err != nil || !bytes.Equal(page, b.Bytes()) {
		t.Errorf("%v: docs/command.md is not what the verbs say; go test ./internal/command -run TestReference -update", err)
	}
}

func paragraph(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ") }

func describe(b *bytes.Buffer, cmd *cobra.Command) {
	if cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), strings.TrimRight(cmd.Short, "."), cmd.UseLine())
	if cmd.Long != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimSpace(cmd.Long))
	}
	var flags strings.Builder
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			name, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&flags, "| `--%s` | %s |\n", strings.TrimSpace(f.Name+" "+name), strings.ReplaceAll(usage, "|", "\\|"))
		}
	})
	if flags.Len() > 0 {
		fmt.Fprintf(b, "\n| flag | |\n|---|---|\n%s", flags.String())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.TrimRight(strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"), "\n"))
	}
	for _, sub := range cmd.Commands() {
		describe(b, sub)
	}
}
