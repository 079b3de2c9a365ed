package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

func (a *app) wake() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use: "wake WORK... --reason WHY [flags]", Args: someWorks,
		Short: "End the wait of a work for a time: it goes on now",
		Long: `End the wait that a work is in, for a delay, for a day that its saga says, or for the time of its start: it goes on now.
Who did so, and why, is in its history. What is paused goes on first: resume.

` + severalHelp,
		Example: `  amends list --status waiting                   # what waits, and until when
  amends wake booking:4711 --reason "the customer does not want to wait" --wait 30s`,
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := o.faults(); len(wrong) > 0 {
			return usage("try: amends wake --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterWake, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Wake(cmd.Context(), work, o.by)
		}})
	}
	return cmd
}

// afterWake says what a work does that does not wait any longer.
func (v *view) afterWake() []string {
	for i := range v.state.Steps {
		if ss := &v.state.Steps[i]; ss.Forward.Phase == machine.Waiting {
			return []string{fmt.Sprintf("step %q waits no longer, and not until %s; what comes next is sent", ss.Name, ss.Until.UTC().Format(time.RFC3339))}
		}
	}
	return []string{"it begins now, and not at " + v.state.NotBefore.UTC().Format(time.RFC3339)}
}
