package rows

import (
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/column"
)

// JobColumns are the columns of amends_jobs behind its name, in the order of [JobValues].
const JobColumns = `schedule, zone, overlap, catch_up, fresh, first, described, planned, fence, asked,
	paused, paused_by, paused_why, approved, approved_by, approved_why, good, good_at, good_ended, failures, watermark`

// JobName returns the name of a job as the database knows it.
func JobName(s string) string { return name(s) }

// JobValues returns the values of [JobColumns]. moment writes a time.
func JobValues(s *schedule.State, moment func(time.Time) any) []any {
	return []any{
		text(s.Schedule), text(s.Zone), text(string(s.Overlap)), int64(s.CatchUp), s.Fresh,
		moment(s.First), moment(s.Described), moment(s.Planned), s.Fence, s.Asked,
		moment(s.Paused.At), text(s.Paused.By), text(s.Paused.Why), moment(s.Approved.At), text(s.Approved.By), text(s.Approved.Why),
		text(s.Good.Instant), moment(s.Good.At), moment(s.Good.Ended), s.Failures, uncut(s.Watermark),
	}
}

// Job is a row of amends_jobs.
type Job struct {
	Name                      string
	Schedule, Zone, Overlap   column.Text
	CatchUp                   column.Number `db:"catch_up"`
	Fresh                     column.Number
	First, Described, Planned column.Moment
	Fence, Asked              column.Number
	Paused                    column.Moment
	PausedBy                  column.Text `db:"paused_by"`
	PausedWhy                 column.Text `db:"paused_why"`
	Approved                  column.Moment
	ApprovedBy                column.Text `db:"approved_by"`
	ApprovedWhy               column.Text `db:"approved_why"`
	Good                      column.Text
	GoodAt                    column.Moment `db:"good_at"`
	GoodEnded                 column.Moment `db:"good_ended"`
	Failures                  column.Number
	Watermark                 column.Text
}

// State returns what the row says.
func (r *Job) State() schedule.State {
	return schedule.State{
		Name:     r.Name,
		Schedule: string(r.Schedule), Zone: string(r.Zone), Overlap: schedule.Overlap(r.Overlap),
		CatchUp: time.Duration(r.CatchUp), Fresh: int(r.Fresh),
		First: r.First.Time(), Described: r.Described.Time(), Planned: r.Planned.Time(),
		Fence: int64(r.Fence), Asked: int64(r.Asked),
		Paused:   schedule.Mark{At: r.Paused.Time(), By: string(r.PausedBy), Why: string(r.PausedWhy)},
		Approved: schedule.Mark{At: r.Approved.Time(), By: string(r.ApprovedBy), Why: string(r.ApprovedWhy)},
		Good:     schedule.Good{Instant: string(r.Good), At: r.GoodAt.Time(), Ended: r.GoodEnded.Time()},
		Failures: int(r.Failures), Watermark: string(r.Watermark),
	}
}

// RunColumns are the columns of amends_runs behind its number, in the order of [RunValues].
const RunColumns = `job, instant, at, since, instants, due, created, ask, asked_by, why,
	began, ended, attempt, crashes, fence, holder, until, verdict, cursor_before, cursor_after,
	seen, planned, applied, refused, errors, calls, plan, note, error`

// RunValues returns the values of [RunColumns].
func RunValues(r *schedule.RunRow, moment func(time.Time) any) []any {
	return []any{
		name(r.Job), name(r.Instant), moment(r.At), moment(r.From), max(r.Instants, 1), moment(r.Due), moment(r.Created),
		uncut(r.Ask), text(r.By), text(r.Why),
		moment(r.Began), moment(r.Ended), r.Attempt, r.Crashes, r.Fence, text(r.Holder), moment(r.Until), text(string(r.Verdict)),
		uncut(r.Before), uncut(r.After),
		r.Seen, r.Planned, r.Applied, r.Refused, r.Errors, r.Calls, uncut(r.Plan), text(r.Note), text(r.Error),
	}
}

// Run is a row of amends_runs.
type Run struct {
	Number                                         int64
	Job, Instant                                   string
	At, Since, Due, Created, Began, Ended, Until   column.Moment
	Instants, Attempt, Crashes, Fence              column.Number
	Ask, Why, Holder, Verdict, Plan, Note, Error   column.Text
	By                                             column.Text `db:"asked_by"`
	Before                                         column.Text `db:"cursor_before"`
	After                                          column.Text `db:"cursor_after"`
	Seen, Planned, Applied, Refused, Errors, Calls column.Number
}

// Row returns what the row says.
func (r *Run) Row() schedule.RunRow {
	return schedule.RunRow{
		Number: r.Number, Job: r.Job, Instant: r.Instant,
		At: r.At.Time(), From: r.Since.Time(), Instants: int64(r.Instants), Due: r.Due.Time(), Created: r.Created.Time(),
		Ask: string(r.Ask), By: string(r.By), Why: string(r.Why),
		Began: r.Began.Time(), Ended: r.Ended.Time(), Attempt: int(r.Attempt), Crashes: int(r.Crashes),
		Fence: int64(r.Fence), Holder: string(r.Holder), Until: r.Until.Time(),
		Outcome: schedule.Outcome{
			Verdict: schedule.Verdict(r.Verdict), Before: string(r.Before), After: string(r.After),
			Seen: int64(r.Seen), Planned: int64(r.Planned), Applied: int64(r.Applied), Refused: int64(r.Refused),
			Errors: int64(r.Errors), Calls: int64(r.Calls), Plan: string(r.Plan), Note: string(r.Note),
		},
		Error: string(r.Error),
	}
}

// Runs returns what rows say.
func Runs(rows []Run) []schedule.RunRow {
	rs := make([]schedule.RunRow, len(rows))
	for i := range rows {
		rs[i] = rows[i].Row()
	}
	return rs
}

// uncut is s for programs, NULL for none: half a cursor is none.
func uncut(s string) any {
	if s == "" {
		return nil
	}
	return printable(s)
}
