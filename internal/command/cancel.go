package command

import (
	"errors"
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
is done there is no way back, and the order is refused; while it may have happened the order is stored, and followed
if it has not. --dry-run lists what would be undone.

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
		w := words{check: (*view).followsCancel, plan: (*view).afterCancel, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Cancel(cmd.Context(), work, o.by)
		}}
		return a.with(cmd.Context(), func(s store) error { return a.speakTo(cmd.Context(), s, &o, &w) })
	}
	return cmd
}

// passed is the pivot of a work that only goes forward, because that has happened.
func (v *view) passed() string {
	if v.spec == nil || v.state.Turned {
		return ""
	}
	for i := range v.spec.Steps {
		if spec := &v.spec.Steps[i]; spec.Pivot {
			if step := v.state.Step(spec.Name); step != nil && step.Forward.Phase == machine.Done {
				return spec.Name
			}
		}
	}
	return ""
}

// followsCancel refuses a cancel that would not be followed.
func (v *view) followsCancel() error {
	pivot := v.passed()
	if pivot == "" || v.state.Status.Terminal() { // that it has ended is said elsewhere
		return nil
	}
	return &failure{
		exit: exitConflict, what: fmt.Sprintf("step %q is the pivot, and is done: from there it only goes forward", pivot),
		err: errors.New("nothing was stored"), next: "look: " + showCommand(v.head.ID, ""),
	}
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
		name := spec.Name
		if step.ExternalID != "" {
			name += " (" + step.ExternalID + ")"
		}
		switch {
		case spec.Pivot:
			return []string{fmt.Sprintf("the coordinator will not follow if the pivot has happened, step %q, and it may have (%s)", spec.Name, step.Forward.Phase)}
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
