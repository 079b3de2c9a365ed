package command

import (
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// printNext writes what is safe to do next: the ledger's words, and in review the commands, each on
// a line of its own so that it can be copied.
func (a *app) printNext(v *view) {
	switch {
	case v.decided() && v.lacking != "":
		a.paragraph("  ", fmt.Sprintf("What was posted above stays posted until a process that registers %s reads it, and none runs now. Start one, and look again.", v.lacking))
		return
	case v.decided():
		a.paragraph("  ", "What was posted above is applied as soon as a coordinator reads it. See that one runs, and look again.")
		return
	}
	choices := v.choices()
	a.paragraph("  ", v.advice(choices))
	for i := range choices {
		fmt.Fprintf(a.out, "\n  %s:\n    %s\n", choices[i].When, visible(choices[i].line(v.head.ID, a.db)))
	}
}

// advice is what is safe to do next without what the choices say, which are ready to be copied.
func (v *view) advice(choices []choice) string {
	if len(choices) == 0 || v.waits != "" {
		return v.summary.Next
	}
	return machine.Advice(v.spec, v.state)
}

// decided reports whether a person has spoken already and only has not been heard.
func (v *view) decided() bool {
	ended := v.state.Status.Terminal()
	return slices.ContainsFunc(v.pending, func(s machine.Signal) bool {
		switch s.Kind {
		case machine.SignalResolve:
			return true
		case machine.SignalCancel, machine.SignalKeep, machine.SignalPause, machine.SignalResume, machine.SignalRetry, machine.SignalSkip:
			return !ended
		default:
			return isRerun(s)
		}
	})
}

// choice is what a person can do about a work, and when that is right: a verb, and what it says.
type choice struct {
	When  string       `json:"when"`
	Verb  string       `json:"verb"`
	Label string       `json:"label"` // what it says, in a few words; "": what its verb says
	Flags []saidOfVerb `json:"flags"`
	Then  []string     `json:"then"` // what follows
}

// saidOfVerb is one flag of a verb: what it says, or an example of what only the person can say.
type saidOfVerb struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // "" of a flag that stands alone
	Example string `json:"example"`
}

func do(when, verb string, flags ...saidOfVerb) choice {
	return choice{When: when, Verb: verb, Flags: append([]saidOfVerb{}, flags...)}
}

func (c choice) as(label string) choice { c.Label = label; return c }

func set(name, value string) saidOfVerb   { return saidOfVerb{Name: name, Value: value} }
func ask(name, example string) saidOfVerb { return saidOfVerb{Name: name, Example: example} }
func why(example string) saidOfVerb       { return ask("reason", example) }

// line is the command line of c about a work. What it says about the work comes before --db, and
// the rest behind it.
func (c *choice) line(id saga.ID, db string) string {
	about, rest := "", ""
	for _, f := range c.Flags {
		switch {
		case f.Name == "step":
			about += " --step " + quote(f.Value)
		case f.Name == "reason":
			rest += fmt.Sprintf(" --reason %q", f.Example)
		case f.Example != "":
			rest += " --" + f.Name + " " + f.Example
		case f.Value != "":
			rest += " --" + f.Name + " " + quote(f.Value)
		default:
			rest += " --" + f.Name
		}
	}
	return program.Command(c.Verb, id.Work, " --saga "+quote(id.Saga)+about+dbFlag(db)+rest)
}

