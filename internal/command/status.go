package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

func (a *app) status() *cobra.Command {
	var still time.Duration
	var exitCode bool
	cmd := &cobra.Command{
		Use: "status [flags]", Args: noWork,
		Short: "Is anything running, and does everything move?",
		Long: `Say which coordinators run and what they know, and what does not move: works that wait for a definition which none of
them knows, live works whose latest record is old although they are held or overdue, what is dated later than the
ledger's clock, a database without a witness that would notice a restore, what a person has while its deadline has passed, genuine webhooks of the last 24 hours that could not be read,
withdrawals that are held, and works of one saga that wait for one message. What waits for a person is counted, and no finding: amends list --review, amends list --status paused.`,
		Example: `  amends status
  amends status --still 1h
  amends status --exit-code || page-on-call   # 6: something does not move
  amends status -o json | jq .findings`,
	}
	cmd.Flags().DurationVar(&still, "still", 10*time.Minute, "a live work that has not moved for this long is a finding")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when something does not move")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if still <= 0 {
			return usage("", "--still is longer than nothing")
		}
		var o ledger.Overview
		var f *flow
		var held forPeople
		var heard []intake.Count
		var holdings []intake.Holding
		var several []ledger.Shared
		err := a.database(cmd.Context(), func(s stores.DB) (err error) {
			if o, err = s.Overview(cmd.Context()); err != nil {
				return err
			}
			if f, err = flowIn(cmd.Context(), s, &o); err != nil {
				return err
			}
			if heard, err = s.Counts(cmd.Context()); err != nil {
				return err
			}
			if holdings, err = s.Holdings(cmd.Context()); err != nil {
				return err
			}
			if several, err = s.Shared(cmd.Context()); err != nil {
				return err
			}
			held, err = heldFor(cmd.Context(), s, o.At)
			return err
		})
		if err != nil {
			return err
		}
		findings := slices.Concat(findingsOf(&o, still), f.findings(), held.findings(), unreadable(heard, o.At), heldBack(holdings), shared(several))
		if err := a.printStatus(&o, findings, held); err != nil || !exitCode || len(findings) == 0 {
			return err
		}
		return &failure{exit: exitFindings, what: "something does not move", next: "read the " + count(len(findings), "finding")}
	}
	return cmd
}

// troubleJSON is one thing that does not move, and what to do about it.
type troubleJSON struct {
	Kind  string `json:"kind"` // no-coordinator, unknown-definition, witness, still, ahead, destination, paused, overdue, unreadable, held, shared
	Words string `json:"words"`
	Next  string `json:"next"`
	// Source is the one whose withdrawals are held; "" for all else.
	Source string `json:"source"`
}

// findings are the destinations that are not healthy, and what is paused.
func (f *flow) findings() (findings []troubleJSON) {
	for i := range f.Paused {
		p := &f.Paused[i]
		findings = append(findings, troubleJSON{
			Kind: "paused", Words: fmt.Sprintf("%s paused since %s, says %s: %s%s", scopeIs(p.Scope), iso(p.At), p.By.Name, p.By.Reason, f.queue(p.Scope.String())),
			Next: "when it may go on: amends resume " + flagOf(p.Scope.String()) + " --reason WHY",
		})
	}
	for i := range f.Destinations {
		d := &f.Destinations[i]
		next := "it is tried by itself; when it is mended: amends destination probe " + quote(d.Name) + " --reason WHY"
		switch d.State {
		case "healthy":
			continue
		case "paused":
			next = "when it may go on: amends resume --destination " + quote(d.Name) + " --reason WHY"
		}
		findings = append(findings, troubleJSON{Kind: "destination", Words: "destination " + f.stands(d.Name) + f.queue(d.Name), Next: next})
	}
	return findings
}

// queue says how many works wait under a name.
func (f *flow) queue(name string) string {
	switch n := f.waiting[name].Works + f.waiting[coordinator.RetryPrefix+name].Works; n {
	case 0:
		return ""
	case 1:
		return "; 1 work waits for it"
	default:
		return "; " + waits(n) + " works wait for it"
	}
}

