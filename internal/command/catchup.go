package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) catchUp() *cobra.Command {
	return &cobra.Command{
		Use: "catch-up [flags]", Args: noArguments,
		Short: "After the database's clock went back: make due what waits for it to be there again",
		Long: `Make due now what was written while the database's clock was ahead of what it is now, and let the leases of processes
that died meanwhile end in their own time. While the clock is right there is nothing of that, and nothing happens.
"amends check" and "amends status" name it. Correct the clock first.`,
		Example: `  amends catch-up`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var works, sessions int64
			err := a.with(cmd.Context(), func(s store) (err error) {
				works, sessions, err = s.CatchUp(cmd.Context())
				return err
			})
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(caughtUpJSON{works, sessions})
			case works+sessions == 0:
				a.sayf("nothing is ahead of the clock, nothing was changed")
			default:
				a.paragraph("", fmt.Sprintf("%s due now, %s ends in its own time", count(int(works), "work"), count(int(sessions), "lease")))
			}
			return nil
		},
	}
}

// caughtUpJSON is how many works and leases were made due in their own time.
type caughtUpJSON struct {
	Works    int64 `json:"works"`
	Sessions int64 `json:"sessions"`
}
