package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/desk"
)

// verb is one verb: what it takes by its flags and arguments, what it does at the desk, and how that is printed.
type verb[In, Out any] struct {
	use, short, long, example string

	args  func(*cobra.Command, []string) error
	usage map[string]string // of flags, where it is not what their fields say
	do    func(*desk.Desk, context.Context, *In) (*Out, error)
	by    func(*app, *desk.Desk, context.Context, *In) (*Out, error) // instead of do, where it tells how far it has come
	print func(*app, *In, *Out)
	alarm string // what --exit-code is for; "": there is no such flag
	free  bool   // it needs no database

	// Of a list columns are what [app.table] prints, before print; none is said where it is empty, and next is the flag of the next page.
	none, columns, next string
}

// on makes a verb for one run of the program.
func (v verb[In, Out]) on(a *app) *cobra.Command {
	in, exitCode := new(In), false
	cmd := &cobra.Command{Use: v.use, Args: v.args, Short: v.short, Long: v.long, Example: v.example}
	if strings.HasPrefix(v.use, "list ") {
		cmd.Aliases = []string{"ls"}
	}
	bind(cmd.Flags(), in)
	if v.alarm != "" {
		cmd.Flags().BoolVar(&exitCode, "exit-code", false, v.alarm)
	}
	for name, words := range v.usage {
		cmd.Flags().Lookup(name).Usage = words
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if rest := place(in, args); len(rest) > 0 { // several, where one is meant, are none
			place(in, make([]string, len(args)-len(rest)))
		}
		a.prepare(cmd, in)
		if v.free {
			return v.run(a, desk.New(nil, ""), in, exitCode)
		}
		return a.at(cmd.Context(), func(d *desk.Desk) error { return v.run(a, d, in, exitCode) })
	}
	return cmd
}

func (v *verb[In, Out]) run(a *app, d *desk.Desk, in *In, exitCode bool) error {
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
	if told != nil || err != nil || !exitCode {
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
	if is, ok := doc.(interface{ Alarm() *desk.Failure }); ok {
		if f := is.Alarm(); f != nil {
			return f
		}
	}
	return nil
}

// prepare completes what a verb takes: who acts is the user of the operating system, unless it is said.
func (a *app) prepare(cmd *cobra.Command, in any) {
	a.cmd = cmd
	if by, ok := in.(interface{ Who() *desk.By }); ok {
		who := by.Who()
		if who.Actor = strings.TrimSpace(who.Actor); who.Actor == "" {
			who.Actor = osUser()
		}
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
	case *[]string:
		fl.StringArrayVar(p, name, *p, doc)
	default:
		if field.Elem().Kind() == reflect.Pointer {
			fl.Var(optional{field.Elem()}, name, doc)
			return
		}
		text, _ := reflect.TypeAssert[*string](field.Convert(reflect.TypeFor[*string]()))
		fl.StringVar(text, name, *text, doc)
	}
}

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

// single is a verb that is like no other.
type single func(*app) *cobra.Command

func (m single) on(a *app) *cobra.Command { return m(a) }

// group is a verb that has verbs of its own.
type group struct {
	use, short, long, example string

	verbs []maker
}

func (g group) on(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: g.use + " VERB [flags]", Short: g.short, Long: g.long, Example: g.example, Args: knownVerb, RunE: help}
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
		if c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	return usage("try: "+path+" --help", said+": it knows "+strings.Join(names, ", "))
}

// usage returns the error for a mistake in the command as typed.
func usage(next string, reasons ...string) error { return desk.Usage(next, reasons...) }

// The arguments of verbs.

// said refuses an argument that is empty. A shell makes one of a variable that was never set, and to
// take it for "none was said" would mean another work, or all.
func said(what string, args ...string) error {
	for _, arg := range args {
		if arg == "" {
			return desk.Empty(what)
		}
	}
	return nil
}

func worksSaid(_ *cobra.Command, args []string) error { return said("the work id", args...) }

func oneWork(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("try: "+cmd.CommandPath()+" --help", "name the work: "+cmd.CommandPath()+" WORK")
	}
	return atMostOneWork(cmd, args)
}

func atMostOneWork(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(fmt.Sprintf("a work id with spaces needs quotes; try: %s --help", cmd.CommandPath()),
			fmt.Sprintf("%s takes one work, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " ")))
	}
	return worksSaid(cmd, args)
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("try: "+cmd.CommandPath()+" --help", fmt.Sprintf("%s takes no %q", cmd.CommandPath(), args[0]))
	}
	return nil
}

// atMostOne takes one thing, or none, and name is how an empty one is called; exactly: none is a mistake, of which hint says how it is mended.
func atMostOne(thing, called, name string, exactly bool, hint string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		path := cmd.CommandPath()
		switch {
		case len(args) > 1:
			return usage("try: "+path+" --help", fmt.Sprintf("%s takes one %s, not %d: %s", path, thing, len(args), strings.Join(args, " ")))
		case exactly && len(args) == 0:
			return usage(hint+"try: "+path+" --help", fmt.Sprintf("name the %s: %s %s", thing, path, called))
		}
		return said(name, args...)
	}
}

// anyNamed takes names of things, none of which is empty.
func anyNamed(name string) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error { return said(name, args...) }
}
