package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What follows from what people do, in words.

// afterCancel lists what a cancel would undo, in the order in which it would.
func (v *view) afterCancel() []string {
	if v.spec == nil {
		return v.afterUndo()
	}
	if v.state.Turned {
		return []string{"nothing changes: it is being undone already"}
	}
	for i := range v.spec.Steps {
		spec := &v.spec.Steps[i]
		if step := v.state.Step(spec.Name); spec.Pivot && step != nil && mayBeThere(step) {
			return []string{fmt.Sprintf("the coordinator will not follow if the request under way is that of the pivot, step %q (%s)", spec.Name, step.Forward.Phase)}
		}
	}
	return v.afterUndo()
}

// afterUndo lists what is undone, in the order in which it is.
func (v *view) afterUndo() []string {
	if v.spec == nil {
		return []string{"what it has done is undone, as its definition says; this ledger does not know the definition"}
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

// isRerun reports whether a signal asks for a run of the version that the work has.
func isRerun(s machine.Signal) bool {
	return s.Kind == machine.SignalRevise && strings.HasPrefix(s.Key, "rerun:")
}

// rerunAlready is the signal that answers a request that came before: the one of that request, or the first that began another run
// behind the one that it names.
func rerunAlready(signals []machine.Signal, request string) int {
	if i := slices.IndexFunc(signals, func(s machine.Signal) bool { return s.Key == "rerun:"+request }); i >= 0 {
		return i
	}
	run := strings.TrimPrefix(request, coordinator.OfRun(""))
	return slices.IndexFunc(signals, func(s machine.Signal) bool {
		return s.Kind == machine.SignalRevise && saga.CompareRevisions(s.Revision, run) > 0
	})
}

// afterRerun lists what a run does with each step.
func (v *view) afterRerun() []string {
	if v.spec == nil {
		return []string{"every step is done again under a new key, as its definition says; this ledger does not know the definition"}
	}
	var plan []string
	kept := machine.Kept(v.spec, v.state)
	for i := range v.spec.Steps {
		s := &v.spec.Steps[i]
		plan = append(plan, v.inRerun(s, slices.Contains(kept, s.Name)))
		if s.When && !slices.Contains(kept, s.Name) {
			plan[i] += ", if its condition says so"
		}
	}
	return plan
}

// inRerun says what a run does with a step, which it may keep as it is.
func (v *view) inRerun(spec *program.StepSpec, kept bool) string {
	ss, name := v.state.Step(spec.Name), spec.Name
	there := ss != nil && mayBeThere(ss)
	if there && ss.ExternalID != "" {
		name += " (" + ss.ExternalID + ")"
	}
	switch {
	case kept && (spec.Waits() || spec.OncePerInstance()):
		return fmt.Sprintf("leave %s as it is: it is done once", name)
	case kept:
		return fmt.Sprintf("leave %s as it is: it cannot be told whether it was done", name)
	case spec.Approval != nil:
		return "ask people at " + spec.Name + " again, if it needs a decision: votes are for one run"
	case spec.Asks != nil:
		return spec.Name + ": people are asked by it, if they are"
	case spec.WaitsForAnswer() && ss != nil && spec.Once && spec.Answer.Callback == "" && ss.Forward.Phase == machine.Done && !v.state.Turned:
		return fmt.Sprintf("leave %s as it is, if it waits for the same message: it is answered", name)
	case spec.WaitsForAnswer() && ss != nil:
		return fmt.Sprintf("wait at %s for another answer", name)
	case spec.Waits():
		return "wait at " + name
	case spec.OncePerInstance() && there:
		return fmt.Sprintf("%s may have happened: its destination or a person is asked first", name)
	case there && spec.Later == program.LaterUpdate:
		return fmt.Sprintf("change %s, under a new key", name)
	case there && spec.Later == program.LaterAnother:
		return fmt.Sprintf("do %s once more, under a new key: what is there stays beside it", name)
	case there:
		return fmt.Sprintf("do %s again, under a new key: it is idempotent", name)
	case ss != nil && ss.Forward.Phase == machine.Skipped:
		return fmt.Sprintf("do %s, which was skipped, under a new key", name)
	}
	return fmt.Sprintf("do %s, under a new key", name)
}

// afterResolution says what follows from a resolution on a step.
func (v *view) afterResolution(step string, yes bool) []string {
	_, dir := v.state.Issue(v.spec)
	ss, of := v.state.IssueOf(v.spec, step)
	unconfirmed := ss != nil && ss.Unconfirmed && of == saga.Forward
	if done := v.state.Step(step); yes && done != nil && done.Dropped && done.Forward.Phase == machine.Done && !v.state.Turned {
		return []string{fmt.Sprintf("later steps find this result of step %q; then retry the one that asked for it", step)}
	}
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
	if next := machine.StepsBehind(v.spec, step); len(next) > 0 {
		return fmt.Sprintf("the work goes on with step %q", next[0])
	}
	return "it is the last one, so the work is completed"
}

// afterKeep says what follows from leaving an instance as it stands.
var afterKeep = []string{"every step stays as it is, and the work counts as completed"}

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
	case maybe && dir == saga.Forward && v.summary.Steps[ss.Name].Repeat == program.RepeatFind:
		return []string{fmt.Sprintf("%s may have happened: its destination is asked once every attempt has settled, and it is sent again only if it is not there", name)}
	case maybe:
		return []string{fmt.Sprintf("%s may have happened: it is sent again under the key that its destination knows it by (%s)", name, e.Key)}
	default:
		return []string{fmt.Sprintf("%s is tried again as soon as its destination takes it, under the key it has (%s)", name, e.Key)}
	}
}

