package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Brief is as much of a plan's id as people need.
func Brief(id string) string { return id[:min(8, len(id))] }

// Outcomes are what can become of a finding.
var Outcomes = names([]plan.Outcome{plan.Applied, plan.Superseded, plan.Failed, plan.Withheld, plan.ForPerson})

// Classes are the classes of which findings are kept.
func Classes() []string {
	return names(slices.DeleteFunc(slices.Clone(plan.Classes), func(c plan.Class) bool { return c == plan.InSync }))
}

// aClass says what is wrong with the name of a class.
func aClass(name string) Wrong {
	if name == string(plan.InSync) {
		return []string{"what is in-sync is counted and not kept; a class that is kept is one of " + strings.Join(Classes(), ", ")}
	}
	return oneOf("class", name, Classes())
}

// PlanIn says which plan is shown, and which of its findings.
type PlanIn struct {
	Plan    string `path:"plan"`
	Job     string `flag:"job" doc:"the newest plan of this job"`
	Class   string `query:"class" doc:"findings of this class: missing, ledger-lost, adopt-mismatch, in-doubt, phantom-done, stale, diverged, diverged-foreign, locked, duplicate, orphan, source-gone, stuck, unreadable, dup-ledger, accepted, no-source, foreign"`
	Outcome string `query:"outcome" doc:"findings of which this became: applied, superseded, failed, over-limit, needs-review"`
	Acting  bool   `query:"acting" doc:"findings about which something is still to be done by itself"`
	Limit
	After string `query:"after" doc:"only findings with keys behind this one: the next page"`
}

// Lists reports whether findings are wanted, and not the plan as a whole.
func (in *PlanIn) Lists() bool {
	return in.Class != "" || in.Outcome != "" || in.Acting || in.After != ""
}

// Plan is a plan and a page of its findings.
type Plan struct {
	Plan       plan.Plan  `json:"plan"`
	Number     int64      `json:"number,string"`
	FinishedAt *time.Time `json:"finishedAt"`
	Approved   *Mark      `json:"approved"` // the bounds were lifted; null: they were not
	List[PlanRow]

	Then string `json:"-"` // what a person can do with it
	ref  plan.Ref
}

// PlanRow is a finding and what became of it.
type PlanRow struct {
	plan.Finding
	Outcome   plan.Outcome `json:"outcome"` // "": nothing yet
	Error     string       `json:"error"`
	OutcomeAt *time.Time   `json:"outcomeAt"` // of the outcome
}

// Became says what became of it, "" for nothing yet.
func (r *PlanRow) Became() string {
	words := map[plan.Outcome]string{
		plan.Applied:    "applied",
		plan.Superseded: "superseded: it was not so any more when it was its turn, and nothing was done",
		plan.Failed:     "failed",
		plan.Withheld:   "withheld: it is over a bound",
		plan.ForPerson:  "for a person",
		plan.Pending:    "",
	}[r.Outcome]
	words += With(": ", r.Error)
	return words + When(words != "" && r.OutcomeAt != nil, ", at "+iso(At(r.OutcomeAt)))
}

// Plan reads a plan, and a page of its findings.
func (d *Desk) Plan(ctx context.Context, in *PlanIn) (*Plan, error) {
	wrong := slices.Concat(aClass(in.Class), oneOf("outcome", in.Outcome, Outcomes), in.Limit.faults())
	wrong.If((in.Plan != "") == (in.Job != ""), "say which plan: its id, or --job JOB for the newest")
	if err := Usage("try: amends reconcile show --help", wrong...); err != nil {
		return nil, err
	}
	p, err := d.stored(ctx, in)
	if err != nil {
		return nil, err
	}
	q := plan.FindingQuery{Plan: p.Ref(), Class: plan.Class(in.Class), Outcome: plan.Outcome(in.Outcome), Acting: in.Acting, After: in.After, Limit: in.Limit.N + 1}
	l, err := page(nil, &in.Limit, func() ([]plan.Row, error) { return d.db.Findings(ctx, q) },
		func(r *plan.Row) PlanRow { return PlanRow{r.Finding, r.Outcome, r.Error, utc(r.At)} }, func(r *plan.Row) string { return r.Key })
	if err != nil {
		return nil, err
	}
	approved := Either(p.Approved.Name != "", &Mark{utc(p.When), p.Approved.Name, p.Approved.Reason}, nil)
	return &Plan{Plan: p.Plan, Number: p.Number, FinishedAt: utc(p.Made), Approved: approved, List: *l, ref: p.Ref(), Then: d.nextOfPlan(&p)}, nil
}

