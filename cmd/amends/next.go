package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/saga"
)

// printNext writes what is safe to do next: the ledger's words, and in review the commands, each on a line of
// its own so that it can be copied.
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
		words, _, _ = strings.Cut(words, " If it happened: ")
		words, _, _ = strings.Cut(words, " To undo the other steps, ")
	}
	a.paragraph("  ", words)
	for _, c := range commands {
		fmt.Fprintf(a.out, "\n  %s:\n    %s\n", c.when, visible(c.line))
	}
}

// decided reports whether a person has spoken already and only has not been heard.
func (v *view) decided() bool {
	ended := v.state.Status.Terminal()
	return slices.ContainsFunc(v.pending, func(s saga.Signal) bool {
		return s.Kind == saga.SignalResolve || !ended && (s.Kind == saga.SignalCancel || s.Kind == saga.SignalKeep)
	})
}

// command is a command line and when it is the right one.
type command struct{ when, line string }

// commands are the choices a person has about a work in review, or about steps that could not be told after a rebuild.
func (v *view) commands(db string) []command {
	if v.state.Status != saga.Review {
		return v.unconfirmed(db)
	}
	ss, dir := v.state.Issue(v.spec)
	if ss == nil {
		return nil
	}
	work := fmt.Sprintf("amends resolve %s --saga %s", quote(v.head.ID.Work), quote(v.head.ID.Saga))
	base := fmt.Sprintf("%s --step %s%s", work, quote(ss.Name), dbFlag(db))
	const why = ` --reason "how you know"`
	if v.state.Reason == saga.ReasonConflict {
		return []command{
			{"To undo the other steps, make this one good by hand, then", base + ` --happened-without-id --reason "how you made it good"`},
			{"To leave everything as it is", work + dbFlag(db) + ` --keep --reason "why it stays"`},
		}
	}
	if dir == saga.Undo {
		return []command{
			{"If it is undone, by whomever", base + " --happened-without-id" + why},
			{"If it is not: try the undo again, under a new key", base + " --did-not-happen" + why},
		}
	}
	return []command{
		{"If it happened", base + " --happened EXTERNAL_ID" + why},
		{"If it happened and has no id", base + " --happened-without-id" + why},
		{"If it did not: " + undone(v), base + " --did-not-happen" + why},
	}
}

// unconfirmed are the choices a person has about steps that were adopted as done because it could not be told.
func (v *view) unconfirmed(db string) []command {
	if s := v.state.Status; s == saga.Compensating || s == saga.Compensated {
		return nil
	}
	var choices []command
	for _, step := range v.state.Unconfirmed() {
		base := fmt.Sprintf("amends resolve %s --saga %s --step %s%s", quote(v.head.ID.Work), quote(v.head.ID.Saga), quote(step), dbFlag(db))
		const why = ` --reason "how you know"`
		choices = append(choices,
			command{fmt.Sprintf("If %q happened", step), base + " --happened EXTERNAL_ID" + why},
			command{fmt.Sprintf("If %q happened and has no id", step), base + " --happened-without-id" + why},
			command{fmt.Sprintf("If %q did not happen: it is done, under a new key", step), base + " --did-not-happen" + why})
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

// afterwards says what a verdict on a step makes way for: what the source object has become. "" when nothing waits.
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
	if ad, err := parseAddress(db); err != nil || ad.secret() {
		return ""
	}
	return " --db " + quote(db)
}
