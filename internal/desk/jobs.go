package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// ahead is how many of the next instants are shown.
const ahead = 5

// Board is the list of jobs.
type Board struct {
	Now    *time.Time `json:"now"`    // by the database's clock
	Paused *Mark      `json:"paused"` // everything; null: it is not
	Items  []Job      `json:"items"`
}

// Mark is what a person did.
type Mark struct {
	At     *time.Time `json:"at"`
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// Words say who did it, when and why; "" for what was not done.
func (m *Mark) Words() string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("by %s at %s: %s", m.Actor, iso(At(m.At)), m.Reason)
}

func markOf(m schedule.Mark) *Mark { return Either(m.Is(), &Mark{utc(m.At), m.By, m.Why}, nil) }

// Job is what a program does by a schedule.
type Job struct {
	Job                string           `json:"job"`
	Schedule           string           `json:"schedule"`
	TimeZone           string           `json:"timeZone"`
	Next               []string         `json:"next"` // five, with the offset of the zone, as if it were not paused
	Overlap            schedule.Overlap `json:"overlap"`
	CatchUp            float64          `json:"catchUpSeconds"`
	CreatedAt          *time.Time       `json:"createdAt"`    // described
	Described          *time.Time       `json:"describedAt"`  // as it is now
	PlannedUntil       *time.Time       `json:"plannedUntil"` // the last instant that is a run
	LastSuccess        string           `json:"lastSuccess"`
	LastSuccessEndedAt *time.Time       `json:"lastSuccessEndedAt"` // its end
	Failures           int              `json:"failures"`           // runs since the last success
	Watermark          string           `json:"watermark"`
	Alarm              string           `json:"alarm"` // why a person should look; "": nothing
	Paused             *Mark            `json:"paused"`
	Approved           *Mark            `json:"approved"`

	Note string      `json:"-"` // the most urgent thing there is to say
	Runs []time.Time `json:"-"` // the next
}

// Upcoming is when it runs next; nil while it is paused.
func (j *Job) Upcoming() *time.Time {
	if len(j.Runs) == 0 || j.Paused != nil {
		return nil
	}
	return &j.Runs[0]
}

// JobsIn says how much of jobs is printed.
type JobsIn struct {
	Next bool `json:"-" flag:"next" doc:"show the next five runs of each"`
}

// Jobs lists the jobs.
func (d *Desk) Jobs(ctx context.Context, _ *JobsIn) (*Board, error) {
	b, err := d.db.Jobs(ctx)
	return answer(Board{Now: utc(b.Now), Paused: markOf(b.Halt), Items: docs(b.Jobs, func(s *schedule.JobState) Job { return jobDoc(s, b.Now) })}, err)
}

// Alarm is the finding that jobs need a person, or nil.
func (b *Board) Alarm() error {
	n := number(b.Items, func(j *Job) bool { return j.Alarm != "" })
	return alarm(n, Counted(n, "job needs a person", "jobs need a person"), "look at their runs: amends reconcile runs JOB")
}

func jobDoc(s *schedule.JobState, now time.Time) Job {
	var runs []time.Time
	text, wrong := schedule.Parse(s.Schedule, s.Zone)
	if wrong == nil {
		runs = text.Upcoming(now, ahead)
	}
	j := Job{
		Job: s.Name, Schedule: s.Schedule, TimeZone: cmp.Or(s.Zone, "UTC"), Next: offsets(runs), Overlap: s.Overlap, CatchUp: s.CatchUp.Seconds(),
		CreatedAt: utc(s.First), Described: utc(s.Described), PlannedUntil: utc(s.Planned), LastSuccess: s.Good.Instant,
		LastSuccessEndedAt: utc(s.Good.Ended), Failures: s.Failures, Watermark: s.Watermark,
		Alarm: schedule.Stale(now, s), Paused: markOf(s.Paused), Approved: markOf(s.Approved), Runs: runs,
	}
	switch {
	case j.Alarm != "":
		j.Note = "needs a person: " + j.Alarm
	case wrong != nil:
		j.Note = "this amends cannot read its schedule: " + wrong.Error()
	case j.Paused != nil:
		j.Note = "paused " + j.Paused.Words()
	case j.Approved == nil:
		j.Note = "only plans, until: amends reconcile approve " + quote(s.Name)
	}
	return j
}

