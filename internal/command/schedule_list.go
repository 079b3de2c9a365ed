package command

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/amends-dev/amends/reconcile/schedule"
)

func (a *app) scheduleList() *cobra.Command {
	var next, exitCode bool
	cmd := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Args: noArguments,
		Short: "List jobs: when they run, and whether anything is wrong",
		Long: `List the jobs, in the order of their names, as the newest process described them: when each runs next, when a run
last ended well, how many ended otherwise since, and what a person should know.

"needs a person" says that no run ended well for longer than the job allows. A paused job gets there, too, so that a
forgotten pause is noticed.`,
		Example: `  amends schedule list
  amends schedule list --next                      # the next five runs of each
  amends schedule list --exit-code                 # 6 when a job needs a person: for a monitor`,
	}
	cmd.Flags().BoolVar(&next, "next", false, "show the next five runs of each")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 6 when a job needs a person")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var b schedule.Board
		err := a.atDesk(cmd.Context(), func(d desk) (err error) {
			b, err = d.Jobs(cmd.Context())
			return err
		})
		if err != nil {
			return err
		}
		if err := a.printBoard(&b, next); err != nil || !exitCode {
			return err
		}
		return alarms(&b)
	}
	return cmd
}

// alarms is the finding that jobs need a person, or nil.
func alarms(b *schedule.Board) error {
	n := 0
	for i := range b.Jobs {
		if schedule.Stale(b.Now, &b.Jobs[i]) != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return &failure{exit: exitFindings, what: counted(n, "job needs a person", "jobs need a person"), next: "look at their runs: amends reconcile runs JOB"}
}

func (a *app) printBoard(b *schedule.Board, next bool) error {
	if a.json {
		return a.printJSON(boardToJSON(b))
	}
	if len(b.Jobs) == 0 {
		a.sayf("no process with a job ever ran on this database")
		return nil
	}
	if b.Halt.Is() {
		a.paragraph("", "All jobs are paused "+markWords(b.Halt))
		fmt.Fprintln(a.out)
	}
	g := grid{header: []string{"job", "schedule", "zone", "next", "last ok", "otherwise since", "note"}}
	for i := range b.Jobs {
		s := &b.Jobs[i]
		g.add(s.Name, s.Schedule, zoneName(s.Zone), a.nextOf(s, b.Now), a.when(s.Good.Ended), strconv.Itoa(s.Failures), jobNote(s, b.Now))
	}
	a.print(&g)
	for i := range b.Jobs {
		if s := &b.Jobs[i]; next {
			runs, _ := upcoming(s, b.Now) // the note has the error
			fmt.Fprintln(a.out, "\n"+visible(s.Name))
			a.printUpcoming("  ", runs)
		}
	}
	return nil
}

// nextOf is the next instant of a job, while it is not paused.
func (a *app) nextOf(s *schedule.JobState, now time.Time) string {
	runs, err := upcoming(s, now)
	if err != nil || len(runs) == 0 || s.Paused.Is() {
		return ""
	}
	return a.when(runs[0])
}

// jobNote is the most urgent thing there is to say about a job.
func jobNote(s *schedule.JobState, now time.Time) string {
	if alarm := schedule.Stale(now, s); alarm != "" {
		return "needs a person: " + alarm
	}
	if _, err := upcoming(s, now); err != nil {
		return "this amends cannot read its schedule: " + err.Error()
	}
	switch {
	case s.Paused.Is():
		return "paused " + markWords(s.Paused)
	case !s.Approved.Is():
		return "only plans, until: amends reconcile approve " + quote(s.Name)
	}
	return ""
}

// boardJSON is the list of jobs as JSON.
type boardJSON struct {
	Now  *time.Time `json:"now"`    // by the database's clock
	Halt *markJSON  `json:"paused"` // everything; null: it is not
	Jobs []jobJSON  `json:"items"`
}

// markJSON is what a person did, as JSON.
type markJSON struct {
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

func markToJSON(m schedule.Mark) *markJSON {
	if !m.Is() {
		return nil
	}
	return &markJSON{utc(m.At), m.By, m.Why}
}

// jobJSON is a job as JSON.
type jobJSON struct {
	Job       string           `json:"job"`
	Schedule  string           `json:"schedule"`
	Zone      string           `json:"timeZone"`
	Next      []string         `json:"next"` // as if it were not paused
	Overlap   schedule.Overlap `json:"overlap"`
	CatchUp   float64          `json:"catchUpSeconds"`
	First     *time.Time       `json:"createdAt"`    // described
	Described *time.Time       `json:"describedAt"`  // as it is now
	Planned   *time.Time       `json:"plannedUntil"` // the last instant that is a run
	Good      string           `json:"lastSuccess"`
	GoodAt    *time.Time       `json:"lastSuccessEndedAt"` // its end
	Failures  int              `json:"failures"`
	Watermark string           `json:"watermark"`
	Alarm     string           `json:"alarm"` // why a person should look; "": nothing
	Paused    *markJSON        `json:"paused"`
	Approved  *markJSON        `json:"approved"`
}

func boardToJSON(b *schedule.Board) boardJSON {
	j := boardJSON{Now: utc(b.Now), Halt: markToJSON(b.Halt), Jobs: make([]jobJSON, len(b.Jobs))}
	for i := range b.Jobs {
		s := &b.Jobs[i]
		runs, _ := upcoming(s, b.Now) // what cannot be read has none
		j.Jobs[i] = jobJSON{
			Job: s.Name, Schedule: s.Schedule, Zone: zoneName(s.Zone), Next: offsets(runs), Overlap: s.Overlap, CatchUp: s.CatchUp.Seconds(),
			First: utc(s.First), Described: utc(s.Described), Planned: utc(s.Planned), Good: s.Good.Instant,
			GoodAt: utc(s.Good.Ended), Failures: s.Failures, Watermark: s.Watermark,
			Alarm: schedule.Stale(b.Now, s), Paused: markToJSON(s.Paused), Approved: markToJSON(s.Approved),
		}
	}
	return j
}
