package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/visible"
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
	o.Ask = desk.Either(why != "", []blank{ask("reason", why)}, nil)
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
		o := p.choice(&g.Acts[n], "saga", g.Of)
		for _, i := range g.Each {
			o.Among = append(o.Among, one{strconv.FormatInt(i.Seq, 10) + ":" + i.WorkID, i.WorkID})
		}
		all = append(all, o)
	}
	return all
}

// verdicts are the buttons of what can be decided on a difference, and what the person may say for a reason.
var verdicts = map[plan.Verdict]struct{ button, why string }{
	plan.Accept: {"It may stay as it is", "who agreed to it"},
	plan.Hide:   {"Leave it alone until then", "what is waited for"},
	plan.Remake: {"Make it again", "how it went"},
	plan.Ours:   {"Write ours over it", "why ours is right"},
	plan.Keep:   {"Keep this one and void the others", "why this one"},
	plan.Void:   {"Undo it", "why it should not stand"},
}

// Decisions are the forms of what can be decided on a difference; of several documents, one for each that may be kept.
func (p *page) Decisions(d desk.Drift) (all []offer) {
	for _, verdict := range d.Decisions {
		v := plan.Verdict(verdict)
		o := p.Form("/jobs/{job}/findings/{verdict}", verdicts[v].button, "", "job", d.Job, "verdict", verdict, "--key", d.Key, "--finding", d.Mark, "--no-wait", "true")
		o.Danger = v == plan.Ours || v == plan.Keep || v == plan.Void
		if v == plan.Hide {
			o.Ask = append(o.Ask, ask("until", "2026-12-24"))
		}
		o.Ask = append(o.Ask, ask("reason", verdicts[v].why))
		if v != plan.Keep {
			all = append(all, o)
			continue
		}
		for _, id := range d.Documents {
			one := o
			one.When, one.Set = "Keep "+id, maps.Clone(o.Set)
			one.Set["document"] = id
			all = append(all, one)
		}
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

// labels are what blanks are called, where that is not their name.
var labels = map[string]string{
	"reason": "Why (kept for ever)", "happened": "Its external id", "result": "What later steps find, as JSON", "body": "The answer, as JSON",
	"until": "Until when", "by": "For how long",
}

// ask is what only the person can say.
func ask(name, example string) blank {
	f := blank{Name: name, Label: cmp.Or(labels[name], name), Example: example}
	if name == "by" {
		f.Value = example
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

// Fits reports whether what is decided about is short enough to be read in a list, and is shown at all: a vote is beside it then, and
// elsewhere on the page of the instance.
func (*page) Fits(a *desk.Approval) bool { return len(a.Shown) > 0 && len(a.Shown) <= 2000 }

// Vote is the form of a vote on what is shown.
func (p *page) Vote(a *desk.Approval, verb string) offer {
	o := p.Form("/works/{saga}/{work}/"+verb, desk.KindOf(verb).Button, "why", "saga", a.Saga, "work", a.WorkID,
		"--step", a.Step, "--shown", a.Digest, "--wait", "3s")
	o.Danger = verb == "reject"
	return o
}

// functions are what the templates call besides the methods of a page.
var functions = template.FuncMap{
	"joined": func(all []string) string { return strings.Join(all, ", ") },
	"tone":   func(status any) string { return tone(fmt.Sprint(status)) },
	"scene":  func(p *page, of any) scene { return scene{p, of} },
	// An attempt is a tall bar, a wait or a doubt a thin one behind it.
	"barTop": func(kind string) int {
		return map[string]int{"attempt": 5}[kind] + map[string]int{"wait": 12, "doubt": 12}[kind]
	},
	"barHeight": func(kind string) int { return 6 + map[string]int{"attempt": 14}[kind] },
	"add":       func(a, b int) int { return a + b },
	"web":       visible.Web,
}

// scene is a part of a page that is about one thing.
type scene struct {
	*page

	Of any
}

// tone is how a status is coloured; its word stands beside it always.
func tone(status string) string {
	switch status {
	case "completed", "done", "found", "healthy", "ok", "confirmed":
		return "good"
	case "review", "failing", "failed", "refused", "unknown", "lost", "fault", "malformed":
		return "bad"
	case "paused", "retrying", "compensating", "limited", "not-sent", "partial", "stopped", "unanswered":
		return "warn"
	case "waiting", "running", "":
		return "live"
	}
	return "rest"
}

// Indented is a JSON value for people.
func (*page) Indented(v json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, v, "", "  "); err != nil {
		return string(v)
	}
	return b.String()
}

// Short is a name that fits beside a picture.
func (*page) Short(name string) string {
	const most = 26
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

// moment is a time as a page shows it: how long ago, and in UTC for who points at it.
type moment struct{ ISO, Exact, Words string }

// When is a time of a document; nil for none.
func (p *page) When(v any) *moment {
	at, _ := v.(time.Time)
	if of, is := v.(*time.Time); is {
		at = desk.At(of)
	}
	if at.IsZero() {
		return nil
	}
	words := desk.Either(at.After(p.now), "in "+span(at.Sub(p.now)), span(p.now.Sub(at))+" ago")
	return &moment{at.UTC().Format(time.RFC3339Nano), iso(at), words}
}

// May reports whether the person has a role: what a person may not do is not offered.
func (p *page) May(role string) bool { return p.Person.may(role) }

// Roles are those of the person, in words.
func (p *page) Roles() string { return strings.Join(p.Person.Roles, ", ") }

// Link is an address of the console with a query.
func (p *page) Link(path string, pairs ...any) template.URL {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" {
			q.Set(fmt.Sprint(pairs[i]), v)
		}
	}
	return template.URL(p.Base + path + desk.With("?", q.Encode())) //nolint:gosec // a path of the console and an encoded query
}

// Back is the query by which a form says where it comes back to.
func (p *page) Back() template.URL {
	return template.URL(url.Values{"to": {p.To}}.Encode()) //nolint:gosec // an encoded query
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// span is a duration in its two largest units, never negative.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d d %02d h", d/day, d%day/time.Hour)
	}
}