// offsets are instants with the offset that their zone has then.
func offsets(runs []time.Time) []string {
	return docs(runs, func(t *time.Time) string { return t.Format(time.RFC3339) })
}

// ExpressionIn is a schedule as it is written.
type ExpressionIn struct {
	Text string `path:"text"`
	Zone string `query:"zone" doc:"the zone whose clocks it reads, such as Europe/Vienna (default UTC)"`
}

// Expression is what a schedule means.
type Expression struct {
	Schedule string   `json:"schedule"`
	TimeZone string   `json:"timeZone"`
	Next     []string `json:"next"` // with the offset of the zone
	Warnings []string `json:"warnings"`

	Runs []time.Time `json:"-"`
}

// Expression reads a schedule.
func (d *Desk) Expression(_ context.Context, in *ExpressionIn) (*Expression, error) {
	s, err := schedule.Parse(in.Text, in.Zone)
	if err != nil {
		return nil, &Failure{Code: Misuse, Why: err}
	}
	runs := s.Upcoming(d.now(), ahead)
	return &Expression{s.String(), s.Zone().String(), offsets(runs), append([]string{}, s.Warnings()...), runs}, nil
}

// Alarm is the finding that a schedule may not mean what was meant, or nil.
func (e *Expression) Alarm() error {
	return alarm(len(e.Warnings), "the schedule may not mean what was meant", "read the "+count(len(e.Warnings), "warning"))
}

// job is a job and the moment at which it was read.
type job struct {
	schedule.JobState
	schedule.Board
}

// jobOf reads a job, or says which there are.
func (d *Desk) jobOf(ctx context.Context, name string) (*job, error) {
	b, err := d.db.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	if s := First(b.Jobs, func(s *schedule.JobState) bool { return s.Name == name }); s != nil && name != schedule.Everything {
		return &job{JobState: *s, Board: b}, nil
	}
	f := notFound(fmt.Sprintf("there is no job %q", name), "no process with a job of that name ever ran on this database",
		"no process with any job has: start yours, and look at --db and AMENDS_DB")
	if names := docs(b.Jobs, func(s *schedule.JobState) string { return s.Name }); len(names) > 0 {
		f.Next, f.Details = "the jobs are: "+strings.Join(names, ", "), map[string]any{"jobs": names}
	}
	return nil, f
}

// runnable reads a job that is not paused, nor all jobs. A paused job begins no run, so
// it is refused at once instead of asking for a run that would be refused later.
func (d *Desk) runnable(ctx context.Context, name string) (*job, error) {
	j, err := d.jobOf(ctx, name)
	if err != nil {
		return nil, err
	}
	m := j.Halt
	what, next := "all jobs are paused", "amends schedule unpause --all"
	if j.Paused.Is() {
		m, what, next = j.Paused, "job "+j.Name+" is paused", "amends schedule unpause "+quote(j.Name)
	}
	if !m.Is() {
		return j, nil
	}
	return nil, &Failure{Code: Conflict, What: what, Why: errors.New(markOf(m).Words()), Stands: "nothing was asked for", Next: "when it may run again: " + next}
}

// Results are what a run can end with.
var Results = names([]schedule.Result{schedule.OK, schedule.Partial, schedule.Refused, schedule.Failed, schedule.Stopped, schedule.Skipped})

// RunsIn narrows the list of runs.
type RunsIn struct {
	Job    string `path:"job"` // "": of all
	Result string `query:"result" doc:"with this result: ok, partial, refused, failed, stopped, skipped"`
	Open   bool   `query:"open" doc:"that have not ended"`
	Limit
	Before string `query:"before" doc:"the next page, as the page before said it; of a JOB, runs with a smaller number"`
}

