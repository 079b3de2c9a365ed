package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Plan lists both systems, compares them with the ledger, looks at every difference again, and
// stores what it would do. It does nothing of it: it writes to the tables of listings, plans and
// drift, and nowhere else. A listing that could not be ended in this run goes on in the next one;
// there is no plan until it is whole.
func (r *Reconciler) Plan(ctx context.Context) (Report, error) {
	rep := Report{Job: r.name}
	l, err := r.list(ctx)
	if err != nil {
		return broken(rep), fmt.Errorf("plan of %s: %w", r.name, err)
	}
	if l.missing != "" {
		rep.Result = schedule.Partial
		rep.conclude("there is no plan yet: " + l.missing)
		return rep, nil
	}
	p := &planning{Reconciler: r, listing: l}
	plan, err := p.plan(ctx)
	if err != nil {
		return broken(rep), fmt.Errorf("plan of %s: %w", r.name, err)
	}
	if p.unseen > 0 {
		l.short = append(l.short, fmt.Sprintf("%d could not be looked at%s", p.unseen, p.spent()))
	}
	rep = reportOf(r.name, plan)
	rep.short = l.short
	for _, w := range plan.OverLimit {
		rep.OverLimit += w.Count
	}
	switch {
	case plan.RefusedReason != "":
		rep.Result = schedule.Refused
	case len(l.short) > 0 && rep.OverLimit == 0:
		rep.Result = schedule.Partial
	}
	rep.conclude(append(plan.Words(), l.short...)...)
	rep.Failed = p.unseen
	r.tell("planned", &rep)
	return rep, nil
}

// spent says that, and why, one of the systems could not be asked for the rest.
func (p *planning) spent() string {
	if p.looks.spent == nil {
		return ""
	}
	return " (" + p.looks.spent.Error() + ")"
}

func broken(r Report) Report {
	r.Result = schedule.Failed
	return r
}

// reportOf is what a plan alone says.
func reportOf(job string, p *plan.Plan) Report {
	return Report{
		Job: job, Plan: p.ID, Seen: p.Counts.Keys,
		Planned:     p.Count(func(t plan.Tally) bool { return t.Action.Acts() }),
		NeedsReview: p.Count(func(t plan.Tally) bool { return t.Action == plan.Ask || t.Action == plan.Halt }),
	}
}

// planning is one plan in the making.
type planning struct {
	*Reconciler
	listing *listing
	into    plan.Ref // the draft
	last    plan.Ref // the plan before; zero: there is none
	looks   *looks
	unseen  int64 // keys whose look failed
	named   int   // keys of which the source says nothing, in the plan
	silent  bool  // nothing may be concluded from what the source does not have
}

// batchSize is how many findings are looked at with one wait, and stored with one write.
const batchSize = 500

// plan writes what the listings differ in into a draft, judges it as a whole, and replaces it by
// what is so now.
func (p *planning) plan(ctx context.Context) (*plan.Plan, error) {
	head := plan.Plan{Job: p.name, MappingVersion: p.sweep.Mapping, Scan: p.listing.source.Scan}
	before, err := p.plans.Latest(ctx, p.name)
	if err != nil && !errors.Is(err, plan.ErrNotFound) {
		return nil, err
	}
	if head.PreviousMappingVersion = before.MappingVersion; before.RefusedReason != "" && before.PreviousMappingVersion != "" { // that mapping was not acted by
		head.PreviousMappingVersion = before.PreviousMappingVersion
	}
	p.last = before.Ref()
	if p.into, err = p.plans.Draft(ctx, p.name); err != nil {
		return nil, err
	}
	counts, err := p.draft(ctx)
	if err != nil {
		return nil, err
	}
	head.Counts, head.Differences = counts.Census, counts.Spread
	head.Counts.PreviousSource = p.listing.before
	p.silent = p.bounds.Shrunk(&head.Counts) != ""
	planner := plan.NewPlanner(&head, counts.Tallies)
	if p.bounds.Diagnose(&head) != "" {
		err = p.asListed(ctx, planner) // it would be a million calls for a fault of our own
	} else {
		err = p.refine(ctx, planner)
	}
	if err != nil {
		return nil, err
	}
	plan, err := planner.Plan(&p.bounds)
	if err != nil {
		return nil, err
	}
	_, err = p.plans.Finish(ctx, p.into, plan)
	return plan, err
}

