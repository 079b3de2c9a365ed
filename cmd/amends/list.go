package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

// statuses and reasons are what list can be narrowed to.
var (
	statuses = []string{
		string(saga.Running), string(saga.Retrying), string(saga.Compensating),
		string(saga.Review), string(saga.Paused), string(saga.Adopting), string(saga.Completed), string(saga.Compensated),
	}
	reasons = []string{
		string(saga.ReasonInDoubt), string(saga.ReasonUndoFailed), string(saga.ReasonAfterPivot), string(saga.ReasonExhausted),
		string(saga.ReasonPoison), string(saga.ReasonConflict),
	}
)

func (a *app) list() *cobra.Command {
	var f ledger.Filter
	var status, reason string
	var review bool
	cmd := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Args: noWork,
		Short: "List works, oldest first",
		Long: `List works in the order in which they were started.

When there are more than --limit, the last line (stderr) is the command for the next page; with -o json
"next" is the number to give to --after, null on the last page.

With -o ids it prints one work id a line, as the verbs that take several works read them from standard input; where
several sagas know the id, the saga follows behind a tab.`,
		Example: `  amends list --review                           # what waits for a person
  amends list --reason in-doubt --saga order-to-invoice
  amends list --prefix shop:order:104 --limit 20
  amends list --external-id inv_5530             # who made inv_5530?
  amends list --status retrying -o json | jq -r '.items[].workId'
  amends list --reason exhausted -o ids | amends retry - --reason "the books are back"`,
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Saga, "saga", "", "works of this saga only")
	fl.StringVar(&status, "status", "", "works of this status only: "+strings.Join(statuses, ", "))
	fl.StringVar(&reason, "reason", "", "works in review for this reason only: "+strings.Join(reasons, ", "))
	fl.BoolVar(&review, "review", false, "works that wait for a person: --status review")
	fl.StringVar(&f.Prefix, "prefix", "", "work ids that begin with this")
	fl.StringVar(&f.WaitsFor, "waits-for", "", "works that wait for this destination, or for a pause: all, saga:NAME")
	fl.StringVar(&f.ExternalID, "external-id", "", "works that recorded this external id")
	fl.BoolVar(&f.Unconfirmed, "unconfirmed", false, "works with a step that counts as done because nobody can tell (after a rebuild)")
	fl.IntVar(&f.Limit, "limit", 50, "at most this many")
	fl.Int64Var(&f.After, "after", 0, "only works with a greater number: the next page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if review && status == "" {
			status = string(saga.Review)
		}
		if err := listable(status, reason, review, f.Limit); err != nil {
			return err
		}
		f.Status, f.Reason = saga.Status(status), saga.Reason(reason)
		return a.runList(cmd, f)
	}
	return cmd
}

