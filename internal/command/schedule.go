package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// scheduleVerbs is the table of what amends can do with the schedules of jobs.
var scheduleVerbs = []func(*app) *cobra.Command{
	(*app).scheduleList,
	(*app).scheduleRun,
	(*app).schedulePause,
	(*app).scheduleUnpause,
	(*app).scheduleCheck,
}

func (a *app) schedule() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "schedule",
		Short: "Show, run and pause jobs, and check what a schedule means",
		Long: `Show when jobs run, run one now, and pause them.

A job is what the program does by a schedule: its reconciliation above all. Every instant of a schedule is a row in
the ledger's database, and is run once, by whichever process takes it. amends runs nothing itself: it asks, and a
process that has the job does it.`,
		Example: `  amends schedule list                             # when, and is anything wrong?
  amends schedule pause --all --reason "the books are closing the year"
  amends schedule check "30 2 * * *" --zone Europe/Vienna`,
	}, scheduleVerbs)
}

// ahead is how many of the next instants are shown.
const ahead = 5

// upcoming are the next instants of a schedule that was described, and what is wrong with it, if
// anything is.
func upcoming(s *schedule.JobState, now time.Time) ([]time.Time, error) {
	text, err := schedule.Parse(s.Schedule, s.Zone)
	if err != nil {
		return nil, err
	}
	return text.Upcoming(now, ahead), nil
}

// printUpcoming writes instants in UTC, and as the clocks of their zone show them.
func (a *app) printUpcoming(margin string, runs []time.Time) {
	for _, t := range runs {
		words := iso(t)
		if t.Location() != time.UTC {
			words += "  " + t.Format("Mon 2006-01-02 15:04:05 MST")
		}
		a.paragraph(margin, fmt.Sprintf("%s  (%s)", words, a.ago(t)))
	}
}

// zoneName is a zone as people say it.
func zoneName(zone string) string {
	if zone == "" {
		return "UTC"
	}
	return zone
}
