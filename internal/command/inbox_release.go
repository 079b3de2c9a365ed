package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
	stores "github.com/amends-dev/amends/store"
)

func (a *app) inboxRelease() *cobra.Command {
	return a.endsHold(intake.ActRelease, &cobra.Command{
		Short: "Let the withdrawals of a source through that are held",
		Long: `Let the withdrawals of a source through that are held because they were more than its bound. Each is decided once more
by the state of its object: what its source still wants withdrawn is undone, however many that are. What is withdrawn
from then on is counted from the beginning.

Look first: amends inbox objects --held --source SOURCE.`,
		Example: `  amends inbox release shop --reason "the shop closes, Ann says" --dry-run`,
	})
}

func (a *app) inboxDrop() *cobra.Command {
	return a.endsHold(intake.ActDrop, &cobra.Command{
		Short: "Drop the withdrawals of a source that are held",
		Long: `Drop the withdrawals of a source that are held because they were more than its bound: they count as told, and nothing is
undone. What the source says later is taken as always, and what is withdrawn from then on is counted from the
beginning. So mend the source first. A nightly comparison still finds what differs, and has its own bounds.`,
		Example: `  amends inbox drop shop --reason "a field was renamed; mended in 4.2"`,
	})
}

// endsHold completes a verb that ends the hold of a source.
func (a *app) endsHold(act string, cmd *cobra.Command) *cobra.Command {
	var by saga.Actor
	var dryRun bool
	cmd.Use = act + " SOURCE --reason WHY [flags]"
	cmd.Args = func(_ *cobra.Command, args []string) error { return said("the name of the source", args...) }
	byFlags(cmd, &by, "why; required, and kept in the ledger for ever")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say how many are held and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var wrong []string
		if len(args) != 1 {
			wrong = append(wrong, "name the source: "+cmd.CommandPath()+" SOURCE")
		}
		if wrong = append(wrong, byFaults(&by)...); len(wrong) > 0 {
			return usage("try: amends inbox "+act+" --help", wrong...)
		}
		return a.endHold(cmd.Context(), &endedJSON{Source: args[0], Act: act, Actor: by.Name, Reason: by.Reason, DryRun: dryRun})
	}
	return cmd
}

// endedJSON is what became of withdrawals that were held.
type endedJSON struct {
	Source string `json:"source"`
	Act    string `json:"act"`
	Count  int64  `json:"withdrawals"` // that were held
	Actor  string `json:"actor"`
	Reason string `json:"reason"`
	DryRun bool   `json:"dryRun"`
	Stored bool   `json:"stored"`
}

func (a *app) endHold(ctx context.Context, out *endedJSON) error {
	err := a.database(ctx, func(s stores.DB) error {
		if !out.DryRun {
			n, err := s.EndHold(ctx, out.Source, out.Act, saga.Actor{Name: out.Actor, Reason: out.Reason})
			out.Count, out.Stored = n, n > 0
			return err
		}
		all, err := s.Holdings(ctx)
		for _, h := range all {
			if h.Source == out.Source {
				out.Count = h.Count
			}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(out)
	case out.Count == 0:
		a.sayf("no withdrawal of %s is held; nothing was done", out.Source)
		return nil
	}
	words := map[string]string{intake.ActDrop: "Dropped: nothing of them is undone.", intake.ActRelease: "Released: they are decided once more, and undone, as soon as a process that hears runs."}[out.Act]
	if out.DryRun {
		words = "Dry run: nothing was changed."
	}
	a.field("held", count(int(out.Count), "withdrawal")+" of "+out.Source)
	a.field("order", out.Act)
	a.field("said by", out.Actor+": "+out.Reason)
	fmt.Fprintln(a.out)
	a.paragraph("", words)
	return nil
}
