package saga

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/amends-dev/amends/internal/program"
)

// What an instance waits for that people decide.

// Approve is put among the steps of a definition: the instance waits until people have approved of what they are shown:
// the input, or the part of it that [Identity] says, and the results of the steps before. One who rejects decides, and
// so does the time when it is over: both are as if a step were refused, and what was done is undone.
//
//	saga.Approve[Order]("approved").About(p.about).By("finance").NotStarter().When(p.large).Within(72*time.Hour).
//		Ask(saga.Do("ask-finance", p.ask).Keyed(24*time.Hour).NoID().NoUndo("the page says that it is over")).
//		Remind(4*time.Hour).Escalate(24*time.Hour, "cfo"),
//	saga.Do("charge", p.charge)…
//
// A vote says the digest of what was shown, and counts for nothing else: when a newer version of the source object
// changes that, earlier votes are void and people are asked again. A version that changes none of it keeps them, but
// for those of the person who brings it. Another run, such as a rerun, asks everybody again. The
// step's result is the []Vote that decided it; empty where no decision was needed.
//
// People vote by coordinator.Operator.Vote: on the pages of package approval, by amends approve and reject, or from a
// program that knows who they are.
func Approve[In any](name string) *ApproveStep[In] {
	return &ApproveStep[In]{spec: program.ApprovalSpec{Votes: 1}, name: name}
}

// ApproveStep is an approval under construction; see [Approve]. Its methods change it and return it.
type ApproveStep[In any] struct {
	name   string
	spec   program.ApprovalSpec
	when   func(Call[In]) bool
	about  func(Call[In]) About
	ask    Step[In]
	remind []time.Duration
	faults faults
	pivot  bool
}

// Admin is the role that may vote on every approval, whatever roles it names: that of who has the database, and so of
// amends approve.
const Admin = "admin"

// Vote is what a person said.
type Vote struct {
	By      string    `json:"by"`
	Roles   []string  `json:"roles"`
	Approve bool      `json:"approve"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"` // by the ledger's clock
}

// Brief is what people are to be told who are asked, see [Call.Brief]: the Step that is the approval, the Path of its page below
// where the handler of package approval is mounted, what is Shown there and the Digest of it that a vote says, the Roles of those
// who are asked, how many Votes are needed and Until when, and what the approval says About itself. A Reminder comes after they were asked; what is Escalated is for those
// who have a vote from now on.
type Brief = program.Brief

// About is what an approval says about itself, see [ApproveStep.About]: a Title of one line, an Amount as people write it ("EUR 1,200.00"), a
// Link to where more is seen, and some Fields to read before the document.
type About = program.About

// Field is a line of an [About], its Name and Value in words.
type Field = program.Field

// By names the roles that may vote. A person needs one of them.
func (a *ApproveStep[In]) By(roles ...string) *ApproveStep[In] { a.spec.Roles = roles; return a }

// Votes says how many people have to approve; without it one does.
func (a *ApproveStep[In]) Votes(n int) *ApproveStep[In] {
	a.spec.Votes = n
	a.faults.whenf(n < 1, "it needs a vote at least")
	return a
}

// NotStarter says that who started the instance, brought a newer version of it or ran it again has no vote. Every
// start then says who that is ([StartOptions]).
func (a *ApproveStep[In]) NotStarter() *ApproveStep[In] { a.spec.NotStarter = true; return a }

// When says whether people are asked at all; without it they always are. fn is a function of the input and of the
// results of earlier steps, is asked once, when the instance comes to this step, and asks nothing outside.
func (a *ApproveStep[In]) When(fn func(Call[In]) bool) *ApproveStep[In] {
	a.when = fn
	a.faults.whenf(fn == nil, "When needs a function")
	return a
}

