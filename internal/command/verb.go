package command

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/user"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/desk"
)

// verb is one verb: what it takes by its flags and arguments, what it does at the desk, and how that is printed.
type verb[In, Out any] struct {
	name   string
	args   arguments
	usage  map[string]string         // of flags, where it is not what their fields say
	hidden []string                  // flags that are refused with the reason
	flags  func(*pflag.FlagSet, *In) // that are no fields of In
	check  func(*app, *In) error     // before a database is opened
	do     atDesk[In, Out]
	by     func(*app, *desk.Desk, context.Context, *In) (*Out, error) // instead of do, where it tells how far it has come, or more than a document
	print  func(*app, *In, *Out)
	alarm  string  // what --exit-code is for; "": there is no such flag
	free   bool    // it needs no database
	verbs  []maker // that it has itself

	// Of a list columns are what [app.table] prints, before print; none is said where it is empty, and next is the flag of the next page.
	none, columns, next string
}

// arguments say what is wrong with those that a verb is given.
type arguments = func(*cobra.Command, []string) error

// atDesk is what a verb does.
type atDesk[In, Out any] = func(*desk.Desk, context.Context, *In) (*Out, error)

// plain is a verb that does something at the desk, and prints what comes of it.
func plain[In, Out any](name string, args arguments, do atDesk[In, Out], show func(*app, *In, *Out)) verb[In, Out] {
	return verb[In, Out]{name: name, args: args, do: do, print: show}
}

// listing is a verb that prints a list: none is said where it is empty, and next is the flag of the next page.
func listing[In, Out any](name string, args arguments, do atDesk[In, Out], none, next, columns string) verb[In, Out] {
	return verb[In, Out]{name: name, args: args, do: do, none: none, next: next, columns: columns}
}

// printed is how a document is printed, whatever was asked.
func printed[In, Out any](show func(*app, *Out)) func(*app, *In, *Out) {
	return func(a *app, _ *In, out *Out) { show(a, out) }
}

// exits has a verb end with 6 where there is a finding, if --exit-code is said.
func (v verb[In, Out]) exits(when string) verb[In, Out] {
	v.alarm = when
	return v
}

// aliases are what verbs are called besides.
var aliases = map[string][]string{"list": {"ls"}, "history": {"timeline"}}

// on makes a verb for one run of the program.
func (v verb[In, Out]) on(a *app) *cobra.Command {
	in := new(In)
	cmd := &cobra.Command{Use: v.name, Aliases: aliases[v.name], Args: v.args}
	a.add(cmd, v.verbs)
	bind(cmd.Flags(), in)
	if v.flags != nil {
		v.flags(cmd.Flags(), in)
	}
	if v.alarm != "" {
		cmd.Flags().BoolVar(&a.exitCode, "exit-code", false, v.alarm)
	}
	for name, words := range v.usage {
		cmd.Flags().Lookup(name).Usage = words
	}
	for _, name := range v.hidden {
		cmd.Flags().Lookup(name).Hidden = true
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if rest := place(in, args); len(rest) > 0 { // several, where one is meant, are none
			place(in, make([]string, len(args)-len(rest)))
		}
		a.prepare(cmd, in)
		if v.check != nil {
			if err := v.check(a, in); err != nil {
				return err
			}
		}
		if v.free {
			return v.run(a, desk.New(nil, ""), in)
		}
		return a.at(cmd.Context(), func(d *desk.Desk) error { return v.run(a, d, in) })
	}
	return cmd
}

func (v *verb[In, Out]) run(a *app, d *desk.Desk, in *In) error {
	if asks, is := any(in).(interface{ Request() *desk.RequestIn }); is {
		defer a.follow(asks.Request())()
	}
	do := func() (*Out, error) { return v.do(d, a.cmd.Context(), in) }
	if v.by != nil {
		do = func() (*Out, error) { return v.by(a, d, a.cmd.Context(), in) }
	}
	out, err := do()
	if out == nil {
		return err
	}
	told := a.tell(out, func() {
		if v.columns != "" {
			a.list(reflect.ValueOf(out).Elem(), v.none, v.columns, v.next)
		}
		if v.print != nil {
			v.print(a, in, out)
		}
	})
	if told != nil || err != nil || !a.exitCode {
		return cmp.Or(told, err)
	}
	return alarmOf(out)
}

// place puts what is named behind a verb into the fields that an address has by their names, in their order.
func place(in any, args []string) (rest []string) {
	v := reflect.ValueOf(in).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if len(args) == 0 || f.Tag.Get("path") == "" || f.Tag.Get("flag") != "" {
			continue
		}
		if field := v.FieldByIndex(f.Index); field.CanInt() {
			n, _ := strconv.ParseInt(args[0], 10, 64) // that it is a number was looked at
			field.SetInt(n)
		} else {
			field.SetString(args[0])
		}
		args = args[1:]
	}
	return args
}

// tell prints a document as JSON, or for people.
func (a *app) tell(doc any, print func()) error {
	if a.json {
		return a.printJSON(doc)
	}
	print()
	return nil
}

// alarmOf is the finding of a document that has one.
func alarmOf(doc any) error {
	if is, ok := doc.(interface{ Alarm() error }); ok {
		return is.Alarm()
	}
	return nil
}