// findingsOf says what does not move.
func findingsOf(o *ledger.Overview, still time.Duration) []troubleJSON {
	findings := []troubleJSON{}
	add := func(kind, next, format string, args ...any) {
		findings = append(findings, troubleJSON{Kind: kind, Words: fmt.Sprintf(format, args...), Next: next})
	}
	if len(o.Sessions) == 0 {
		add("no-coordinator", "start the program that runs the sagas", "no coordinator runs: no session is live")
	}
	if words, next := unwitnessed(o.Sessions); words != "" {
		add("witness", next, "%s", words)
	}
	for i := range o.Unknown {
		b := &o.Unknown[i]
		add("unknown-definition", "start a program that registers "+backlogName(b),
			"no live process knows %s: %s", backlogName(b), backlogWorks(b, o.At))
	}
	for i := range o.Oldest {
		h := &o.Oldest[i]
		if d := o.At.Sub(h.Updated); d >= still {
			add("still", "look: "+showCommand(h.ID, ""),
				"%s %s (%s) has not moved for %s", h.ID.Saga, h.ID.Work, standing(h.Status, h.Reason), span(d))
		}
	}
	const next = "see that the database's clock is right; then make it due: amends catch-up"
	for i := range o.Ahead.Works {
		h := &o.Ahead.Works[i]
		add("ahead", next, "%s %s is due at %s, later than the ledger's clock can explain: it was further once", h.ID.Saga, h.ID.Work, iso(h.Due))
	}
	for i := range o.Ahead.Sessions {
		s := &o.Ahead.Sessions[i]
		add("ahead", next, "session %s (%s) was renewed at %s, later than the ledger's clock: its lease ends late", s.Token, s.Label, iso(s.Renewed))
	}
	return findings
}

// unwitnessed says that no process which runs has a witness of the ledger.
func unwitnessed(sessions []ledger.Session) (words, next string) {
	for i := range sessions {
		switch w := sessions[i].Witness; w {
		case ledger.WitnessKept, ledger.WitnessTemp, "":
			return "", ""
		case ledger.WitnessNew:
			words = "the witness of what runs knew nothing of this ledger before: whether the database was put back from a backup, it cannot tell"
			next = "if it was: stop every process, then amends recover --restored --reason WHY. If not, the next start has a witness"
		default:
			if words == "" {
				words = "the ledger has no witness: that its database was put back from a backup would not be noticed (" + w + ")"
				next = "give the process a folder that outlives it, or a store.Witness of your own"
			}
		}
	}
	return words, next
}

// unreadableFor is for how long a delivery that could not be read is a finding: nothing takes it back.
const unreadableFor = 24 * time.Hour

// unreadable are the sources whose genuine deliveries could not be read lately: their senders were
// told that they arrived, and will not speak of it again.
func unreadable(counts []intake.Count, now time.Time) (findings []troubleJSON) {
	for _, c := range counts {
		if c.Disposition == intake.Malformed && now.Sub(c.Last) < unreadableFor {
			findings = append(findings, troubleJSON{
				Kind: "unreadable", Words: fmt.Sprintf("%s of %s could not be read, the latest at %s: nothing follows from what it said",
					count(int(c.Count), "genuine webhook"), c.Source, iso(c.Last)),
				Next: "look: amends inbox list --disposition malformed --source " + quote(c.Source),
			})
		}
	}
	return findings
}

// shared are the messages for which several works of a saga wait.
func shared(all []ledger.Shared) (findings []troubleJSON) {
	for _, s := range all {
		findings = append(findings, troubleJSON{
			Kind: "shared", Words: fmt.Sprintf("works of %s wait for the same message, %s about %q: one that comes is for the work that has waited for longest", s.Saga, s.Name, s.Key),
			Next: "if each of them has a message of its own, give them keys that differ, such as the work id",
		})
	}
	return findings
}

// heldBack are the sources that withdraw more than their bounds.
func heldBack(all []intake.Holding) (findings []troubleJSON) {
	for _, h := range all {
		source := quote(h.Source)
		findings = append(findings, troubleJSON{
			Kind: "held", Source: h.Source, Words: fmt.Sprintf("withdrawals of %s that are held: %d; it cancelled or removed more at once than its bound lets through, and nothing of that is undone", h.Source, h.Count),
			Next: "look: amends inbox objects --held --source " + source + "; if the source is right, undo it all: amends inbox release " + source +
				" --reason WHY; if it is wrong, leave all as it is: amends inbox drop " + source + " --reason WHY",
		})
	}
	return findings
}

