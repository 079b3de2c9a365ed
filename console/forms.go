package console

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/desk"
)

// offer is something that a person may do as a form: what it does, to what, and from where.
type offer struct {
	*page

	Do     string // the path of the operation
	Parts  map[string]string
	Set    map[string]string
	Ask    []blank
	Label  string
	When   string
	Then   []string
	Danger bool
	Among  []one // instances of which several are chosen
}

// blank is what a person fills in.
type blank struct{ Name, Label, Example, Value string }

// one is an instance that may be chosen, with the record of it that is shown.
type one struct{ Value, Label string }

// Key is one for each form of each page that is made: pressed twice, it is done once.
func (offer) Key() string { return "form-" + rand.Text() }

// Form is a form of an operation. parts are names and values; of a name with -- it is said besides.
func (p *page) Form(do, label, why string, parts ...any) offer {
	o := offer{page: p, Do: do, Label: label, Parts: map[string]string{}, Set: map[string]string{}}
	for i := 0; i+1 < len(parts); i += 2 {
		name, value := fmt.Sprint(parts[i]), fmt.Sprint(parts[i+1])
		if flag, ok := strings.CutPrefix(name, "--"); ok {
			o.Set[flag] = value
		} else {
			o.Parts[name] = value
		}
	}
	if why != "" {
		o.Ask = []blank{ask("reason", why)}
	}
	return o
}

// Choices are the forms of what a person can do about an instance.
func (p *page) Choices(i *desk.Instance, choices []desk.Choice) (all []offer) {
	for n := range choices {
		c := &choices[n]
		if c.Verb == "approve" || c.Verb == "reject" {
			continue // what is decided is shown first: the page of the instance does
		}
		o := p.choice(c, "saga", i.Saga, "work", i.WorkID, "--seen", i.Seq, "--wait", "3s")
		if c.Verb == "rerun" {
			o.Set["run"] = desk.RunName(i.Revision)
		}
		all = append(all, o)
	}
	return all
}

// Together are the forms of what a person can do about several instances.
func (p *page) Together(g *grouped) (all []offer) {
	for n := range g.Acts {
		o := p.choice(&g.Acts[n], "saga", g.Of.Saga)
		for _, i := range g.Each {
			o.Among = append(o.Among, one{strconv.FormatInt(i.Seq, 10) + ":" + i.WorkID, i.WorkID})
		}
		all = append(all, o)
	}
	return all
}

func (p *page) choice(c *desk.Choice, parts ...any) offer {
	o := p.Form("/works/{saga}/{work}/"+c.Verb, c.Button, "", parts...)
	o.When, o.Then, o.Danger = c.When, c.Then, c.Danger
	for _, f := range c.Flags {
		switch {
		case f.Example != "":
			o.Ask = append(o.Ask, ask(f.Name, f.Example))
		case f.Value == "":
			o.Set[f.Name] = "true"
		default:
			o.Set[f.Name] = f.Value
		}
	}
	return o
}

// ask is what only the person can say.
func ask(name, example string) blank {
	f := blank{Name: name, Label: name, Example: example}
	switch name {
	case "reason":
		f.Label = "Why (kept for ever)"
	case "happened":
		f.Label = "Its external id"
	case "result":
		f.Label = "What later steps find, as JSON"
	case "body":
		f.Label = "The answer, as JSON"
	case "by":
		f.Label, f.Value = "For how long", example
	}
	return f
}

// Resume is the form that ends a pause of more than one instance; nil for who may not.
func (p *page) Resume(h *desk.Held) *offer {
	kind, name, _ := strings.Cut(h.Scope, ":")
	role, o := Operator, offer{}
	switch kind {
	case "all":
		role, o = Admin, p.Form("/everything/resume", "Let everything go on", "why it may")
	case "saga":
		o = p.Form("/sagas/{saga}/resume", "Let it go on", "why it may", "saga", name)
	default:
		return nil // a destination is shown as one
	}
	if !p.May(role) {
		return nil
	}
	return &o
}

// Votes reports whether the person has one of the roles that may vote on what is shown.
func (p *page) Votes(a *desk.Approval) bool {
	here := p.who.in(a.Saga)
	return here.may(Approver) && slices.ContainsFunc(here.Roles, func(has string) bool { return has == Admin || slices.Contains(a.Roles, has) })
}

// Vote is the form of a vote on what is shown.
func (p *page) Vote(a *desk.Approval, verb string) offer {
	o := p.Form("/works/{saga}/{work}/"+verb, "Approve", "why", "saga", a.Saga, "work", a.WorkID,
		"--step", a.Step, "--shown", a.Digest, "--wait", "3s")
	if verb == "reject" {
		o.Label, o.Danger = "Reject", true
	}
	return o
}