// draft writes what the listings differ in into the draft.
func (p *planning) draft(ctx context.Context) (*plan.Counts, error) {
	batch := make([]plan.Finding, 0, batchSize)
	var left []plan.Finding // as they are, because a person has decided so
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := p.proceed(ctx); err != nil {
			return err
		}
		before := slices.Clone(batch)
		if err := p.decided(ctx, batch); err != nil {
			return err
		}
		for i := range batch {
			if batch[i].Class == plan.Accepted {
				left = append(left, before[i])
			}
		}
		err := p.plans.Find(ctx, p.into, batch)
		batch = batch[:0]
		return err
	}
	counts, err := p.compare(ctx, p.listing, func(f *plan.Finding) error {
		batch = append(batch, *f)
		if len(batch) < batchSize {
			return nil
		}
		return flush()
	})
	if err != nil {
		return nil, err
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for i := range left {
		counts.Spread.Leave(&left[i])
	}
	return counts, nil
}

// drafted calls do with the findings of the draft, in the order of their keys.
func (p *planning) drafted(ctx context.Context, do func(fs []plan.Finding, last bool) error) error {
	for after := ""; ; {
		rows, err := p.plans.Findings(ctx, plan.FindingQuery{Plan: p.into, After: after, Limit: batchSize})
		if err != nil {
			return err
		}
		fs := make([]plan.Finding, len(rows))
		for i := range rows {
			fs[i] = rows[i].Finding
			after = fs[i].Key
		}
		if err := p.proceed(ctx); err != nil {
			return err
		}
		last := len(rows) < batchSize
		if err := do(fs, last); err != nil || last {
			return err
		}
	}
}

// asListed plans with what the listings say: the plan will be refused.
func (p *planning) asListed(ctx context.Context, planner *plan.Planner) error {
	return p.drafted(ctx, func(fs []plan.Finding, _ bool) error { return add(planner, fs) })
}

// refine looks at everything that differs again, and remembers since when it does.
func (p *planning) refine(ctx context.Context, planner *plan.Planner) error {
	p.looks = newLooks(&p.bounds)
	from := ""
	return p.drafted(ctx, func(fs []plan.Finding, last bool) error {
		now, unheard, err := p.looked(ctx, fs)
		if err != nil {
			return err
		}
		if err := errors.Join(p.doubt(ctx, from, now), p.contested(ctx, now), p.decided(ctx, now)); err != nil {
			return err
		}
		part := plan.Part{From: from}
		if !last {
			part.Until = fs[len(fs)-1].Key
			from = part.Until
		}
		now = p.nameSome(planner, now)
		if err := p.plans.Find(ctx, p.into, now); err != nil {
			return err
		}
		if err := p.drifts.Remember(ctx, p.into, part, differing(now, unheard)); err != nil {
			return err
		}
		return add(planner, now)
	})
}

// nameSome keeps the first keys of which the source says nothing, and has the others counted: they are
// taken out of the plan as what is in sync is.
func (p *planning) nameSome(planner *plan.Planner, fs []plan.Finding) []plan.Finding {
	for i := range fs {
		if fs[i].Class != plan.NoSource {
			continue
		}
		if p.named++; p.named > plan.Named {
			planner.Count(plan.Tally{Class: plan.NoSource, Action: plan.Nothing, Count: 1})
			fs[i].Class = plan.InSync
		}
	}
	return fs
}

func add(planner *plan.Planner, fs []plan.Finding) error {
	for i := range fs {
		if err := planner.Add(&fs[i]); err != nil {
			return err
		}
	}
	return nil
}