// about is the step that a skip means: the one at issue where none is named.
func (v *view) about(step string) string {
	if step != "" {
		return step
	}
	if ss, dir := v.state.Issue(v.spec); ss != nil && dir == saga.Forward {
		return ss.Name
	}
	return ""
}

// afterSkip says what follows from leaving a step out; "": the one at issue.
func (v *view) afterSkip(step string) []string {
	if ss, dir := v.state.Issue(v.spec); ss != nil && v.state.Turned && ss.CanStand(dir) {
		return []string{fmt.Sprintf("what step %q made%s stands, and the end says so; the way back goes on with the other steps", ss.Name, bracketed(ss))}
	}
	step = v.about(step)
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

// afterWake says what a work does that does not wait any longer.
func (v *view) afterWake() []string {
	if ss := first(v.state.Steps, func(ss *machine.StepState) bool { return ss.Forward.Phase == machine.Waiting }); ss != nil {
		return []string{fmt.Sprintf("step %q waits no longer, and not until %s; what comes next is sent", ss.Name, ss.Until.UTC().Format(time.RFC3339))}
	}
	return []string{"it begins now, and not at " + v.state.NotBefore.UTC().Format(time.RFC3339)}
}

// afterPause says what a pause holds.
func (v *view) afterPause() []string {
	at := func(ss *machine.StepState) bool {
		return ss.Forward.Phase == machine.Started || ss.Undo.Phase == machine.Started
	}
	if ss := first(v.state.Steps, at); ss != nil {
		return []string{fmt.Sprintf("the attempt of step %q that is under way is answered; then nothing is sent and nothing undone until it is resumed or decided about", ss.Name)}
	}
	return []string{"nothing is sent and nothing undone until it is resumed or decided about"}
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

// afterAnswer says what an answer by hand is about.
func (v *view) afterAnswer() []string {
	if ss := v.state.Awaited(); ss != nil {
		return []string{fmt.Sprintf("step %q waits until %s", ss.Name, ss.Until.UTC().Format(time.RFC3339))}
	}
	return nil
}

// afterwards says what a resolution on a step makes way for: what the source object has become. ""
// when nothing waits.
func (v *view) afterwards() string {
	switch n := v.state.Newer; {
	case n == nil:
		return ""
	case n.Gone:
		return "what stands is undone, because the source cancelled it"
	default:
		return fmt.Sprintf("revision %s begins", n.Revision)
	}
}
