package command

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/plan"
)

const reference = "../../docs/command.md"

// docs/command.md is made of the verbs, and json.txt of what they print: go test ./internal/command -run TestReference -update.
func TestReference(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The command\n\n%s\n\n"+
		"This page is made from the command itself. What `-o json` prints is [at its end](#the-json).\n\n```\n%s```\n", paragraph(helps()["amends"].long), exitHelp()+"\n")
	root := Verbs()
	fmt.Fprint(&b, "\nFlags of every verb:\n\n```\n", root.PersistentFlags().FlagUsages(), "```\n")
	for _, cmd := range root.Commands() {
		describe(&b, cmd)
	}
	fields := jsonReference(t)
	fmt.Fprintf(&b, "\n## The JSON\n\n`amends help json` prints the same.\n\n```\n%s```\n", fields)
	for file, want := range map[string]string{reference: b.String(), "json.txt": fields} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(file); err != nil || string(is) != want {
			t.Errorf("%v: %s is not what the verbs say; go test ./internal/command -run TestReference -update", err, file)
		}
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
		if f.Name != "help" && !f.Hidden {
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

// documents are what the verbs print with -o json, in the order of their sections in json.txt.
var documents = []struct {
	verbs []string
	doc   any
}{
	{[]string{"status"}, desk.Status{}}, {[]string{"list"}, desk.List[desk.Head]{}}, {[]string{"show"}, desk.Instance{}},
	{[]string{"history"}, desk.History{}}, {[]string{"history --destination", "history --saga", "history --all"}, desk.ScopeActs{}},
	{[]string{"duplicates"}, desk.Duplicates{}}, {[]string{"acts"}, desk.List[desk.Deed]{}},
	{[]string{"approvals", "approve", "reject"}, desk.All[desk.Approval]{}},
	{[]string{"resolve", "cancel", "undo", "approve --shown", "reject --shown"}, desk.Outcome{}},
	{[]string{"retry", "skip", "pause", "resume", "wake", "complete", "fail", "extend", "rerun"}, desk.All[desk.Of]{}},
	{[]string{"pause --destination", "pause --saga", "pause --all", "resume --destination", "resume --saga", "resume --all"}, desk.Scoped{}},
	{[]string{"retry --filter", "resolve --filter", "skip --filter", "resume --filter", "wake --filter", "cancel --filter", "undo --filter", "rerun --filter"}, desk.BatchPlan{}},
	{[]string{"batch"}, desk.BatchShown{}},
	{[]string{"deliver"}, desk.Delivered{}}, {[]string{"start"}, started{}},
	{[]string{"stats"}, desk.All[desk.Total]{}}, {[]string{"alerts list"}, desk.All[desk.AlertShown]{}}, {[]string{"alerts test"}, desk.AlertTried{}},
	{[]string{"destination list"}, desk.Destinations{}}, {[]string{"destination probe"}, desk.Probed{}},
	{[]string{"inbox list"}, desk.List[desk.Delivery]{}}, {[]string{"inbox objects"}, desk.List[desk.Entry]{}}, {[]string{"inbox show"}, desk.Hearing{}},
	{[]string{"inbox counts"}, desk.All[desk.Count]{}}, {[]string{"inbox replay"}, desk.Replayed{}}, {[]string{"inbox release", "inbox drop"}, desk.EndedHold{}},
	{[]string{"schedule backfill"}, desk.Backfill{}}, {[]string{"reconcile runs"}, desk.List[desk.Run]{}}, {[]string{"reconcile rebuild", "schedule run", "reconcile plan --no-wait"}, desk.Run{}},
	{[]string{"reconcile plan"}, wholePlan{}}, {[]string{"reconcile show"}, desk.Plan{}}, {[]string{"reconcile apply"}, desk.Applied{}}, {[]string{"reconcile approve"}, desk.JobApproval{}},
	{[]string{"drift list"}, desk.Drifts{}}, {[]string{"drift decided"}, desk.List[desk.DecidedOn]{}},
	{[]string{"drift accept", "drift ignore", "drift again", "drift ours", "drift keep", "drift undo", "drift reopen"}, desk.Decided{}},
	{[]string{"schedule list"}, desk.Board{}}, {[]string{"schedule pause", "schedule unpause"}, desk.JobPause{}}, {[]string{"schedule check"}, desk.Expression{}},
	{[]string{"check"}, desk.Report{}}, {[]string{"export"}, desk.ExportLine{}}, {[]string{"verify"}, desk.Verified{}}, {[]string{"report"}, desk.Month{}},
	{[]string{"retention plan", "retention run"}, desk.Retained{}}, {[]string{"retention set"}, desk.Policy{}}, {[]string{"hold"}, desk.HeldWork{}}, {[]string{"erase"}, desk.Erased{}},
	{[]string{"catch-up"}, desk.CaughtUp{}}, {[]string{"recover"}, desk.Recovered{}},
	{[]string{"migrate up"}, migrated{}}, {[]string{"migrate status"}, schema{}}, {[]string{"serve"}, served{}}, {[]string{"token"}, issued{}},
	{[]string{"version"}, desk.Version{}},
}

// wholePlan is a plan as plan.WriteJSON streams it.
type wholePlan struct {
	Plan     plan.Plan      `json:"plan"`
	Findings []plan.Finding `json:"findings"`
}

// jsonReference is json.txt: the promise as it stands there, and a section for every verb, made of the fields of what it prints and of the
// comments behind them.
func jsonReference(t *testing.T) string {
	t.Helper()
	promise, _, _ := strings.Cut(jsonHelp, "\n\nstatus\n")
	w := fieldWriter{comments: map[string]string{}, first: map[reflect.Type]string{}}
	told := map[string]bool{}
	for _, d := range documents {
		fmt.Fprintf(&w.text, "\n%s\n", strings.Join(d.verbs, ", "))
		w.document(t, d.verbs[0], reflect.TypeOf(d.doc))
		for _, name := range d.verbs {
			told[name] = true
		}
	}
	for _, cmd := range leaves(Verbs()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "amends ")
		if first, _, _ := strings.Cut(name, " "); cmd.Runnable() && !slices.Contains([]string{"help", "completion"}, first) && !told[name] {
			t.Errorf("amends help json has no section for %s", name)
		}
	}
	return promise + "\n" + w.text.String()
}