// About says what people read first: on pages, in lists, and in [Brief]. fn is a function as that of [ApproveStep.When]. What it
// returns is part of what is shown, and so of the digest that a vote says: when it changes with a newer version, earlier votes are void.
//
// A title or an amount has 200 characters at most, a value 500, and there are 12 fields: what is beyond is cut, and an ellipsis or
// the last field says so. A Link is one on a page if it begins with https:// or http://, and text otherwise.
func (a *ApproveStep[In]) About(fn func(Call[In]) About) *ApproveStep[In] {
	a.about = fn
	a.faults.whenf(fn == nil, "About needs a function")
	return a
}

// Pivot is as [Action.Pivot]: once it is approved, no cancel turns the work back.
func (a *ApproveStep[In]) Pivot() *ApproveStep[In] { a.pivot = true; return a }

// Within says how long people have. Without a decision by then it is rejected.
func (a *ApproveStep[In]) Within(d time.Duration) *ApproveStep[In] {
	a.spec.Within = program.Duration(d.Truncate(time.Millisecond))
	return a
}

// Ask says how people are asked: by an action like any other, which is a step of its own, with a name, a key and an undo of
// its own. [Call.Brief] tells it what to say, and to whom. Without an Ask people are not told: the approval is in the list of
// amends approvals.
func (a *ApproveStep[In]) Ask(action Step[In]) *ApproveStep[In] {
	a.ask = action
	a.faults.whenf(action == nil, "Ask needs an action")
	return a
}

// Remind has people asked again when that time has passed without a decision. It is a step of its own, "NAME-reminder" behind
// the Ask NAME.
func (a *ApproveStep[In]) Remind(after time.Duration) *ApproveStep[In] {
	a.remind = append(a.remind, after.Truncate(time.Millisecond))
	return a
}

// Escalate has those of the given roles vote, too, from that time on, and asks them; it is a step of its own,
// "NAME-escalation" behind the Ask NAME.
func (a *ApproveStep[In]) Escalate(after time.Duration, roles ...string) *ApproveStep[In] {
	a.faults.whenf(a.spec.EscalateAfter != 0, "it is escalated twice")
	a.spec.EscalateAfter, a.spec.EscalateTo = program.Duration(after.Truncate(time.Millisecond)), roles
	return a
}

func (a *ApproveStep[In]) part(d *Definition[In], in In) {
	a.asks(d, in)
	b := bound[In]{asks: a.when, about: a.about, faults: a.faults}
	wrong := b.faults.whenf
	wrong(len(a.spec.Roles) == 0, "it does not say who decides: By")
	for _, role := range slices.Concat(a.spec.Roles, a.spec.EscalateTo) {
		wrong(badName(role) != "", "the role %q %s", role, badName(role))
	}
	b.faults = append(b.faults, lengthFaults("its Within", time.Duration(a.spec.Within))...)
	for _, after := range a.remind {
		wrong(after <= 0 || after >= time.Duration(a.spec.Within), "it reminds after %s, and has %s", after, time.Duration(a.spec.Within))
	}
	wrong(len(a.remind) > 1, "it reminds twice")
	wrong(len(a.remind) > 0 && a.ask == nil, "it reminds, and has no Ask to do so")
	escalates := a.spec.EscalateAfter != 0 || len(a.spec.EscalateTo) > 0
	wrong(escalates && (a.spec.EscalateAfter <= 0 || a.spec.EscalateAfter >= a.spec.Within), "it is escalated after %s, and has %s", time.Duration(a.spec.EscalateAfter), time.Duration(a.spec.Within))
	wrong(escalates && len(a.spec.EscalateTo) == 0, "it is escalated, and no role is named")
	d.spec.Steps = append(d.spec.Steps, program.StepSpec{Name: a.name, Wait: program.WaitVotes, Approval: &a.spec, Pivot: a.pivot})
	d.parts = append(d.parts, b)
}

