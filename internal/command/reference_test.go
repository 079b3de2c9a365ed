package command

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
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
	fmt.Fprintf(&b, "# The command\n\n%s\n\n"+
		"This page is made from the command itself. What `-o json` prints is [at its end](#the-json).\n\n```\n%s```\n", paragraph(intro), exitHelp()+"\n")
	root := Verbs()
	fmt.Fprint(&b, "\nFlags of every verb:\n\n```\n", root.PersistentFlags().FlagUsages(), "```\n")
	for _, cmd := range root.Commands() {
		describe(&b, cmd)
	}
	fmt.Fprintf(&b, "\n## The JSON\n\n`amends help json` prints the same.\n\n```\n%s```\n", jsonHelp)
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
	if !cmd.Runnable() || cmd.Name() == "help" || cmd.Name() == "completion" {
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

// The help on JSON names every field that a verb prints.
func TestEveryFieldIsNamed(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(where string, typ reflect.Type)
	walk = func(where string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(where, typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for f := range typ.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name != "" && name != "-" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(jsonHelp) {
					t.Errorf("%s: amends help json does not say %q", where, name)
				}
				walk(where, f.Type)
			}
		}
	}
	for verb, shape := range shapes {
		walk(verb, reflect.TypeOf(shape))
	}
}
