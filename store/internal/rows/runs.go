package rows

import (
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// JobColumns are the columns of amends_jobs behind its name, in the order of [JobValues].
var JobColumns = Names("", columns(jobFields(&schedule.JobState{})))

// JobName returns the name of a job as the database knows it.
func JobName(s string) string { return name(s) }

// JobValues returns the values of [JobColumns]. moment writes a time.
func JobValues(s *schedule.JobState, moment func(time.Time) any) []any {
	return values(jobFields(s), moment)
}

func jobFields(s *schedule.JobState) []Field {
	return []Field{
		{"schedule", &s.Schedule}, {"time_zone", &s.Zone}, {"overlap", (*string)(&s.Overlap)},
		{"catch_up_window", (*int64)(&s.CatchUp)}, {"stale_after", &s.Fresh},
		{"created_at", &s.First}, {"described_at", &s.Described}, {"planned_until", &s.Planned},
		{"fencing_token", &s.Fence}, {"manual_runs", &s.Asked},
		{"paused_at", &s.Paused.At}, {"paused_by", &s.Paused.By}, {"paused_reason", &s.Paused.Why},
		{"approved_at", &s.Approved.At}, {"approved_by", &s.Approved.By}, {"approved_reason", &s.Approved.Why},
		{"last_success", &s.Good.Instant}, {"last_success_scheduled_at", &s.Good.At}, {"last_success_ended_at", &s.Good.Ended},
		{"failures", &s.Failures}, {"watermark", (*uncut)(&s.Watermark)},
	}
}

// Jobs returns what reads rows of amends_jobs.
func Jobs(list *[]schedule.JobState) Reader {
	return Into(list, func(s *schedule.JobState) []Field { return append(jobFields(s), Field{"name", &s.Name}) })
}

// RunColumns are the columns of amends_runs behind its number, in the order of [RunValues].
var RunColumns = Names("", columns(runFields(&schedule.RunRow{})))

// RunValues returns the values of [RunColumns].
func RunValues(r *schedule.RunRow, moment func(time.Time) any) []any {
	return values(runFields(r), moment)
}

func runFields(r *schedule.RunRow) []Field {
	return []Field{
		{"job", (*key)(&r.Job)}, {"scheduled_for", (*key)(&r.Instant)},
		{"scheduled_at", &r.At}, {"first_scheduled_at", &r.From}, {"scheduled_times", (*atLeastOne)(&r.Instants)},
		{"due_at", &r.Due}, {"created_at", &r.Created},
		{"requested", (*uncut)(&r.Ask)}, {"requested_by", &r.By}, {"requested_reason", &r.Why},
		{"started_at", &r.Began}, {"ended_at", &r.Ended}, {"attempt", &r.Attempt}, {"crashes", &r.Crashes},
		{"fencing_token", &r.Fence}, {"lease_holder", &r.Holder}, {"leased_until", &r.Until}, {"result", (*string)(&r.Result)},
		{"cursor_before", (*uncut)(&r.Before)}, {"cursor_after", (*uncut)(&r.After)},
		{"seen", &r.Seen}, {"planned", &r.Planned}, {"applied", &r.Applied}, {"over_limit", &r.OverLimit}, {"errors", &r.Errors}, {"calls", &r.Calls},
		{"plan", (*uncut)(&r.Plan)}, {"note", &r.Note}, {"error", &r.Error},
	}
}

// Runs returns what reads rows of amends_runs.
func Runs(list *[]schedule.RunRow) Reader {
	return Into(list, func(r *schedule.RunRow) []Field { return append(runFields(r), Field{"number", &r.Number}) })
}
