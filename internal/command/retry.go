package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

func (a *app) retry() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use: "retry WORK... --reason WHY [flags]", Args: someWorks,
		Short: "Try the step at issue again, under the key it has",
		Long: `Try the step at issue again, or its undo: now, under the idempotency key it has, with a fresh retry policy.
Mend first what made it fail. While its destination is paused or fails it waits all the same. It is safe: what may
have happened is asked for, or sent under the key by which its destination knows it. It is refused for a step that cannot
be asked for (a mail) and may have happened: look, and say so with resolve or skip.

` + severalHelp,
		Example: `  amends retry shop:order:10492 --reason "the mailbox exists now" --wait 30s
  amends retry shop:order:10492 --reason "the mailbox exists now" --dry-run
  amends list --reason exhausted -o ids | amends retry - --reason "the books are back"`,
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := o.faults(); len(wrong) > 0 {
			return usage("try: amends retry --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{plan: (*view).afterRetry, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Retry(cmd.Context(), work, o.by)
		}})
	}
	return cmd
}

// afterRetry says what follows from trying the step at issue again.
func (v *view) afterRetry() []string {
	ss, dir := v.state.Issue(v.spec)
	if ss == nil {
		return []string{"the step at issue is tried again"}
	}
	e, name := &ss.Forward, fmt.Sprintf("step %q", ss.Name)
	if dir == saga.Undo {
		e, name = &ss.Undo, fmt.Sprintf("the undo of step %q", ss.Name)
	}
	maybe := e.Phase == machine.InDoubt || !e.UnknownUntil.IsZero()
	switch {
	case dir == saga.Forward && ss.Rejected():
		return []string{fmt.Sprintf("people are asked again at step %q, and votes so far count no more", ss.Name)}
	case dir == saga.Forward && e.Key == "":
		return []string{fmt.Sprintf("the program is asked again about step %q", ss.Name)}
	case dir == saga.Forward && e.Phase == machine.Refused && e.Class == saga.RefusedKey:
		return []string{fmt.Sprintf("%s is tried again as soon as its destination takes it, under a new key: everything under the old one is refused (%s)", name, e.Key)}
	case maybe && dir == saga.Forward && v.repeats(ss.Name) == program.RepeatFind:
		return []string{fmt.Sprintf("%s may have happened: its destination is asked once every attempt has settled, and it is sent again only if it is not there", name)}
	case maybe:
		return []string{fmt.Sprintf("%s may have happened: it is sent again under the key that its destination knows it by (%s)", name, e.Key)}
	default:
		return []string{fmt.Sprintf("%s is tried again as soon as its destination takes it, under the key it has (%s)", name, e.Key)}
	}
}

// repeats is how a step may be repeated.
func (v *view) repeats(step string) program.Repeat { return v.summary.Steps[step].Repeat }
