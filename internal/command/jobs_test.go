package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

func silent() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// ordersJob is a job of which nobody waits for the schedule: it comes once a year.
// jobsDesk is where jobs leave what they find.
type jobsDesk interface {
	schedule.Store
	schedule.Reader
	plan.Plans
	plan.Drifts
}

func ordersJob(d jobsDesk) schedule.Job {
	return schedule.Job{
		Name: "orders", Schedule: "30 2 1 1 *", Zone: "Europe/Vienna", Lease: 30 * time.Second,
		Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			what, id, _ := strings.Cut(r.Ask, " ")
			switch what {
			case "":
				return schedule.Outcome{Result: schedule.OK, Seen: 7, Note: "all is well"}, nil
			case "plan":
				return makePlan(ctx, d, ordersPlan(), r.Why == "and it halts")
			case "apply":
				return applyPlan(ctx, d, r, id)
			case "rebuild":
				return schedule.Outcome{Result: schedule.OK, Seen: 7, Applied: 5, Note: "5 adopted, 2 in review"}, nil
			case "decided":
				return carryOut(ctx, d, r)
			case "hours":
				return wait(ctx, r)
			}
			return schedule.Outcome{Seen: 1}, fmt.Errorf("nobody knows what %q is", r.Ask)
		},
	}
}

// carryOut notes what became of decisions: a document that is posted stays.
func carryOut(ctx context.Context, d jobsDesk, r *schedule.Run) (schedule.Outcome, error) {
	ds, err := d.Decisions(ctx, plan.DecisionQuery{Job: r.Job, Open: true})
	for i := range ds {
		if ds[i].Outcome = plan.Applied; strings.Contains(ds[i].By.Reason, "posted") {
			ds[i].Outcome, ds[i].Error = plan.Failed, "inv_4 is posted or paid"
		}
	}
	if err == nil {
		err = d.Settled(ctx, r.Job, ds)
	}
	return schedule.Outcome{Result: schedule.OK, Planned: int64(len(ds)), Applied: int64(len(ds))}, err
}

// wait goes on until somebody stops it.
func wait(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
	for {
		if err := r.Proceed(ctx); err != nil {
			return schedule.Outcome{}, err
		}
		if err := moment(ctx); err != nil {
			return schedule.Outcome{}, err
		}
	}
}

// draft is a plan before it is made.
type draft struct {
	head     plan.Plan
	counted  []plan.Tally
	findings []plan.Finding
	bounds   plan.Bounds
}

// ordersPlan has findings of every kind: what is done by itself, what is over a bound, what is for
// a person.
func ordersPlan() *draft {
	return &draft{
		head: plan.Plan{
			Job: "orders", MappingVersion: "v3", Scan: 12,
			Counts: plan.Census{Source: 1000, Destination: 999, Ledger: 998, Keys: 1001, PreviousSource: 990},
		},
		counted: []plan.Tally{{Class: plan.InSync, Action: plan.Nothing, Count: 995}},
		findings: []plan.Finding{
			{Key: "shop:order:1", Class: plan.Missing, Action: plan.Start, Reason: "the ledger has no work for it", SourceRevision: "4"},
			{Key: "shop:order:2", Class: plan.Missing, Action: plan.Start, Reason: "the ledger has no work for it", SourceRevision: "9"},
			{
				Key: "shop:order:3", Class: plan.Duplicate, Action: plan.Ask, Reason: "the destination has 2 of them under one mark", SourceRevision: "1", LedgerRevision: "1",
				Documents: []string{"inv_3", "inv_3b"}, Suggestion: "keep inv_3: the ledger knows it. Nothing is voided by itself",
			},
			{
				Key: "shop:order:4", Class: plan.Diverged, Action: plan.Ask, Reason: "somebody changed \x1b[2Kit", SourceRevision: "2", LedgerRevision: "2",
				Documents: []string{"inv_4"}, Changes: []plan.Change{{Field: "total", Actual: "12.00", Desired: "13.00"}}, Suggestion: "who did?",
			},
			{
				Key: "shop:order:5", Class: plan.SourceGone, Action: plan.Withdraw, Reason: "the source cancelled it at 5", SourceRevision: "5", LedgerRevision: "4",
				Documents: []string{"inv_5"},
			},
		},
		bounds: plan.Bounds{Destroy: plan.Bound{Ask: true}},
	}
}

