package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

func (a *app) resolve() *cobra.Command {
	var o order
	var step, id string
	var withoutID, didNot, keep bool
	cmd := &cobra.Command{
		Use:  "resolve WORK (--step STEP (--happened ID | --happened-without-id | --did-not-happen) | --keep) --reason WHY [flags]",
		Args: oneWork, Short: "Decide on a step in review: it happened, or it did not",
		Long: `Decide on the step a review is about. Look at its destination first, by the step's key or the work id ("amends
show" prints both): "it did not happen" lets it be done again, under a new key, and if it had happened after
all there are two.

A step that is "unconfirmed" (after a rebuild it counts as done because it could not be told) can be decided on at any
time, also when the work is completed.

When the review is about the undo of a step, the resolution is about the undo: it happened means it is undone.

A work is in review for a conflict when its source cancelled it and nothing says how a step that stands is
undone. Make that step good by hand and say so (--happened-without-id): the other steps are then undone. Or
leave everything as it is: --keep.

` + orderHelp,
		Example: `  amends resolve shop:order:10492 --step receipt --happened mail_77 --reason "it is in the outbox" --wait 30s
  amends resolve shop:order:10492 --step receipt --did-not-happen --reason "the mail server's log is empty"
  amends resolve shop:order:10492 --step invoice --happened-without-id --reason "voided by hand" --dry-run
  amends resolve shop:order:10492 --keep --reason "the customer wants it after all"`,
	}
	fl := cmd.Flags()
	fl.StringVar(&step, "step", "", "the step the review is about; required but for --keep")
	fl.StringVar(&id, "happened", "", "it happened, and the destination calls it by this external id")
	fl.BoolVar(&withoutID, "happened-without-id", false, "it happened, and has no external id")
	fl.BoolVar(&didNot, "did-not-happen", false, "it did not happen; it may be done again")
	fl.BoolVar(&keep, "keep", false, "leave the work as it stands, although its source cancelled it")
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.work = args[0]
		if keep {
			return a.keep(cmd, &o, step != "" || withoutID || didNot || fl.Changed("happened"))
		}
		resolution, wrong := resolutionOf(fl.Changed("happened"), id, withoutID, didNot)
		if step == "" {
			wrong = append([]string{"say which step: --step STEP"}, wrong...)
		}
		if wrong = append(wrong, o.faults()...); len(wrong) > 0 {
			return usage(program.Command("show", o.work, "")+" prints the commands to choose from", wrong...)
		}
		yes := !didNot
		plan := func(v *view) []string { return v.afterResolution(step, yes) }
		return a.speak(cmd.Context(), &o, plan, func(op *coordinator.Operator, work saga.ID) error {
			return op.Resolve(cmd.Context(), work, step, resolution, o.by)
		})
	}
	return cmd
}

// keep leaves a work as it stands that its source cancelled.
func (a *app) keep(cmd *cobra.Command, o *order, saidMore bool) error {
	wrong := o.faults()
	if saidMore {
		wrong = append(wrong, "--keep leaves the whole work as it stands: it goes with neither --step nor a resolution on one")
	}
	if len(wrong) > 0 {
		return usage(program.Command("show", o.work, "")+" prints the commands to choose from", wrong...)
	}
	return a.speak(cmd.Context(), o, afterKeep, func(op *coordinator.Operator, work saga.ID) error {
		return op.Keep(cmd.Context(), work, o.by)
	})
}

func afterKeep(*view) []string {
	return []string{"every step stays as it is, and the work counts as completed"}
}

// resolutionOf reads the three flags of which exactly one must be given.
func resolutionOf(happened bool, id string, withoutID, didNot bool) (v saga.Resolution, wrong []string) {
	said := 0
	for _, flag := range []bool{happened, withoutID, didNot} {
		if flag {
			said++
		}
	}
	switch {
	case said != 1:
		wrong = append(wrong, "say what you know, one of: --happened ID, --happened-without-id, --did-not-happen")
	case happened && id == "":
		wrong = append(wrong, "--happened needs the external id; if there is none, say --happened-without-id")
	case didNot:
		v = coordinator.DidNotHappen()
	default:
		v = coordinator.Happened(id)
	}
	return v, wrong
}

// afterResolution says what follows from a resolution on a step.
func (v *view) afterResolution(step string, yes bool) []string {
	_, dir := v.state.Issue(v.spec)
	ss, of := v.state.IssueOf(v.spec, step)
	unconfirmed := ss != nil && ss.Unconfirmed && of == saga.Forward
	switch {
	case unconfirmed && yes:
		return []string{fmt.Sprintf("step %q counts as confirmed, and is undone if the work is on its way back", step)}
	case unconfirmed && v.state.Turned:
		return []string{fmt.Sprintf("there is nothing to undo of step %q", step)}
	case unconfirmed:
		return []string{
			fmt.Sprintf("step %q is done, under a new key; a work that was completed goes on for that", step),
			"if it had happened after all, it will have happened twice",
		}
	case v.state.Reason == saga.ReasonConflict && !yes:
		return []string{fmt.Sprintf("the coordinator will not follow: step %q stands until a person undoes it, or until --keep leaves it", step)}
	case v.state.Reason == saga.ReasonConflict:
		return []string{fmt.Sprintf("step %q counts as undone, and the other steps are undone, newest first", step)}
	case dir == saga.Undo && yes:
		return []string{
			fmt.Sprintf("step %q counts as undone, and the way back goes on", step),
			fmt.Sprintf("if what it made%s is still there, it stays: amends does not undo it any more", bracketed(ss)),
		}
	case dir == saga.Undo:
		return []string{fmt.Sprintf("the undo of step %q is tried again, under a new key", step)}
	case v.state.Turned && yes:
		return []string{fmt.Sprintf("step %q counts as done, and is undone if its definition says how; the way back goes on", step)}
	case v.state.Turned:
		return []string{fmt.Sprintf("there is nothing to undo of step %q, and the way back goes on", step)}
	case yes && v.afterwards() != "":
		return []string{fmt.Sprintf("step %q counts as done, and %s", step, v.afterwards())}
	case v.afterwards() != "":
		return []string{fmt.Sprintf("step %q counts as not done, and %s", step, v.afterwards())}
	case yes:
		return []string{
			fmt.Sprintf("step %q counts as done; %s", step, v.behind(step)),
			"if it had not happened after all, it never will: it is not sent again",
		}
	default:
		return []string{
			fmt.Sprintf("step %q is done again, under a new key, once its last attempt has settled", step),
			"if it had happened after all, it will have happened twice",
		}
	}
}

// bracketed is the external id of a step, to stand behind what it made.
func bracketed(ss *machine.StepState) string {
	if ss == nil || ss.ExternalID == "" {
		return ""
	}
	return " (" + ss.ExternalID + ")"
}

// behind says what comes after a step.
func (v *view) behind(step string) string {
	if v.spec == nil {
		return "the work goes on"
	}
	for i := range v.spec.Steps {
		if v.spec.Steps[i].Name == step && i+1 < len(v.spec.Steps) {
			return fmt.Sprintf("the work goes on with step %q", v.spec.Steps[i+1].Name)
		}
	}
	return "it is the last one, so the work is completed"
}