// choices are what a person can do about a work: in review, paused, undone, or with steps that could
// not be told after a rebuild.
func (v *view) choices() []choice {
	resume := do("To let it go on", "resume", why("why it may"))
	ss, dir := v.state.Issue(v.spec)
	switch {
	case v.state.Status == saga.Compensated && !v.state.Withdrawn:
		return []choice{do("If its source still wants it", "rerun", why("why it is wanted"))}
	case votesAt(ss) && v.state.Status == saga.Paused:
		return append([]choice{resume}, sayVote()...)
	case votesAt(ss) && (v.state.Status == saga.Waiting || v.state.Status == saga.Review):
		return sayVote()
	case v.asks(ss) && v.state.Status == saga.Paused:
		return append([]choice{resume}, sayAnswer()...)
	case v.asks(ss) && (v.state.Status == saga.Waiting || v.state.Status == saga.Review):
		return sayAnswer()
	case v.state.Status == saga.Paused && (ss == nil || phase(ss, dir) == machine.Done || phase(ss, dir) == machine.Waiting):
		return []choice{resume}
	case v.state.Status == saga.Paused:
		return append([]choice{resume}, v.atIssue(ss, dir)...)
	case v.state.Status == saga.Review && v.state.Reason == saga.ReasonLate:
		return []choice{do("When you have looked for what the answer is about: let it go on as it is", "resume", why("what you found and did"))}
	case v.state.Status == saga.Review && v.state.Reason == saga.ReasonHung: // whatever is said is heard when it returns
		return nil
	case v.state.Status == saga.Waiting:
		return []choice{do("To end the wait", "wake", why("why it goes on now"))}
	case v.state.Status == saga.Review && v.state.Reason == saga.ReasonDeadline:
		return []choice{do("To let it go on without a deadline", "resume", why("why it may"))}
	case v.state.Status != saga.Review:
		return v.unconfirmed()
	case ss == nil:
		return nil
	default:
		return v.atIssue(ss, dir)
	}
}

// also are choices that a work takes besides, and that are no answer to what it waits for.
func (v *view) also() []choice {
	var all []choice
	status := v.state.Status
	if status.Live() {
		all = append(all, do("To hold it where it is", "pause", why("why it has to wait")))
	}
	undone := v.state.Turned && v.state.Newer == nil
	if !status.Terminal() && status != saga.Compensating && !undone && !v.state.PastPivot(v.spec) {
		all = append(all, do("To give it up, and to undo what it has done", "cancel", why("why it is given up")))
	}
	return all
}

// told completes choices by what follows from each.
func (v *view) told(all []choice) []choice {
	for i := range all {
		c := &all[i]
		switch c.Verb {
		case "retry":
			c.Then = v.afterRetry()
		case "skip":
			c.Then = new(leaving).after(v)
		case "resume":
			c.Then = v.afterResume()
		case "wake":
			c.Then = v.afterWake()
		case "rerun":
			c.Then = v.afterRerun()
		case "pause":
			c.Then = v.afterPause()
		case "cancel":
			c.Then = v.afterCancel()
		case "complete", "fail", "extend":
			c.Then = v.afterAnswer()
		case "resolve":
			c.Then = v.afterChoice(c)
		}
	}
	return append([]choice{}, all...) // never null
}

// afterChoice says what follows from a resolution that is offered.
func (v *view) afterChoice(c *choice) []string {
	step, happened := "", true
	for _, f := range c.Flags {
		switch f.Name {
		case "keep":
			return afterKeep(v)
		case "step":
			step = f.Value
		case "did-not-happen":
			happened = false
		}
	}
	return v.afterResolution(step, happened)
}

// sayAnswer is what a person can say about an answer that is waited for.
func sayAnswer() []choice {
	return []choice{
		do("If you know the answer", "complete", ask("body", "JSON"), why("how you know")),
		do("If what it waits for has failed, and nothing of it stands", "fail", why("how you know")),
		do("To have it wait longer", "extend", ask("by", "24h"), why("why")),
	}
}

// sayVote is what a person can do about a decision that is waited for.
func sayVote() []choice {
	return []choice{
		do("To look at what is to be decided, and to approve", "approve"),
		do("To look at it, and to reject it", "reject"),
		do("To give people longer", "extend", ask("by", "24h"), why("why")),
	}
}

// votesAt reports whether people decide at the step.
func votesAt(ss *machine.StepState) bool {
	return ss != nil && ss.Ballot() != nil && ss.Forward.Phase == machine.Waiting
}

// asks reports whether the step waits for an answer.
func (*view) asks(ss *machine.StepState) bool {
	return ss != nil && ss.Answering().Asks != nil && ss.Forward.Phase == machine.Waiting
}

