package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
)

// inboxVerbs is the table of what amends can do with what was heard, as verbs is for works.
var inboxVerbs = []func(*app) *cobra.Command{
	(*app).inboxList,
	(*app).inboxShow,
	(*app).inboxObjects,
	(*app).inboxCounts,
	(*app).inboxReplay,
	(*app).inboxRelease,
	(*app).inboxDrop,
}

func (a *app) inbox() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "inbox",
		Short: "Show and replay what was heard from sources of truth",
		Long: `Show what was heard from sources of truth: webhooks that were verified and stored, what the gate made of each,
and what is known of the objects they speak of.

A delivery is one webhook about one object. The gate judges it once, and says why. What it accepts, and what a
source answers when it is asked, becomes the accepted state of the object, and that state becomes a work: its id is
the object, written as SOURCE:TYPE:ID, or SOURCE:TENANT:TYPE:ID; a colon within a part is written %3A.`,
		Example: `  amends inbox list --object shop:order:10492      # what did we hear about the order?
  amends inbox show 4711                           # one delivery: why it did what it did
  amends inbox objects --blocked                   # what waits for a person
  amends inbox replay 4711 --reason "the books are back" --dry-run
  amends inbox release shop --reason "the shop closes"   # withdrawals that are held, see docs/reconciling.md`,
	}, inboxVerbs)
}

// ear is the people's side of what was heard.
type ear interface {
	intake.Reader
}

// listening opens what was heard for fn.
func (a *app) listening(ctx context.Context, fn func(ear) error) error {
	return a.reconciling(ctx, func(r reconciler) error { return fn(r) })
}

// meaning is a disposition as a person reads it.
type meaning struct {
	disposition intake.Disposition
	words       string
}

// dispositionMeanings is the one table of dispositions: what list can be narrowed to, and what show
// says.
var dispositionMeanings = []meaning{
	{intake.Applied, "it was newer than what was known, and became the accepted state"},
	{intake.Tombstoned, "the object is gone at its source, and that became the accepted state"},
	{intake.Hint, "it proves that something changed, not to what, so the source is asked"},
	{intake.Tie, "the same version was known with another content, so the source is asked"},
	{intake.Conflict, "an earlier delivery had its id and said something else, so the source is asked"},
	{intake.Parked, "it is a change whose predecessor has not come; when that does not come in time, the source is asked"},
	{intake.Stale, "it was older than what was known: nothing follows from it"},
	{intake.Duplicate, "what it says was known: nothing follows from it"},
	{intake.Echo, "it tells of our own doing: nothing follows from it"},
	{intake.Malformed, "it was signed by its source and could not be read: nothing follows from it"},
	{intake.Unknown, "it names no object, or one whose source, tenant or type is not set up: nothing follows from it"},
	{intake.Ignored, "it was not meant to be judged: nothing follows from it"},
}

// dispositionNames are all dispositions.
func dispositionNames() []string {
	names := make([]string, len(dispositionMeanings))
	for i, m := range dispositionMeanings {
		names[i] = string(m.disposition)
	}
	return names
}

// meaningOf is a disposition in words; "" for none.
func meaningOf(v intake.Disposition) string {
	i := slices.IndexFunc(dispositionMeanings, func(m meaning) bool { return m.disposition == v })
	if i < 0 {
		return ""
	}
	return dispositionMeanings[i].words
}