// brokenPlan is one of which nothing may be done: the mapping is at fault.
func brokenPlan() *draft {
	return &draft{
		head: plan.Plan{
			Job: "stock", MappingVersion: "v2", PreviousMappingVersion: "v1", Scan: 3, Counts: plan.Census{Source: 100, Destination: 100, Ledger: 100, Keys: 100},
			Differences: plan.Spread{Compared: 100, Fields: []plan.Share{{Field: "total", Count: 90}}},
		},
		findings: []plan.Finding{{Key: "shop:item:1", Class: plan.LedgerLost, Action: plan.Adopt, Reason: "the ledger does not know it", Documents: []string{"a"}}},
	}
}

// plan is what comes of it, the same whenever it is made.
func (f *draft) plan() (*plan.Plan, error) {
	p := plan.NewPlanner(&f.head, f.counted)
	for i := range f.findings {
		if err := p.Add(&f.findings[i]); err != nil {
			return nil, err
		}
	}
	return p.Plan(&f.bounds)
}

// make stores the plan as a reconciler does, and remembers what lasts.
func (f *draft) make(ctx context.Context, d jobsDesk) (*plan.Plan, error) {
	stored, err := f.plan()
	if err != nil {
		return nil, err
	}
	draft, err := d.Draft(ctx, stored.Job)
	if err != nil {
		return nil, err
	}
	if err := d.Find(ctx, draft, f.findings); err != nil {
		return nil, err
	}
	if _, err := d.Finish(ctx, draft, stored); err != nil {
		return nil, err
	}
	return stored, d.Remember(ctx, draft, plan.Part{}, f.findings)
}

// makePlan is the work of a job that is asked for a plan.
func makePlan(ctx context.Context, d jobsDesk, f *draft, halfway bool) (schedule.Outcome, error) {
	plan, err := f.make(ctx, d)
	if err != nil {
		return schedule.Outcome{}, err
	}
	out := schedule.Outcome{Result: schedule.OK, Seen: plan.Counts.Source, Planned: actingOf(plan), Plan: plan.ID}
	if halfway {
		out.Result, out.Note = schedule.Partial, "the destination did not answer to the end"
	}
	return out, nil
}

// applyPlan is the work of a job that is asked to apply a plan: what is over a bound wants an
// approval, and the second order fails.
func applyPlan(ctx context.Context, d jobsDesk, r *schedule.Run, id string) (schedule.Outcome, error) {
	p, err := d.Plan(ctx, id)
	if err != nil {
		return schedule.Outcome{}, err
	}
	out := schedule.Outcome{Result: schedule.OK, Planned: actingOf(&p.Plan), Plan: p.ID}
	for row, err := range plan.Each(ctx, d, plan.FindingQuery{Plan: p.Ref(), Acting: true}) {
		if err := errors.Join(err, r.Proceed(ctx)); err != nil {
			return out, err
		}
		switch {
		case p.Withholds(row.Risk()) && p.Approved.Name == "":
			row.Outcome, out.Result = plan.Withheld, schedule.Refused
			out.OverLimit++
		case row.Key == "shop:order:2" && out.Errors == 0:
			row.Outcome, row.Error = plan.Failed, "the books know no such customer"
			out.Errors++
		default:
			row.Outcome = plan.Applied
			out.Applied++
		}
		if err := d.Done(ctx, p.Ref(), []plan.Row{row}); err != nil {
			return out, err
		}
	}
	if out.Result == schedule.OK && out.Errors > 0 {
		out.Result = schedule.Partial
	}
	return out, nil
}