// asks adds the steps by which people are asked, in the order of their times.
func (a *ApproveStep[In]) asks(d *Definition[In], in In) {
	if a.ask == nil {
		return
	}
	all := []program.AsksSpec{{Approval: a.name}}
	for _, after := range a.remind {
		all = append(all, program.AsksSpec{Approval: a.name, After: program.Duration(after)})
	}
	if a.spec.EscalateAfter != 0 {
		all = append(all, program.AsksSpec{Approval: a.name, After: a.spec.EscalateAfter, Escalates: true})
	}
	slices.SortStableFunc(all, func(x, y program.AsksSpec) int { return int(x.After - y.After) })
	for i := range all {
		before := len(d.spec.Steps)
		a.ask.part(d, in)
		if len(d.spec.Steps) != before+1 || d.spec.Steps[before].Waits() || d.spec.Steps[before].Pivot || d.spec.Steps[before].Conditional {
			a.faults = append(a.faults, "its Ask is to be one action, made by Do, and no pivot, and without a When")
			return
		}
		switch s := &d.spec.Steps[before]; {
		case all[i].Escalates:
			s.Name += "-escalation"
		case all[i].After > 0:
			s.Name += "-reminder"
		}
		d.spec.Steps[before].Asks = &all[i]
	}
}

// document is what people are shown who vote. The digest of it and of the run is what a vote is bound to, so it has everything by
// which that is named, and not the version of the source object.
type document struct {
	About   *About                    `json:"about,omitempty"`
	Saga    string                    `json:"saga"`
	Version int                       `json:"version"`
	WorkID  string                    `json:"workId"`
	Step    string                    `json:"step"`
	Input   json.RawMessage           `json:"input"`
	Results map[string]program.Result `json:"results,omitempty"`
}

// Shown says what people are shown who vote at a step that is an [Approve], and whether they are asked at all. It does not
// panic.
func (d *Definition[In]) Shown(inv *program.Invocation) (doc json.RawMessage, asked bool, err error) {
	defer guarded(inv.Step, &err)
	part, call, err := d.call(inv)
	i := d.spec.Index(inv.Step)
	if err == nil && d.spec.Steps[i].Approval == nil {
		err = faultf("step %q of saga %s version %d is no Approve", inv.Step, d.spec.Saga, d.spec.Version)
	}
	if err != nil || part.asks != nil && !part.asks(call) {
		return nil, false, err
	}
	shown := document{nil, d.spec.Saga, d.spec.Version, inv.Work, inv.Step, inv.Input, map[string]program.Result{}}
	if d.identity != nil {
		if shown.Input, err = json.Marshal(d.identity(call.Input)); err != nil {
			return nil, true, fmt.Errorf("step %q: the identity of the input is not serialisable: %w", inv.Step, err)
		}
	}
	if part.about != nil {
		shown.About = readable(part.about(call))
	}
	for _, s := range d.spec.Steps[:i] {
		if r, done := inv.Results[s.Name]; done && s.Asks == nil && (!s.Waits() || s.WaitsForAnswer()) {
			shown.Results[s.Name] = r
		}
	}
	if doc, err = json.Marshal(shown); err == nil && len(doc) > program.MaxInput {
		err = fmt.Errorf("step %q: what people are to be shown has %d bytes; at most %d are allowed: say by Identity what they decide about", inv.Step, len(doc), program.MaxInput)
	}
	return doc, true, err
}

// How much of an [About] is kept, in characters, and how many fields.
const maxTitle, maxValue, maxLink, maxFields = 200, 500, 2000, 12

// readable is an [About] within its bounds, each text of it on one line.
func readable(a About) *About {
	kept := &About{Title: line(a.Title, maxTitle), Amount: line(a.Amount, maxTitle), Link: line(a.Link, maxLink), Fields: []Field{}}
	fields := a.Fields
	if len(fields) > maxFields {
		more := Field{Name: "…", Value: fmt.Sprintf("%d more fields are not shown", len(fields)-maxFields+1)}
		fields = append(fields[:maxFields-1:maxFields-1], more)
	}
	for _, f := range fields {
		kept.Fields = append(kept.Fields, Field{Name: line(f.Name, maxTitle), Value: line(f.Value, maxValue)})
	}
	return kept
}

// line is at most so many characters of a text, without those that would end its line or turn its direction: it is read in mails,
// too.
func line(text string, most int) string {
	r := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))))
	if len(r) > most {
		r = append(r[:most-1], '…')
	}
	return string(r)
}
