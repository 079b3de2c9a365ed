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

	"github.com/amends-dev/amends/internal/finding"
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
ledger's clock, a database without a witness that would notice a restore, or that a reader keeps from cleaning up,
destinations that are not healthy or of whose limit half serves none, what is paused, what a person has while its
deadline has passed, genuine webhooks of the last 24 hours that could not be read or named no object, sources whose clock
is ahead, withdrawals that are held, and works of one saga that wait for one message. amends help situations has a section
for each. What waits for a person is counted, and no finding: amends list --review, amends list --status paused. So is
what waits for a time, an answer or a decision: amends list --waiting.`,
		Example: `  amends status
  amends status --still 1h
  amends status --exit-code || page-on-call   # 6: something does not move
  amends status -o json | jq .findings`,
	}
	cmd.Flags().DurationVar(&still, "still", finding.Still, "a live work that has not moved for this long is a finding")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when something does not move")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if still <= 0 {
			return usage("", "--still is longer than nothing")
		}
		var f *finding.Facts
		var held forPeople
		err := a.database(cmd.Context(), func(s stores.DB) (err error) {
			if f, err = finding.Read(cmd.Context(), s); err == nil {
				held, err = heldFor(cmd.Context(), s, f)
			}
			return err
		})
		if err != nil {
			return err
		}
		findings := f.All(still)
		if err := a.printStatus(&f.Overview, findings, held); err != nil || !exitCode || len(findings) == 0 {
			return err
		}
		return &failure{exit: exitFindings, what: "something does not move", next: "read the " + count(len(findings), "finding")}
	}
	return cmd
}

// statusJSON is an overview as JSON.
type statusJSON struct {
	At       *time.Time        `json:"at"` // the ledger's clock
	Sessions []sessionJSON     `json:"sessions"`
	Unknown  []backlogJSON     `json:"unknown"` // definitions that no live session knows
	Oldest   []headJSON        `json:"oldest"`  // the live works whose latest record is oldest, held or overdue
	Findings []finding.Finding `json:"findings"`
	Review   int               `json:"review"` // works in review, and paused one by one; at most 1000 of each are counted
	Paused   int               `json:"paused"`
	Waiting  int               `json:"waiting"`  // for a time or an answer; at most 1000 are counted
	Retrying int               `json:"retrying"` // after a failure, by itself; at most 1000 are counted
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

// forPeople is how many works wait for a person, and for what else; up to [ledger.MaxBacklog] of each are counted.
type forPeople struct {
	review, paused int
	waiting        int // for a time, an answer or a decision
	retrying       int // by itself
}

func heldFor(ctx context.Context, s store, f *finding.Facts) (n forPeople, err error) {
	of := func(status saga.Status) int {
		heads, errList := ledger.First(ctx, s, ledger.Filter{Status: status, Limit: ledger.MaxBacklog})
		err = errors.Join(err, errList)
		return len(heads)
	}
	n = forPeople{len(f.Review), len(f.Paused), of(saga.Waiting), of(saga.Retrying)}
	return n, err
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
	return strings.Join(words, ", ")
}

func (a *app) printStatus(o *ledger.Overview, findings []finding.Finding, held forPeople) error {
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
	if held.waiting > 0 {
		a.paragraph("", fmt.Sprintf("Waiting for a time, an answer or a decision: %s (amends list --waiting; decisions: amends approvals)", waits(int64(held.waiting))))
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

func statusToJSON(o *ledger.Overview, findings []finding.Finding, held forPeople) statusJSON {
	j := statusJSON{
		At: utc(o.At), Sessions: make([]sessionJSON, len(o.Sessions)), Unknown: make([]backlogJSON, len(o.Unknown)),
		Oldest: make([]headJSON, len(o.Oldest)), Findings: append([]finding.Finding{}, findings...),
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
