package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Apply carries out a plan by its id. Each action is looked at once more right before it is done,
// so an old plan does no harm. What the plan's bounds withhold stays undone until an operator has
// approved the plan. It may be called again for the same plan: what was done is not done again.
//
// The error says why the run broke off; the report says what was done until then.
func (r *Reconciler) Apply(ctx context.Context, id string) (Report, error) {
	plan, err := r.plans.Plan(ctx, id)
	if err != nil {
		return Report{Job: r.name, Plan: id, Result: schedule.Failed}, fmt.Errorf("apply plan %s: %w", id, err)
	}
	return r.apply(ctx, plan, &past{})
}

// past is what the run before this one left behind.
type past struct {
	failed map[string]bool // keys whose action failed; they go last
	broke  bool            // its breaker ended it
}

// pageSize is how many rows of a plan are in hand at once.
const pageSize = 200

// applying is one plan on its way.
type applying struct {
	*Reconciler
	plan     plan.Stored
	before   *past
	withheld map[plan.Risk]bool
	trials   map[kind]int    // how many actions are still to be done alone and read back
	stopped  map[kind]string // kinds whose first actions came back wrong
	report   Report
	late     []plan.Row // failed the last time

	mu      sync.Mutex
	breaker breaker
	spent   error // one of the systems asked to be left alone
}

func (r *Reconciler) apply(ctx context.Context, stored plan.Stored, before *past) (Report, error) {
	a := &applying{
		Reconciler: r, plan: stored, before: before, withheld: map[plan.Risk]bool{}, stopped: map[kind]string{},
		report: reportOf(r.name, &stored.Plan), breaker: newBreaker(&r.bounds, before.broke),
	}
	if why := r.refusal(&stored); why != "" {
		a.report.Result, a.report.Message = schedule.Refused, why
		return a.report, nil
	}
	if stored.Approved.Name == "" {
		for _, w := range stored.OverLimit {
			a.withheld[w.Risk] = true
		}
	}
	a.trials = trialsOf(&stored.Plan, a.withheld)
	err := errors.Join(a.all(ctx), a.remember(ctx))
	if err != nil {
		a.report.Result = schedule.Failed
		err = fmt.Errorf("apply plan %s: %w", stored.ID, err)
	}
	a.report.NotAttempted = max(0, a.report.Planned-a.report.Applied-a.report.Superseded-a.report.OverLimit-a.report.Failed)
	a.report.conclude(a.why()...)
	r.tell("applied", &a.report)
	return a.report, err
}

// refusal says why nothing of a plan may be done.
func (r *Reconciler) refusal(plan *plan.Stored) string {
	switch {
	case plan.RefusedReason != "":
		return plan.RefusedReason
	case plan.Job != r.name:
		return fmt.Sprintf("plan %s is of the job %s, not of %s", plan.ID, plan.Job, r.name)
	case plan.MappingVersion != r.sweep.Mapping:
		return fmt.Sprintf("plan %s rests on the mapping %q, and this program has %q: make a new plan", plan.ID, plan.MappingVersion, r.sweep.Mapping)
	default:
		return ""
	}
}

// why is what ended the run before its end.
func (a *applying) why() []string {
	var why []string
	if a.breaker.open() {
		why = append(why, "stopped: "+a.breaker.why)
	}
	if a.spent != nil {
		why = append(why, "stopped: "+a.spent.Error())
	}
	for k, wrong := range a.stopped {
		why = append(why, fmt.Sprintf("%s (%s) was stopped behind its first actions: %s", k.class, k.do, wrong))
	}
	for _, w := range a.plan.OverLimit {
		if a.withheld[w.Risk] {
			why = append(why, w.Reason)
		}
	}
	return why
}