func backlogName(b *ledger.Backlog) string { return definition(b.Saga, b.Version, b.Ended) }

// backlogWorks says how many works wait, and for how long.
func backlogWorks(b *ledger.Backlog, now time.Time) string {
	what := "work"
	if b.Ended { // they have a signal to be read
		what = "ended work"
	}
	n := count(int(b.Works), what)
	if b.Works >= ledger.MaxBacklog {
		n = "at least " + n
	}
	switch late := now.Sub(b.Oldest); {
	case b.Oldest.IsZero():
		return n
	case late <= 0:
		return fmt.Sprintf("%s, the first due in %s", n, span(-late))
	default:
		return fmt.Sprintf("%s, the first due for %s", n, span(late))
	}
}

// statusJSON is an overview as JSON.
type statusJSON struct {
	At       *time.Time    `json:"at"` // the ledger's clock
	Sessions []sessionJSON `json:"sessions"`
	Unknown  []backlogJSON `json:"unknown"` // definitions that no live session knows
	Oldest   []headJSON    `json:"oldest"`  // the live works whose latest record is oldest, held or overdue
	Findings []troubleJSON `json:"findings"`
	Review   int           `json:"review"` // works in review, and paused one by one; at most 1000 of each are counted
	Paused   int           `json:"paused"`
	Waiting  int           `json:"waiting"`  // for a time or an answer; at most 1000 are counted
	Retrying int           `json:"retrying"` // after a failure, by itself; at most 1000 are counted
}

type sessionJSON struct {
	Session string           `json:"session"`
	Label   string           `json:"label"`
	Opened  *time.Time       `json:"openedAt"`
	Renewed *time.Time       `json:"renewedAt"`
	Expires *time.Time       `json:"expiresAt"` // the end of its lease
	Holds   int64            `json:"holds"`     // works
	Witness string           `json:"witness"`   // kept, new or temporary; else why it has none
	Knows   []definitionJSON `json:"knows"`
}

type definitionJSON struct {
	Saga    string `json:"saga"`
	Version int    `json:"version"`
}

type backlogJSON struct {
	definitionJSON
	Ended  bool       `json:"ended"` // they have a signal to be read: a newer version will do
	Works  int64      `json:"works"` // at most 1000 are counted
	Oldest *time.Time `json:"oldestDueAt"`
}

// forPeople is how many works wait for a person; up to [ledger.MaxBacklog] of each are counted.
type forPeople struct {
	review, paused int
	waiting        int               // for a time or an answer, and not for a person
	retrying       int               // by itself
	overdue        []ledger.Instance // of those that wait for a person, the ones whose deadline has passed meanwhile
}

func heldFor(ctx context.Context, s store, at time.Time) (n forPeople, err error) {
	of := func(status saga.Status) []ledger.Instance {
		heads, errList := ledger.First(ctx, s, ledger.Filter{Status: status, Limit: ledger.MaxBacklog})
		err = errors.Join(err, errList)
		return heads
	}
	review, paused := of(saga.Review), of(saga.Paused)
	n.review, n.paused, n.waiting, n.retrying = len(review), len(paused), len(of(saga.Waiting)), len(of(saga.Retrying))
	for _, h := range slices.Concat(review, paused) { // what waits is looked at by itself
		if !h.Deadline.IsZero() && !h.Deadline.After(at) {
			n.overdue = append(n.overdue, h)
		}
	}
	return n, err
}

// findings are the works that a person has, and whose deadline has passed meanwhile. Nothing follows from it by
// itself.
func (n forPeople) findings() (findings []troubleJSON) {
	for i := range min(len(n.overdue), 10) {
		h := &n.overdue[i]
		findings = append(findings, troubleJSON{Kind: "overdue", Words: fmt.Sprintf("%s %s (%s): its deadline passed at %s, and a person has it",
			h.ID.Saga, h.ID.Work, standing(h.Status, h.Reason), iso(h.Deadline)), Next: "decide about it: " + showCommand(h.ID, "")})
	}
	return findings
}

