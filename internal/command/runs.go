package command

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// runJSON is a run of a job as JSON.
type runJSON struct {
	Number   int64           `json:"number,string"` // within the job
	Job      string          `json:"job"`
	Instant  string          `json:"scheduledFor"`
	At       *time.Time      `json:"scheduledAt"`
	From     *time.Time      `json:"firstScheduledAt"` // the first instant it stands for
	Instants int64           `json:"scheduledTimes"`   // it stands for
	Due      *time.Time      `json:"dueAt"`
	Created  *time.Time      `json:"createdAt"`
	Ask      string          `json:"requested"`
	Actor    string          `json:"actor"` // "": the schedule
	Reason   string          `json:"reason"`
	Status   string          `json:"status"` // waiting, running, or the result
	Result   schedule.Result `json:"result"` // "": it has not ended
	Began    *time.Time      `json:"startedAt"`
	Ended    *time.Time      `json:"endedAt"`
	Attempts int             `json:"attempts"`
	Crashes  int             `json:"crashes"`
	Holder   string          `json:"leaseHolder"`
	Until    *time.Time      `json:"leasedUntil"`
	Before   string          `json:"cursorBefore"`
	After    string          `json:"cursorAfter"`
	Seen     int64           `json:"seen"`
	Planned  int64           `json:"planned"`
	Applied  int64           `json:"applied"`
	Refused  int64           `json:"overLimit"`
	Errors   int64           `json:"errors"`
	Calls    int64           `json:"calls"`
	Plan     string          `json:"plan"`
	Note     string          `json:"note"`
	Error    string          `json:"error"`
}

func runToJSON(r *schedule.RunRow) runJSON {
	return runJSON{
		Number: r.Number, Job: r.Job, Instant: r.Instant, At: utc(r.At), From: utc(r.From), Instants: r.Instants, Due: utc(r.Due),
		Created: utc(r.Created), Ask: r.Ask, Actor: r.By, Reason: r.Why, Status: r.Status(), Result: r.Result, Began: utc(r.Began),
		Ended: utc(r.Ended), Attempts: r.Attempt, Crashes: r.Crashes, Holder: r.Holder, Until: utc(r.Until), Before: r.Before, After: r.After,
		Seen: r.Seen, Planned: r.Planned, Applied: r.Applied, Refused: r.Refused, Errors: r.Errors, Calls: r.Calls, Plan: r.Plan,
		Note: r.Note, Error: r.Error,
	}
}

// printEnd tells how a run ended, or that it was asked for; one that did not end well is a failure.
func (a *app) printEnd(r *schedule.RunRow) error {
	var end error
	if !r.Open() {
		end = badly(r)
	}
	if a.json {
		return errors.Join(a.printJSON(runToJSON(r)), end)
	}
	a.printRun(r)
	return end
}

// printRun writes a run for people.
func (a *app) printRun(r *schedule.RunRow) {
	a.field("run", fmt.Sprintf("%d of %s", r.Number, r.Job))
	if r.Ask != "" {
		a.field("ask", r.Ask)
	}
	if r.ByHand() {
		a.field("said by", r.By+": "+r.Why)
	}
	if r.Open() {
		a.field("stands at", r.Status())
		a.paragraph("          ", "amends reconcile runs "+quote(r.Job)+dbFlag(a.db))
		return
	}
	a.field("result", string(r.Result))
	if took := a.took(r); took != "" {
		a.field("took", took)
	}
	a.field("did", figures(r))
	if r.Plan != "" {
		a.field("plan", r.Plan)
	}
	if words := runNote(r); words != "" {
		a.field("note", words)
	}
}

// took is how long a run was at work, "" when it never was.
func (a *app) took(r *schedule.RunRow) string {
	switch {
	case r.Began.IsZero():
		return ""
	case r.Ended.IsZero():
		return span(max(a.now().Sub(r.Began), 0))
	}
	return span(r.Ended.Sub(r.Began))
}

// runNote is what there is to say about a run in words.
func runNote(r *schedule.RunRow) string {
	words := r.Note
	if r.Error != "" {
		if words != "" {
			words += "; "
		}
		words += r.Error
	}
	return words
}

// asker is who wanted a run.
func asker(r *schedule.RunRow) string {
	if !r.ByHand() {
		return "the schedule"
	}
	return r.By
}

// tally is a column of numbers in which nothing is a dash.
func tally(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
