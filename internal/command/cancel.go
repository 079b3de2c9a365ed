package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

func (a *app) cancel() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use: "cancel WORK --reason WHY [flags]", Args: oneWork,
		Short: "Give a work up: undo what it has done",
		Long: `Give a work up. Nothing more is done forward, and what it has done is undone, newest step first. Once the pivot
may have happened there is no way back, and the order is refused; while a request is under way it is stored, and
refused on record if that was the pivot's. --dry-run lists what would be undone.

` + orderHelp,
		Example: `  amends cancel shop:order:10492 --reason "the customer called" --dry-run
  amends cancel shop:order:10492 --reason "the customer called" --wait 30s`,
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.work = args[0]
		if wrong := o.faults(); len(wrong) > 0 {
			return usage("try: amends cancel --help", wrong...)
		}
		return a.speak(cmd.Context(), &o, (*view).afterCancel, func(op *coordinator.Operator, work saga.ID) error {
			return op.Cancel(cmd.Context(), work, o.by)
		})
	}
	return cmd
}

// afterCancel lists what a cancel would undo, in the order in which it would.
func (v *view) afterCancel() []string {
	if v.spec == nil {
		return []string{"what it has done is undone, as its definition says; this ledger does not know the definition"}
	}
	if v.state.Turned {
		return []string{"nothing changes: it is being undone already"}
	}
	var plan []string
	for i := len(v.spec.Steps) - 1; i >= 0; i-- {
		spec := &v.spec.Steps[i]
		step := v.state.Step(spec.Name)
		if step == nil || !mayBeThere(step) {
			continue
		}
		name := spec.Name + bracketed(step)
		switch {
		case spec.Pivot:
			return []string{fmt.Sprintf("the coordinator will not follow if the request under way is that of the pivot, step %q (%s)", spec.Name, step.Forward.Phase)}
		case spec.Undo:
			plan = append(plan, "undo "+name)
		case spec.NoUndo != "":
			plan = append(plan, fmt.Sprintf("leave %s as it is: %s", name, spec.NoUndo))
		}
	}
	if len(plan) == 0 {
		return []string{"nothing has happened yet, so there is nothing to undo"}
	}
	return plan
}

// mayBeThere reports whether the step's effect is at the destination or may be.
func mayBeThere(s *machine.StepState) bool {
	switch f := &s.Forward; f.Phase {
	case machine.Done, machine.Started, machine.InDoubt:
		return s.Undo.Phase != machine.Done
	default:
		return !f.UnknownUntil.IsZero() || s.Unfinished != nil
	}
}