// words is what waits for a person, with the commands that list it; "" when nothing does.
func (n forPeople) words() string {
	var words []string
	add := func(n int, is, command string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%s %s (%s)", waits(int64(n)), is, command))
		}
	}
	add(n.review, "in review", "amends list --review")
	add(n.paused, "paused", "amends list --status paused")
	add(n.waiting, "waiting for a time or an answer", "amends list --waiting")
	return strings.Join(words, ", ")
}

func (a *app) printStatus(o *ledger.Overview, findings []troubleJSON, held forPeople) error {
	if a.json {
		return a.printJSON(statusToJSON(o, findings, held))
	}
	a.field("clock", iso(o.At)+" (the ledger's)")
	a.field("running", count(len(o.Sessions), "coordinator"))
	if len(o.Sessions) > 0 {
		fmt.Fprintln(a.out)
		g := grid{header: []string{"session", "process", "opened", "lease until", "holds", "knows"}}
		for i := range o.Sessions {
			s := &o.Sessions[i]
			g.add(s.Token.String(), s.Label, a.when(s.Opened), a.when(s.Expires), strconv.FormatInt(s.Holds, 10), knows(s.Knows))
		}
		a.print(&g)
	}
	fmt.Fprintln(a.out)
	if len(findings) == 0 {
		a.paragraph("", "Everything moves.")
	}
	for _, f := range findings {
		a.paragraph("", f.Words)
		a.paragraph("  ", f.Next)
	}
	if words := held.words(); words != "" {
		a.paragraph("", "For a person to decide: "+words)
	}
	if held.retrying > 0 {
		a.paragraph("", fmt.Sprintf("Tried again by themselves: %d (amends list --status retrying)", held.retrying))
	}
	return nil
}

// knows lists definitions: order-to-invoice 1, 2; order-to-parcel 3.
func knows(vs []ledger.Version) string {
	vs = slices.SortedFunc(slices.Values(vs), func(a, b ledger.Version) int {
		return cmp.Or(strings.Compare(a.Saga, b.Saga), cmp.Compare(a.Version, b.Version))
	})
	var b strings.Builder
	for i, v := range vs {
		switch {
		case i > 0 && v.Saga == vs[i-1].Saga:
			fmt.Fprintf(&b, ", %d", v.Version)
		case i > 0:
			fmt.Fprintf(&b, "; %s %d", v.Saga, v.Version)
		default:
			fmt.Fprintf(&b, "%s %d", v.Saga, v.Version)
		}
	}
	if b.Len() == 0 {
		return "nothing: it runs no sagas"
	}
	return b.String()
}

func statusToJSON(o *ledger.Overview, findings []troubleJSON, held forPeople) statusJSON {
	j := statusJSON{
		At: utc(o.At), Sessions: make([]sessionJSON, len(o.Sessions)), Unknown: make([]backlogJSON, len(o.Unknown)),
		Oldest: make([]headJSON, len(o.Oldest)), Findings: append([]troubleJSON{}, findings...),
		Review: held.review, Paused: held.paused, Waiting: held.waiting, Retrying: held.retrying,
	}
	for i := range o.Sessions {
		s := &o.Sessions[i]
		j.Sessions[i] = sessionJSON{
			Session: s.Token.String(), Label: s.Label, Opened: utc(s.Opened), Renewed: utc(s.Renewed), Expires: utc(s.Expires),
			Holds: s.Holds, Witness: s.Witness, Knows: make([]definitionJSON, len(s.Knows)),
		}
		for n, v := range s.Knows {
			j.Sessions[i].Knows[n] = definitionJSON{v.Saga, v.Version}
		}
	}
	for i := range o.Unknown {
		b := &o.Unknown[i]
		j.Unknown[i] = backlogJSON{definitionJSON{b.Saga, b.Version}, b.Ended, b.Works, utc(b.Oldest)}
	}
	k := knowledgeOf(o.Sessions)
	for i := range o.Oldest {
		j.Oldest[i] = headToJSON(&o.Oldest[i], k)
	}
	return j
}