// atIssue are the choices about the step at issue, the harmless first. A new key is offered only
// where nothing else is left.
func (v *view) atIssue(ss *machine.StepState, dir saga.Direction) []choice {
	step, know, noID, didNot := set("step", ss.Name), why("how you know"), set("happened-without-id", ""), set("did-not-happen", "")
	if v.state.Reason == saga.ReasonConflict {
		return []choice{
			do("To undo the other steps, make this one good by hand, then", "resolve", step, noID, why("how you made it good")).as("It is made good"),
			do("To leave everything as it is", "resolve", set("keep", ""), why("why it stays")),
		}
	}
	var all []choice
	final := dir == saga.Undo && ss.Undo.Phase == machine.Refused && ss.Undo.Class == saga.NotUndoable
	again := !final && v.state.CanRetry(v.spec, v.at)
	if left := v.state.NotLeft(v.spec); dir == saga.Forward && (ss.Rejected() || left != "") { // people decide
		if all = append(all, do("To have people asked again", "retry", why("what you mended, or what has changed"))); left == "" {
			all = append(all, do("To leave it at their no: nothing behind it is done, and what stands stays", "skip", why("why it ends so")).as("Leave it at the no"))
		}
		return all
	}
	if under := "the key it has"; again {
		if phase(ss, dir) == machine.Refused && ss.Forward.Class == saga.RefusedKey && dir == saga.Forward {
			under = "a new key: everything under the old one is refused"
		}
		all = append(all, do("To try it again, under "+under, "retry", why("what you mended")))
	}
	if dir == saga.Undo {
		all = append(all, do("If it is undone by now", "resolve", step, noID, know).as("It is undone"))
		if ss.CanStand(dir) {
			all = append(all, do("If it cannot be undone: it stands, and the other steps are undone", "skip", why("why it stays")).as("It stands"))
		}
		if !again && !final {
			all = append(all, do("If it is not: try the undo again, under a new key", "resolve", step, didNot, know).as("It is not undone"))
		}
		return all
	}
	happened := []choice{
		do("If it happened", "resolve", step, ask("happened", "EXTERNAL_ID"), know),
		do("If it happened and has no id", "resolve", step, noID, know),
	}
	switch {
	case v.state.Turned:
		all = append(all, happened...)
	case ss.Forward.Phase == machine.Refused: // its destination said that it did not
		all = append(append(all, v.leaveOut(ss)), happened...)
	default:
		all = append(append(all, happened...), v.leaveOut(ss))
	}
	switch {
	case ss.Gone:
		all = append(all, do("If nothing stands: it is made again, under a new key", "resolve", step, didNot, know))
	case !again:
		when := "If it did not: "
		if !v.state.Turned && v.afterwards() == "" {
			when = "If it did not, and is needed: "
		}
		all = append(all, do(when+undone(v), "resolve", step, didNot, know))
	}
	return all
}

// leaveOut is to go on without the step at issue. Where steps come behind it, it says what they find
// of it.
func (v *view) leaveOut(ss *machine.StepState) choice {
	know := why("how you know")
	if len(v.stepsBehind(ss.Name)) == 0 {
		return do("If it did not, and is not needed: go on without it", "skip", know)
	}
	return do("If it did not, and is not needed: go on without it, and later steps find this result (or --external-id ID, or --no-result)",
		"skip", ask("result", "JSON"), know)
}

// phase is where one direction of a step stands.
func phase(ss *machine.StepState, dir saga.Direction) machine.Phase {
	if dir == saga.Undo {
		return ss.Undo.Phase
	}
	return ss.Forward.Phase
}

// unconfirmed are the choices a person has about steps that were adopted as done because it could
// not be told.
func (v *view) unconfirmed() []choice {
	if s := v.state.Status; s == saga.Compensating || s == saga.Compensated {
		return nil
	}
	var all []choice
	for _, step := range v.state.Unconfirmed() {
		of, know := set("step", step), why("how you know")
		all = append(all,
			do(fmt.Sprintf("If %q happened", step), "resolve", of, ask("happened", "EXTERNAL_ID"), know),
			do(fmt.Sprintf("If %q happened and has no id", step), "resolve", of, set("happened-without-id", ""), know),
			do(fmt.Sprintf("If %q did not happen: it is done, under a new key", step), "resolve", of, set("did-not-happen", ""), know))
	}
	return all
}

// undone says what follows from "it did not happen".
func undone(v *view) string {
	if v.state.Turned {
		return "there is nothing to undo, and the way back goes on"
	}
	if then := v.afterwards(); then != "" {
		return then
	}
	return "it is done again, under a new key"
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

// dbFlag repeats a --db that was given, unless there is a password in it.
func dbFlag(db string) string {
	if ad, err := parseAddress(db); err != nil || ad.Secret() {
		return ""
	}
	return " --db " + quote(db)
}