// prepare completes what a verb takes: who acts is the user of the operating system, unless it is said.
func (a *app) prepare(cmd *cobra.Command, in any) {
	a.cmd = cmd
	if by, ok := in.(interface{ Who() *desk.By }); ok {
		who := by.Who()
		who.Actor = cmp.Or(strings.TrimSpace(who.Actor), osUser())
	}
}

func osUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER") // a container may know no user by our number
}

// bind makes flags of the fields of what a verb takes, by their tags.
func bind(fl *pflag.FlagSet, in any) {
	if d, ok := in.(interface{ Defaults() }); ok {
		d.Defaults()
	}
	v := reflect.ValueOf(in).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if name := flagName(&f); name != "" && f.IsExported() {
			bindField(fl, name, f.Tag.Get("doc"), v.FieldByIndex(f.Index).Addr())
		}
	}
}

// flagName is how a field is named on a command line; "": it is not.
func flagName(f *reflect.StructField) string {
	for _, tag := range []string{"flag", "query", "json"} {
		if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name == "-" && tag == "flag" {
			return ""
		} else if name != "" && name != "-" {
			return name
		}
	}
	return ""
}

func bindField(fl *pflag.FlagSet, name, doc string, field reflect.Value) {
	switch p := field.Interface().(type) {
	case *bool:
		fl.BoolVar(p, name, *p, doc)
	case *int:
		fl.IntVar(p, name, *p, doc)
	case *int64:
		fl.Int64Var(p, name, *p, doc)
	case *desk.Duration:
		fl.DurationVar((*time.Duration)(p), name, time.Duration(*p), doc)
	case *desk.Keep:
		fl.TextVar(p, name, p, doc)
	case *[]string:
		fl.StringArrayVar(p, name, *p, doc)
	case *desk.Filter:
		fl.StringArrayVar((*[]string)(p), name, *p, doc)
	case *commas:
		fl.StringSliceVar((*[]string)(p), name, *p, doc)
	default:
		if field.Elem().Kind() == reflect.Pointer {
			fl.Var(optional{field.Elem()}, name, doc)
			return
		}
		text, _ := reflect.TypeAssert[*string](field.Convert(reflect.TypeFor[*string]()))
		fl.StringVar(text, name, *text, doc)
	}
}

// commas are texts that may be said with commas between them.
type commas []string

// optional is a text that may be said to be empty.
type optional struct{ field reflect.Value }

func (o optional) String() string {
	if !o.field.IsValid() || o.field.IsNil() {
		return ""
	}
	return o.field.Elem().String()
}

func (o optional) Set(text string) error {
	o.field.Set(reflect.New(o.field.Type().Elem()))
	o.field.Elem().SetString(text)
	return nil
}

func (optional) Type() string { return "string" }

// maker makes a verb for one run of the program.
type maker interface{ on(a *app) *cobra.Command }

// group is a verb that has verbs of its own.
type group struct {
	name  string
	verbs []maker
}

func (g group) on(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: g.name, Args: knownVerb, RunE: help}
	a.add(cmd, g.verbs)
	return cmd
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// add gives a command its verbs.
func (a *app) add(cmd *cobra.Command, verbs []maker) {
	for _, verb := range verbs {
		c := verb.on(a)
		c.Flags().SortFlags = false
		c.DisableFlagsInUseLine = true
		cmd.AddCommand(c)
		says := helps()[strings.TrimPrefix(c.CommandPath(), "amends ")]
		c.Use, c.Short, c.Long, c.Example = says.use, says.short, says.long, says.example
	}
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
		names = append(names, c.Name())
	}
	return usage("try: "+path+" --help", said+": it knows "+strings.Join(names, ", "))
}

// usage returns the error for mistakes in the command as typed, or nil where there is none.
func usage(next string, reasons ...string) error { return desk.Usage(next, reasons...) }

// The arguments of verbs.

// thing is what arguments name: its kind, how one is written, how an empty one is called, and what to know where none is named, or too many.
type thing struct{ kind, written, empty, ifNone, ifMany string }

var (
	theWork  = thing{"work", "WORK", "the work id", "", "a work id with spaces needs quotes; "}
	theWorks = thing{"work", "WORK…, or - to read ids from standard input", "the work id", "", ""}
	theFile  = thing{"file", "FILE", "the name of the file", "", ""}
	theJob   = thing{"job", "JOB", "the name of the job", "amends schedule list shows the jobs; ", ""}
)

// many is as many as a command line has.
const many = math.MaxInt

// named wants at least and at most so many arguments, none of them empty.
func (t thing) named(least, most int) arguments {
	return func(cmd *cobra.Command, args []string) error {
		path := cmd.CommandPath()
		switch {
		case len(args) < least:
			return usage(t.ifNone+"try: "+path+" --help", fmt.Sprintf("name the %s: %s %s", t.kind, path, t.written))
		case len(args) > most:
			return usage(t.ifMany+"try: "+path+" --help", fmt.Sprintf("%s takes one %s, not %d: %s", path, t.kind, len(args), strings.Join(args, " ")))
		}
		return said(t.empty, args...)
	}
}

// said refuses an argument that is empty. A shell makes one of a variable that was never set, and to
// take it for "none was said" would mean another work, or all.
func said(what string, args ...string) error {
	if slices.Contains(args, "") {
		return desk.Empty(what)
	}
	return nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes no %q", cmd.CommandPath(), args[0]))
	}
	return nil
}
