package desk

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Choice is what a person can do about an instance, and when that is right: a verb, and what it says.
type Choice struct {
	When  string   `json:"when"` // that is right
	Verb  string   `json:"verb"`
	Label string   `json:"label"` // what it says, in a few words; "": what its verb says
	Flags []Saying `json:"flags"`
	Then  []string `json:"then"` // what follows

	Button string `json:"-"` // what it does, in a few words, always
	Danger bool   `json:"-"` // it undoes, or may do twice
}

// Saying is one thing that a verb says, by its name, or an example of what only the person can say.
type Saying struct {
	Name    string `json:"name"`
	Value   string `json:"value"`   // "" of one that stands alone
	Example string `json:"example"` // of what only a person can say
}

// cases are the words of the machine's cases: when a choice is right, what its button says where that is not what its verb says, and what
// the person may say for a reason.
var cases = map[machine.Case]struct{ when, label, why string }{
	machine.CaseHolds:          {"To let it go on", "", "why it may"},
	machine.CaseStillWanted:    {"If its source still wants it", "", "why it is wanted"},
	machine.CaseAnswerKnown:    {"If you know the answer", "", "how you know"},
	machine.CaseAnswerFailed:   {"If what it waits for has failed, and nothing of it stands", "", "how you know"},
	machine.CaseWaitLonger:     {"To have it wait longer", "", "why"},
	machine.CaseApproves:       {"To look at what is to be decided, and to approve", "", ""},
	machine.CaseRejects:        {"To look at it, and to reject it", "", ""},
	machine.CaseDecideLonger:   {"To give people longer", "", "why"},
	machine.CaseLateSettled:    {"When you have looked for what the answer is about: let it go on as it is", "", "what you found and did"},
	machine.CaseWaitOver:       {"To end the wait", "", "why it goes on now"},
	machine.CaseNoDeadline:     {"To let it go on without a deadline", "", "why it may"},
	machine.CaseMadeGood:       {"To undo the other steps, make this one good by hand, then", "It is made good", "how you made it good"},
	machine.CaseLeft:           {"To leave everything as it is", "", "why it stays"},
	machine.CaseAskPeople:      {"To have people asked again", "", "what you mended, or what has changed"},
	machine.CaseLeftAtNo:       {"To leave it at their no: nothing behind it is done, and what stands stays", "Leave it at the no", "why it ends so"},
	machine.CaseSameKey:        {"To try it again, under the key it has", "", "what you mended"},
	machine.CaseNewKey:         {"To try it again, under a new key: everything under the old one is refused", "", "what you mended"},
	machine.CaseIsUndone:       {"If it is undone by now", "It is undone", "how you know"},
	machine.CaseStands:         {"If it cannot be undone: it stands, and the other steps are undone", "It stands", "why it stays"},
	machine.CaseNotUndone:      {"If it is not: try the undo again, under a new key", "It is not undone", "how you know"},
	machine.CaseHappened:       {"If it happened", "", "how you know"},
	machine.CaseHappenedNoID:   {"If it happened and has no id", "", "how you know"},
	machine.CaseNotNeeded:      {"If it did not, and is not needed: go on without it", "", "how you know"},
	machine.CaseNotNeededNext:  {"If it did not, and is not needed: go on without it, and later steps find this result (or --external-id ID, or --no-result)", "", "how you know"},
	machine.CaseGone:           {"If nothing stands: it is made again, under a new key", "", "how you know"},
	machine.CaseDidNot:         {"If it did not: %s", "", "how you know"},
	machine.CaseDidNotBack:     {"If it did not: there is nothing to undo, and the way back goes on", "", "how you know"},
	machine.CaseDidNotNeeded:   {"If it did not, and is needed: it is done again, under a new key", "", "how you know"},
	machine.CaseUnconfirmed:    {"If %q happened", "", "how you know"},
	machine.CaseUnconfirmedID:  {"If %q happened and has no id", "", "how you know"},
	machine.CaseUnconfirmedNot: {"If %q did not happen: it is done, under a new key", "", "how you know"},
	machine.CaseWait:           {"To hold it where it is", "", "why it has to wait"},
	machine.CaseUndo:           {"If it should not stand: undo what it has done, newest step first", "", "why it should not stand"},
	machine.CaseTryNow:         {"To try it again at once", "", "what you mended"},
	machine.CaseRunAgain:       {"To run it again: what it made is made again, or changed, under new keys", "", "why it is wanted"},
	machine.CaseResultOf:       {"To say what later steps find as the result of %q, which was skipped", "Give its result", "how you know"},
	machine.CaseResultNotKept:  {"To give the result of %q, which is done: it was too large to be kept, or no JSON", "Give its result", "how you know"},
	machine.CaseGiveUp:         {"To give it up, and to undo what it has done", "", "why it is given up"},
}

