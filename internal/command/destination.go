package command

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

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/ledger"
)

func (a *app) destination() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "destination",
		Short: "What the sagas talk to: does it work, and who holds it?",
		Long: `A destination is what a step talks to: what its definition names with To, or one of its own, as in
order-to-invoice/invoice. Every process obeys its state, which is kept in the ledger.`,
		Example: `  amends destination list
  amends destination probe books --reason "they say that it is mended"`,
	}, []func(*app) *cobra.Command{(*app).destinationList, (*app).destinationProbe})
}

func (a *app) destinationList() *cobra.Command {
	var exitCode bool
	cmd := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Args: noArguments,
		Short: "List destinations: which work, which fail, and what waits",
		Long: `List the destinations of all definitions that the ledger has seen, each with its state:

  healthy  works that want it are sent there
  limited  it asked to be left alone until then (429, 503)
  failing  twenty in a row failed that never failed there before, or five within more than two minutes: "note" says
           so. One attempt at a time, soon only every minute, finds out when it is back: "until" is the time of the next
  paused   a person holds it; it ends with: amends resume --destination NAME

While it is not healthy, what wants it waits, going forward or back, and spends neither attempts nor a key's window. What
keeps failing beside others that are served says nothing of the destination: it is tried again, one send in ten is kept
for it, and it spends its policy. "waiting" counts works that wait in the ledger to be sent, and "failed" those that wait
for another try (--waits-for retry:NAME), both up to a thousand; parts are those of its limit, and who has how many; "note" says which
of its slots requests without an answer hold, and until when. When
it is mended: amends destination probe NAME.`,
		Example: `  amends destination list
  amends destination list --exit-code || page-on-call   # 6: one is not healthy
  amends pause --destination books --reason "they are being moved"`,
	}
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when one is not healthy")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var f *flow
		err := a.with(cmd.Context(), func(s store) (err error) {
			f, err = flowOf(cmd.Context(), s)
			return err
		})
		if err != nil {
			return err
		}
		if err := a.printDestinations(f); err != nil || !exitCode {
			return err
		}
		return f.alarm()
	}
	return cmd
}

// flow is what stands between works and where they want to go.
type flow struct {
	coordinator.Standing
	now     time.Time
	waiting map[string]ledger.Waiting // by destination, and by the name of a pause
	sagas   map[string]bool           // that a process ever registered
}

// flowOf reads it, with the destinations of all definitions.
func flowOf(ctx context.Context, s store) (*flow, error) {
	o, err := s.Overview(ctx)
	if err != nil {
		return nil, err
	}
	return flowIn(ctx, s, &o)
}

// flowIn is flowOf when the overview is there already.
func flowIn(ctx context.Context, s store, o *ledger.Overview) (*flow, error) {
	st, err := coordinator.NewOperator(s).Standing(ctx, o.At)
	if err != nil {
		return nil, err
	}
	definitions, err := s.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	f := &flow{Standing: st, now: o.At, waiting: map[string]ledger.Waiting{}, sagas: map[string]bool{}}
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
		return &failure{
			exit: exitNotFound, what: fmt.Sprintf("there is no saga %q", of),
			err: errors.New("no process ever registered it on this ledger"), next: "see which there are: amends list",
		}
	default:
		return unheardOf(name)
	}
}

func unheardOf(destination string) *failure {
	return &failure{
		exit: exitNotFound, what: fmt.Sprintf("no definition names a destination %q", destination),
		err: errors.New("the ledger never heard of it"), next: "see which there are: amends destination list",
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

// ofWorks reports whether a name under which works wait is a pause, and no destination.
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

// alarm is the finding that destinations are not healthy, or nil.
func (f *flow) alarm() error {
	n := 0
	for i := range f.Destinations {
		if f.Destinations[i].State != "healthy" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &failure{exit: exitFindings, what: counted(n, "destination is not healthy", "destinations are not healthy"), next: "see what it says of itself: amends destination list"}
}

// destinationJSON is a destination as JSON.
type destinationJSON struct {
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
}

func (f *flow) toJSON() []destinationJSON {
	all := make([]destinationJSON, len(f.Destinations))
	for i := range f.Destinations {
		d := &f.Destinations[i]
		w := f.waiting[d.Name]
		all[i] = destinationJSON{
			Destination: d.Name, State: d.State, Since: utc(d.Since), Until: utc(d.Until), Evidence: d.Evidence, Why: d.Why, Actor: d.Actor, Served: utc(d.Served),
			Waiting: w.Works, Oldest: utc(w.Oldest), Failed: f.waiting[coordinator.RetryPrefix+d.Name].Works, Parts: d.Parts, Shares: d.Shares,
			Unanswered: d.Unanswered, UnansweredUntil: utc(d.UnansweredUntil), Left: d.Left, LeftUntil: utc(d.LeftUntil),
		}
		if d.Shares == nil {
			all[i].Shares = map[string]int{}
		}
	}
	return all
}

// destinationsJSON are all destinations, and what is paused besides.
type destinationsJSON struct {
	Items  []destinationJSON `json:"items"`
	Paused []pausedJSON      `json:"paused"`
}

func (a *app) printDestinations(f *flow) error {
	if a.json {
		return a.printJSON(destinationsJSON{f.toJSON(), f.pausesJSON()})
	}
	for i := range f.Paused {
		p := &f.Paused[i]
		a.paragraph("", fmt.Sprintf("%s paused since %s, says %s: %s", upper(finding.ScopeIs(p.Scope)), iso(p.At), p.By.Name, p.By.Reason))
	}
	if len(f.Paused) > 0 {
		fmt.Fprintln(a.out)
	}
	if len(f.Destinations) == 0 {
		a.sayf("no process ever registered a saga on this ledger")
		return nil
	}
	g := grid{header: []string{"destination", "state", "since", "until", "waiting", "failed", "parts", "note"}}
	for i := range f.Destinations {
		d := &f.Destinations[i]
		g.add(d.Name, d.State, a.when(d.Since), a.when(d.Until), waits(f.waiting[d.Name].Works), waits(f.waiting[coordinator.RetryPrefix+d.Name].Works), parts(d), destinationNote(d))
	}
	a.print(&g)
	return nil
}

// parts says who has how many parts of a limit: 2 of 4, 2.
func parts(d *coordinator.DestinationStatus) string {
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

func destinationNote(d *coordinator.DestinationStatus) string {
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
	return strings.Join(words, "; ")
}

// pausedJSON is a saga, or everything, that is paused.
type pausedJSON struct {
	Scope  string     `json:"scope"` // all, or saga:NAME
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

func (f *flow) pausesJSON() []pausedJSON {
	all := make([]pausedJSON, len(f.Paused))
	for i := range f.Paused {
		p := &f.Paused[i]
		all[i] = pausedJSON{p.Scope.String(), utc(p.At), p.By.Name, p.By.Reason}
	}
	return all
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