// Run is a run of a job.
type Run struct {
	Number           int64           `json:"number,string"` // within the job
	Job              string          `json:"job"`
	ScheduledFor     string          `json:"scheduledFor"`
	ScheduledAt      *time.Time      `json:"scheduledAt"`
	FirstScheduledAt *time.Time      `json:"firstScheduledAt"` // the first instant it stands for
	ScheduledTimes   int64           `json:"scheduledTimes"`   // that it stands for
	Due              *time.Time      `json:"dueAt"`
	Created          *time.Time      `json:"createdAt"`
	Requested        string          `json:"requested"` // "": what the schedule does
	Actor            string          `json:"actor"`     // "": the schedule
	Reason           string          `json:"reason"`
	Status           string          `json:"status"` // waiting, running, or the result
	Result           schedule.Result `json:"result"` // "": it has not ended
	StartedAt        *time.Time      `json:"startedAt"`
	Ended            *time.Time      `json:"endedAt"`
	Attempts         int             `json:"attempts"`
	Crashes          int             `json:"crashes"`
	LeaseHolder      string          `json:"leaseHolder"`
	LeasedUntil      *time.Time      `json:"leasedUntil"`
	CursorBefore     string          `json:"cursorBefore"`
	CursorAfter      string          `json:"cursorAfter"`
	Seen             int64           `json:"seen"`
	Planned          int64           `json:"planned"`
	Applied          int64           `json:"applied"`
	OverLimit        int64           `json:"overLimit"`
	Errors           int64           `json:"errors"`
	Calls            int64           `json:"calls"`
	Plan             string          `json:"plan"` // an id
	Note             string          `json:"note"`
	Error            string          `json:"error"`
}

func runOf(r *schedule.RunRow) Run {
	return Run{
		Number: r.Number, Job: r.Job, ScheduledFor: r.Instant, ScheduledAt: utc(r.At), FirstScheduledAt: utc(r.From), ScheduledTimes: r.Instants, Due: utc(r.Due),
		Created: utc(r.Created), Requested: r.Ask, Actor: r.By, Reason: r.Why, Status: r.Status(), Result: r.Result, StartedAt: utc(r.Began),
		Ended: utc(r.Ended), Attempts: r.Attempt, Crashes: r.Crashes, LeaseHolder: r.Holder, LeasedUntil: utc(r.Until), CursorBefore: r.Before, CursorAfter: r.After,
		Seen: r.Seen, Planned: r.Planned, Applied: r.Applied, OverLimit: r.OverLimit, Errors: r.Errors, Calls: r.Calls, Plan: r.Plan,
		Note: r.Note, Error: r.Error,
	}
}

// Open reports whether it has not ended.
func (r *Run) Open() bool { return r.Result == "" }

// Well reports whether it ended well, and Bounded whether it ended at a bound.
func (r *Run) Well() bool    { return r.Result == schedule.OK }
func (r *Run) Bounded() bool { return r.Result == schedule.Refused }

// Words are what there is to say about it.
func (r *Run) Words() string { return joined(r.Note, r.Error) }

// By is who asked for it.
func (r *Run) By() string { return cmp.Or(r.Actor, "the schedule") }

// Brief is its plan, as much of the id as people need.
func (r *Run) Brief() string { return Brief(r.Plan) }

// Took is how long it was at work, "" when it never was.
func (r *Run) Took(now time.Time) string {
	switch {
	case r.StartedAt == nil:
		return ""
	case r.Ended == nil:
		return finding.Span(max(now.Sub(*r.StartedAt), 0))
	}
	return finding.Span(r.Ended.Sub(*r.StartedAt))
}

// Figures say in words what it has done.
func (r *Run) Figures() string {
	return fmt.Sprintf("%d seen, %d planned, %d applied", r.Seen, r.Planned, r.Applied) +
		When(r.OverLimit > 0, fmt.Sprintf(", %d refused", r.OverLimit)) + When(r.Errors > 0, fmt.Sprintf(", %d failed", r.Errors))
}

// Stands says in words where an open run is.
func (r *Run) Stands() string {
	if r.Status == "running" {
		return fmt.Sprintf("run %d of %s is at work", r.Number, r.Job) + When(r.Attempts > 1, fmt.Sprintf(", attempt %d", r.Attempts))
	}
	return fmt.Sprintf("run %d of %s waits for its turn, and for a process that has the job", r.Number, r.Job)
}