// buttons are the words of resolutions; those of other acts are with their kinds.
var buttons = map[machine.Saying]string{
	machine.SayHappened: "It happened", machine.SayHappenedNoID: "It happened, without an id", machine.SayDidNotHappen: "It did not happen", machine.SayKeep: "Leave it as it is",
}

// examples are what is typed where only a person can say it.
var examples = map[machine.Saying]string{machine.SayHappened: "EXTERNAL_ID", machine.SayBody: "JSON", machine.SayResult: "JSON", machine.SayBy: "24h"}

// offers are choices in words.
func (v *view) offers(all []machine.Choice) []Choice {
	offers := []Choice{} // never null
	for i := range all {
		c := &all[i]
		words := cases[c.Case]
		o := Choice{When: words.when, Verb: c.Verb, Label: words.label, Flags: []Saying{}, Then: v.follows(c), Danger: c.Verb == machine.VerbCancel || c.Verb == machine.VerbUndo || c.Says == machine.SayDidNotHappen}
		switch {
		case c.Newer != nil:
			o.When = fmt.Sprintf(words.when, v.afterwards())
		case strings.Contains(words.when, "%q"):
			o.When = fmt.Sprintf(words.when, c.Step)
		}
		o.Button = cmp.Or(o.Label, buttons[c.Says], KindOf(c.Verb).Button)
		if c.Step != "" {
			o.Flags = append(o.Flags, Saying{Name: string(machine.SayStep), Value: c.Step})
		}
		if c.Says != "" && !slices.Contains(c.Asks, c.Says) {
			o.Flags = append(o.Flags, Saying{Name: string(c.Says)})
		}
		for _, ask := range c.Asks {
			o.Flags = append(o.Flags, Saying{Name: string(ask), Example: Either(ask == machine.SayReason, words.why, examples[ask])})
		}
		offers = append(offers, o)
	}
	return offers
}

// Line is the command line of a choice. What it says about the instance comes before --db, and the rest behind it.
func (d *Desk) Line(c *Choice, id saga.ID) string {
	about, rest := "", ""
	for _, f := range c.Flags {
		switch {
		case f.Name == "step":
			about += " --step " + quote(f.Value)
		case f.Name == "reason":
			rest += fmt.Sprintf(" --reason %q", f.Example)
		case f.Example != "":
			rest += " --" + f.Name + " " + f.Example
		default:
			rest += " --" + f.Name
		}
	}
	return program.Command(c.Verb, id.Work, " --saga "+quote(id.Saga)+about+d.flag+rest)
}

// follows says what follows from a choice.
func (v *view) follows(c *machine.Choice) []string {
	switch c.Verb {
	case machine.VerbApprove, machine.VerbReject: // what is decided is looked at first
		return nil
	case machine.VerbSkip:
		return v.afterSkip(c.Step)
	case machine.VerbResolve:
		return (&Resolve{Step: c.Step, Keep: c.Says == machine.SayKeep, DidNotHappen: c.Says == machine.SayDidNotHappen}).after(v)
	}
	return KindOf(c.Verb).New().after(v)
}

// together are the verbs that say the same of several instances.
var together = []string{machine.VerbRetry, machine.VerbResume, machine.VerbWake, machine.VerbSkip, machine.VerbResolve}

