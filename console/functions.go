package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/desk"
)

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
	words := span(p.now.Sub(at)) + " ago"
	if at.After(p.now) {
		words = "in " + span(at.Sub(p.now))
	}
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
	link := p.Base + path
	if len(q) > 0 {
		link += "?" + q.Encode()
	}
	return template.URL(link) //nolint:gosec // a path of the console and an encoded query
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
