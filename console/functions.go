package console

import (
	"bytes"
	"encoding/json"
	"html/template"
	"slices"
	"strings"

	"github.com/amends-dev/amends/saga"
)

// functions are what the templates call besides the methods of a page.
var functions = template.FuncMap{
	"items":  items,
	"text":   text,
	"joined": joined,
	"effect": effect,
	"tone":   tone,
	"field":  func(doc document, name string) any { return doc[name] },
	"doc": func(v any) document {
		d, _ := v.(document)
		return d
	},
	"scene": func(p *page, doc any) scene { d, _ := doc.(document); return scene{p, d} },
	"has":   func(list any) bool { all, ok := list.([]any); return ok && len(all) > 0 },
	"list":  func(doc document, name string) document { return document{"items": doc[name]} },
	// An attempt is a tall bar, a wait or a doubt a thin one behind it.
	"barTop": func(kind string) int {
		return map[string]int{"attempt": 5}[kind] + map[string]int{"wait": 12, "doubt": 12}[kind]
	},
	"barHeight": func(kind string) int { return 6 + map[string]int{"attempt": 14}[kind] },
	"add":       func(a, b int) int { return a + b },
}

// scene is a part of a page that is about one document.
type scene struct {
	*page

	Doc document
}

// tone is how a status is coloured; its word stands beside it always.
func tone(status any) string {
	s, _ := status.(string)
	switch s {
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

// Statuses are those that a list can be narrowed to.
func (*page) Statuses() []saga.Status {
	return []saga.Status{
		saga.Running, saga.Retrying, saga.Waiting, saga.Compensating, saga.Review, saga.Paused, saga.Adopting, saga.Completed, saga.Compensated,
	}
}

// Reasons are those of a review.
func (*page) Reasons() []saga.Reason {
	return []saga.Reason{
		saga.ReasonInDoubt, saga.ReasonUndoFailed, saga.ReasonCannotUndo, saga.ReasonAfterPivot, saga.ReasonExhausted, saga.ReasonPoison, saga.ReasonDeadline,
		saga.ReasonUnanswered, saga.ReasonLate, saga.ReasonHung, saga.ReasonConflict,
	}
}

// Indented is a JSON value for people.
func (*page) Indented(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the template escapes
	e.SetIndent("", "  ")
	_ = e.Encode(v) // it was decoded from JSON
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

// Resume is the form that ends a pause of more than one work; nil for who may not.
func (p *page) Resume(doc document) *offer {
	kind, name, _ := strings.Cut(text(doc, "scope"), ":")
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
func (p *page) Votes(doc document) bool {
	roles, _ := doc["roles"].([]any)
	here := p.who.in(text(doc, "saga"))
	return here.may(Approver) && slices.ContainsFunc(here.Roles, func(has string) bool { return has == Admin || slices.Contains(roles, any(has)) })
}

// Vote is the form of a vote on what is shown.
func (p *page) Vote(doc document, verb string) offer {
	o := p.Form("/works/{saga}/{work}/"+verb, "Approve", "why", "saga", text(doc, "saga"), "work", text(doc, "workId"),
		"--step", text(doc, "step"), "--shown", text(doc, "digest"), "--wait", "3s")
	if verb == "reject" {
		o.Label, o.Danger = "Reject", true
	}
	return o
}