// Together reports whether it may be done to several instances at once: all it needs besides is a reason.
func (c *Choice) Together() bool {
	return !c.Danger && slices.Contains(together, c.Verb) && !slices.ContainsFunc(c.Flags, func(f Saying) bool { return f.Example != "" && f.Name != "reason" })
}

// What follows from what people do, in words.

// afterCancel lists what a cancel would undo, in the order in which it would.
func (v *view) afterCancel() []string {
	if v.spec == nil {
		return v.afterUndo("")
	}
	if v.state.Compensating {
		return []string{"nothing changes: it is being undone already"}
	}
	for i := range v.spec.Steps {
		spec := &v.spec.Steps[i]
		if step := v.state.Step(spec.Name); spec.Pivot && step != nil && mayBeThere(step) {
			return []string{fmt.Sprintf("the coordinator will not follow if the request under way is that of the pivot, step %q (%s)", spec.Name, step.Forward.Phase)}
		}
	}
	return v.afterUndo("")
}

// afterUndo lists what is undone, in the order in which it is, from a step on; "": all of it.
func (v *view) afterUndo(from string) []string {
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
		if i < v.spec.Index(from) {
			plan = append(plan, fmt.Sprintf("leave %s as it is: it comes before %s", spec.Name+bracketed(step), from))
			continue
		}
		name := spec.Name + bracketed(step)
		switch {
		case spec.Undo:
			plan = append(plan, "undo "+name)
		case spec.NoUndoReason != "":
			plan = append(plan, fmt.Sprintf("leave %s as it is: %s", name, spec.NoUndoReason))
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
		return !f.OutcomeUnknownUntil.IsZero() || s.Unfinished != nil
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
		stays := slices.Contains(kept, s.Name)
		plan = append(plan, v.inRerun(s, stays)+When(s.Conditional && !stays, ", if its condition says so"))
	}
	return plan
}

// inRerun says what a run does with a step, which it may keep as it is.
func (v *view) inRerun(spec *program.StepSpec, kept bool) string {
	ss, name := v.state.Step(spec.Name), spec.Name
	there := ss != nil && mayBeThere(ss)
	if there {
		name += bracketed(ss)
	}
	switch {
	case kept:
		return fmt.Sprintf("leave %s as it is: it %s", name, Either(spec.Waits() || spec.OncePerInstance(), "is done once", "cannot be told whether it was done"))
	case spec.Approval != nil:
		return "ask people at " + spec.Name + " again, if it needs a decision: votes are for one run"
	case spec.Asks != nil:
		return spec.Name + ": people are asked by it, if they are"
	case spec.WaitsForAnswer() && ss != nil && spec.Once && spec.Answer.Callback == "" && ss.Forward.Phase == machine.Done && !v.state.Compensating:
		return fmt.Sprintf("leave %s as it is, if it waits for the same message: it is answered", name)
	case spec.WaitsForAnswer() && ss != nil:
		return fmt.Sprintf("wait at %s for another answer", name)
	case spec.Waits():
		return "wait at " + name
	case spec.OncePerInstance() && there:
		return fmt.Sprintf("%s may have happened: its destination or a person is asked first", name)
	case there && spec.LaterRuns == program.LaterUpdate:
		return fmt.Sprintf("change %s, under a new key", name)
	case there && spec.LaterRuns == program.LaterAnother:
		return fmt.Sprintf("do %s once more, under a new key: what is there stays beside it", name)
	case there:
		return fmt.Sprintf("do %s again, under a new key: it is idempotent", name)
	case ss != nil && ss.Forward.Phase == machine.Skipped:
		return fmt.Sprintf("do %s, which was skipped, under a new key", name)
	}
	return fmt.Sprintf("do %s, under a new key", name)
}

// doneTwice is what follows from a mistake about a step that counts as not done.
const doneTwice = "if it had happened after all, it will have happened twice"