// reconciled fills a database with jobs of every state, their runs and plans, and what lasts.
func reconciled(ctx context.Context, d jobsDesk) error {
	for range 2 { // what lasts was found twice; the job process finds it once more
		if _, err := ordersPlan().make(ctx, d); err != nil {
			return err
		}
	}
	if _, err := brokenPlan().make(ctx, d); err != nil {
		return err
	}
	plan, err := d.Latest(ctx, "orders")
	if err != nil {
		return err
	}
	march := func(day int) time.Time { return time.Date(2026, 3, day, 1, 30, 0, 0, time.UTC) }
	described := func(s *schedule.JobState, text, zone string) {
		s.Schedule, s.Zone, s.Overlap, s.CatchUp, s.Fresh = text, zone, schedule.Skip, 24*time.Hour, 3
	}
	row := func(job, instant string, day int) schedule.RunRow {
		at := march(day)
		return schedule.RunRow{Job: job, Instant: instant, At: at, From: at, Due: at, Created: at, Instants: 1}
	}
	ended := func(r schedule.RunRow, out schedule.Outcome) schedule.RunRow {
		r.Outcome, r.Attempt, r.Fence, r.Began, r.Ended = out, 1, 1, r.At, r.At.Add(90*time.Second)
		return r
	}
	byHand := func(r schedule.RunRow, ask string) schedule.RunRow {
		r.Ask, r.By, r.Why = ask, "anna", "INC-7"
		return r
	}
	failed := ended(row("stock", "2026-03-02T01:00:00Z", 2), schedule.Outcome{Result: schedule.Failed, Seen: 40, Calls: 41})
	failed.Error, failed.Attempt, failed.Crashes = "the shop answers 503 \x1b[2K", 5, 4
	skipped := row("orders", "2026-03-03T02:30:00 Europe/Vienna", 3)
	skipped.Outcome, skipped.Ended, skipped.Instants, skipped.From = schedule.Outcome{Result: schedule.Skipped, Note: "the run before goes on"}, march(3), 2, march(2)

	turn := func(name string, change func(now time.Time, a *schedule.Agenda)) error {
		return d.Turn(ctx, name, func(now time.Time, a *schedule.Agenda) error {
			change(now, a)
			return nil
		})
	}
	return errors.Join(
		turn("orders", func(now time.Time, a *schedule.Agenda) {
			s := &a.State
			described(s, "30 2 1 1 *", "Europe/Vienna")
			s.First, s.Described, s.Planned, s.Asked = march(1), march(1), now, 1
			s.Good = schedule.Good{Instant: "2026-03-01T02:30:00 Europe/Vienna", At: now, Ended: now}
			s.Approved = schedule.Mark{At: march(1), By: "anna", Why: "read and found right"}
			s.Watermark = "2026-03-01T01:30:00Z 1000"
			a.New = []schedule.RunRow{
				ended(row("orders", "2026-03-01T02:30:00 Europe/Vienna", 1), schedule.Outcome{
					Result: schedule.OK, Seen: 1000, Planned: 3, Applied: 3, Calls: 17, Before: "a", After: "b",
				}),
				ended(byHand(row("orders", "manual:1", 2), "plan"), schedule.Outcome{
					Result: schedule.Refused, Seen: 1000, Planned: 3, OverLimit: 1, Plan: plan.ID, Note: "1 withheld",
				}),
				skipped,
			}
		}),
		turn("parcels", func(now time.Time, a *schedule.Agenda) {
			s := &a.State
			described(s, "@every 5m", "")
			s.First, s.Described, s.Planned, s.Asked, s.Fresh = now, now, now, 1, -1
			s.Paused = schedule.Mark{At: march(4), By: "bob", Why: "the carrier is on strike"}
			a.New = []schedule.RunRow{byHand(row("parcels", "manual:1", 4), "")}
		}),
		turn("stock", func(_ time.Time, a *schedule.Agenda) {
			s := &a.State
			described(s, "@hourly", "")
			s.First, s.Described, s.Planned, s.Failures = march(1), march(1), march(2), 3
			a.New = []schedule.RunRow{failed}
		}),
	)
}

// actingOf is how many of its findings a plan wants to do something about by itself.
func actingOf(p *plan.Plan) int64 {
	return p.Count(func(t plan.Tally) bool { return t.Action.Acts() })
}
