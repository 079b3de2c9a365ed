package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// What the verbs have in common that speak to several works: each is told of in a line of its own,
// and one that cannot be does not keep the others from it.

const severalHelp = orderHelp + `

Several works can be named; "-" reads them from standard input, a line each, as "amends list -o ids" prints them: with the run that
was listed, and nothing is said to a work that is at another run by then. Then each
has a line of its own, what is refused has it on stderr and keeps no other from being done, and the command ends with the
status of the first that was refused, or with 0. With -o json it is "items", one for each work.`

// someWorks are the arguments of a verb that takes several works.
func someWorks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("try: "+cmd.CommandPath()+" --help", "name the work: "+cmd.CommandPath()+" WORK…, or - to read ids from standard input")
	}
	return worksSaid(cmd, args)
}

// outcomeOfOneJSON is what became of an order on one of several works.
type outcomeOfOneJSON struct {
	WorkID string `json:"workId"`
	*outcomeJSON
	Error *errorJSON `json:"error"` // null: it was stored, and with --wait applied; in a dry run it would be stored
}

// spoken is an order on one of several works.
type spoken struct {
	order
	out     *outcomeJSON // nil when nothing was stored
	lacking string
	err     error
}

// speakToAll posts an order to every work that is named, and tells what comes of each.
func (a *app) speakToAll(cmd *cobra.Command, o *order, args []string, w *words) error {
	ctx := cmd.Context()
	works, err := o.named(cmd, args)
	if err != nil {
		return err
	}
	for i := range args {
		if missing := slices.IndexFunc(works, func(one which) bool { return one.run == "" }); w.run != nil && o.request == "" && missing >= 0 && isStdin(cmd, args, i) {
			return usage("amends list -o ids prints the run", "say which run of "+quote(works[missing].work)+" "+runMissing)
		}
	}
	return a.with(ctx, func(s store) error {
		if len(works) == 0 {
			a.sayf("no work is named: standard input is empty, and nothing was stored")
		}
		if len(args) == 1 && !isStdin(cmd, args, 0) && !a.json {
			o.which = works[0]
			return a.speakTo(ctx, s, o, w)
		}
		all := make([]spoken, len(works))
		for i := range works {
			one := &all[i]
			one.order = *o
			one.which = works[i]
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.begins(ctx, s, one, w)
		}
		for p, i := o.limit(), 0; i < len(all); i++ { // together they wait for as long as one
			if one := &all[i]; one.out != nil && one.out.awaited(o) {
				one.err = learn(ctx, s, p, one.out, one.lacking)
				a.line(ctx, one)
			}
		}
		return a.ends(ctx, all)
	})
}

// begins posts an order to one of several works, and tells of it unless its end is waited for.
func (a *app) begins(ctx context.Context, s store, one *spoken, w *words) {
	var before *view
	if before, one.out, one.err = say(ctx, s, &one.order, w); before != nil {
		one.lacking = before.lacking
	}
	if one.out == nil || !one.out.awaited(&one.order) {
		a.line(ctx, one)
	}
}

// awaited reports whether it is asked for, or known, what the order came to.
func (out *outcomeJSON) awaited(o *order) bool { return !o.dryRun && (o.wait > 0 || out.read) }

// line tells what became of one of several works.
func (a *app) line(ctx context.Context, one *spoken) {
	switch out := one.out; {
	case a.json:
	case one.err != nil:
		fmt.Fprintf(a.err, "amends: %s: %s\n", visible(one.work), oneLine(a.classify(ctx, one.err).Error()))
	case out.DryRun:
		a.works(out, "dry run: "+strings.Join(out.Plan, "; "))
	case out.Applied:
		a.works(out, "applied: it is now "+standing(out.Status, out.Reason))
	case one.lacking != "":
		a.works(out, "stored: "+stays(one.lacking))
	default:
		a.works(out, "stored")
	}
}

func (a *app) works(out *outcomeJSON, words string) {
	fmt.Fprintln(a.out, visible(fmt.Sprintf("%s (%s): %s", out.WorkID, out.Saga, words)))
}

// ends sums up what became of several works.
func (a *app) ends(ctx context.Context, all []spoken) error {
	var first *failure
	wrong := 0
	items := make([]outcomeOfOneJSON, len(all))
	for i := range all {
		one := &all[i]
		items[i] = outcomeOfOneJSON{outcomeJSON: one.out, WorkID: one.work}
		if one.err == nil {
			continue
		}
		f := a.classify(ctx, one.err)
		items[i].Error = f.json()
		if wrong++; first == nil {
			first = f
		}
	}
	if a.json {
		if err := a.printJSON(listOf[outcomeOfOneJSON]{items}); err != nil {
			return err
		}
	}
	if first == nil {
		return nil
	}
	return &failure{exit: first.exit, what: fmt.Sprintf("%d of %s not done", wrong, count(len(all), "work")), next: "each says why"}
}

// isStdin reports whether an argument stands for standard input: behind "--" it is a name.
func isStdin(cmd *cobra.Command, args []string, i int) bool {
	dash := cmd.Flags().ArgsLenAtDash()
	return args[i] == "-" && (dash < 0 || i < dash)
}

// named are the works that the arguments and the lines of standard input name, each once.
func (w *which) named(cmd *cobra.Command, args []string) ([]which, error) {
	var works []which
	for i, arg := range args {
		texts := []string{arg}
		if isStdin(cmd, args, i) {
			var err error
			if texts, err = linesOf(cmd.InOrStdin()); err != nil {
				return nil, errors.Join(errors.New("read the works from standard input"), err)
			}
		}
		for _, text := range texts {
			one, err := w.read(text)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(works, one) {
				works = append(works, one)
			}
		}
	}
	return works, nil
}

// read reads a work as "amends list -o ids" prints it, with its saga and its run behind tabs, or with the saga or nothing alone.
func (w *which) read(text string) (which, error) {
	one := *w
	parts := strings.Split(text, "\t")
	n := len(parts)
	if n > 2 { // an id may have tabs, too
		parts = []string{strings.Join(parts[:n-2], "\t"), parts[n-2], parts[n-1]}
		one.run = parts[2]
	}
	if one.work = parts[0]; n == 1 {
		return one, said("the work id", one.work)
	}
	one.saga = parts[1]
	return one, errors.Join(said(fmt.Sprintf("the work id of %q", text), one.work), said(fmt.Sprintf("the saga of %q", text), parts[1]), said(fmt.Sprintf("the run of %q", text), parts[2:]...))
}

// linesOf are the lines of r that are not empty.
func linesOf(r io.Reader) (texts []string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if text := strings.TrimRight(lines.Text(), "\r"); text != "" {
			texts = append(texts, text)
		}
	}
	return texts, lines.Err()
}
