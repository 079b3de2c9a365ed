package rows

import (
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/internal/column"
)

// JobColumns are the columns of amends_jobs behind its name, in the order of [JobValues].
const JobColumns = `schedule, time_zone, overlap, catch_up_window, stale_after, created_at, described_at, planned_until,
	fencing_token, manual_runs, paused_at, paused_by, paused_reason, approved_at, approved_by, approved_reason,
	last_success, last_success_scheduled_at, last_success_ended_at, failures, watermark`

// JobName returns the name of a job as the database knows it.
func JobName(s string) string { return name(s) }

// JobValues returns the values of [JobColumns]. moment writes a time.
func JobValues(s *schedule.JobState, moment func(time.Time) any) []any {
	return []any{
		text(s.Schedule), text(s.Zone), text(string(s.Overlap)), int64(s.CatchUp), s.Fresh,
		moment(s.First), moment(s.Described), moment(s.Planned), s.Fence, s.Asked,
		moment(s.Paused.At), text(s.Paused.By), text(s.Paused.Why), moment(s.Approved.At), text(s.Approved.By), text(s.Approved.Why),
		text(s.Good.Instant), moment(s.Good.At), moment(s.Good.Ended), s.Failures, uncut(s.Watermark),
	}
}

// Job is a row of amends_jobs.
type Job struct {
	Name        string
	Schedule    column.Text
	Zone        column.Text `db:"time_zone"`
	Overlap     column.Text
	CatchUp     column.Number `db:"catch_up_window"`
	Fresh       column.Number `db:"stale_after"`
	First       column.Moment `db:"created_at"`
	Described   column.Moment `db:"described_at"`
	Planned     column.Moment `db:"planned_until"`
	Fence       column.Number `db:"fencing_token"`
	Asked       column.Number `db:"manual_runs"`
	Paused      column.Moment `db:"paused_at"`
	PausedBy    column.Text   `db:"paused_by"`
	PausedWhy   column.Text   `db:"paused_reason"`
	Approved    column.Moment `db:"approved_at"`
	ApprovedBy  column.Text   `db:"approved_by"`
	ApprovedWhy column.Text   `db:"approved_reason"`
	Good        column.Text   `db:"last_success"`
	GoodAt      column.Moment `db:"last_success_scheduled_at"`
	GoodEnded   column.Moment `db:"last_success_ended_at"`
	Failures    column.Number
	Watermark   column.Text
}

// State returns what the row says.
func (r *Job) State() schedule.JobState {
	return schedule.JobState{
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
const RunColumns = `job, scheduled_for, scheduled_at, first_scheduled_at, scheduled_times, due_at, created_at,
	requested, requested_by, requested_reason,
	started_at, ended_at, attempt, crashes, fencing_token, lease_holder, leased_until, result, cursor_before, cursor_after,
	seen, planned, applied, over_limit, errors, calls, plan, note, error`

// RunValues returns the values of [RunColumns].
func RunValues(r *schedule.RunRow, moment func(time.Time) any) []any {
	return []any{
		name(r.Job), name(r.Instant), moment(r.At), moment(r.From), max(r.Instants, 1), moment(r.Due), moment(r.Created),
		uncut(r.Ask), text(r.By), text(r.Why),
		moment(r.Began), moment(r.Ended), r.Attempt, r.Crashes, r.Fence, text(r.Holder), moment(r.Until), text(string(r.Result)),
		uncut(r.Before), uncut(r.After),
		r.Seen, r.Planned, r.Applied, r.Refused, r.Errors, r.Calls, uncut(r.Plan), text(r.Note), text(r.Error),
	}
}

// Run is a row of amends_runs.
type Run struct {
	Number                                int64
	Job                                   string
	Instant                               string        `db:"scheduled_for"`
	At                                    column.Moment `db:"scheduled_at"`
	Since                                 column.Moment `db:"first_scheduled_at"`
	Instants                              column.Number `db:"scheduled_times"`
	Due                                   column.Moment `db:"due_at"`
	Created                               column.Moment `db:"created_at"`
	Ask                                   column.Text   `db:"requested"`
	By                                    column.Text   `db:"requested_by"`
	Why                                   column.Text   `db:"requested_reason"`
	Began                                 column.Moment `db:"started_at"`
	Ended                                 column.Moment `db:"ended_at"`
	Attempt, Crashes                      column.Number
	Fence                                 column.Number `db:"fencing_token"`
	Holder                                column.Text   `db:"lease_holder"`
	Until                                 column.Moment `db:"leased_until"`
	Result                                column.Text   `db:"result"`
	Before                                column.Text   `db:"cursor_before"`
	After                                 column.Text   `db:"cursor_after"`
	Seen, Planned, Applied, Errors, Calls column.Number
	Refused                               column.Number `db:"over_limit"`
	Plan, Note, Error                     column.Text
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
			Result: schedule.Result(r.Result), Before: string(r.Before), After: string(r.After),
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
