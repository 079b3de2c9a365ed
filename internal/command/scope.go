package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
)

// scope is more than one work that is paused or resumed at once.
type scope struct {
	order
	destination string
	all         bool
}

const scopeHelp = `Without a WORK it speaks of more at once: --destination NAME of what wants one, --saga NAME of a saga's works, --all of
everything. That is kept in the ledger, and every process obeys it at its send gate within about a second. What waits there
takes every word of a person all the same.`

func (s *scope) flags(cmd *cobra.Command) {
	byFlags(cmd, &s.by, "why; required, and kept in the ledger for ever")
	s.waitFlags(cmd)
	s.names(cmd)
}

// names are the flags by which a scope is named instead of a work.
func (s *scope) names(cmd *cobra.Command) {
	s.flag(cmd)
	cmd.Flags().StringVar(&s.destination, "destination", "", "instead of WORK: all that wants this destination")
	cmd.Flags().BoolVar(&s.all, "all", false, "instead of WORK: everything")
	cmd.Flags().Lookup("saga").Usage = "the saga, where several know the work id; without WORK all its works"
}

// works reports whether the command line speaks of works, and what is wrong with it.
func (s *scope) works(cmd *cobra.Command, args []string) (works bool, wrong []string) {
	works, wrong = s.named(cmd, args, "WORK… (or - to read ids from standard input)")
	if !works && len(wrong) == 0 && s.wait > 0 {
		wrong = append(wrong, "--wait is for works: what is paused or resumed as a whole is obeyed within about a second")
	}
	if !works && len(wrong) == 0 && s.seen != 0 {
		wrong = append(wrong, "--seen is for works")
	}
	return works, append(s.faults(), wrong...)
}

// named reports whether the command line names works and not a scope, and what is wrong with that.
// work is how it names them.
func (s *scope) named(cmd *cobra.Command, args []string, work string) (works bool, wrong []string) {
	named := 0
	for _, is := range []bool{s.destination != "", s.all, s.saga != "" && len(args) == 0} {
		if is {
			named++
		}
	}
	switch {
	case len(args) > 0 && named > 0:
		wrong = append(wrong, "name works, or say --destination or --all, not both")
	case len(args) == 0 && named == 0:
		wrong = append(wrong, "say which: "+cmd.CommandPath()+" "+work+", --destination NAME, --saga NAME or --all")
	case named > 1:
		wrong = append(wrong, "say one of --destination, --saga and --all")
	}
	return len(args) > 0, wrong
}

// scopeJSON is what became of an order on more than one work.
type scopeJSON struct {
	Scope  string      `json:"scope"` // all, saga:NAME, or destination:NAME
	DryRun bool        `json:"dryRun"`
	Stored bool        `json:"stored"`
	Before *pausedJSON `json:"before"` // who had paused it; null: not paused
	Paused *pausedJSON `json:"paused"` // who has by now; null: not paused
}

// runScope pauses or resumes more than one work.
func (a *app) runScope(ctx context.Context, s *scope, pause bool) error {
	return a.with(ctx, func(st store) error {
		f, err := flowOf(ctx, st)
		if err != nil {
			return err
		}
		which, err := s.find(f)
		if err != nil {
			return err
		}
		name := s.called(which)
		out := scopeJSON{Scope: name, DryRun: s.dryRun, Before: f.pauseOf(name)}
		if !pause && out.Before == nil {
			return &failure{exit: exitConflict, what: name + " is not paused", err: errors.New("nothing was stored"), next: "see what is: amends destination list"}
		}
		if out.Paused = out.Before; !s.dryRun {
			if out.Paused, err = s.set(ctx, st, which, name, pause); err != nil {
				return err
			}
			out.Stored = true
		}
		if a.json {
			return a.printJSON(out)
		}
		a.printScope(s, f, &out, pause)
		return nil
	})
}

// set stores the order, and reads back what stands then.
func (s *scope) set(ctx context.Context, st store, which coordinator.Scope, name string, pause bool) (*pausedJSON, error) {
	op := coordinator.NewOperator(st)
	do := op.ResumeScope
	if pause {
		do = op.PauseScope
	}
	if err := do(ctx, which, s.by); err != nil {
		return nil, err
	}
	now, err := flowOf(ctx, st)
	if err != nil {
		return nil, err
	}
	return now.pauseOf(name), nil
}

// called is how the scope that was found is called: all, saga:NAME, or destination:NAME.
func (s *scope) called(which coordinator.Scope) string {
	if s.destination != "" {
		return "destination:" + which.String()
	}
	return which.String()
}

// find is the scope that is meant. One that the ledger never heard of is a mistake.
func (s *scope) find(f *flow) (coordinator.Scope, error) {
	which := coordinator.OfSaga(s.saga)
	switch {
	case s.all:
		which = coordinator.Everything()
	case s.destination != "":
		which = coordinator.OfDestination(s.destination)
		return which, f.knows(s.destination)
	}
	return which, f.knows(which.String())
}

// pauseOf is who has paused a scope, or nil.
func (f *flow) pauseOf(name string) *pausedJSON {
	if p := f.paused(name); p != nil {
		return &pausedJSON{name, utc(p.At), p.By.Name, p.By.Reason}
	}
	if d := f.of(strings.TrimPrefix(name, "destination:")); d != nil && d.State == "paused" {
		return &pausedJSON{name, utc(d.Since), d.Actor, d.Why}
	}
	return nil
}

func (a *app) printScope(s *scope, f *flow, out *scopeJSON, pause bool) {
	verb, then := "resume", "it goes on where it was, but for what another pause holds"
	if pause {
		verb, then = "pause", "nothing of it is sent and nothing undone until it is resumed; an attempt that is under way is answered"
	}
	a.field("scope", out.Scope)
	if before := out.Before; before != nil {
		a.field("stands at", fmt.Sprintf("paused, says %s: %s", before.Actor, before.Reason))
	} else {
		a.field("stands at", "not paused")
	}
	if n := f.waiting[strings.TrimPrefix(out.Scope, "destination:")].Works; n > 0 {
		a.field("waiting", waits(n)+" in the ledger")
	}
	a.field("order", verb)
	a.field("said by", s.by.Name+": "+s.by.Reason)
	a.field("then", then)
	for i := range f.Paused {
		if p := &f.Paused[i]; !pause && p.Scope.String() != out.Scope {
			a.field("beware", fmt.Sprintf("%s still paused, says %s: %s", finding.ScopeIs(p.Scope), p.By.Name, p.By.Reason))
		}
	}
	fmt.Fprintln(a.out)
	switch {
	case out.DryRun:
		a.paragraph("", "Dry run: nothing was stored.")
	case pause:
		a.paragraph("", "Stored. Every process obeys it within about a second. It ends with:")
		a.paragraph("  ", fmt.Sprintf("amends resume %s --reason WHY%s", finding.Flag(out.Scope), dbFlag(a.db)))
	default:
		a.paragraph("", "Stored. Every process obeys it within about a second.")
	}
}
