package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/scan"
)

// Config sets up a [Reconciler]. What says nothing else is required.
type Config struct {
	// Name of the job: of its plans and its drift. The sweep's.
	Name string

	// Sweep lists two of the sides. Its Source (with Get, All and Want), Destination (with Marked and Find), Mapping,
	// quotas and Proceed are the reconciler's, too. Proceed is asked before every action and every batch, and an error
	// from it ends the run there: a pause, a lease that was lost.
	Sweep *scan.Sweep
	// Works is the third side, the ledger.
	Works Works

	// Deliver turns the state of an object into work, as [inbox.Source] has it: a start, a newer revision, a
	// withdrawal. Told the same twice it changes nothing.
	Deliver func(ctx context.Context, c inbox.Change) error
	// Effects says which steps' results the documents of an object show, by the names of the steps: those that count, and
	// those that are void. What it does not name is as [Adoption.Effects] has it; what it says is believed. A void document
	// shows that the work was undone before, so that a mail may have been sent: then say [Effect.NotDone] of it only with
	// evidence that outlives an undo, such as the mail server's log. It is pure.
	Effects func(o *scan.Object, live, void []plan.Document) (map[string]Effect, error)

	// Policy is what the job may do beyond its defaults, and Bounds how much of it in one run. Zero is careful.
	Policy plan.Policy
	Bounds plan.Bounds

	Plans  plan.Plans
	Drifts plan.Drifts

	// Approved says whether somebody has approved the job. Until then Run only plans (a plan may still be applied by
	// its id). Nil: nobody has.
	Approved func(ctx context.Context) (bool, error)

	// Grace is how long the source must have had no object before that counts as proven. 24 hours.
	Grace time.Duration
	// Patience is how long the work of one of the first actions of a kind may take until it is read back. 1 minute.
	Patience time.Duration
	// Workers is how many keys are looked at, or acted on, at once. 8.
	Workers int
	// Log gets one line for a plan and one for what was done, and one for each key that could not be looked at or whose
	// action failed; never a body. Discarded.
	Log logrus.FieldLogger
}

// Reconciler compares source, ledger and destination of one job, and repairs what it may. Its methods may be called
// from any process; two runs of one job at once are the schedule's to prevent.
type Reconciler struct {
	name        string
	sweep       *scan.Sweep
	source      *scan.Source
	destination *scan.Destination
	works       Works
	deliver     func(context.Context, inbox.Change) error
	effects     func(o *scan.Object, live, void []plan.Document) (map[string]Effect, error)
	policy      plan.Policy
	bounds      plan.Bounds
	plans       plan.Plans
	drifts      plan.Drifts
	approved    func(context.Context) (bool, error)
	settle      time.Duration
	grace       time.Duration
	patience    time.Duration
	workers     int
	log         logrus.FieldLogger
}

// New returns a reconciler. Every fault of c is reported at once.
func New(c Config) (*Reconciler, error) {
	if c.Name == "" && c.Sweep != nil {
		c.Name = c.Sweep.Name
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new reconciler %q: %w", c.Name, err)
	}
	r := &Reconciler{
		name: c.Name, sweep: c.Sweep, source: &c.Sweep.Source, destination: &c.Sweep.Destination,
		works: c.Works, deliver: c.Deliver, effects: c.Effects,
		policy: c.Policy, bounds: c.Bounds.OrDefaults(), plans: c.Plans, drifts: c.Drifts, approved: c.Approved,
		settle: or(c.Sweep.Destination.Settle, 2*time.Second), grace: or(c.Grace, 24*time.Hour), patience: or(c.Patience, time.Minute),
		workers: or(c.Workers, 8), log: c.Log,
	}
	if r.log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		r.log = silent
	}
	return r, nil
}

func or[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func (c *Config) validate() error {
	var faults []error
	need := func(ok bool, what string) {
		if !ok {
			faults = append(faults, errors.New(what))
		}
	}
	need(c.Sweep != nil, "it has no Sweep: nobody could list the source and the destination")
	if s := c.Sweep; s != nil {
		need(s.Source.Get != nil, "the Source has no Get: what a listing tells is old, so there must be a way to ask")
		need(s.Source.All != nil, "the Source has no All: only a whole listing shows what is missing")
		need(s.Source.Want != nil, "the Source has no Want: nobody could say what a document should be")
		need(s.Destination.Marked != nil, "the Destination has no Marked: what nobody knows of would never be found")
		need(s.Destination.Find != nil, "the Destination has no Find: what a listing tells is old, so there must be a way to ask")
	}
	need(c.Works != nil, "there are no Works: the ledger is the third side")
	need(c.Deliver != nil, "it has no Deliver: nothing could be repaired")
	need(c.Effects != nil, "it has no Effects: nothing could be adopted")
	need(c.Plans != nil && c.Drifts != nil, "Plans or Drifts is missing: there is nowhere to write a plan")
	need(min(c.Grace, c.Patience) >= 0 && c.Workers >= 0, "the Grace, the Patience or the number of Workers is negative")
	return errors.Join(append(faults, c.Bounds.Faults())...)
}

// proceed asks whether the run may go on.
func (r *Reconciler) proceed(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return r.sweep.Proceed(ctx)
}