// Runs lists runs of jobs, newest first.
func (d *Desk) Runs(ctx context.Context, in *RunsIn) (*List[Run], error) {
	wrong := oneOf("result", in.Result, Results)
	wrong.If(in.Result != "" && in.Open, "a run that has not ended has no result")
	f := schedule.RunFilter{Job: in.Job, Result: schedule.Result(in.Result), Open: in.Open, Limit: in.Limit.N + 1}
	wrong = append(wrong, in.Limit.faults()...)
	var err error
	f.Before, err = parseRunCursor(in.Job, in.Before)
	wrong.Err("", err)
	return page(wrong, &in.Limit, func() ([]schedule.RunRow, error) {
		if in.Job != "" {
			if _, err := d.jobOf(ctx, in.Job); err != nil {
				return nil, err
			}
		}
		return d.db.Runs(ctx, f)
	}, runOf, func(r *schedule.RunRow) string { return runCursor(in.Job, r) })
}

// cursor names what is of a job for the next page, and parseCursor reads it. Jobs have no comma in their names.
func cursor(at time.Time, job, of string) string {
	return at.UTC().Format(time.RFC3339Nano) + "," + job + "," + of
}

func parseCursor(text string) (at time.Time, job, of string) {
	if parts := strings.SplitN(text, ",", 3); len(parts) == 3 {
		if at, err := time.Parse(time.RFC3339Nano, parts[0]); err == nil {
			return at, parts[1], parts[2]
		}
	}
	return at, "", ""
}

// runCursor names a run, among those of a job by its number; parseRunCursor reads it.
func runCursor(job string, r *schedule.RunRow) string {
	number := strconv.FormatInt(r.Number, 10)
	return Either(job != "", number, cursor(r.Created, r.Job, number))
}

