package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
)

func (a *app) scheduleCheck() *cobra.Command {
	var zone string
	var exitCode bool
	cmd := &cobra.Command{
		Use: "check TEXT [flags]", Args: oneText,
		Short: "Check what a schedule means, and when it runs next",
		Long: `Check an expression before it goes into a program: five fields (minute, hour, day of the month, month of the
year, day of the week), @hourly, @daily, @weekly, @monthly, @yearly, or @every with a duration. It says the next five runs, in UTC and
as the clocks of the zone show them, and warns of what may not have been meant. It needs no database. What is not a
schedule ends the command with 2, and everything that is wrong with it is said.`,
		Example: `  amends schedule check "30 2 * * *" --zone Europe/Vienna
  amends schedule check "@every 5m"
  amends schedule check "0 3 1 * 1" --exit-code`,
	}
	cmd.Flags().StringVar(&zone, "zone", "", "the zone whose clocks it reads, such as Europe/Vienna (default UTC)")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when there is a warning")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, err := schedule.Parse(args[0], zone)
		if err != nil {
			return &failure{exit: exitUsage, err: err}
		}
		if err := a.printSchedule(s); err != nil || !exitCode || len(s.Warnings()) == 0 {
			return err
		}
		return &failure{exit: exitFindings, what: "the schedule may not mean what was meant", next: "read the " + count(len(s.Warnings()), "warning")}
	}
	return cmd
}

// oneText wants an expression as one argument: a shell takes a star for the files of the folder.
func oneText(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(`try: amends schedule check "30 2 * * *"`, fmt.Sprintf("%s takes one expression, in quotes, not %s", cmd.CommandPath(), count(len(args), "word")))
	}
	return nil
}

// expressionJSON is a schedule as JSON.
type expressionJSON struct {
	Schedule string   `json:"schedule"`
	Zone     string   `json:"timeZone"`
	Next     []string `json:"next"` // with the offset of the zone
	Warnings []string `json:"warnings"`
}

func (a *app) printSchedule(s schedule.Schedule) error {
	runs := s.Upcoming(a.now(), ahead)
	if a.json {
		return a.printJSON(expressionJSON{s.String(), s.Zone().String(), offsets(runs), append([]string{}, s.Warnings()...)})
	}
	a.field("schedule", s.String())
	a.field("zone", s.Zone().String())
	for _, w := range s.Warnings() {
		a.field("beware", w)
	}
	fmt.Fprintln(a.out, "\nnext runs")
	a.printUpcoming("  ", runs)
	return nil
}

// offsets are instants as JSON, with the offset that the zone has then.
func offsets(runs []time.Time) []string {
	texts := make([]string, len(runs))
	for i, t := range runs {
		texts[i] = t.Format(time.RFC3339)
	}
	return texts
}