// listable refuses filters that would silently match nothing.
func listable(status, reason string, review bool, limit int) error {
	var wrong []string
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

// headJSON is a work in a list.
type headJSON struct {
	Number   int64       `json:"number,string"` // the cursor: --after
	WorkID   string      `json:"workId"`
	Saga     string      `json:"saga"`
	Version  int         `json:"version"`
	Revision string      `json:"revision"`
	Status   saga.Status `json:"status"`
	Reason   saga.Reason `json:"reason"`
	Session  string      `json:"session"` // who holds it; "" nobody
	Pending  int64       `json:"pendingSignals"`
	WaitsFor string      `json:"waitsFor"` // a destination, or a pause (all, saga:NAME); "": nothing but its time
	Unknown  bool        `json:"unknown"`  // no live process knows the definition that it waits for
	Started  *time.Time  `json:"startedAt"`
	Updated  *time.Time  `json:"updatedAt"`
	Due      *time.Time  `json:"dueAt"`
	Finished *time.Time  `json:"finishedAt"`
}

func headToJSON(h *ledger.Head, k *knowledge) headJSON {
	return headJSON{
		Number: h.Number, WorkID: h.ID.Work, Saga: h.ID.Saga, Version: h.Version, Revision: h.Revision,
		Status: h.Status, Reason: h.Reason, Session: session(h.Session), Pending: h.Posted - h.Consumed, WaitsFor: h.WaitsFor, Unknown: k.lacking(h) != "",
		Started: utc(h.Created), Updated: utc(h.Updated), Due: utc(h.Due), Finished: utc(h.Finished),
	}
}

func session(t saga.Token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}

func (a *app) runList(cmd *cobra.Command, f ledger.Filter) error {
	limit := f.Limit
	f.Limit++ // one more tells whether there is a next page
	heads, k, err := a.heads(cmd.Context(), f)
	if err != nil {
		return err
	}
	heads, more := page(heads, limit)
	if a.json {
		toJSON := func(h *ledger.Head) headJSON { return headToJSON(h, k) }
		return a.printJSON(listed(heads, more, toJSON, func(h *ledger.Head) int64 { return h.Number }))
	}
	switch {
	case len(heads) == 0:
		a.sayf("no works match")
		return nil
	case a.output == "ids":
		if err := a.printIDs(cmd.Context(), heads); err != nil {
			return err
		}
	default:
		a.printHeads(heads, k)
	}
	if more {
		a.sayf("there are more; the next page: %s --after %d", again(cmd), heads[limit-1].Number)
	}
	return nil
}

func (a *app) printHeads(heads []ledger.Head, k *knowledge) {
	g := grid{header: []string{"saga", "work", "status", "reason", "updated", "due", "note"}}
	for i := range heads {
		h := &heads[i]
		g.add(h.ID.Saga, h.ID.Work, string(h.Status), string(h.Reason), a.when(h.Updated), a.when(h.Due), headNote(h, k))
	}
	a.print(&g)
}

// printIDs writes the ids alone, each with its saga where others know it, too.
func (a *app) printIDs(ctx context.Context, heads []ledger.Head) error {
	return a.with(ctx, func(s store) error {
		for i := range heads {
			id := heads[i].ID
			alike, err := s.List(ctx, ledger.Filter{Work: id.Work})
			if err != nil {
				return err
			}
			line := id.Work
			if len(alike) > 1 {
				line += "\t" + id.Saga
			}
			fmt.Fprintln(a.out, line)
		}
		return nil
	})
}

// headNote says what the other columns of a list do not.
func headNote(h *ledger.Head, k *knowledge) string {
	var notes []string
	if n := h.Posted - h.Consumed; n > 0 {
		notes = append(notes, count(int(n), "signal")+" to be read")
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

// heads opens the ledger for one listing, and asks who runs.
func (a *app) heads(ctx context.Context, f ledger.Filter) (heads []ledger.Head, k *knowledge, err error) {
	err = a.with(ctx, func(s store) (err error) {
		if heads, err = s.List(ctx, f); err != nil {
			return err
		}
		if k, err = whoKnows(ctx, s); err != nil {
			return err
		}
		if f.WaitsFor != "" || slices.ContainsFunc(heads, func(h ledger.Head) bool { return h.WaitsFor != "" }) {
			if k.flow, err = flowOf(ctx, s); err != nil {
				return err
			}
		}
		if f.WaitsFor != "" {
			if err := k.flow.knows(f.WaitsFor); err != nil {
				return err
			}
		}
		k.paused, err = whoPaused(ctx, s, heads)
		return err
	})
	return heads, k, err
}

// whoPaused reads who holds the works that a person does, and why.
func whoPaused(ctx context.Context, s store, heads []ledger.Head) (map[saga.ID]string, error) {
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
		id := chains[i].Head.ID
		if st, err := saga.Fold(id, chains[i].Records); err == nil && st.Status == saga.Paused { // else show says what is wrong
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
			if ad, err := parseAddress(f.Value.String()); err == nil && !ad.secret() {
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
