// Package retention lets go of what is kept of instances that have ended: their bodies, then their records, then their keys.
//
//	schedule.Job{Name: "retention", Schedule: "17 3 * * *", Approved: true, Work: retention.Work(db, nil)}
//
// How long what is kept is said by [saga.Retain], or for all others by the ledger (amends retention set). Until one of them is said nothing
// goes. It runs beside coordinators, in small batches at a bounded rate, and may be killed anywhere: a batch is one transaction, and the next
// run goes on with what is left.
package retention

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
)

// Options tunes a run. The zero value is ready to use.
type Options struct {
	PerSecond int                // instances that lose something, at most. 200
	Log       logrus.FieldLogger // the standard logger
}

// Report is what went, or would go.
type Report struct {
	At       time.Time // by the ledger's clock
	Policies []Policy  // of each saga that is known, by name
	Lines    []Line    // what goes, by saga and stage
	Kept     int       // due, and not reduced: held by a person, to be erased first, or moved meanwhile
	Damaged  int       // due, and not reduced: they cannot be read, run amends check
	More     bool      // the time of the job was nearly over: the next run goes on
	Waits    int       // of callbacks and messages, of instances whose records have gone
	Erased   int       // a person had said so before they ended, see [Erase]
}

// Policy is how long what is kept of a saga's instances.
type Policy struct {
	Saga string
	saga.Retention
	Own bool // its definition says it; else the ledger does
	Set bool // one of them does; else nothing goes
}

// Line counts instances that lose the same.
type Line struct {
	Saga   string
	What   string // bodies, records or keys
	Works  int
	Bytes  int64     // of bodies, snapshots and records, about
	Oldest time.Time // when something was last recorded of the oldest
}

// The stages.
const (
	Bodies  = "bodies"
	Records = "records"
	Keys    = "keys"
)

// DefaultName is the name of the control that says how long what is kept of sagas that do not say it.
const DefaultName = "all"

// Default is the ledger's own retention; false: it has none, and nothing goes of sagas that do not say it.
func Default(ctx context.Context, l ledger.Controls) (saga.Retention, bool, error) {
	all, _, err := l.Controls(ctx)
	if err != nil {
		return saga.Retention{}, false, fmt.Errorf("read the retention: %w", err)
	}
	for i := range all {
		if all[i].Kind == ledger.ControlRetention && all[i].Name == DefaultName && len(all[i].Body) > 0 {
			var r program.Retention
			err := json.Unmarshal(all[i].Body, &r)
			return asSaid(&r), true, err
		}
	}
	return saga.Retention{}, false, nil
}

func asSaid(r *program.Retention) saga.Retention {
	return saga.Retention{Bodies: time.Duration(r.Bodies), Records: time.Duration(r.Records), Key: time.Duration(r.Key)}
}

// Work is the work of a job that lets go of what is due.
func Work(db store.DB, o *Options) func(context.Context, *schedule.Run) (schedule.Outcome, error) {
	return func(ctx context.Context, job *schedule.Run) (schedule.Outcome, error) {
		r := newRun(db, o)
		r.dry = !job.Approved
		if end, ok := ctx.Deadline(); ok {
			r.until = end.Add(-time.Until(end) / 10)
		}
		report, err := r.both(ctx, db)
		n := 0
		for _, line := range report.Lines {
			n += line.Works
		}
		erased := report.Erased
		out := schedule.Outcome{Result: schedule.OK, Seen: int64(n + report.Kept + report.Damaged), Planned: int64(n + report.Kept), Applied: int64(n), Note: report.String()}
		if r.dry {
			report.Erased = 0
			out.Applied, out.Note = 0, "nothing goes until a person approves the job. It would be: "+report.String()
		}
		out.Applied += int64(erased)
		if out.Errors = int64(report.Damaged); out.Errors > 0 || report.More {
			out.Result = schedule.Partial
		}
		return out, err
	}
}

// Plan says what would go by the time at; zero: now.
func Plan(ctx context.Context, db store.DB, at time.Time) (Report, error) {
	r := run{ledger: db, dry: true, now: at}
	return r.walk(ctx)
}

