package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

func (a *app) pause() *cobra.Command {
	var o scope
	cmd := &cobra.Command{
		Use: "pause (WORK... | --destination NAME | --saga NAME | --all) --reason WHY [flags]", Args: worksSaid,
		Short: "Hold a work where it is, or a destination, a saga or everything, until it is resumed",
		Long: `Hold a work where it is, going forward or back: nothing is sent and nothing undone. An attempt that is under way is
answered first, and a late answer lands. What its source says meanwhile is heard, and waits. "amends list --status
paused" names what is held, and show says who holds it and why. It ends with resume, and with every word that a review
takes: retry, skip, resolve, cancel.

` + scopeHelp + "\n\n" + severalHelp,
		Example: `  amends pause --destination books --reason "they are being moved"
  amends pause shop:order:10492 --reason "the customer disputes it" --wait 30s
  amends list --prefix shop:order:104 --status retrying -o ids | amends pause - --reason "INC-77"`,
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		works, wrong := o.works(cmd, args)
		if len(wrong) > 0 {
			return usage("try: amends pause --help", wrong...)
		}
		if !works {
			return a.runScope(cmd.Context(), &o, true)
		}
		return a.speakToAll(cmd, &o.order, args, &words{plan: (*view).afterPause, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Pause(cmd.Context(), work, o.by)
		}})
	}
	return cmd
}

// afterPause says what a pause holds.
func (v *view) afterPause() []string {
	for i := range v.state.Steps {
		if ss := &v.state.Steps[i]; ss.Forward.Phase == machine.Started || ss.Undo.Phase == machine.Started {
			return []string{fmt.Sprintf("the attempt of step %q that is under way is answered; then nothing is sent and nothing undone until it is resumed or decided about", ss.Name)}
		}
	}
	return []string{"nothing is sent and nothing undone until it is resumed or decided about"}
}

func (a *app) resume() *cobra.Command {
	var o scope
	cmd := &cobra.Command{
		Use: "resume (WORK... | --destination NAME | --saga NAME | --all) --reason WHY [flags]", Args: worksSaid,
		Short: "Let what was paused go on where it was",
		Long: `Let a paused work go on where it was, forward or back, or one that is in review because its deadline has passed: it goes
on without one.

` + scopeHelp + "\n\n" + severalHelp,
		Example: `  amends resume --destination books --reason "they are back"
  amends resume shop:order:10492 --reason "the dispute is settled" --wait 30s
  amends list --status paused -o ids | amends resume - --reason "INC-77 is over"`,
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		works, wrong := o.works(cmd, args)
		if len(wrong) > 0 {
			return usage("try: amends resume --help", wrong...)
		}
		if !works {
			return a.runScope(cmd.Context(), &o, false)
		}
		return a.speakToAll(cmd, &o.order, args, &words{plan: (*view).afterResume, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Resume(cmd.Context(), work, o.by)
		}})
	}
	return cmd
}

// afterResume says where a paused work goes on.
func (v *view) afterResume() []string {
	switch then := v.afterwards(); {
	case v.state.Turned:
		return []string{"the way back goes on where it was"}
	case then != "":
		return []string{"it goes on where it was, and at the next step boundary " + then}
	default:
		return []string{"it goes on where it was"}
	}
}