func (d *Desk) stored(ctx context.Context, in *PlanIn) (plan.Stored, error) {
	if in.Job == "" {
		return d.planOf(ctx, in.Plan)
	}
	p, err := d.db.Latest(ctx, in.Job)
	if !errors.Is(err, plan.ErrNotFound) {
		return p, err
	}
	if _, err := d.jobOf(ctx, in.Job); err != nil {
		return p, err
	}
	return p, notFound("job "+in.Job+" has made no plan yet", "", "amends reconcile plan "+quote(in.Job))
}

// planOf reads a plan by its id, or the beginning of one.
func (d *Desk) planOf(ctx context.Context, id string) (plan.Stored, error) {
	p, err := d.db.Plan(ctx, id)
	if errors.Is(err, plan.ErrNotFound) {
		return p, notFound(fmt.Sprintf("there is no plan %q, or several begin so", id), "",
			fmt.Sprintf("a job keeps its newest %d plans; look with: amends reconcile runs", plan.Kept))
	}
	return p, err
}

// WriteText writes the plan as text, with the first findings of each class. Equal plans are equal bytes: it tells nothing of when or
// by whom.
func (d *Desk) WriteText(ctx context.Context, w io.Writer, p *Plan) error {
	return plan.WriteText(w, &p.Plan, func(c plan.Class, n int) ([]plan.Finding, error) {
		rows, err := d.db.Findings(ctx, plan.FindingQuery{Plan: p.ref, Class: c, Limit: n})
		return docs(rows, func(r *plan.Row) plan.Finding { return r.Finding }), err
	})
}

// WriteJSON writes the plan with all of its findings.
func (d *Desk) WriteJSON(ctx context.Context, w io.Writer, p *Plan) error {
	return plan.WriteJSON(w, API, &p.Plan, func(yield func(plan.Finding, error) bool) {
		for r, err := range plan.Each(ctx, d.db, plan.FindingQuery{Plan: p.ref}) {
			if !yield(r.Finding, err) {
				return
			}
		}
	})
}

// acting is how many of its findings a plan wants to do something about by itself, and asking how many are for a person.
func acting(p *plan.Plan) int64 { return p.Count(func(t plan.Tally) bool { return t.Action.Acts() }) }

func asking(p *plan.Plan) int64 {
	return p.Count(func(t plan.Tally) bool { return t.Action == plan.Ask || t.Action == plan.Halt })
}

// nextOfPlan is what a person can do with a plan.
func (d *Desk) nextOfPlan(p *plan.Stored) string {
	apply := fmt.Sprintf("amends reconcile apply %s %s --reason WHY%s", quote(p.Job), Brief(p.ID), d.flag)
	switch {
	case p.RefusedReason != "":
		return "nothing of it can be done, until what it was refused for is mended"
	case acting(&p.Plan) == 0 && asking(&p.Plan) > 0:
		return "nothing of it is done by itself; what is for a person: amends reconcile show " + Brief(p.ID) + d.flag
	case acting(&p.Plan) == 0:
		return "there is nothing to do"
	case len(p.OverLimit) > 0 && p.Approved.Name == "":
		return "to do what is within the bounds: " + apply + "; what is over them, too: the same with --approve"
	}
	return "to do it: " + apply
}

// Drifted is the finding that not everything is as it should be, or nil.
func (p *Plan) Drifted() error {
	n, job := int(p.Plan.Drifts()), p.Plan.Job
	return alarm(n, Counted(n, "key of "+job+" is not as it should be", "keys of "+job+" are not as they should be"), "look with: amends reconcile show "+Brief(p.Plan.ID))
}

// MakePlan asks a job what differs, and what it would do. approved: what it is asked to do, it does by itself.
func (d *Desk) MakePlan(ctx context.Context, in *RequestIn) (*Run, error) {
	in.Reason = cmp.Or(in.Reason, "a plan was asked for")
	run, err := d.run(ctx, in, askPlan, "try: amends reconcile plan --help", in.faults())
	if run != nil && run.Plan != "" && run.Bounded() { // that a bound is hit is what a plan is made to show
		return run, nil
	}
	return run, err
}

