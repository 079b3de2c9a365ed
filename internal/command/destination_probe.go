package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/saga"
)

func (a *app) destinationProbe() *cobra.Command {
	var by saga.Actor
	cmd := &cobra.Command{
		Use: "probe NAME --reason WHY [flags]", Args: func(_ *cobra.Command, args []string) error { return said("the name of the destination", args...) },
		Short: "Try a destination now, whatever it asked for and however often it failed",
		Long: `Try a destination now: you know that it is mended, or want to know. What failed there before is due at once, and so is a
destination that asked to be left alone. Where it still fails, one attempt is made, and the waits are as before. Every
process learns of it within about a second.`,
		Example: `  amends destination probe books --reason "they say that it is mended"`,
	}
	byFlags(cmd, &by, "why; required, and kept in the ledger for ever")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var wrong []string
		if len(args) != 1 {
			wrong = append(wrong, "name the destination: "+cmd.CommandPath()+" NAME")
		}
		if wrong = append(wrong, byFaults(&by)...); len(wrong) > 0 {
			return usage("try: amends destination probe --help", wrong...)
		}
		return a.with(cmd.Context(), func(s store) error { return a.probe(cmd.Context(), s, args[0], by) })
	}
	return cmd
}

// probedJSON is what was asked for.
type probedJSON struct {
	Destination string `json:"destination"`
	Before      string `json:"stateBefore"`
	Failed      int    `json:"failed"` // works that failed there, and are due now
}

func (a *app) probe(ctx context.Context, s store, name string, by saga.Actor) error {
	f, err := flowOf(ctx, s)
	if err != nil {
		return err
	}
	d := f.of(name)
	if d == nil {
		return unheardOf(name)
	}
	out := probedJSON{Destination: name, Before: d.State}
	switch out.Failed, err = coordinator.NewOperator(s).Probe(ctx, name, by); {
	case errors.Is(err, coordinator.ErrPaused):
		return &failure{exit: exitConflict, err: err, next: "it is tried when it is resumed: amends resume --destination " + quote(name)}
	case err != nil:
		return err
	case a.json:
		return a.printJSON(out)
	}
	a.field("scope", "destination:"+name)
	a.field("stands at", finding.Stands(d))
	a.field("order", "probe")
	a.field("said by", by.Name+": "+by.Reason)
	a.field("then", "it is tried within about a second; works that failed there and are due now: "+strconv.Itoa(out.Failed))
	fmt.Fprintln(a.out)
	a.paragraph("", "Stored. To see what came of it:")
	a.paragraph("  ", "amends destination list"+dbFlag(a.db))
	return nil
}
