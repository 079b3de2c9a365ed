package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

func (a *app) rerun() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use: "rerun WORK... --reason WHY [flags]", Args: someWorks,
		Short: "Run a work again that was undone, given up or completed",
		Long: `Run a work again, at the version of the source that it has, under a revision of its own (17+1): one that was undone
and that its source still wants; one in review because its retry policy is used up, where nothing is in doubt; one that
is completed, when what it made was changed at a destination by hand. Every step gets a new key and is told what it left
behind, so that it changes that thing and makes no second one. A step that is done once per work (a mail) is not done
again; about one that may have happened a person is asked first, and one that was skipped is done.

It is refused where the source cancelled the work (a newer version of it runs it again), and where a step in review may have
happened (retry it). Asking twice is asking once.

` + severalHelp,
		Example: `  amends rerun shop:order:10492 --reason "the books know the customer now" --wait 30s
  amends rerun shop:order:10492 --reason "the books know the customer now" --dry-run
  amends list --status compensated --prefix shop:order:104 -o ids | amends rerun - --reason "INC-77 turned them back"`,
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := o.faults(); len(wrong) > 0 {
			return usage("try: amends rerun --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterRerun, post: func(op *coordinator.Operator, work saga.ID) error {
			_, err := op.Rerun(cmd.Context(), work, "", o.by)
			return err
		}})
	}
	return cmd
}

// isRerun reports whether a signal asks for a run of the version that the work has.
func isRerun(s machine.Signal) bool {
	return s.Kind == machine.SignalRevise && strings.HasPrefix(s.Key, "rerun:")
}

// afterRerun lists what a run does with each step.
func (v *view) afterRerun() []string {
	if v.spec == nil {
		return []string{"every step is done again under a new key, as its definition says; this ledger does not know the definition"}
	}
	var plan []string
	again := false
	for i := range v.spec.Steps {
		spec := &v.spec.Steps[i]
		ss := v.state.Step(spec.Name)
		name := spec.Name
		if ss != nil && ss.ExternalID != "" && mayBeThere(ss) {
			name += " (" + ss.ExternalID + ")"
		}
		once := spec.Once || spec.Repeat == program.RepeatAtMostOnce
		switch {
		case spec.WaitsForAnswer() && ss != nil:
			plan = append(plan, fmt.Sprintf("wait at %s for another answer", name))
		case spec.Waits() && ss != nil:
			plan = append(plan, fmt.Sprintf("leave %s as it is: it waits once", name))
		case spec.Waits():
			plan = append(plan, "wait at "+name)
		case once && ss != nil && ss.Forward.Phase == machine.Done && ss.Undo.Phase != machine.Done:
			plan = append(plan, fmt.Sprintf("leave %s as it is: it is done once", name))
		case once && ss != nil && mayBeThere(ss):
			plan = append(plan, fmt.Sprintf("%s may have happened: its destination or a person is asked first", name))
		case ss != nil && mayBeThere(ss):
			plan, again = append(plan, fmt.Sprintf("do %s again, under a new key, told what it left", name)), true
		case ss != nil && ss.Forward.Phase == machine.Skipped:
			plan = append(plan, fmt.Sprintf("do %s, which was skipped, under a new key", name))
		default:
			plan = append(plan, fmt.Sprintf("do %s, under a new key", name))
		}
	}
	if again {
		plan = append(plan, "what is done again is a new request at its destination: its action has to find and change what is there already")
	}
	return plan
}
