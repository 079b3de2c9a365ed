package console

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"
)

// timeline is an instance over time: a row for each step and direction, a bar for each attempt, wait and doubt.
type timeline struct {
	Rows   []lane
	Height int
	From   time.Time
	To     time.Time
}

// lane is a step in one direction. Places are in thousandths of the whole width.
type lane struct {
	Name string
	Y    int
	Bars []bar
}

type bar struct {
	X, W  int
	Kind  string // attempt, wait or doubt
	Tone  string
	Title string // the whole of it in words
}

// laneHeight is the height of a lane, in the units of the picture.
const laneHeight = 28

// timelineOf reads the attempts out of a history: a record dispatches one, a later one says how it
// ended.
func timelineOf(records []document, now time.Time) timeline {
	t := timeline{To: now}
	if len(records) == 0 {
		return t
	}
	t.From = timeIn(records[0], "at")
	if last := records[len(records)-1]; !open(last) {
		t.To = timeIn(last, "at")
	}
	if !t.To.After(t.From) {
		t.To = t.From.Add(time.Second)
	}
	of := map[string]int{}
	add := func(name string, b bar) {
		row, known := of[name]
		if !known {
			row = len(t.Rows)
			of[name] = row
			t.Rows = append(t.Rows, lane{Name: name, Y: row * laneHeight})
		}
		t.Rows[row].Bars = append(t.Rows[row].Bars, b)
	}
	for i, r := range records {
		if d, ok := r["dispatch"].(document); ok {
			add(effect(d), t.attempt(d, timeIn(r, "at"), records[i+1:]))
		}
		switch text(r, "kind") {
		case "wait-began", "approval-began":
			add(effect(r), t.stay("wait", "waits", r, records[i+1:]))
		case "unknown", "lost":
			add(effect(r), t.stay("doubt", "in doubt", r, records[i+1:]))
		}
	}
	t.Height = len(t.Rows) * laneHeight
	return t
}

// open reports whether something goes on behind a record.
func open(r document) bool {
	switch text(r, "status") {
	case "completed", "compensated":
		return false
	}
	return true
}

// attempt is one attempt, from its dispatch to what the later records say of it.
func (t *timeline) attempt(d document, begun time.Time, later []document) bar {
	ended, outcome, words := t.To, "", "under way"
	for _, r := range later {
		if effect(r) == effect(d) && number(r, "attempt") == number(d, "attempt") && text(r, "kind") != "dispatched" {
			ended, outcome, words = timeIn(r, "at"), text(r, "kind"), text(r, "words")
			break
		}
	}
	b := t.between(begun, ended)
	b.Kind, b.Tone = "attempt", tone(outcome)
	b.Title = fmt.Sprintf("%s #%s, begun %s, %s later: %s; key %s", effect(d), number(d, "attempt"), iso(begun), span(ended.Sub(begun)), words, text(d, "key"))
	return b
}

// stay is how long a step waits, or is in doubt: until a record tells more of it than that it goes on.
func (t *timeline) stay(kind, words string, r document, later []document) bar {
	begun, ended, how := timeIn(r, "at"), t.To, "until now"
	for _, next := range later {
		goesOn := text(next, "kind") == text(r, "kind") || text(next, "kind") == "voted" || text(next, "kind") == "wait-extended" || text(next, "kind") == "unclear"
		if text(next, "kind") == "revised" || effect(next) == effect(r) && !goesOn {
			ended, how = timeIn(next, "at"), "until: "+text(next, "words")
			break
		}
	}
	b := t.between(begun, ended)
	b.Kind, b.Tone = kind, "warn"
	if kind == "wait" {
		b.Tone = "live"
	}
	b.Title = fmt.Sprintf("%s %s from %s, for %s, %s", effect(r), words, iso(begun), span(ended.Sub(begun)), how)
	return b
}