// Run lets go of what is due. When it fails it says what went until then.
func Run(ctx context.Context, db store.DB, o *Options) (Report, error) {
	return newRun(db, o).both(ctx, db)
}

// both erases what a person had said so of, and lets go of what is due: of what has expired first, for the walk may not come to its end.
func (r *run) both(ctx context.Context, db store.DB) (report Report, err error) {
	erased, failed := Erase(ctx, db, Erasure{})
	waits := 0
	if err = schedule.Proceed(ctx); err == nil && !r.dry {
		waits, err = db.ForgetWaits(ctx)
	}
	if err == nil {
		report, err = r.walk(ctx)
	}
	if report.Waits = waits; err == nil && !r.dry { // of what it let go
		waits, err = db.ForgetWaits(ctx)
		report.Waits += waits
	}
	for _, w := range erased.Works {
		if w.As != "" {
			report.Erased++
		}
	}
	return report, errors.Join(failed, err)
}

func newRun(db ledger.Ledger, o *Options) *run {
	if o == nil {
		o = new(Options)
	}
	r := &run{ledger: db, log: o.Log, rate: cmp.Or(o.PerSecond, 200)}
	if r.log == nil {
		r.log = logrus.StandardLogger()
	}
	return r
}

// batch is how many instances lose something in one transaction: few, because starts wait for it on SQLite.
const batch = 20

// sample is how many instances of a line a plan reads: it takes the others for alike.
const sample = 200

// run is one walk over all instances.
type run struct {
	ledger   ledger.Ledger
	log      logrus.FieldLogger
	rate     int
	dry      bool
	now      time.Time
	until    time.Time // when it is to end by itself; zero: never
	policies map[string]Policy
	held     map[string]bool // by [ledger.HoldName]
	fallback Policy
	lines    map[[2]string]*Line
	report   Report
}

func (r *run) walk(ctx context.Context) (Report, error) {
	err := r.begin(ctx)
	// Tombstones first, so that what becomes one today is not looked at twice.
	for _, left := range []ledger.Left{ledger.LeftRemains, ledger.LeftRecords, ledger.LeftAll} {
		if err == nil {
			err = r.stage(ctx, left)
		}
	}
	if errors.Is(err, errLater) {
		r.report.More, err = true, nil
	}
	for _, line := range r.lines {
		r.report.Lines = append(r.report.Lines, *line)
	}
	slices.SortFunc(r.report.Lines, func(a, b Line) int { return cmp.Or(cmp.Compare(a.Saga, b.Saga), cmp.Compare(a.What, b.What)) })
	if err != nil {
		return r.report, fmt.Errorf("retention: %w", err)
	}
	return r.report, nil
}

// begin reads the clock and what is said of each saga.
func (r *run) begin(ctx context.Context) error {
	r.policies, r.lines = make(map[string]Policy), make(map[[2]string]*Line)
	if r.now.IsZero() {
		o, err := r.ledger.Overview(ctx)
		if err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		r.now = o.At
	}
	r.report.At = r.now
	var err error
	if r.fallback.Retention, r.fallback.Set, err = Default(ctx, r.ledger); err != nil {
		return err
	}
	controls, _, err := r.ledger.Controls(ctx)
	if err != nil {
		return fmt.Errorf("read what is held: %w", err)
	}
	r.held = make(map[string]bool)
	for i := range controls {
		if c := &controls[i]; c.Kind == ledger.ControlHold && len(c.Body) > 0 {
			r.held[c.Name] = true
		}
	}
	ds, err := r.ledger.Definitions(ctx) // by name and version: the newest comes last
	if err != nil {
		return fmt.Errorf("read the definitions: %w", err)
	}
	for i := range ds {
		p := r.fallback
		if p.Saga = ds[i].Spec.Saga; ds[i].Spec.Retain != nil {
			p.Retention, p.Own, p.Set = asSaid(ds[i].Spec.Retain), true, true
		}
		r.policies[p.Saga] = p
	}
	for _, p := range r.policies {
		r.report.Policies = append(r.report.Policies, p)
	}
	slices.SortFunc(r.report.Policies, func(a, b Policy) int { return cmp.Compare(a.Saga, b.Saga) })
	return nil
}

