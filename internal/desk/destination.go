package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/ledger"
)

// flow is what stands between instances and where they want to go.
type flow struct {
	coordinator.Standing

	waiting map[string]ledger.Waiting // by destination, and by the name of a pause
	sagas   map[string]bool           // that a process ever registered
}

// flow reads it, with the destinations of all definitions.
func (d *Desk) flow(ctx context.Context) (*flow, error) {
	o, err := d.db.Overview(ctx)
	if err != nil {
		return nil, err
	}
	st, err := coordinator.NewOperator(d.db).Standing(ctx, o.At)
	if err != nil {
		return nil, err
	}
	definitions, err := d.db.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	f := &flow{Standing: st, waiting: map[string]ledger.Waiting{}, sagas: map[string]bool{}}
	for _, w := range o.Waiting {
		f.waiting[w.Destination] = w
	}
	for i := range definitions {
		spec := &definitions[i].Spec
		f.sagas[spec.Saga] = true
		for n := range spec.Steps {
			if name := spec.Destination(spec.Steps[n].Name); f.of(name) == nil && !spec.Steps[n].Waits() {
				f.Destinations = append(f.Destinations, coordinator.DestinationStatus{Name: name, State: "healthy"})
			}
		}
	}
	slices.SortFunc(f.Destinations, func(a, b coordinator.DestinationStatus) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

// of returns a destination, or nil.
func (f *flow) of(name string) *coordinator.DestinationStatus {
	if i := slices.IndexFunc(f.Destinations, func(d coordinator.DestinationStatus) bool { return d.Name == name }); i >= 0 {
		return &f.Destinations[i]
	}
	return nil
}

// knows refuses a name under which nothing can wait: all, saga:NAME, a destination, or retry: and one.
func (f *flow) knows(name string) error {
	name = strings.TrimPrefix(name, coordinator.RetryPrefix)
	switch of, isSaga := strings.CutPrefix(name, "saga:"); {
	case name == coordinator.Everything().String(), f.of(name) != nil, isSaga && f.sagas[of]:
		return nil
	case isSaga:
		return &Failure{
			Code: NotFound, What: fmt.Sprintf("there is no saga %q", of),
			Why: errors.New("no process ever registered it on this ledger"), Next: "see which there are: amends list",
		}
	default:
		return unheard(name)
	}
}

// unheard is the error of a destination that there is not.
func unheard(name string) error {
	return &Failure{
		Code: NotFound, What: fmt.Sprintf("no definition names a destination %q", name),
		Why: errors.New("the ledger never heard of it"), Next: "see which there are: amends destination list",
	}
}

// paused returns the pause that has a name, or nil.
func (f *flow) paused(name string) *coordinator.Paused {
	if i := slices.IndexFunc(f.Paused, func(p coordinator.Paused) bool { return p.Scope.String() == name }); i >= 0 {
		return &f.Paused[i]
	}
	return nil
}

// because says why what waits under a name does so: a destination's state, or a pause.
func (f *flow) because(name string) string {
	p := cmp.Or(f.paused(name), f.paused(coordinator.Everything().String()))
	switch {
	case p != nil:
		return fmt.Sprintf("%s paused, says %s: %s", finding.ScopeIs(p.Scope), p.By.Name, p.By.Reason)
	case ofWorks(name):
		return "the pause is over, and it goes on with the next claim"
	}
	to, failed := strings.CutPrefix(name, coordinator.RetryPrefix)
	switch d := f.of(to); {
	case d != nil && d.State != "healthy":
		return finding.Stands(d)
	case failed:
		return to + " failed this one; it does not count as away"
	default:
		return to + " has no room for it yet"
	}
}

// ofWorks reports whether a name under which instances wait is a pause, and no destination.
func ofWorks(name string) bool {
	return name == coordinator.Everything().String() || strings.HasPrefix(name, "saga:")
}

// then says when what waits under a name goes on, and what a person can do about it.
func (f *flow) then(name string) string {
	p := cmp.Or(f.paused(name), f.paused(coordinator.Everything().String()))
	line := name
	name, failed := strings.CutPrefix(name, coordinator.RetryPrefix)
	d := f.of(name)
	switch {
	case p != nil:
		return "It goes on when the pause ends: amends resume " + finding.Flag(p.Scope.String()) + " --reason WHY."
	case ofWorks(name):
		return "It goes on by itself, with the next claim. Nothing to do."
	case d != nil && d.State == "paused":
		return "It goes on when the pause ends: amends resume --destination " + quote(name) + " --reason WHY."
	case failed && (d == nil || d.State == "healthy"):
		return fmt.Sprintf("It is tried again by itself. To try now, when %s is mended: amends destination probe %s --reason WHY.", name, quote(name))
	case d == nil || d.State == "healthy":
		return fmt.Sprintf("It goes on by itself as soon as %s has room for it. Nothing to do.", name)
	default:
		return fmt.Sprintf("It goes on by itself when %s is back, and spends nothing until then. To try now: amends destination probe %s --reason WHY. "+
			"What else waits for it: amends list --waits-for %s", name, quote(name), quote(line))
	}
}

// Destination is what the sagas talk to.
type Destination struct {
	Destination string         `json:"destination"`
	State       string         `json:"state"`
	Since       *time.Time     `json:"since"`       // failing, paused
	Until       *time.Time     `json:"until"`       // limited; failing: the next attempt, null while one is under way
	Evidence    string         `json:"evidence"`    // failing: why it counts as that
	Why         string         `json:"why"`         // what the latest failure said; paused: the person's words
	Actor       string         `json:"actor"`       // paused
	Served      *time.Time     `json:"servedAt"`    // a work was served, to ten seconds
	Waiting     int64          `json:"waiting"`     // works that wait in the ledger to be sent, at most 1000 are counted
	Oldest      *time.Time     `json:"oldestDueAt"` // of those
	Failed      int64          `json:"failed"`      // works that failed there and wait for another try, at most 1000 are counted
	Parts       int            `json:"parts"`       // of its limit; 0: it has none
	Shares      map[string]int `json:"shares"`      // session to parts

	Unanswered      int        `json:"unanswered"`      // slots held by requests without an answer, of processes that have half of theirs or more so
	UnansweredUntil *time.Time `json:"unansweredUntil"` // of those that are awaited no more
	Left            int        `json:"left"`            // parts that a process left, with requests that may be under way
	LeftUntil       *time.Time `json:"leftUntil"`       // the latest when they are free

	Note string `json:"-"` // why it stands where it does, and which of its slots serve none
}

// Destinations are all destinations, and what is paused besides.
type Destinations struct {
	Items  []Destination `json:"items"`
	Paused []Held        `json:"paused"`

	Holds []string `json:"-"` // who paused what, in words
}

// Nothing is the input of what needs none.
type Nothing struct{}

// Destinations lists them.
func (d *Desk) Destinations(ctx context.Context, _ *Nothing) (*Destinations, error) {
	f, err := d.flow(ctx)
	if err != nil {
		return nil, err
	}
	out := &Destinations{Items: docs(f.Destinations, f.doc), Paused: docs(f.Paused, heldOf)}
	for i := range f.Paused {
		p := &f.Paused[i]
		out.Holds = append(out.Holds, fmt.Sprintf("%s paused since %s, says %s: %s", upper(finding.ScopeIs(p.Scope)), iso(p.At), p.By.Name, p.By.Reason))
	}
	return out, nil
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Alarm is the finding that destinations are not healthy, or nil.
func (l *Destinations) Alarm() *Failure {
	n := 0
	for i := range l.Items {
		if l.Items[i].State != "healthy" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &Failure{Code: Findings, What: Counted(n, "destination is not healthy", "destinations are not healthy"), Next: "see what it says of itself: amends destination list"}
}

func (f *flow) doc(d *coordinator.DestinationStatus) Destination {
	w := f.waiting[d.Name]
	j := Destination{
		Destination: d.Name, State: d.State, Since: utc(d.Since), Until: utc(d.Until), Evidence: d.Evidence, Why: d.Why, Actor: d.Actor, Served: utc(d.Served),
		Waiting: w.Works, Oldest: utc(w.Oldest), Failed: f.waiting[coordinator.RetryPrefix+d.Name].Works, Parts: d.Parts, Shares: d.Shares,
		Unanswered: d.Unanswered, UnansweredUntil: utc(d.UnansweredUntil), Left: d.Left, LeftUntil: utc(d.LeftUntil),
	}
	if d.Shares == nil {
		j.Shares = map[string]int{}
	}
	var words []string
	switch {
	case d.State == "paused":
		words = append(words, fmt.Sprintf("%s: %s", d.Actor, d.Why))
	case d.Evidence != "":
		words = append(words, d.Evidence+"; the latest: "+d.Why)
	case d.Why != "":
		words = append(words, d.Why)
	}
	if d.Unanswered > 0 {
		words = append(words, finding.Unanswered(d))
	}
	if d.Left > 0 {
		words = append(words, finding.Left(d))
	}
	j.Note = strings.Join(words, "; ")
	return j
}

// Divided says who has how many parts of a limit: 2 of 4, 2.
func (d *Destination) Divided() string {
	if d.Parts == 0 {
		return ""
	}
	used := slices.SortedFunc(maps.Values(d.Shares), func(a, b int) int { return cmp.Compare(b, a) })
	words := make([]string, len(used))
	for i, n := range used {
		words[i] = strconv.Itoa(n)
	}
	return fmt.Sprintf("%d: %s", d.Parts, cmp.Or(strings.Join(words, " + "), "not shared out"))
}

// ProbeIn says which destination is tried.
type ProbeIn struct {
	By
	Name string `path:"name"`
}

// Probed is what was asked for.
type Probed struct {
	Destination string `json:"destination"`
	Before      string `json:"stateBefore"`
	Failed      int    `json:"failed"` // works that failed there, and are due now

	Stood string `json:"-"`
}

// Probe has a destination tried now.
func (d *Desk) Probe(ctx context.Context, in *ProbeIn) (*Probed, error) {
	if err := usage("try: amends destination probe --help", append(named(in.Name, "destination: amends destination probe NAME"), in.By.faults()...)); err != nil {
		return nil, err
	}
	f, err := d.flow(ctx)
	if err != nil {
		return nil, err
	}
	to := f.of(in.Name)
	if to == nil {
		return nil, unheard(in.Name)
	}
	out := &Probed{Destination: in.Name, Before: to.State, Stood: finding.Stands(to)}
	out.Failed, err = coordinator.NewOperator(d.db).Probe(ctx, in.Name, in.actor())
	if errors.Is(err, coordinator.ErrPaused) {
		return nil, &Failure{Code: Conflict, Why: err, Next: "it is tried when it is resumed: amends resume --destination " + quote(in.Name)}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