// between is a bar from one time to another.
func (t *timeline) between(begun, ended time.Time) bar {
	whole := t.To.Sub(t.From)
	place := func(at time.Time) int {
		return int(1000 * (float64(min(max(at.Sub(t.From), 0), whole)) / float64(whole)))
	}
	b := bar{X: place(begun)}
	b.W = max(place(ended)-b.X, 4)
	b.X = min(b.X, 1000-b.W)
	return b
}

func timeIn(doc document, name string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text(doc, name))
	return at
}

func number(doc document, name string) string {
	n, _ := doc[name].(json.Number)
	return n.String()
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

// moment is a time as a page shows it: how long ago, and in UTC for who points at it.
type moment struct{ ISO, Exact, Words string }

func (p *page) When(v any) *moment {
	s, _ := v.(string)
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
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

// Offer is a choice as a form: what it does, for whom, and from where.
type offer struct {
	*page

	Do     string // the route
	Parts  map[string]string
	Set    map[string]string
	Ask    []field
	Label  string
	When   string
	Then   []any
	Danger bool
}

// Key is one for each form of each page that is made: pressed twice, it is done once.
func (offer) Key() string { return "form-" + rand.Text() }

// field is what a person fills in.
type field struct{ Name, Label, Example, Value, ID string }

// Choices are the forms of what a person can do about an instance.
func (p *page) Choices(doc document, list string) (all []offer) {
	for i, c := range items(doc, list) {
		verb := text(c, "verb")
		if verb == "approve" || verb == "reject" {
			continue // what is decided is shown first: the page of the instance does
		}
		o := offer{
			page: p, Do: "/works/{saga}/{work}/" + verb, When: text(c, "when"),
			Parts: map[string]string{"saga": text(doc, "saga"), "work": text(doc, "workId")},
			Set:   map[string]string{"seen": number(doc, "seq"), "wait": "3s"},
		}
		o.Then, _ = c["then"].([]any)
		if verb == "rerun" {
			o.Set["run"] = cmp.Or(text(doc, "revision"), "-")
		}
		said := ""
		for _, f := range items(c, "flags") {
			name, value, example := text(f, "name"), text(f, "value"), text(f, "example")
			switch {
			case example != "":
				o.Ask = append(o.Ask, ask(name, example, fmt.Sprintf("%s-%d-%s-%s", text(doc, "number"), i, list, name)))
			case value == "":
				o.Set[name] = "true"
				said = name
			default:
				o.Set[name] = value
			}
			if name == "happened" {
				said = name
			}
		}
		o.Label, o.Danger = cmp.Or(text(c, "label"), labels[verb+" "+said]), verb == "cancel" || said == "did-not-happen"
		if o.Label == "" {
			o.Label = labels[verb]
		}
		all = append(all, o)
	}
	return all
}

// ask is a field for what only the person can say.
func ask(name, example, id string) field {
	f := field{Name: name, Label: name, Example: example, ID: id}
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

// labels are the words on the buttons.
var labels = map[string]string{
	"retry": "Try it again", "resolve happened": "It happened", "resolve happened-without-id": "It happened, without an id",
	"resolve did-not-happen": "It did not happen", "resolve keep": "Leave it as it is", "skip": "Go on without it", "resume": "Let it go on",
	"wake": "Go on now", "complete": "Answer", "fail": "It has failed", "extend": "Give it longer", "rerun": "Run it again",
	"pause": "Hold it", "cancel": "Give it up and undo",
}

// Form is a form of any other route. parts are names and values.
func (p *page) Form(do, label, why string, parts ...any) offer {
	o := offer{page: p, Do: do, Label: label, Parts: map[string]string{}, Set: map[string]string{}}
	id := do
	for i := 0; i+1 < len(parts); i += 2 {
		name, value := fmt.Sprint(parts[i]), fmt.Sprint(parts[i+1])
		id += "-" + value
		if flag, ok := strings.CutPrefix(name, "--"); ok {
			o.Set[flag] = value
		} else {
			o.Parts[name] = value
		}
	}
	if why != "" {
		o.Ask = []field{ask("reason", why, id)}
	}
	return o
}