// differing are the findings that are remembered: what differs, except orphans that no look has confirmed.
func differing(fs []plan.Finding, unheard map[string]bool) []plan.Finding {
	var differ []plan.Finding
	for _, f := range fs {
		if f.Class != plan.InSync && f.Class != plan.NoSource && f.Class != plan.Accepted && !unheard[f.Key] {
			differ = append(differ, f)
		}
	}
	return differ
}

// looked returns what is so now of findings that a listing gave. A finding whose look failed stays
// as it was listed, and nothing is done about it. unheard are the orphans among that which no
// earlier run has asked about, either: their object may have come between the two listings, so
// their grace has not begun.
func (p *planning) looked(ctx context.Context, fs []plan.Finding) (now []plan.Finding, unheard map[string]bool, err error) {
	sights := make([]*sight, len(fs))
	var asked []*sight
	for i := range fs {
		sights[i] = &sight{item: plan.Item{Key: fs[i].Key}, finding: fs[i]}
		if fs[i].Class != plan.NoSource && fs[i].Class != plan.Accepted { // nothing follows from that, whatever a closer look finds
			asked = append(asked, sights[i])
		}
	}
	orphans, err := p.orphansAmong(ctx, fs)
	if err != nil {
		return nil, nil, err
	}
	if err := p.lookAt(ctx, p.looks, asked, func(key string) bool { return orphans[key] }); err != nil {
		return nil, nil, err
	}
	now, unheard = make([]plan.Finding, len(fs)), map[string]bool{}
	for i := range sights {
		s := sights[i]
		now[i] = s.finding
		if s.err == nil {
			continue
		}
		p.unseen++
		now[i] = fs[i]
		now[i].Action, now[i].Reason = plan.Nothing, plan.LookFailed+s.err.Error()
		if _, heard := orphans[fs[i].Key]; fs[i].Class == plan.Orphan && !heard {
			unheard[fs[i].Key] = true
		}
		if !errors.Is(s.err, asking.ErrSpent) {
			p.log.WithField("work", fs[i].Key).WithError(s.err).Warn("the look failed; the next run looks again")
		}
	}
	return now, unheard, p.looks.failed()
}

// orphansAmong returns the keys that an earlier run found to be without an object, and whether that
// was longer than the grace ago. Together with the complete listing and two looks by the id that
// proves that the object is gone. What the listing made of a key does not matter, as long as
// it has no version for it: a head in the ledger may be all that is left of an adoption that was
// cut off, and the look passes over it.
func (p *planning) orphansAmong(ctx context.Context, fs []plan.Finding) (map[string]bool, error) {
	orphans := map[string]bool{}
	for _, f := range fs {
		if f.SourceRevision != "" || f.Class == plan.NoSource {
			continue
		}
		ds, err := p.drifts.Drifts(ctx, plan.DriftQuery{Job: p.name, Key: f.Key, Class: plan.Orphan, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(ds) == 1 {
			orphans[f.Key] = !p.silent && time.Since(ds[0].First) >= p.grace
		}
	}
	return orphans, nil
}

// planAndApply plans, and applies the plan within its bounds if the job or the plan is approved.
func (r *Reconciler) planAndApply(ctx context.Context, approved bool) (Report, error) {
	before, err := r.past(ctx)
	if err != nil {
		return Report{Job: r.name, Result: schedule.Failed}, fmt.Errorf("run %s: read the last plan: %w", r.name, err)
	}
	rep, err := r.Plan(ctx)
	if err != nil || rep.Plan == "" || rep.Planned == 0 {
		return rep, err
	}
	plan, err := r.plans.Plan(ctx, rep.Plan)
	if err != nil {
		return broken(rep), fmt.Errorf("run %s: %w", r.name, err)
	}
	if !approved && plan.Approved.Name == "" {
		rep.Result, rep.NotAttempted = schedule.Refused, rep.Planned-rep.OverLimit
		rep.conclude("the job is not approved yet: it only plans until a person approves it, or applies a plan of it")
		return rep, nil
	}
	done, err := r.apply(ctx, plan, before)
	done.follow(&rep)
	return done, err
}
