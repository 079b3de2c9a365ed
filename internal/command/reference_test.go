package command

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/desk"
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

// The help on JSON has a section for every verb, and each names the fields that its verb prints, or
// says whose they are.
func TestEveryFieldIsNamed(t *testing.T) {
	t.Parallel()
	sections := map[string]string{}
	var names []string
	_, fields, _ := strings.Cut(jsonHelp, "\n\nstatus")
	for line := range strings.SplitSeq("status"+fields, "\n") {
		if !strings.HasPrefix(line, " ") {
			head, rest, _ := strings.Cut(line, "  ")
			names, line = strings.Split(head, ", "), rest
		}
		for _, name := range names {
			sections[name] += line + "\n"
		}
	}
	for _, cmd := range leaves(Verbs()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "amends ")
		first, _, _ := strings.Cut(name, " ")
		if cmd.Runnable() && !slices.Contains([]string{"migrate", "help", "completion"}, first) && sections[name] == "" {
			t.Errorf("amends help json has no section for %s", name)
		}
	}
	for verb, shape := range map[string]any{
		"status": desk.Status{}, "list": desk.List[desk.Head]{}, "show": desk.Instance{}, "history": desk.History{}, "history of a scope": desk.ScopeActs{},
		"duplicates": desk.Duplicates{}, "acts": desk.List[desk.Deed]{}, "approvals": desk.All[desk.Approval]{}, "approval": desk.Approval{},
		"order": desk.Outcome{}, "orders": desk.All[desk.Of]{}, "scope": desk.Scoped{}, "deliver": desk.Delivered{},
		"destination list": desk.Destinations{}, "destination probe": desk.Probed{},
		"inbox list": desk.List[desk.Delivery]{}, "inbox objects": desk.List[desk.Entry]{}, "inbox counts": desk.All[desk.Count]{}, "inbox show": desk.Hearing{},
		"inbox replay": desk.Replayed{}, "inbox release": desk.EndedHold{},
		"schedule list": desk.Board{}, "schedule run": desk.Run{}, "schedule pause": desk.JobPause{}, "schedule check": desk.Expression{},
		"reconcile runs": desk.List[desk.Run]{}, "reconcile show": desk.Plan{}, "reconcile apply": desk.Applied{}, "reconcile approve": desk.JobApproval{},
		"drift list": desk.Drifts{}, "check": desk.Report{}, "catch-up": desk.CaughtUp{}, "recover": desk.Recovered{}, "version": desk.Version{},
	} {
		name := map[string]string{"order": "resolve", "orders": "retry", "scope": "pause", "approval": "approvals", "history of a scope": "history"}[verb]
		name = cmp.Or(name, verb)
		text := sections[name]
		for range 3 { // what it says is as in another section
			said := strings.Join(strings.Fields(text), " ")
			for other, words := range sections {
				if regexp.MustCompile(`(?:of|in) ` + other + `\b`).MatchString(said) {
					text += words
				}
			}
		}
		seen := map[reflect.Type]bool{}
		for _, field := range fieldsOf(reflect.TypeOf(shape), seen) {
			if !regexp.MustCompile(`\b` + field + `\b`).MatchString(text) {
				t.Errorf("amends help json: %s does not say %q", name, field)
			}
		}
	}
}

// fieldsOf are the names of the fields of a type, and of those in it.
func fieldsOf(t reflect.Type, seen map[reflect.Type]bool) (names []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fieldsOf(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] {
			return nil
		}
		seen[t] = true
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
			names = append(names, fieldsOf(f.Type, seen)...)
		}
	}
	return names
}