// all walks through the plan in the order of its keys, and does what is still to be done.
func (a *applying) all(ctx context.Context) error {
	for after := ""; !a.ended(); {
		rows, err := a.plans.Findings(ctx, plan.FindingQuery{Plan: a.plan.Ref(), After: after, Limit: pageSize})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return a.rest(ctx)
		}
		after = rows[len(rows)-1].Key
		if err := a.page(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// page does what is to be done of some rows, and notes what is not.
func (a *applying) page(ctx context.Context, rows []plan.Row) error {
	var todo, noted []plan.Row
	for _, row := range rows {
		switch {
		case row.Action == plan.Ask && row.Outcome == plan.Pending:
			row.Outcome = plan.ForPerson
			noted = append(noted, row)
		case !row.Acting():
			a.add(&row)
		case a.withheld[row.Risk()]:
			row.Outcome = plan.Withheld
			a.add(&row)
			noted = append(noted, row)
		case a.before.failed[row.Key]:
			a.late = append(a.late, row)
		default:
			todo = append(todo, row)
		}
	}
	if err := a.note(ctx, noted); err != nil {
		return err
	}
	return a.do(ctx, todo)
}

// rest does what failed in the run before, when everything else was tried.
func (a *applying) rest(ctx context.Context) error {
	err := a.do(ctx, a.late)
	for i := range a.late {
		if a.late[i].Outcome != plan.Pending {
			delete(a.before.failed, a.late[i].Key)
		}
	}
	return err
}

// remember notes of what failed before, and did not have its turn, that it failed: so it goes last
// in the next run, too.
func (a *applying) remember(ctx context.Context) error {
	var rows []plan.Row
	for _, key := range slices.Sorted(maps.Keys(a.before.failed)) {
		rows = append(rows, plan.Row{
			Finding: plan.Finding{Key: key}, Outcome: plan.Failed, Error: "it failed in the run before, and this one ended before its turn",
		})
	}
	return a.note(ctx, rows)
}

// do carries out actions: those on trial one by one, then the others together.
func (a *applying) do(ctx context.Context, rows []plan.Row) error {
	var proven []*plan.Row
	for i := range rows {
		k := kindOf(&rows[i])
		switch {
		case a.ended():
			return nil
		case a.stopped[k] != "":
		case a.trials[k] == 0:
			proven = append(proven, &rows[i])
		default:
			if err := a.try(ctx, k, &rows[i]); err != nil {
				return err
			}
		}
	}
	return a.run(ctx, proven)
}

// run carries out actions, as many at once as there are workers, and notes what became of them.
func (a *applying) run(ctx context.Context, rows []*plan.Row) error {
	slots := make(chan struct{}, a.workers)
	var workers sync.WaitGroup
	var stop error
	tried := 0
	for i := range rows {
		slots <- struct{}{} // first a free worker, then the question whether to go on: it is about this action
		if stop = a.proceed(ctx); stop != nil || a.ended() {
			break
		}
		tried++
		workers.Go(func() {
			defer func() { <-slots }()
			a.act(ctx, rows[i], a.plan.ID)
			a.took(ctx, rows[i])
		})
		if a.probing() {
			workers.Wait() // one action decides whether there is a second
		}
	}
	workers.Wait()
	if stop == nil && tried > 0 {
		stop = a.proceed(ctx) // what was stopped in the middle says so
	}
	done := make([]plan.Row, tried)
	for i := range done {
		done[i] = *rows[i]
	}
	return errors.Join(stop, a.note(ctx, done))
}

// took takes in what became of one action.
func (a *applying) took(ctx context.Context, row *plan.Row) {
	a.mu.Lock()
	defer a.mu.Unlock()
	log := a.log.WithFields(logrus.Fields{"work": row.Key, "class": string(row.Class), "do": string(row.Action), "plan": a.plan.ID})
	switch row.Outcome {
	case plan.Pending:
		if ctx.Err() == nil {
			a.spent = errors.New(row.Error)
		}
		return
	case plan.Superseded:
		log.WithField("why", row.Error).Debug("not done: it is not so any more")
	case plan.Failed:
		log.WithField("error", row.Error).Warn("an action failed; the next run plans it again")
		a.breaker.note(true)
	default:
		log.Debug("done")
		a.breaker.note(false)
	}
	a.add(row)
}

func (a *applying) add(row *plan.Row) {
	switch row.Outcome {
	case plan.Applied:
		a.report.Applied++
	case plan.Superseded:
		a.report.Superseded++
	case plan.Failed:
		a.report.Failed++
	case plan.Withheld:
		a.report.OverLimit++
	case plan.Pending, plan.ForPerson: // neither is an action that came to something
	}
}

func (a *applying) probing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.breaker.probe
}

// ended reports whether nothing more may be tried.
func (a *applying) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.breaker.open() || a.spent != nil
}

// lastWords is how long noting what was done may take when the run was told to stop.
const lastWords = 5 * time.Second

// note stores what became of rows, also when ctx has ended: what was done is known.
func (a *applying) note(ctx context.Context, rows []plan.Row) error {
	var done []plan.Row
	for _, row := range rows {
		if row.Outcome != plan.Pending {
			done = append(done, row)
		}
	}
	if len(done) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	return a.plans.Done(ctx, a.plan.Ref(), done)
}

// past reads what the last run of the job left behind.
func (r *Reconciler) past(ctx context.Context) (*past, error) {
	p := &past{failed: map[string]bool{}}
	last, err := r.plans.Latest(ctx, r.name)
	if errors.Is(err, plan.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := r.plans.Findings(ctx, plan.FindingQuery{Plan: last.Ref(), Outcome: plan.Failed, Limit: 5 * pageSize})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		p.failed[row.Key] = true
	}
	if len(p.failed) < r.bounds.Row {
		return p, nil
	}
	for row, err := range plan.Each(ctx, r.plans, plan.FindingQuery{Plan: last.Ref(), Acting: true}) {
		if err != nil {
			return nil, err
		}
		if row.Outcome == plan.Pending { // what is withheld may stand before it
			p.broke = true
			break
		}
	}
	return p, nil
}
