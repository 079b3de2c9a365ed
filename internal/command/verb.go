package command

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"reflect"
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
	say   func(in *In, args []string) // what the arguments say; nil: nothing
	do    func(*desk.Desk, context.Context, *In) (*Out, error)
	print func(*app, *In, *Out)
	alarm string // what --exit-code is for; "": there is no such flag
	free  bool   // it needs no database
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
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if v.say != nil {
			v.say(in, args)
		}
		a.prepare(cmd, in)
		do := func(d *desk.Desk) error {
			out, err := v.do(d, cmd.Context(), in)
			if out == nil {
				return err
			}
			if told := a.tell(out, func() { v.print(a, in, out) }); told != nil || err != nil || !exitCode {
				return firstOf(told, err)
			}
			return alarmOf(out)
		}
		if v.free {
			return do(desk.New(nil, ""))
		}
		return a.at(cmd.Context(), do)
	}
	return cmd
}

func firstOf(told, err error) error {
	if told != nil {
		return told
	}
	return err
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
	bindFields(fl, reflect.ValueOf(in).Elem())
}

func bindFields(fl *pflag.FlagSet, v reflect.Value) {
	for f, value := range v.Fields() {
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			bindFields(fl, value)
			continue
		}
		if name := flagName(&f); name != "" && f.IsExported() {
			bindField(fl, name, f.Tag.Get("doc"), value.Addr())
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

// first is the first argument; "": there is none.
func first(args []string) string { return strings.Join(args[:min(1, len(args))], "") }

// only is the one argument; "": there is none, or there are several.
func only(args []string) string {
	if len(args) != 1 {
		return ""
	}
	return args[0]
}

// anyNamed takes names of things, none of which is empty.
func anyNamed(name string) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error { return said(name, args...) }
}