// fieldWriter writes the fields of documents, each type once.
type fieldWriter struct {
	text     strings.Builder
	comments map[string]string       // behind fields, by package, type and field; a package is read with its first type
	first    map[reflect.Type]string // where the fields of a type stand
}

func (w *fieldWriter) document(t *testing.T, section string, doc reflect.Type) {
	if at, is := w.first[doc]; is {
		fmt.Fprintf(&w.text, "  the fields of %s\n", at)
		return
	}
	w.first[doc] = section
	w.fields(t, "  ", section, doc)
}

func (w *fieldWriter) fields(t *testing.T, indent, section string, of reflect.Type) {
	var names []string
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		owner := of
		if n := len(f.Index) - 1; n > 0 {
			owner, _ = elementOf(of.FieldByIndex(f.Index[:n]).Type)
		}
		is, several := elementOf(f.Type)
		if strings.Contains(options, "omit") {
			several += "?"
		}
		words, at := w.comment(t, owner, f.Name), w.first[is]
		if at != "" {
			words = strings.TrimSuffix("the fields of "+at+"; "+words, "; ")
		}
		fmt.Fprintln(&w.text, strings.TrimRight(fmt.Sprintf("%-30s %s", indent+name+several, words), " "))
		if is.Kind() == reflect.Struct && is != reflect.TypeFor[time.Time]() && at == "" {
			w.first[is] = name + " in " + section
			w.fields(t, indent+"  ", section, is)
		}
	}
}

// elementOf is what a field has, and whether it has several.
func elementOf(t reflect.Type) (of reflect.Type, several string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return elementOf(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return t.Elem(), "[]"
	case t.Kind() == reflect.Map:
		return t.Elem(), "{}"
	}
	return t, ""
}

// comment is the one behind a field.
func (w *fieldWriter) comment(t *testing.T, of reflect.Type, field string) string {
	t.Helper()
	pkg := strings.TrimPrefix(of.PkgPath(), "github.com/amends-dev/amends/")
	name, _, _ := strings.Cut(of.Name(), "[")
	if _, read := w.comments[pkg]; !read {
		w.comments[pkg] = ""
		files, _ := filepath.Glob("../../" + pkg + "/*.go")
		for _, file := range files {
			code, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(code, func(n ast.Node) bool {
				if spec, is := n.(*ast.TypeSpec); is {
					w.keep(pkg+"."+spec.Name.Name, spec.Type)
				}
				return true
			})
		}
	}
	return w.comments[pkg+"."+name+"."+field]
}

func (w *fieldWriter) keep(name string, of ast.Expr) {
	if s, is := of.(*ast.StructType); is {
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				w.comments[name+"."+n.Name] = strings.TrimSpace(f.Comment.Text())
			}
		}
	}
}
