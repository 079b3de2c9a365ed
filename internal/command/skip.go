package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// leaving is what a person says about a step that is left out.
type leaving struct {
	step       string
	result, id string
	noResult   bool
}

func (a *app) skip() *cobra.Command {
	var o order
	var l leaving
	cmd := &cobra.Command{
		Use: "skip WORK... --reason WHY [--result JSON] [--external-id ID] [--no-result] [flags]", Args: someWorks,
		Short: "Say that the step at issue did not happen and will not, and go on without it",
		Long: `Say that the step at issue did not happen and will not, and let the work go on without it. The work is in review, or
paused. Look at the destination first, by the step's key or the work id. Nothing of the step is undone later, but
for what may still arrive of it; a newer version of the source does it again.

Where steps come behind it, say what they find of it: --result (what the action would have returned) or
--external-id, or both; or --no-result. A later step that asks for what is not there goes to review, and the result can be
given then: skip the step once more, with --step, and retry the later one.

Of an undo that was refused it says that what the step made cannot be undone, and stands: the way back goes on without it.

Where people said no behind the pivot it leaves it at that: nothing behind the decision is done, nothing is undone, and the work ends.

` + severalHelp,
		Example: `  amends skip shop:order:10492 --reason "the customer has no mailbox" --wait 30s
  amends skip shop:order:10492 --step invoice --external-id inv_77 --reason "the old system made it"
  amends skip shop:order:10492 --no-result --reason "nothing later reads it" --dry-run`,
	}
	fl := cmd.Flags()
	fl.StringVar(&l.step, "step", "", "a step that was skipped before, to give its result; default: the step at issue")
	fl.StringVar(&l.result, "result", "", "what later steps find as its result, as JSON")
	fl.StringVar(&l.id, "external-id", "", "what later steps find as its external id")
	fl.BoolVar(&l.noResult, "no-result", false, "later steps find nothing of it")
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wrong := append(l.faults(), o.faults()...); len(wrong) > 0 {
			return usage("try: amends skip --help", wrong...)
		}
		return a.speakToAll(cmd, &o, args, &words{check: l.enough, plan: l.after, post: func(op *coordinator.Operator, work saga.ID) error {
			return op.Skip(cmd.Context(), work, l.step, l.found(), o.by)
		}})
	}
	return cmd
}

func (l *leaving) faults() (wrong []string) {
	if l.result != "" && !json.Valid([]byte(l.result)) {
		wrong = append(wrong, "--result is not valid JSON")
	}
	if l.noResult && l.found() != nil {
		wrong = append(wrong, "--no-result goes with neither --result nor --external-id")
	}
	return wrong
}

// found is what later steps find; nil is nothing.
func (l *leaving) found() *program.Result {
	if l.result == "" && l.id == "" {
		return nil
	}
	return &program.Result{ExternalID: l.id, Output: json.RawMessage(l.result)}
}

// about is the step that is meant: the one at issue where none is named.
func (l *leaving) about(v *view) string {
	if l.step != "" {
		return l.step
	}
	if ss, dir := v.state.Issue(v.spec); ss != nil && dir == saga.Forward {
		return ss.Name
	}
	return ""
}

// enough asks for what later steps may need. What cannot be skipped is refused with the reason for
// that.
func (l *leaving) enough(v *view) error {
	later := v.stepsBehind(l.about(v))
	held := v.state.Status == saga.Review || v.state.Status == saga.Paused
	if ss, _ := v.state.Issue(v.spec); l.step != "" && (ss == nil || ss.Name != l.step) {
		ss = v.state.Step(l.step)
		held = held && ss != nil && ss.Forward.Phase == machine.Skipped
	}
	if at := v.state.Step(l.about(v)); at != nil && at.Rejected() { // nothing behind it is done
		return nil
	}
	if l.noResult || l.found() != nil || len(later) == 0 || v.state.Turned || !held {
		return nil
	}
	return usage("try: amends skip --help", fmt.Sprintf("behind step %q come others that may ask for its result (%s): say --result JSON, --external-id ID, or --no-result",
		l.about(v), strings.Join(later, ", ")))
}

// stepsBehind are the steps behind one.
func (v *view) stepsBehind(step string) []string {
	if v.spec == nil || step == "" {
		return nil
	}
	var names []string
	behind := false
	for i := range v.spec.Steps {
		if behind {
			names = append(names, v.spec.Steps[i].Name)
		}
		behind = behind || v.spec.Steps[i].Name == step
	}
	return names
}

// after says what follows from leaving the step out.
func (l *leaving) after(v *view) []string {
	if ss, dir := v.state.Issue(v.spec); ss != nil && v.state.Turned && ss.CanStand(dir) {
		return []string{fmt.Sprintf("what step %q made%s stands, and the end says so; the way back goes on with the other steps", ss.Name, bracketed(ss))}
	}
	step := l.about(v)
	plan := []string{fmt.Sprintf("step %q is not done, and %s", step, v.behind(step))}
	if then := v.afterwards(); then != "" {
		plan = []string{fmt.Sprintf("step %q is not done, and %s", step, then)}
	}
	ss := v.state.Step(step)
	switch {
	case ss != nil && ss.Rejected():
		plan = []string{"nothing behind the decision is done, nothing is undone, and the work counts as completed", "a newer version of its source, or a rerun, asks people again"}
	case ss != nil && ss.Forward.Phase == machine.Skipped:
		plan = []string{fmt.Sprintf("later steps find this result of step %q; then retry the one that asked for it", step)}
	case ss != nil && ss.Forward.Phase != machine.Ready && mayBeThere(ss):
		plan = append(plan, "it may have happened: look first. If it did, say so instead")
	}
	return plan
}