// policy is what counts for a saga.
func (r *run) policy(name string) Policy {
	if p, ok := r.policies[name]; ok {
		return p
	}
	return r.fallback
}

// due is what an instance of which so much is left has to lose by the retention, and whether it has to lose anything.
func due(p *saga.Retention, left ledger.Left, age time.Duration) (to ledger.Left, what string, is bool) {
	over := func(keep time.Duration) bool { return keep > 0 && age >= keep }
	switch {
	case over(p.Key):
		return "", Keys, true
	case left != ledger.LeftRemains && over(p.Records):
		return ledger.LeftRemains, Records, true
	case left == ledger.LeftAll && over(p.Bodies):
		return ledger.LeftRecords, Bodies, true
	default:
		return left, "", false
	}
}

// soonest is the shortest time after which an instance of which so much is left loses something; 0: never.
func (r *run) soonest(left ledger.Left) (least time.Duration) {
	for _, p := range append(slices.Clone(r.report.Policies), r.fallback) {
		all := []time.Duration{p.Key, p.Records, p.Bodies}
		switch left {
		case ledger.LeftRemains:
			all = all[:1]
		case ledger.LeftRecords:
			all = all[:2]
		case ledger.LeftAll:
		}
		for _, keep := range all {
			if p.Set && keep > 0 && (least == 0 || keep < least) {
				least = keep
			}
		}
	}
	return least
}

// stage walks the instances of which so much is left.
func (r *run) stage(ctx context.Context, left ledger.Left) error {
	least := r.soonest(left)
	if least == 0 {
		return nil
	}
	f := ledger.Filter{Left: left, UpdatedUntil: r.now.Add(-least), Limit: 500}
	for {
		page, err := r.ledger.List(ctx, f)
		if err != nil {
			return fmt.Errorf("list what is due: %w", err)
		}
		var heads []ledger.Instance
		for i := range page.Instances {
			h := &page.Instances[i]
			if p := r.policy(h.ID.Saga); p.Set {
				if _, _, is := due(&p.Retention, left, r.now.Sub(h.Updated)); is {
					heads = append(heads, *h)
				}
			}
		}
		for some := range slices.Chunk(heads, batch) {
			if err := r.reduce(ctx, some, left); err != nil {
				return err
			}
		}
		if f.After = page.Next; f.After == "" {
			return nil
		}
	}
}

// errLater ends a run whose time is nearly over.
var errLater = errors.New("the next run goes on")

