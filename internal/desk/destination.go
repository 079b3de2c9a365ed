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
	st, err := d.op.Standing(ctx, o.At)
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
	return First(f.Destinations, func(d *coordinator.DestinationStatus) bool { return d.Name == name })
}

// knows refuses a name under which nothing can wait: all, saga:NAME, a destination, or retry: and one.
func (f *flow) knows(name string) error {
	name = strings.TrimPrefix(name, coordinator.RetryPrefix)
	switch of, isSaga := strings.CutPrefix(name, "saga:"); {
	case name == coordinator.Everything().String(), f.of(name) != nil, isSaga && f.sagas[of]:
		return nil
	case isSaga:
		return notFound(fmt.Sprintf("there is no saga %q", of), "no process ever registered it on this ledger", "see which there are: amends list")
	default:
		return unheard(name)
	}
}

// unheard is the error of a destination that there is not.
func unheard(name string) error {
	return notFound(fmt.Sprintf("no definition names a destination %q", name), "the ledger never heard of it", "see which there are: amends destination list")
}

// paused returns the pause that has a name, or nil.
func (f *flow) paused(name string) *coordinator.Paused {
	return First(f.Paused, func(p *coordinator.Paused) bool { return p.Scope.String() == name })
}

// waits says why what waits under a name does so, and when that goes on and what a person can do about it: a destination's state, or a pause.
func (f *flow) waits(line string) (because, then string) {
	p := cmp.Or(f.paused(line), f.paused(coordinator.Everything().String()))
	name, failed := strings.CutPrefix(line, coordinator.RetryPrefix)
	switch d := f.of(name); {
	case p != nil:
		return fmt.Sprintf("%s paused, says %s: %s", finding.ScopeIs(p.Scope), p.By.Name, p.By.Reason),
			"It goes on when the pause ends: amends resume " + finding.Flag(p.Scope.String()) + " --reason WHY."
	case ofWorks(name):
		return "the pause is over, and it goes on with the next claim", "It goes on by itself, with the next claim. Nothing to do."
	case d != nil && d.State == "paused":
		return finding.Stands(d), "It goes on when the pause ends: amends resume --destination " + quote(name) + " --reason WHY."
	case d != nil && d.State != "healthy":
		return finding.Stands(d), fmt.Sprintf("It goes on by itself when %s is back, and spends nothing until then. "+
			"To try now: amends destination probe %s --reason WHY. What else waits for it: amends list --waits-for %s", name, quote(name), quote(line))
	case failed:
		return name + " failed this one; it does not count as away",
			fmt.Sprintf("It is tried again by itself. To try now, when %s is mended: amends destination probe %s --reason WHY.", name, quote(name))
	}
	return name + " has no room for it yet", fmt.Sprintf("It goes on by itself as soon as %s has room for it. Nothing to do.", name)
}

// ofWorks reports whether a name under which instances wait is a pause, and no destination.
func ofWorks(name string) bool {
	return name == coordinator.Everything().String() || strings.HasPrefix(name, "saga:")
}

