package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// statuses and reasons are what list can be narrowed to.
var (
	statuses = []string{
		string(saga.Running), string(saga.Retrying), string(saga.Waiting), string(saga.Compensating),
		string(saga.Review), string(saga.Paused), string(saga.Adopting), string(saga.Completed), string(saga.Compensated),
	}
	reasons = []string{
		string(saga.ReasonInDoubt), string(saga.ReasonUndoFailed), string(saga.ReasonCannotUndo), string(saga.ReasonAfterPivot), string(saga.ReasonExhausted),
		string(saga.ReasonPoison), string(saga.ReasonDeadline), string(saga.ReasonUnanswered),
		string(saga.ReasonLate), string(saga.ReasonHung), string(saga.ReasonConflict),
	}
)

func (a *app) list() *cobra.Command {
	var f ledger.Filter
	var status, reason string
	var review, waiting bool
	var times spans
	cmd := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Args: noWorkOrApproval,
		Short: "List works, oldest first",
		Long: `List works in the order in which they were started, or with --prefix in that of their ids.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is what to give to --after with the same filters, null on the last page. Works that have ended are looked through
ten thousand at a time: a page may have few of them, or none, and says how far it looked.

With -o ids it prints a line for each, as the verbs that take several works read them from standard input: the work id, the saga and
the run that it is at ("-" where its source has no versions), with a tab between them.`,
		Example: `  amends list --review                           # what waits for a person
  amends list --reason in-doubt --saga order-to-invoice
  amends list --prefix shop:order:104 --limit 20
  amends list --external-id inv_5530             # who made inv_5530?
  amends list --status retrying -o json | jq -r '.items[].workId'
  amends list --status compensated --since 24h --newest
  amends list --reason exhausted -o ids | amends retry - --reason "the books are back"`,
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Saga, "saga", "", "works of this saga only")
	fl.StringVar(&status, "status", "", "works of this status only: "+strings.Join(statuses, ", "))
	fl.StringVar(&reason, "reason", "", "works in review for this reason only: "+strings.Join(reasons, ", "))
	fl.BoolVar(&review, "review", false, "works that wait for a person: --status review")
	fl.BoolVar(&waiting, "waiting", false, "works that wait for a time, an answer or a decision: --status waiting; \"--waiting approval\" is amends approvals")
	fl.StringVar(&f.Prefix, "prefix", "", "work ids that begin with this")
	fl.StringVar(&f.WaitsFor, "waits-for", "", "works that wait for this destination, for another try there (retry:NAME), or for a pause: all, saga:NAME")
	fl.StringVar(&f.Step, "step", "", "works where this step is at issue: retried, waiting, undone, in review or paused")
	fl.StringVar(&f.ExternalID, "external-id", "", "works that recorded this external id")
	fl.BoolVar(&f.Unconfirmed, "unconfirmed", false, "works with a step that counts as done although its outcome is unknown (after a rebuild)")
	times.flags(fl)
	fl.BoolVar(&f.Newest, "newest", false, "those first that were started last")
	fl.IntVar(&f.Limit, "limit", 50, "at most this many")
	fl.StringVar(&f.After, "after", "", "the next page, as the page before says it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return a.listApprovals(cmd)
		case review && status == "":
			status = string(saga.Review)
		case waiting && status == "":
			status = string(saga.Waiting)
		}
		wrong := times.read(a.now(), &f)
		if f.Newest && f.Prefix != "" {
			wrong = append(wrong, "works that begin alike are listed in the order of their ids; leave out --newest")
		}
		if err := listable(status, reason, review, f.Limit, wrong); err != nil {
			return err
		}
		f.Status, f.Reason = saga.Status(status), saga.Reason(reason)
		return a.runList(cmd, f)
	}
	return cmd
}

// listable refuses filters that would silently match nothing.
func listable(status, reason string, review bool, limit int, wrong []string) error {
	if status != "" && !slices.Contains(statuses, status) {
		wrong = append(wrong, fmt.Sprintf("there is no status %q: it is one of %s", status, strings.Join(statuses, ", ")))
	}
	if reason != "" && !slices.Contains(reasons, reason) {
		wrong = append(wrong, fmt.Sprintf("there is no reason %q: it is one of %s", reason, strings.Join(reasons, ", ")))
	}
	if status != "" && status != string(saga.Review) && (review || reason != "") {
		wrong = append(wrong, fmt.Sprintf("only works in review have a reason; --status %s says otherwise", status))
	}
	if limit < 1 {
		wrong = append(wrong, "--limit is at least 1")
	}
	if len(wrong) > 0 {
		return usage("", wrong...)
	}
	return nil
}

