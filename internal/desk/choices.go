package desk

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
			example := examples[ask]
			if ask == machine.SayReason {
				example = words.why
			}
			o.Flags = append(o.Flags, Saying{Name: string(ask), Example: example})
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