func parseRunCursor(job, text string) (*schedule.RunRow, error) {
	if text == "" {
		return nil, nil // the first page
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && job != "" && number > 0 {
		return &schedule.RunRow{Job: job, Number: number}, nil
	}
	created, of, n := parseCursor(text)
	if number, err := strconv.ParseInt(n, 10, 64); err == nil && (job == "" || job == of) {
		return &schedule.RunRow{Created: created, Job: of, Number: number}, nil
	}
	return nil, fmt.Errorf("--before %q: it is what the page before said", text)
}

// RequestIn asks a job for a run.
type RequestIn struct {
	Job string `path:"job"`
	By
	Wait   Duration `json:"wait,omitempty" doc:"wait this long for its end"`
	NoWait bool     `json:"no-wait,omitempty" doc:"do not wait for its end"`

	// Asked and Progress are told that it is asked for, and how far it has come; nil: nothing is.
	Asked    func(r *Run, already bool) `json:"-" flag:"-"`
	Progress func(r *Run)               `json:"-" flag:"-"`
}

// Patience is how long a run is waited for, unless it is said otherwise.
const Patience = Duration(10 * time.Minute)

// Defaults is what is meant where nothing is said.
func (in *RequestIn) Defaults() { in.Wait = Patience }

// Request is what all that asks a job for a run has in common.
func (in *RequestIn) Request() *RequestIn { return in }

// Patience is how long it is waited for.
func (in *RequestIn) Patience() *Duration { return &in.Wait }

func (in *RequestIn) faults() Wrong {
	wrong := in.By.faults()
	wrong.If(in.Wait <= 0, "--wait is longer than nothing; not to wait: --no-wait")
	return wrong
}

// What a job is asked for: a plan, or with the id of one behind it to apply it, or to rebuild. Jobs read them.
const (
	askPlan    = "plan"
	askApply   = "apply"
	askRebuild = "rebuild"
	askDecided = "decided"
)

// RunIn asks a job to run as its schedule would, or for something else that it knows.
type RunIn struct {
	RequestIn
	Ask string `json:"-" flag:"ask" doc:"what to ask the job for, in words that it knows (default: what the schedule does)"`
}

// ownVerbs are the words that have a verb of their own, which looks before it asks.
var ownVerbs = map[string]string{
	askApply:   "a plan is applied by: amends reconcile apply JOB PLAN",
	askDecided: "findings are decided on by: amends drift --help",
	askRebuild: "a ledger is rebuilt by: amends reconcile rebuild JOB",
}

// RunNow has a job run now.
func (d *Desk) RunNow(ctx context.Context, in *RunIn) (*Run, error) {
	if in.Reason == "" && (in.Ask == "" || in.Ask == askPlan) {
		in.Reason = "by hand"
	}
	wrong := in.faults()
	word, _, _ := strings.Cut(in.Ask, " ")
	wrong.If(ownVerbs[word] != "", ownVerbs[word])
	return d.run(ctx, &in.RequestIn, in.Ask, "try: amends schedule run --help", wrong)
}

// BackfillIn asks a job for the runs that are missing between two times.
type BackfillIn struct {
	Job string `path:"job"`
	By
	From   string `json:"from,omitempty" flag:"from" doc:"the first instant: 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d"`
	To     string `json:"to,omitempty" flag:"to" doc:"the last one (default: the latest that is due)"`
	DryRun bool   `json:"dry-run,omitempty" doc:"only tell which"`
}

// Backfill is what was asked for.
type Backfill struct {
	Items  []Run `json:"items"`
	DryRun bool  `json:"dryRun"`
}

// Backfill asks a job for a run of each instant of which none ended well and none is open.
func (d *Desk) Backfill(ctx context.Context, in *BackfillIn) (*Backfill, error) {
	wrong, now := in.faults(), d.now()
	from, err := PointInTime(in.From, now)
	wrong.Err("--from ", err)
	to, err := PointInTime(in.To, now)
	wrong.Err("--to ", err)
	if in.To == "" {
		to = now
	}
	wrong.If(in.From == "", "say since when: --from TIME")
	wrong.If(from.After(to), "--from is behind --to")
	if err := Usage("try: amends schedule backfill --help", wrong...); err != nil {
		return nil, err
	}
	j, err := d.runnable(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	rows, err := schedule.Backfill(ctx, d.db, j.Name, from, to, in.actor(), in.DryRun)
	if errors.Is(err, schedule.ErrTooMany) {
		return nil, &Failure{Code: Conflict, What: err.Error(), Stands: "nothing was asked for", Next: "say a later --from, or an earlier --to"}
	}
	return answer(Backfill{docs(rows, runOf), in.DryRun}, err)
}

// run asks a runnable job for a run, and waits for its end.
func (d *Desk) run(ctx context.Context, in *RequestIn, what, help string, wrong Wrong) (*Run, error) {
	if err := Usage(help, wrong...); err != nil {
		return nil, err
	}
	j, err := d.runnable(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	return d.ask(ctx, j.Name, what, in)
}

// ask asks for a run, and waits for its end if that is wanted. Only without waiting the run may be open. One that did not end well is
// returned with what is to be done.
func (d *Desk) ask(ctx context.Context, job, what string, in *RequestIn) (*Run, error) {
	row, err := schedule.Request(ctx, d.db, job, what, in.actor())
	if err != nil {
		return nil, err
	}
	run := runOf(&row)
	if in.Asked != nil {
		in.Asked(&run, row.By != in.Actor || row.Why != in.Reason)
	}
	if in.NoWait {
		return &run, nil
	}
	if err := d.end(ctx, &run, in); err != nil {
		return nil, err
	}
	return &run, run.badly()
}

// end waits for the end of a run.
func (d *Desk) end(ctx context.Context, run *Run, in *RequestIn) error {
	timed, cancel := context.WithTimeout(ctx, time.Duration(in.Wait))
	defer cancel()
	for pause := poll; ; pause = min(2*pause, time.Second) {
		row, err := d.db.Run(timed, run.Job, run.Number)
		switch {
		case err == nil:
			if *run = runOf(&row); !run.Open() {
				return nil
			}
		case ctx.Err() != nil:
			return &Failure{
				Code: Interrupted, What: "interrupted", Why: fmt.Errorf("run %d of %s stays as it was asked for", run.Number, run.Job),
				Next: fmt.Sprintf("look with: amends reconcile runs %s; to stop it: amends schedule pause %s", quote(run.Job), quote(run.Job)),
			}
		case timed.Err() != nil:
			return run.timedOut(time.Duration(in.Wait))
		default:
			return err
		}
		if in.Progress != nil {
			in.Progress(run)
		}
		_ = nap.For(timed, pause)
	}
}

// timedOut is the end of a wait for a run that has not ended.
func (r *Run) timedOut(wait time.Duration) error {
	f := &Failure{Code: TimedOut, Next: "look with: amends reconcile runs " + quote(r.Job), Details: map[string]any{"run": r}, Done: true}
	f.What, f.Why = fmt.Sprintf("run %d of %s has not ended within %s", r.Number, r.Job, wait), errors.New("it goes on without this command; so far "+r.Figures())
	if r.Attempts == 0 {
		f.What, f.Stands = fmt.Sprintf("no process has begun run %d of %s within %s", r.Number, r.Job, wait), "see that one runs; do not ask again"
		f.Why = errors.New("it is stored, and begun when a process that has the job runs and no other run of it is at work")
	}
	return f
}

// badly is the failure of a run that did not end well, or nil.
func (r *Run) badly() error {
	f := &Failure{Code: Failed, What: fmt.Sprintf("run %d of %s ended as %s", r.Number, r.Job, r.Result), Details: map[string]any{"run": r}, Done: true}
	f.Why = Either(r.Words() != "", errors.New(r.Words()), nil)
	switch r.Result {
	case schedule.OK:
		return nil
	case schedule.Refused:
		f.Code, f.Stands = Conflict, "a bound was hit, and a person decides"
		f.Next = With("look with: amends reconcile show ", Brief(r.Plan))
	case schedule.Stopped, schedule.Skipped:
		f.Code, f.Next = Conflict, "look with: amends schedule list"
	case schedule.Partial:
		f.Stands = "what was left undone is found again by the next run"
	case schedule.Failed:
		f.Next = "look at the log of the process that ran it"
	}
	return f
}

// JobIn is an act on a job, or on all.
type JobIn struct {
	Job string `path:"job"`
	All bool   `json:"-" flag:"all" doc:"all jobs"`
}

// faults says what is wrong with how a job is named, or everything.
func (in *JobIn) faults() (wrong Wrong) {
	wrong.If(in.Job != schedule.Everything && in.All, "name one job, or say --all, not both")
	wrong.If(in.Job == schedule.Everything && !in.All, "say which: JOB, or --all")
	return wrong
}

// PauseJobIn pauses a job, or all.
type PauseJobIn struct {
	JobIn
	By
}

// JobPause is what is paused after an act, and what was before.
type JobPause struct {
	Job    string `json:"job"`    // "": all
	Paused *Mark  `json:"paused"` // now; null: it is not
	Before *Mark  `json:"before"`
	All    *Mark  `json:"all"` // the pause of everything
}

// Everything reports whether it is about all jobs.
func (p *JobPause) Everything() bool { return p.Job == schedule.Everything }

// PauseJob keeps a job, or all, from acting until it is unpaused.
func (d *Desk) PauseJob(ctx context.Context, in *PauseJobIn) (*JobPause, error) {
	return d.setPause(ctx, in.Job, "pause", append(in.JobIn.faults(), in.By.faults()...), func() error { return schedule.Pause(ctx, d.db, in.Job, in.actor()) })
}

// UnpauseJob lets a job, or all, run again.
func (d *Desk) UnpauseJob(ctx context.Context, in *JobIn) (*JobPause, error) {
	return d.setPause(ctx, in.Job, "unpause", in.faults(), func() error { return schedule.Unpause(ctx, d.db, in.Job) })
}

// setPause pauses or unpauses, and tells what stands then.
func (d *Desk) setPause(ctx context.Context, name, verb string, wrong Wrong, change func() error) (*JobPause, error) {
	if err := Usage("try: amends schedule "+verb+" --help", wrong...); err != nil {
		return nil, err
	}
	before, _, err := d.pauseOf(ctx, name)
	if err == nil {
		err = change()
	}
	if err != nil {
		return nil, err
	}
	now, all, err := d.pauseOf(ctx, name)
	return answer(JobPause{name, now, before, all}, err)
}

// pauseOf is the pause of a job by its own name, or of everything; and that of everything.
func (d *Desk) pauseOf(ctx context.Context, name string) (own, all *Mark, err error) {
	if name == schedule.Everything {
		b, err := d.db.Jobs(ctx)
		return markOf(b.Halt), markOf(b.Halt), err
	}
	j, err := d.jobOf(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return markOf(j.Paused), markOf(j.Halt), nil
}