// OnlyPlans reports whether a job only plans by itself, until a person approves it.
func (d *Desk) OnlyPlans(ctx context.Context, job string) bool {
	j, err := d.jobOf(ctx, job)
	return err == nil && !j.Approved.Is()
}

// RebuildIn asks a job to rebuild a lost ledger.
type RebuildIn struct {
	RequestIn
	Yes bool `json:"-" flag:"yes" doc:"do not ask"`
	// Sure is asked before, with the name of the job.
	Sure func(job string) error `json:"-" flag:"-"`
}

// Rebuild has a job rebuild a lost ledger from what stands.
func (d *Desk) Rebuild(ctx context.Context, in *RebuildIn) (*Run, error) {
	if err := Usage("try: amends reconcile rebuild --help", in.faults()...); err != nil {
		return nil, err
	}
	j, err := d.runnable(ctx, in.Job)
	if err == nil && !in.Yes {
		err = in.Sure(j.Name)
	}
	if err != nil {
		return nil, err
	}
	return d.ask(ctx, j.Name, askRebuild, &in.RequestIn)
}

// ApplyIn has a job carry out a plan.
type ApplyIn struct {
	RequestIn
	Plan    string `path:"plan"`
	Approve bool   `json:"approve,omitempty" doc:"do what is over the bounds, too, of this very plan"`

	// Lifted is told whether bounds were lifted, or none was hit; nil: nothing is.
	Lifted func(plan string, lifted bool) `json:"-" flag:"-"`
}

// Applied is what became of a plan.
type Applied struct {
	Plan      string `json:"plan"`      // its id
	OverLimit bool   `json:"overLimit"` // some of it is over a bound
	Run       *Run   `json:"run"`       // null: nothing was left to do

	Asking int `json:"-"` // how many of its findings are for a person
}