// spans are the times that a list is narrowed to, as a person writes them.
type spans struct{ since, until, updatedSince, updatedUntil string }

func (s *spans) flags(fl *pflag.FlagSet) {
	fl.StringVar(&s.since, "since", "", "started at this time or later: 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d")
	fl.StringVar(&s.until, "until", "", "started before this time")
	fl.StringVar(&s.updatedSince, "updated-since", "", "moved last at this time or later")
	fl.StringVar(&s.updatedUntil, "updated-until", "", "moved last before this time")
}

// read puts the times into f, and says what is wrong with them.
func (s *spans) read(now time.Time, f *ledger.Filter) (wrong []string) {
	for _, t := range []struct {
		flag string
		text *string
		at   *time.Time
	}{
		{"since", &s.since, &f.CreatedSince}, {"until", &s.until, &f.CreatedUntil},
		{"updated-since", &s.updatedSince, &f.UpdatedSince}, {"updated-until", &s.updatedUntil, &f.UpdatedUntil},
	} {
		at, err := pointInTime(*t.text, now)
		if err != nil {
			wrong = append(wrong, "--"+t.flag+" "+err.Error())
		}
		*t.at = at.Truncate(time.Microsecond)
		if *t.text != "" { // the command for the next page is about the same time, whenever it is typed
			*t.text = at.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
		}
	}
	empty := func(since, until time.Time) bool { return !since.IsZero() && !until.IsZero() && !since.Before(until) }
	if empty(f.CreatedSince, f.CreatedUntil) || empty(f.UpdatedSince, f.UpdatedUntil) {
		wrong = append(wrong, "what it is to be since is not before what it is to be until, so nothing can match")
	}
	return wrong
}

// headJSON is a work in a list.
type headJSON struct {
	Number   int64       `json:"number,string"`
	WorkID   string      `json:"workId"`
	Saga     string      `json:"saga"`
	Version  int         `json:"version"`
	Revision string      `json:"revision"`
	Status   saga.Status `json:"status"`
	Reason   saga.Reason `json:"reason"`
	Session  string      `json:"session"` // the process that holds it; "": none does
	Pending  int64       `json:"pendingSignals"`
	WaitsFor string      `json:"waitsFor"` // a destination, retry:DESTINATION, or a pause (all, saga:NAME); "": nothing but its time
	Unknown  bool        `json:"unknown"`  // no live process knows the definition that it waits for
	Started  *time.Time  `json:"startedAt"`
	Updated  *time.Time  `json:"updatedAt"`
	Due      *time.Time  `json:"dueAt"`
	Finished *time.Time  `json:"finishedAt"`
	Deadline *time.Time  `json:"deadlineAt"` // when it has, or had, to be at its end; null: at no time, or that was looked at
}

func headToJSON(h *ledger.Instance, k *knowledge) headJSON {
	deadline := h.Deadline
	if h.Status.Terminal() {
		deadline = time.Time{}
	}
	return headJSON{
		Number: h.Number, WorkID: h.ID.Work, Saga: h.ID.Saga, Version: h.Version, Revision: h.Revision,
		Status: h.Status, Reason: h.Reason, Session: session(h.Session), Pending: h.Posted - h.Consumed, WaitsFor: h.WaitsFor, Unknown: k.lacking(h) != "",
		Started: utc(h.Created), Updated: utc(h.Updated), Due: utc(h.Due), Finished: utc(h.Finished),
		Deadline: utc(deadline),
	}
}