// afterResolution says what follows from a resolution on a step.
func (v *view) afterResolution(step string, yes bool) []string {
	_, dir := v.state.Issue(v.spec)
	ss, of := v.state.IssueOf(v.spec, step)
	unconfirmed := ss != nil && ss.Unconfirmed && of == saga.Forward
	if done := v.state.Step(step); yes && done != nil && done.OutputDropped && done.Forward.Phase == machine.Done && !v.state.Compensating {
		return []string{fmt.Sprintf("later steps find this result of step %q; then retry the one that asked for it", step)}
	}
	switch {
	case unconfirmed && yes:
		return []string{fmt.Sprintf("step %q counts as confirmed, and is undone if the work is on its way back", step)}
	case unconfirmed && v.state.Compensating:
		return []string{fmt.Sprintf("there is nothing to undo of step %q", step)}
	case unconfirmed:
		return []string{fmt.Sprintf("step %q is done, under a new key; a work that was completed goes on for that", step), doneTwice}
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
	case v.state.Compensating && yes:
		return []string{fmt.Sprintf("step %q counts as done, and is undone if its definition says how; the way back goes on", step)}
	case v.state.Compensating:
		return []string{fmt.Sprintf("there is nothing to undo of step %q, and the way back goes on", step)}
	case v.afterwards() != "":
		return []string{fmt.Sprintf("step %q counts as %s, and %s", step, Either(yes, "done", "not done"), v.afterwards())}
	case yes:
		return []string{fmt.Sprintf("step %q counts as done; %s", step, v.behind(step)), "if it had not happened after all, it never will: it is not sent again"}
	default:
		return []string{fmt.Sprintf("step %q is done again, under a new key, once its last attempt has settled", step), doneTwice}
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
	maybe := e.Phase == machine.InDoubt || !e.OutcomeUnknownUntil.IsZero()
	switch {
	case dir == saga.Forward && ss.Rejected():
		return []string{fmt.Sprintf("people are asked again at step %q, and votes so far count no more", ss.Name)}
	case dir == saga.Forward && e.Key == "":
		return []string{fmt.Sprintf("the program is asked again about step %q", ss.Name)}
	case dir == saga.Forward && e.Phase == machine.Refused && e.ErrorClass == saga.RefusedKey:
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
	if ss, dir := v.state.Issue(v.spec); ss != nil && v.state.Compensating && ss.CanStand(dir) {
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
	if ss := First(v.state.Steps, func(ss *machine.StepState) bool { return ss.Forward.Phase == machine.Waiting }); ss != nil {
		return []string{fmt.Sprintf("step %q waits no longer, and not until %s; what comes next is sent", ss.Name, ss.WaitsUntil.UTC().Format(time.RFC3339))}
	}
	return []string{"it begins now, and not at " + v.state.StartsAt.UTC().Format(time.RFC3339)}
}

// afterPause says what a pause holds.
func (v *view) afterPause() []string {
	at := func(ss *machine.StepState) bool {
		return ss.Forward.Phase == machine.Started || ss.Undo.Phase == machine.Started
	}
	if ss := First(v.state.Steps, at); ss != nil {
		return []string{fmt.Sprintf("the attempt of step %q that is under way is answered; then nothing is sent and nothing undone until it is resumed or decided about", ss.Name)}
	}
	return []string{"nothing is sent and nothing undone until it is resumed or decided about"}
}

// afterResume says where a paused work goes on.
func (v *view) afterResume() []string {
	switch then := v.afterwards(); {
	case v.state.Compensating:
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
		return []string{fmt.Sprintf("step %q waits until %s", ss.Name, ss.WaitsUntil.UTC().Format(time.RFC3339))}
	}
	return nil
}

// afterwards says what a resolution on a step makes way for: what the source object has become. ""
// when nothing waits.
func (v *view) afterwards() string {
	switch n := v.state.PendingRevision; {
	case n == nil:
		return ""
	case n.Withdrawn:
		return "what stands is undone, because the source cancelled it"
	default:
		return fmt.Sprintf("revision %s begins", n.Revision)
	}
}
