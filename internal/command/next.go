package command

import (
	"fmt"
	"slices"
	"strings"

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
	commands := v.commands(a.db)
	words := v.summary.Next
	if len(commands) > 0 { // they say the rest, ready to be copied
		for _, rest := range []string{" To try it again ", " If it happened: ", " If it is undone: ", " To undo the other steps, ", " To let it go on: ", " If its source still wants it, "} {
			words, _, _ = strings.Cut(words, rest)
		}
	}
	a.paragraph("  ", words)
	for _, c := range commands {
		fmt.Fprintf(a.out, "\n  %s:\n    %s\n", c.when, visible(c.line))
	}
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

// command is a command line and when it is the right one.
type command struct{ when, line string }

// speaking is a command line about one work, by its verb. What it says about the work comes before
// --db, and the rest behind it.
type speaking func(verb, about, rest string) string

func (v *view) verb(db string) speaking {
	return func(verb, about, rest string) string {
		return program.Command(verb, v.head.ID.Work, " --saga "+quote(v.head.ID.Saga)+about+dbFlag(db)+rest)
	}
}

// commands are the choices a person has about a work: in review, paused, undone, or with steps that
// could not be told after a rebuild.
func (v *view) commands(db string) []command {
	verb := v.verb(db)
	ss, dir := v.state.Issue(v.spec)
	switch {
	case v.state.Status == saga.Compensated && !v.state.Withdrawn:
		return []command{{"If its source still wants it", verb("rerun", "", ` --reason "why it is wanted"`)}}
	case votesAt(ss) && v.state.Status == saga.Paused:
		return append([]command{{"To let it go on", verb("resume", "", ` --reason "why it may"`)}}, sayVote(verb)...)
	case votesAt(ss) && (v.state.Status == saga.Waiting || v.state.Status == saga.Review):
		return sayVote(verb)
	case v.asks(ss) && v.state.Status == saga.Paused:
		return append([]command{{"To let it go on", verb("resume", "", ` --reason "why it may"`)}}, sayAnswer(verb)...)
	case v.asks(ss) && (v.state.Status == saga.Waiting || v.state.Status == saga.Review):
		return sayAnswer(verb)
	case v.state.Status == saga.Paused && (ss == nil || phase(ss, dir) == machine.Done):
		return []command{{"To let it go on", verb("resume", "", ` --reason "why it may"`)}}
	case v.state.Status == saga.Paused:
		return append([]command{{"To let it go on", verb("resume", "", ` --reason "why it may"`)}}, v.choices(verb, ss, dir)...)
	case v.state.Status == saga.Review && v.state.Reason == saga.ReasonLate:
		return []command{{"When you have looked for what the answer is about: let it go on as it is", verb("resume", "", ` --reason "what you found and did"`)}}
	case v.state.Status == saga.Waiting:
		return []command{{"To end the wait", verb("wake", "", ` --reason "why it goes on now"`)}}
	case v.state.Status == saga.Review && v.state.Reason == saga.ReasonDeadline:
		return []command{{"To let it go on without a deadline", verb("resume", "", ` --reason "why it may"`)}}
	case v.state.Status != saga.Review:
		return v.unconfirmed(db)
	case ss == nil:
		return nil
	default:
		return v.choices(verb, ss, dir)
	}
}

// sayAnswer is what a person can say about an answer that is waited for.
func sayAnswer(verb speaking) []command {
	return []command{
		{"If you know the answer", verb("complete", "", ` --body JSON --reason "how you know"`)},
		{"If what it waits for has failed, and nothing of it stands", verb("fail", "", ` --reason "how you know"`)},
		{"To have it wait longer", verb("extend", "", ` --by 24h --reason "why"`)},
	}
}

// sayVote is what a person can do about a decision that is waited for.
func sayVote(verb speaking) []command {
	return []command{
		{"To look at what is to be decided, and to approve", verb("approve", "", "")},
		{"To look at it, and to reject it", verb("reject", "", "")},
		{"To give people longer", verb("extend", "", ` --by 24h --reason "why"`)},
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

// choices are the commands for the step at issue, the harmless first. A new key is offered only
// where nothing else is left.
func (v *view) choices(verb speaking, ss *machine.StepState, dir saga.Direction) []command {
	resolve := func(rest string) string { return verb("resolve", " --step "+quote(ss.Name), rest) }
	const why = ` --reason "how you know"`
	if v.state.Reason == saga.ReasonConflict {
		return []command{
			{"To undo the other steps, make this one good by hand, then", resolve(` --happened-without-id --reason "how you made it good"`)},
			{"To leave everything as it is", verb("resolve", "", ` --keep --reason "why it stays"`)},
		}
	}
	var all []command
	again := v.state.CanRetry(v.spec)
	if again {
		all = append(all, command{"To try it again, under the key it has", verb("retry", "", ` --reason "what you mended"`)})
	}
	if dir == saga.Undo {
		all = append(all, command{"If it is undone by now", resolve(" --happened-without-id" + why)})
		if !again {
			all = append(all, command{"If it is not: try the undo again, under a new key", resolve(" --did-not-happen" + why)})
		}
		return all
	}
	all = append(all,
		command{"If it happened", resolve(" --happened EXTERNAL_ID" + why)},
		command{"If it happened and has no id", resolve(" --happened-without-id" + why)})
	if !v.state.Turned {
		all = append(all, v.leaveOut(verb, ss))
	}
	switch {
	case ss.Gone:
		all = append(all, command{"If nothing stands: it is made again, under a new key", resolve(" --did-not-happen" + why)})
	case !again:
		all = append(all, command{"If it did not: " + undone(v), resolve(" --did-not-happen" + why)})
	}
	return all
}

// leaveOut is the command that goes on without the step at issue. Where steps come behind it, it
// says what they find of it.
func (v *view) leaveOut(verb speaking, ss *machine.StepState) command {
	const why = ` --reason "how you know"`
	if len(v.stepsBehind(ss.Name)) == 0 {
		return command{"If it did not and will not: go on without it", verb("skip", "", why)}
	}
	return command{"If it did not and will not: go on without it, and later steps find this result (or --external-id ID, or --no-result)", verb("skip", "", " --result JSON"+why)}
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
func (v *view) unconfirmed(db string) []command {
	if s := v.state.Status; s == saga.Compensating || s == saga.Compensated {
		return nil
	}
	var choices []command
	for _, step := range v.state.Unconfirmed() {
		resolve := func(rest string) string { return v.verb(db)("resolve", " --step "+quote(step), rest) }
		const why = ` --reason "how you know"`
		choices = append(choices,
			command{fmt.Sprintf("If %q happened", step), resolve(" --happened EXTERNAL_ID" + why)},
			command{fmt.Sprintf("If %q happened and has no id", step), resolve(" --happened-without-id" + why)},
			command{fmt.Sprintf("If %q did not happen: it is done, under a new key", step), resolve(" --did-not-happen" + why)})
	}
	return choices
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