func session(t machine.Token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

func (a *app) runList(cmd *cobra.Command, f ledger.Filter) error {
	p, k, err := a.heads(cmd.Context(), f)
	if err != nil {
		return err
	}
	if a.json {
		toJSON := func(h *ledger.Instance) headJSON { return headToJSON(h, k) }
		return a.printJSON(listed(p.Instances, p.Next != "", toJSON, func(*ledger.Instance) string { return p.Next }))
	}
	switch {
	case len(p.Instances) == 0:
		if p.Next == "" {
			a.sayf("no works match")
		}
	case a.output == "ids":
		for i := range p.Instances {
			a.printID(p.Instances[i].ID, p.Instances[i].Revision)
		}
	default:
		a.printHeads(p.Instances, k)
		if f.Status == saga.Review {
			a.sayf("what a reason means: amends help situations; what is safe to do with one: amends show WORK")
		}
	}
	switch next := again(cmd) + " --after " + p.Next; {
	case p.Next == "":
	case !p.Looked.IsZero():
		a.sayf("looked as far as the work started at %s; to go on: %s", a.both(p.Looked), next)
	default:
		a.sayf("there are more; the next page: %s", next)
	}
	return nil
}

func (a *app) printHeads(heads []ledger.Instance, k *knowledge) {
	g := grid{header: []string{"saga", "work", "status", "reason", "updated", "due", "note"}}
	for i := range heads {
		h := &heads[i]
		g.add(h.ID.Saga, h.ID.Work, string(h.Status), string(h.Reason), a.when(h.Updated), a.when(h.Due), headNote(h, k))
	}
	a.print(&g)
}

// printID writes what names a work to the verbs: its id, its saga, its run.
func (a *app) printID(id saga.ID, revision string) {
	fmt.Fprintln(a.out, id.Work+"\t"+id.Saga+"\t"+runName(revision))
}

// headNote says what the other columns of a list do not.
func headNote(h *ledger.Instance, k *knowledge) string {
	var notes []string
	if n := h.Posted - h.Consumed; n > 0 {
		notes = append(notes, count(int(n), "signal")+" to be read")
	}
	if h.Status == saga.Waiting {
		notes = append(notes, k.waitsAt(h))
	}
	switch lacking := k.lacking(h); {
	case lacking != "" && k.live == 0:
		notes = append(notes, "no coordinator runs")
	case lacking != "":
		notes = append(notes, "no live process knows "+lacking)
	case h.Session != 0 && len(notes) == 0:
		notes = append(notes, "held by "+h.Session.String())
	case h.Status == saga.Paused && k.paused[h.ID] != "":
		notes = append(notes, k.paused[h.ID])
	case h.WaitsFor != "":
		notes = append(notes, "waits: "+k.because(h.WaitsFor))
	}
	return strings.Join(notes, "; ")
}

// waitsAt says for what a work waits that sends nothing meanwhile.
func (k *knowledge) waitsAt(h *ledger.Instance) string {
	if h.Step == "" {
		return "it was started for later"
	}
	note := "at step " + h.Step
	if spec := k.specs[ledger.Version{Saga: h.ID.Saga, Version: h.Version}]; spec != nil && spec.Index(h.Step) >= 0 {
		if a := spec.Steps[spec.Index(h.Step)].Approval; a != nil {
			note += ", for approval by " + strings.Join(slices.Concat(a.By, a.EscalateTo), ", ")
		}
		if asks := spec.Steps[spec.Index(h.Step)].Answer; asks != nil {
			note += ", for an answer"
			if asks.Callback != "" {
				note += " to " + asks.Callback
			}
			if len(asks.On) > 0 {
				note += " by message " + strings.Join(asks.On, ", ")
			}
		}
	}
	return note
}

// heads opens the ledger for one listing, and asks who runs.
func (a *app) heads(ctx context.Context, f ledger.Filter) (p ledger.Page, k *knowledge, err error) {
	err = a.with(ctx, func(s store) (err error) {
		if p, err = s.List(ctx, f); err != nil {
			return err
		}
		if k, err = whoKnows(ctx, s); err != nil {
			return err
		}
		if f.WaitsFor != "" || slices.ContainsFunc(p.Instances, func(h ledger.Instance) bool { return h.WaitsFor != "" }) {
			if k.flow, err = flowOf(ctx, s); err != nil {
				return err
			}
		}
		if f.WaitsFor != "" {
			if err := k.flow.knows(f.WaitsFor); err != nil {
				return err
			}
		}
		k.paused, err = whoPaused(ctx, s, p.Instances)
		return err
	})
	return p, k, err
}

// whoPaused reads who holds the works that a person does, and why.
func whoPaused(ctx context.Context, s store, heads []ledger.Instance) (map[saga.ID]string, error) {
	var ids []saga.ID
	for i := range heads {
		if heads[i].Status == saga.Paused {
			ids = append(ids, heads[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	chains, err := s.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	words := map[saga.ID]string{}
	for i := range chains {
		id := chains[i].Instance.ID
		if st, err := machine.Fold(id, chains[i].Records); err == nil && st.Status == saga.Paused { // else show says what is wrong
			words[id] = st.Note
		}
	}
	return words, nil
}

// with opens the ledger for fn.
func (a *app) with(ctx context.Context, fn func(store) error) error {
	return a.database(ctx, func(db stores.DB) error { return fn(db) })
}

// again is the command line as it was typed, without the cursor.
func again(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	for _, arg := range cmd.Flags().Args() {
		words = append(words, quote(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "after", f.Name == "before":
		case f.Name == "db":
			if ad, err := parseAddress(f.Value.String()); err == nil && !ad.Secret() {
				words = append(words, "--db", quote(f.Value.String()))
			}
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, quote(f.Value.String()))
		}
	})
	return strings.Join(words, " ")
}