// reduce lets go of what some instances have to lose, and then waits as long as the rate says.
func (r *run) reduce(ctx context.Context, heads []ledger.Instance, left ledger.Left) error {
	begun := time.Now()
	if err := schedule.Proceed(ctx); err != nil { // a person may have paused the job
		return err
	}
	if !r.until.IsZero() && begun.After(r.until) {
		return errLater
	}
	var all []ledger.Reduction
	var bytes []int64
	for i := range heads {
		if r.held[ledger.HoldName(heads[i].ID)] {
			r.report.Kept++
			continue
		}
		p := r.policy(heads[i].ID.Saga)
		to, what, _ := due(&p.Retention, left, r.now.Sub(heads[i].Updated))
		one := ledger.Reduction{Head: heads[i], To: to}
		if line := r.lines[[2]string{one.Head.ID.Saga, what}]; r.dry && line != nil && line.Works >= sample {
			r.count(&one, what, line.Bytes/int64(line.Works))
			continue
		}
		n, err := r.prepare(ctx, &one)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.report.Damaged++
			if r.log != nil {
				r.log.WithError(err).WithFields(logrus.Fields{"saga": one.Head.ID.Saga, "work": one.Head.ID.Work, "what": what}).Warn("it cannot be read: nothing of it goes")
			}
		case r.dry:
			r.count(&one, what, n)
		default:
			all, bytes = append(all, one), append(bytes, n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	done, err := r.ledger.Reduce(ctx, all)
	if err != nil {
		return err
	}
	for i := range all {
		if !done[i] {
			r.report.Kept++
			continue
		}
		p := r.policy(all[i].Head.ID.Saga)
		_, what, _ := due(&p.Retention, left, r.now.Sub(all[i].Head.Updated))
		r.count(&all[i], what, bytes[i])
	}
	return nap.For(ctx, time.Duration(len(all))*time.Second/time.Duration(r.rate)-time.Since(begun))
}

func (r *run) count(one *ledger.Reduction, what string, bytes int64) {
	key := [2]string{one.Head.ID.Saga, what}
	if r.lines[key] == nil {
		r.lines[key] = &Line{Saga: key[0], What: what, Oldest: one.Head.Updated}
	}
	line := r.lines[key]
	if line.Works++; one.Head.Updated.Before(line.Oldest) {
		line.Oldest = one.Head.Updated
	}
	line.Bytes += bytes
}

// prepare reads what one instance has to lose, and says how many bytes of bodies and records that is, about.
func (r *run) prepare(ctx context.Context, one *ledger.Reduction) (bytes int64, err error) {
	if one.Head.Left() == ledger.LeftRemains { // the key goes
		r := ledger.Remembered(&one.Head)
		one.Tags = r.Tags
		return int64(len(one.Head.Remains)), nil
	}
	records, err := r.ledger.History(ctx, one.Head.ID)
	if err != nil {
		return 0, err
	}
	st, err := machine.Fold(one.Head.ID, records)
	if err != nil {
		return 0, err
	}
	if !st.Reduced() {
		return 0, fmt.Errorf("it is %s, and the head says %s", st.Status, one.Head.Status)
	}
	one.Tail, one.Tags = st.Seq, st.Tags
	if one.To == ledger.LeftRecords {
		return r.bodies(ctx, one, records, st)
	}
	for i := range records {
		bytes += 150 + int64(len(records[i].Body)+len(records[i].Snapshot)) // a document and its place in an index
	}
	if one.Remains = st.Remains(); one.To != "" {
		one.Tags = slices.DeleteFunc(slices.Clone(st.Tags), func(tag string) bool { return slices.Contains(one.Remains.Tags, tag) })
	}
	return bytes, nil
}

// bodies takes out of records and signals what goes with the bodies.
func (r *run) bodies(ctx context.Context, one *ledger.Reduction, records []machine.Record, was *machine.State) (bytes int64, err error) {
	one.Tags = nil
	for i := range records {
		before := len(records[i].Body) + len(records[i].Snapshot)
		changed, err := records[i].Reduce(one.Head.Salt)
		if err != nil {
			return 0, err
		}
		if changed {
			bytes += int64(before - len(records[i].Body))
			one.Records = append(one.Records, records[i])
		}
	}
	st, err := machine.Fold(one.Head.ID, records)
	switch {
	case err != nil:
		return 0, fmt.Errorf("without its bodies: %w", err)
	case !st.Alike(was):
		return 0, fmt.Errorf("without its bodies it would be another one; please report this")
	case one.Head.Posted == 0:
		return bytes, nil
	}
	signals, err := r.ledger.Signals(ctx, one.Head.ID)
	for i := range signals {
		s := &signals[i]
		if n := len(s.Input) + len(s.Body) + len(s.Output); n > 0 {
			s.Input, s.Body, s.Output = nil, nil, nil
			bytes += int64(n)
			one.Signals = append(one.Signals, *s)
		}
	}
	return bytes, err
}

// String is the report in a line.
func (r Report) String() string {
	n := make(map[string]int)
	for _, line := range r.Lines {
		n[line.What] += line.Works
	}
	said := fmt.Sprintf("bodies of %d, records of %d, keys of %d; %d erased; %d held, to be erased or moved, %d cannot be read", n[Bodies], n[Records], n[Keys], r.Erased, r.Kept, r.Damaged)
	if r.More {
		said += "; more are due: " + errLater.Error()
	}
	return said
}