// Apply has a job carry out a plan, when there is anything left of it that may be.
func (d *Desk) Apply(ctx context.Context, in *ApplyIn) (*Applied, error) {
	if err := Usage("try: amends reconcile apply --help", in.faults()...); err != nil {
		return nil, err
	}
	p, err := d.applicable(ctx, in.Job, in.Plan)
	if err != nil {
		return nil, err
	}
	out := &Applied{Plan: p.ID, OverLimit: len(p.OverLimit) > 0, Asking: int(asking(&p.Plan))}
	left, err := d.db.Findings(ctx, plan.FindingQuery{Plan: p.Ref(), Acting: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(left) == 0 {
		return out, nil
	}
	if in.Approve {
		lifted := len(p.OverLimit) > 0
		if lifted {
			if err := d.db.Approve(ctx, p.ID, in.actor()); err != nil {
				return nil, err
			}
		}
		if in.Lifted != nil {
			in.Lifted(Brief(p.ID), lifted)
		}
	}
	if out.Run, err = d.ask(ctx, p.Job, askApply+" "+p.ID, &in.RequestIn); out.Run == nil {
		return nil, err
	}
	return out, err
}

// applicable reads a plan that can be carried out, or says why it cannot.
func (d *Desk) applicable(ctx context.Context, name, id string) (plan.Stored, error) {
	j, err := d.runnable(ctx, name)
	if err != nil {
		return plan.Stored{}, err
	}
	p, err := d.planOf(ctx, id)
	if err != nil {
		return p, err
	}
	f := &Failure{Code: Conflict}
	switch {
	case p.Job != j.Name:
		f.What, f.Stands = fmt.Sprintf("plan %s is one of job %s, not of %s", Brief(p.ID), p.Job, j.Name), "nothing was asked for"
	case p.RefusedReason != "":
		f.What, f.Why = fmt.Sprintf("nothing of plan %s may be done", Brief(p.ID)), errors.New(p.RefusedReason)
		f.Next = "mend that first, then plan again: amends reconcile plan " + quote(j.Name)
	default:
		return p, nil
	}
	return p, f
}

// ApproveJobIn lets a job change things.
type ApproveJobIn struct {
	Job string `path:"job"`
	By
}

// JobApproval is who approved a job.
type JobApproval struct {
	Job      string `json:"job"`
	Approved *Mark  `json:"approved"`
	Before   *Mark  `json:"before"` // null: the job was not approved yet
}

// ApproveJob lets a new job change things, from its next run on.
func (d *Desk) ApproveJob(ctx context.Context, in *ApproveJobIn) (*JobApproval, error) {
	if err := Usage("try: amends reconcile approve --help", in.By.faults()...); err != nil {
		return nil, err
	}
	j, err := d.jobOf(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	before := markOf(j.Approved)
	if before == nil { // the first approval stands
		if err := schedule.Approve(ctx, d.db, j.Name, in.actor()); err != nil {
			return nil, err
		}
		if j, err = d.jobOf(ctx, j.Name); err != nil {
			return nil, err
		}
	}
	return &JobApproval{j.Name, markOf(j.Approved), before}, nil
}

// DriftIn narrows the differences that last.
type DriftIn struct {
	Job   string `query:"job" doc:"found by this job"`
	Key   string `query:"key" doc:"about this key: the id of a work, such as shop:order:10492"`
	Class string `query:"class" doc:"of this class: missing, ledger-lost, adopt-mismatch, in-doubt, phantom-done, stale, diverged, diverged-foreign, locked, duplicate, orphan, source-gone, stuck, unreadable, dup-ledger, accepted, no-source, foreign"`
	Times int    `query:"times" doc:"found at least so often in a row"`
	All   bool   `query:"all" doc:"those, too, on which a person has decided since they were found"`
	Limit
	After string `query:"after" doc:"only differences behind this one: the next page"`
}

// Defaults is what is meant where nothing is said.
func (in *DriftIn) Defaults() { in.Times, in.Limit.N = 1, 50 }

// Drift is a difference that lasts.
type Drift struct {
	Job string `json:"job"`
	plan.Finding
	First     *time.Time `json:"firstAt"`
	Last      *time.Time `json:"lastAt"`
	Runs      int        `json:"runs"`      // runs in a row that found it
	Mark      string     `json:"finding"`   // a digest of what it rests on
	Decisions []string   `json:"decisions"` // what a person can decide on it
}

// Drifts are a page of them.
type Drifts struct{ List[Drift] }

// Drifts lists the differences that the latest runs of jobs have found, those that last longest first.
func (d *Desk) Drifts(ctx context.Context, in *DriftIn) (*Drifts, error) {
	wrong := append(aClass(in.Class), in.Limit.faults()...)
	wrong.If(in.Times < 1, "--times is at least 1")
	q := plan.DriftQuery{Job: in.Job, Key: in.Key, Class: plan.Class(in.Class), Times: in.Times, Open: !in.All, Limit: in.Limit.N + 1}
	var err error
	q.After, err = parseDriftCursor(in.After)
	wrong.Err("", err)
	l, err := page(wrong, &in.Limit, func() (rows []plan.Drift, err error) {
		if rows, err = d.db.Drifts(ctx, q); err == nil && len(rows) == 0 && in.Job != "" {
			_, err = d.jobOf(ctx, in.Job) // nothing is no comfort when the name is a mistake
		}
		return rows, err
	}, func(d *plan.Drift) Drift {
		return Drift{d.Job, d.Finding, utc(d.First), utc(d.Last), d.Times, d.Finding.Mark(), names(d.Finding.Verdicts())}
	}, driftCursor)
	if err != nil {
		return nil, err
	}
	return &Drifts{*l}, nil
}

// Alarm is the finding that there are any, or nil.
func (l *Drifts) Alarm() error {
	return alarm(len(l.Items), When(l.Next != nil, "at least ")+count(len(l.Items), "difference"), "what is for a person is decided by: amends drift --help; what is safe is done by the next run of the job")
}

// driftCursor names a difference for the next page; parseDriftCursor reads it.
func driftCursor(d *plan.Drift) string { return cursor(d.First, d.Job, d.Key) }

func parseDriftCursor(text string) (*plan.Drift, error) {
	switch at, job, key := parseCursor(text); {
	case text == "":
		return nil, nil // the first page
	case !at.IsZero():
		return &plan.Drift{Job: job, Finding: plan.Finding{Key: key}, First: at}, nil
	}
	return nil, fmt.Errorf("--after %q: it is what the page before said", text)
}
