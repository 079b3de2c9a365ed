package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// What people decide on findings. A comparison leaves as it is what they accepted; the rest is carried out by a run of its own, each
// after one more look. A decision is on record before anything is done.

// decided leaves as they are the findings of which a person has decided so.
func (p *planning) decided(ctx context.Context, fs []plan.Finding) error {
	var keys []string
	for i := range fs {
		if plan.Decidable(fs[i].Class) {
			keys = append(keys, fs[i].Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	ds, err := p.drifts.Decisions(ctx, plan.DecisionQuery{Job: p.name, Keys: keys, Limit: len(keys)})
	if err != nil {
		return err
	}
	by := make(map[string]*plan.Decision, len(ds))
	for i := range ds {
		by[ds[i].Finding.Key] = &ds[i]
	}
	now := p.sweep.Now()
	for i := range fs {
		f := &fs[i]
		if d := by[f.Key]; d != nil && d.Holds(f, now) {
			*f = d.Held(f)
		}
	}
	return nil
}

// carryOutDecisions carries out what people decided, each once: what became of a decision is noted, and it is not taken up again. One of
// which it could not be looked whether it is still so is left to the next run.
func (r *Reconciler) carryOutDecisions(ctx context.Context) (Report, error) {
	c := &carrying{Reconciler: r, breaker: newBreaker(&r.bounds, false), looks: newLookBreaker(&r.bounds), report: Report{Job: r.name}}
	err := c.all(ctx)
	rep := &c.report
	if err != nil {
		rep.Result = schedule.Failed
		err = fmt.Errorf("decisions of %s: %w", r.name, err)
	}
	rep.NotAttempted = max(0, rep.Planned-rep.Applied-rep.Superseded-rep.Failed)
	var why []string
	if end := cmp.Or(c.breaker.why, c.looks.why); end != "" {
		why = append(why, "stopped: "+end)
	}
	if rep.conclude(why...); rep.Planned == 0 {
		return *rep, err
	}
	r.tell("carried out what was decided", rep)
	return *rep, err
}

// carrying is one such run.
type carrying struct {
	*Reconciler

	breaker breaker
	looks   breaker // of those that could not be looked at: they keep no other from its turn
	report  Report
}

func (c *carrying) all(ctx context.Context) error {
	for after := ""; !c.breaker.open() && !c.looks.open(); {
		ds, err := c.drifts.Decisions(ctx, plan.DecisionQuery{Job: c.name, Open: true, After: after, Limit: c.workers})
		if err != nil || len(ds) == 0 {
			return err
		}
		after = ds[len(ds)-1].Finding.Key
		if err := c.some(ctx, ds); err != nil {
			return err
		}
	}
	return nil
}

// some carries out a few decisions at once, and notes what became of them, also when ctx has ended.
func (c *carrying) some(ctx context.Context, ds []plan.Decision) error {
	if err := c.proceed(ctx); err != nil {
		return err
	}
	var g errgroup.Group
	for i := range ds {
		g.Go(func() error {
			c.one(ctx, &ds[i])
			return nil
		})
	}
	_ = g.Wait() // it has no errors
	var done []plan.Decision
	for i := range ds {
		d := &ds[i]
		c.report.Planned++
		c.looks.note(d.Outcome == plan.Pending)
		switch d.Outcome { //nolint:exhaustive // the others are no outcomes of a decision
		case plan.Pending:
			c.log.WithField("work", d.Finding.Key).WithField("error", d.Error).Warnf("what was decided (%s) could not be carried out now; the next run does it", d.Verdict)
			continue
		case plan.Applied:
			c.report.Applied++
		case plan.Superseded:
			c.report.Superseded++
		default:
			c.report.Failed++
			c.log.WithField("work", d.Finding.Key).WithField("error", d.Error).Warnf("what was decided (%s) was not carried out", d.Verdict)
		}
		c.breaker.note(d.Outcome == plan.Failed)
		done = append(done, *d)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	return c.drifts.Settled(ctx, c.name, done)
}

// one carries one decision out, if what it is on is still so, and says in it what became of it. One that it leaves pending was not tried.
func (r *Reconciler) one(ctx context.Context, d *plan.Decision) {
	s := sight{item: plan.Item{Key: d.Finding.Key, Looked: plan.Looks}} // when it was planned; this is one more look
	if r.look(ctx, &s, d.Finding.Class == plan.Orphan); s.err != nil {
		d.Error = s.err.Error()
		return
	}
	switch now, k := &s.finding, s.item.Known; {
	case k != nil && k.Status.Live(): // what it comes to is not known yet
		d.Error = "its instance is " + string(k.Status)
		return
	case d.Done(now): // by a run that was cut off, or by itself
		d.Outcome = plan.Applied
		return
	case !d.On(now):
		d.Outcome, d.Error = plan.Superseded, "it is not so any more: "+inWords(now)
		return
	}
	if err := r.proceed(ctx); err != nil { // the look may have waited long for its turn
		d.Error = err.Error()
		return
	}
	switch err := guard(func() error { return r.carry(ctx, &s, d) }); {
	case err == nil:
		d.Outcome = plan.Applied
	case untried(ctx, err), r.proceed(ctx) != nil: // it was stopped in the middle, and goes on
		d.Error = err.Error()
	default:
		d.Outcome, d.Error = plan.Failed, err.Error()
	}
}

// carry does what was decided, and sees that it is so. Everything it calls may be told the same twice.
func (r *Reconciler) carry(ctx context.Context, s *sight, d *plan.Decision) error {
	by := saga.Actor{Name: d.By.Name, Reason: fmt.Sprintf("drift %s: %s", d.Verdict, d.By.Reason)}
	switch d.Verdict { //nolint:exhaustive // of the others nothing is carried out
	case plan.Accept:
		return r.adoptAsItIs(ctx, s, by)
	case plan.Ours:
		return r.writeOurs(ctx, s, d, by)
	case plan.Remake:
		return r.remake(ctx, d, by)
	case plan.Keep:
		return r.keep(ctx, s, d, by)
	default:
		return r.undo(ctx, s, by)
	}
}

// adoptAsItIs records a document that differs as what was made.
func (r *Reconciler) adoptAsItIs(ctx context.Context, s *sight, by saga.Actor) error {
	if err := r.behind(ctx, s); err != nil {
		return err
	}
	a, err := r.adoptee(s, true)
	if err != nil {
		return err
	}
	done, err := r.adopt(ctx, []adoptee{a}, by)
	if err != nil {
		return err
	}
	return done[0].Err
}

// writeOurs has the instance write what it should say over a document.
func (r *Reconciler) writeOurs(ctx context.Context, s *sight, d *plan.Decision, by saga.Actor) error {
	if id := locked(s); id != "" {
		return fmt.Errorf("%s is posted or paid, and is not written over: credit it and issue a new one, or accept it", id)
	}
	if s.finding.Class == plan.AdoptMismatch {
		if err := r.adoptAsItIs(ctx, s, by); err != nil {
			return err
		}
		if err := r.atRest(ctx, s.item.Key); err != nil {
			return err
		}
	}
	if s.finding.Action == plan.Revise { // the source has a newer version
		if err := r.carryOut(ctx, s, "of a decision"); err != nil {
			return err
		}
		return r.asItShouldBe(ctx, s.item.Key)
	}
	return r.remake(ctx, d, by)
}

// asItShouldBe is an error where something differs once the instance has come to rest.
func (r *Reconciler) asItShouldBe(ctx context.Context, key string) error {
	wrong, err := r.readBack(ctx, key)
	if err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	return err
}

// locked is a document that cannot be changed, or "".
func locked(s *sight) string {
	for _, d := range livingOf(s.item.Documents) {
		if d.Locked {
			return d.ID
		}
	}
	return ""
}

// remake runs the instance once more, and sees that nothing differs then. The decision names the request: told twice it runs once.
func (r *Reconciler) remake(ctx context.Context, d *plan.Decision, by saga.Actor) error {
	if err := r.instances.Rerun(ctx, d.Finding.Key, "decision of "+d.At.UTC().Format(time.RFC3339Nano), by); err != nil {
		return err
	}
	return r.asItShouldBe(ctx, d.Finding.Key)
}

// keep voids all documents but one, and adopts that one if the ledger does not know it.
func (r *Reconciler) keep(ctx context.Context, s *sight, d *plan.Decision, by saga.Actor) error {
	k, err := r.instances.Known(ctx, d.Finding.Key) // as it is now: it may have begun since
	switch {
	case err != nil:
		return fmt.Errorf("ask the ledger: %w", err)
	case k != nil && k.Status.Live():
		return fmt.Errorf("its instance is %s: decide again when it has come to rest", k.Status)
	case k != nil && k.Made != "" && k.Made != d.Keep:
		return fmt.Errorf("the ledger knows %s as what it made, so that later versions change that one: keep it, or undo the instance first", k.Made)
	}
	if err := r.voidBut(ctx, s, d.Keep); err != nil {
		return err
	}
	now := sight{item: plan.Item{Key: d.Finding.Key, Looked: plan.Looks}}
	if r.look(ctx, &now, false); now.err != nil {
		return now.err
	}
	if err := r.find(ctx, &now); err != nil { // where the ledger alone decides, the look asks for none
		return err
	}
	if live := livingOf(now.item.Documents); len(live) != 1 || live[0].ID != d.Keep {
		return fmt.Errorf("the others were voided, and %s does not stand alone: look at the destination", d.Keep)
	}
	if now.finding.Class == plan.LedgerLost && len(now.finding.Changes) == 0 {
		return r.adoptAsItIs(ctx, &now, by)
	}
	return nil
}

// undo undoes what stands: by its instance where that has made it, else by voiding the documents.
func (r *Reconciler) undo(ctx context.Context, s *sight, by saga.Actor) error {
	if id := locked(s); id != "" {
		return fmt.Errorf("%s is posted or paid, and is not voided: credit it, then accept what is left", id)
	}
	if k := s.item.Known; k != nil && k.Status == saga.Completed {
		if err := r.instances.Undo(ctx, s.item.Key, by); err != nil {
			return err
		}
		if err := errors.Join(r.atRest(ctx, s.item.Key), nap.For(ctx, r.settle)); err != nil {
			return err
		}
		if k, err := r.instances.Known(ctx, s.item.Key); err != nil || k == nil || k.Status != saga.Compensated {
			return errors.Join(err, errors.New("its instance was told to undo it, and has not done so: look at it with amends show"))
		}
	} else if err := r.voidBut(ctx, s, ""); err != nil {
		return err
	}
	now := sight{item: plan.Item{Key: s.item.Key}}
	if err := r.find(ctx, &now); err != nil {
		return err
	}
	if live := livingOf(now.item.Documents); len(live) > 0 {
		return fmt.Errorf("it was undone, and the destination still has %s", live[0].ID)
	}
	return nil
}

// voidBut voids the documents under a key, but for one.
func (r *Reconciler) voidBut(ctx context.Context, s *sight, keep string) error {
	if r.void == nil {
		return errors.New("this job has no Destination.Void: void it at the destination by hand")
	}
	for _, d := range livingOf(s.item.Documents) {
		if d.ID == keep {
			continue
		}
		if d.Locked {
			return fmt.Errorf("%s is posted or paid, and is not voided: credit it by hand", d.ID)
		}
		if err := r.proceed(ctx); err != nil {
			return err
		}
		if err := r.ask(ctx, r.destination.Quota(), func(ctx context.Context) error { return r.void(ctx, d) }); err != nil {
			return fmt.Errorf("void %s: %w", d.ID, err)
		}
	}
	return nap.For(ctx, r.settle)
}

// atRest waits until an instance moves no more by itself.
func (r *Reconciler) atRest(ctx context.Context, key string) error {
	for waited, wait := time.Duration(0), r.settle/16; ; waited, wait = waited+wait, min(2*wait, r.settle) {
		k, err := r.instances.Known(ctx, key)
		switch {
		case err != nil:
			return fmt.Errorf("ask the ledger: %w", err)
		case k != nil && !k.Status.Live() && k.Status != saga.Adopting:
			return nil
		case waited >= r.patience:
			return fmt.Errorf("it has not come to rest within %s: look again when it has", r.patience)
		}
		if err := nap.For(ctx, wait); err != nil {
			return err
		}
	}
}