// Destination is what the sagas talk to.
type Destination struct {
	Destination string         `json:"destination"`
	State       string         `json:"state"`       // healthy, limited, failing, paused
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
	Paused []Held        `json:"paused"` // sagas, or all

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
	return &Destinations{docs(f.Destinations, f.doc), docs(f.Paused, heldOf), docs(f.Paused, func(p *coordinator.Paused) string {
		return fmt.Sprintf("%s paused since %s, says %s: %s", upper(finding.ScopeIs(p.Scope)), iso(p.At), p.By.Name, p.By.Reason)
	})}, nil
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Alarm is the finding that destinations are not healthy, or nil.
func (l *Destinations) Alarm() error {
	n := number(l.Items, func(d *Destination) bool { return d.State != "healthy" })
	return alarm(n, Counted(n, "destination is not healthy", "destinations are not healthy"), "see what it says of itself: amends destination list")
}

func (f *flow) doc(d *coordinator.DestinationStatus) Destination {
	w := f.waiting[d.Name]
	j := Destination{
		Destination: d.Name, State: d.State, Since: utc(d.Since), Until: utc(d.Until), Evidence: d.Evidence, Why: d.Why, Actor: d.Actor, Served: utc(d.Served),
		Waiting: w.Works, Oldest: utc(w.Oldest), Failed: f.waiting[coordinator.RetryPrefix+d.Name].Works, Parts: d.Parts, Shares: Either(d.Shares == nil, map[string]int{}, d.Shares),
		Unanswered: d.Unanswered, UnansweredUntil: utc(d.UnansweredUntil), Left: d.Left, LeftUntil: utc(d.LeftUntil),
	}
	said := Either(d.State == "paused", d.Actor+": ", When(d.Evidence != "", d.Evidence+"; the latest: "))
	j.Note = joined(said+d.Why, When(d.Unanswered > 0, finding.Unanswered(d)), When(d.Left > 0, finding.Left(d)))
	return j
}

// Divided says who has how many parts of a limit: 2 of 4, 2.
func (d *Destination) Divided() string {
	if d.Parts == 0 {
		return ""
	}
	used := slices.SortedFunc(maps.Values(d.Shares), func(a, b int) int { return cmp.Compare(b, a) })
	words := docs(used, func(n *int) string { return strconv.Itoa(*n) })
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
	StateBefore string `json:"stateBefore"`
	Failed      int    `json:"failed"` // works that failed there, and are due now

	Stood string `json:"-"`
}

// Probe has a destination tried now.
func (d *Desk) Probe(ctx context.Context, in *ProbeIn) (*Probed, error) {
	if err := Usage("try: amends destination probe --help", append(named(in.Name, "destination: amends destination probe NAME"), in.By.faults()...)...); err != nil {
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
	failed, err := d.op.Probe(ctx, in.Name, in.actor())
	if errors.Is(err, coordinator.ErrPaused) {
		return nil, &Failure{Code: Conflict, Why: err, Next: "it is tried when it is resumed: amends resume --destination " + quote(in.Name)}
	}
	return answer(Probed{in.Name, to.State, failed, finding.Stands(to)}, err)
}

// Scope is more than one instance: those that want a destination, those of a saga, or all.
type Scope struct {
	Destination string `path:"name" flag:"destination" doc:"instead of WORK: all that wants this destination"`
	Saga        string `path:"saga" flag:"saga" doc:"the saga, where several know the work id; without WORK all its works"`
	All         bool   `json:"-" flag:"all" doc:"instead of WORK: everything"`
}

// Named is how many scopes it names.
func (s *Scope) Named() int { return howMany(s.Destination != "", s.Saga != "", s.All) }

// called is how the scope that was found is called: all, saga:NAME, or destination:NAME.
func (s *Scope) called(which coordinator.Scope) string {
	return When(s.Destination != "", "destination:") + which.String()
}

// scope is the one that is meant, and what stands in the way. One that the ledger never heard of is a mistake.
func (d *Desk) scope(ctx context.Context, s *Scope) (*flow, coordinator.Scope, error) {
	which := coordinator.OfSaga(s.Saga)
	f, err := d.flow(ctx)
	switch {
	case err != nil:
		return nil, which, err
	case s.All:
		which = coordinator.Everything()
	case s.Destination != "":
		which = coordinator.OfDestination(s.Destination)
		return f, which, f.knows(s.Destination)
	}
	return f, which, f.knows(which.String())
}

// ScopeIn is an act on a scope.
type ScopeIn struct {
	By
	Scope
	DryRun bool `json:"dry-run,omitempty" doc:"say what would happen and store nothing"`
}

// Scoped is what became of an act on more than one instance.
type Scoped struct {
	Scope  string `json:"scope"` // all, saga:NAME, or destination:NAME
	DryRun bool   `json:"dryRun"`
	Stored bool   `json:"stored"`
	Before *Held  `json:"before"` // who had paused it; null: not paused
	Paused *Held  `json:"paused"` // who has by now; null: not paused

	Pause   bool     `json:"-"` // it was to be paused
	Waiting int64    `json:"-"` // works that wait for it in the ledger
	Beware  []string `json:"-"` // what is paused besides
	Ends    string   `json:"-"` // the command that ends it
}

// Held is what a person holds: a saga, everything, or a destination.
type Held struct {
	Scope  string     `json:"scope"` // all, or saga:NAME
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// Words are what is held, by whom and why.
func (h *Held) Words() string {
	if h == nil {
		return "not paused"
	}
	return fmt.Sprintf("paused, says %s: %s", h.Actor, h.Reason)
}

func heldOf(p *coordinator.Paused) Held {
	return Held{p.Scope.String(), utc(p.At), p.By.Name, p.By.Reason}
}

// Hold pauses a scope.
func (d *Desk) Hold(ctx context.Context, in *ScopeIn) (*Scoped, error) {
	return d.setScope(ctx, in, true)
}

// Release resumes a scope.
func (d *Desk) Release(ctx context.Context, in *ScopeIn) (*Scoped, error) {
	return d.setScope(ctx, in, false)
}

func (d *Desk) setScope(ctx context.Context, in *ScopeIn, pause bool) (*Scoped, error) {
	if err := Usage("", in.By.faults()...); err != nil {
		return nil, err
	}
	f, which, err := d.scope(ctx, &in.Scope)
	if err != nil {
		return nil, err
	}
	name := in.called(which)
	out := &Scoped{Scope: name, DryRun: in.DryRun, Before: f.pauseOf(name), Pause: pause, Waiting: f.waiting[strings.TrimPrefix(name, "destination:")].Works}
	if !pause && out.Before == nil {
		return nil, &Failure{Code: Conflict, What: name + " is not paused", Why: errors.New("nothing was stored"), Next: "see what is: amends destination list"}
	}
	for i := range f.Paused {
		if p := &f.Paused[i]; !pause && p.Scope.String() != name {
			out.Beware = append(out.Beware, fmt.Sprintf("%s still paused, says %s: %s", finding.ScopeIs(p.Scope), p.By.Name, p.By.Reason))
		}
	}
	out.Ends = fmt.Sprintf("amends resume %s --reason WHY%s", finding.Flag(name), d.flag)
	if out.Paused = out.Before; in.DryRun {
		return out, nil
	}
	if err := Either(pause, d.op.PauseScope, d.op.ResumeScope)(ctx, which, in.actor()); err != nil {
		return nil, err
	}
	now, err := d.flow(ctx)
	if err != nil {
		return nil, err
	}
	out.Stored, out.Paused = true, now.pauseOf(name)
	return out, nil
}

// pauseOf is who has paused a scope, or nil.
func (f *flow) pauseOf(name string) *Held {
	if p := f.paused(name); p != nil {
		return &Held{name, utc(p.At), p.By.Name, p.By.Reason}
	}
	if d := f.of(strings.TrimPrefix(name, "destination:")); d != nil && d.State == "paused" {
		return &Held{name, utc(d.Since), d.Actor, d.Why}
	}
	return nil
}

// ScopeActs is who paused and resumed a scope, the newest first.
type ScopeActs struct {
	Scope string     `json:"scope"` // all, saga:NAME, or destination:NAME
	Acts  []ScopeAct `json:"acts"`
}

// ScopeAct is one of them.
type ScopeAct struct {
	At     *time.Time `json:"at"`
	Act    string     `json:"act"` // pause, resume or probe
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// ScopeActs reads who paused and resumed a scope, the newest 100 first.
func (d *Desk) ScopeActs(ctx context.Context, in *Scope) (*ScopeActs, error) {
	_, which, err := d.scope(ctx, in)
	if err != nil {
		return nil, err
	}
	acts, err := d.op.Acts(ctx, which, 0)
	return answer(ScopeActs{in.called(which), docs(acts, func(a *coordinator.Act) ScopeAct {
		return ScopeAct{utc(a.At), Either(a.Paused, "pause", Either(a.Probed, "probe", "resume")), a.By.Name, a.By.Reason}
	})}, err)
}
