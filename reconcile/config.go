package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Config says which three sides are compared: a source of truth, a ledger and a destination. What says nothing else is
// required.
type Config struct {
	// Name of the job: of its listings, its plans and its drift. Without a slash.
	Name string

	// Source says what should be. It has Get, All and Want, and Changed for [Reconciler.SyncChanges].
	Source scan.Source
	// Destination is where documents are made. It has Marked and Find.
	Destination scan.Destination
	// Mapping is the version of what Want makes of objects. When it changes, a plan in which most documents differ is
	// no surprise.
	Mapping string

	// Coordinator runs the saga, or another process does: here it need not run. Its ledger is the third side.
	Coordinator *coordinator.Coordinator
	// Saga makes the documents, and Step is its step that makes one: the external id of the step is the document's.
	Saga, Step string
	// Deliver turns the state of an object into work, as [inbox.Source] has it: a start, a newer revision, a
	// withdrawal. Told the same twice it changes nothing.
	Deliver func(ctx context.Context, c inbox.Change) error
	// Input turns a state of an object into the input of the saga. Nil: it is the object's body.
	Input func(c inbox.Change) (any, error)

	// Fields says what the document should say for an input of the saga, in the words of the source's Want. With it a
	// newer version of an object that changed nothing of ours (our own mark at the source is one) is told from news.
	// Nil: every newer version is news.
	Fields func(input json.RawMessage) (plan.Fields, error)
	// Effects says which steps' results the documents of an object show, by the names of the steps: those that count, and
	// those that are void. What it does not name is as [coordinator.Adoption.Effects] has it; what it says is believed. A
	// void document shows that the saga was undone before, so that a mail may have been sent: then say NotDone of it only
	// with evidence that outlives an undo, such as the mail server's log. It is pure. Nil: [Made] by the Step.
	Effects func(o *scan.Object, live, void []plan.Document) (map[string]coordinator.Effect, error)
}

// Options are what a [Reconciler] may do, and its times. Zero fields take the default named at each.
type Options struct {
	// Policy is what the job may do beyond its defaults, and Bounds how much of it in one run. Zero is careful.
	Policy plan.Policy
	Bounds plan.Bounds

	// Begin is how far back [Reconciler.SyncChanges] goes at first, and after a rebuild. Zero is the beginning: everything
	// that the source ever had is heard, and started where the ledger does not know it, without the bounds and the approval
	// of a comparison. Say when your sagas began, and leave what is older to comparisons.
	Begin time.Time
	// Overlap is how far behind its cursor SyncChanges looks, for what the source shows late. 10 minutes.
	Overlap time.Duration
	// Safety is how old a change is to be before the cursor may stand on it. 5 seconds.
	Safety time.Duration
	// Timeout bounds one call to source or destination, and Attempts is how often one is tried. 1 minute, 4.
	Timeout  time.Duration
	Attempts int
	// Grace is how long the source must have had no object before that counts as proven. 24 hours.
	Grace time.Duration

	// Wake is called when SyncChanges has stored something: a [inbox.Hearer.Nudge] in the same process, so that it does not
	// wait for its next poll. Nil: it does.
	Wake func()
	// Log gets one line for a plan and one for what was done, and one for each key that could not be verified or whose
	// action failed; never a body. Discarded.
	Log logrus.FieldLogger
}

// Store is what a reconciler writes: listings, plans and drift. Every store of ours has it.
type Store interface {
	scan.Store
	plan.Plans
	plan.Drifts
}

// Reconciler compares source, ledger and destination of one job, and repairs what it may. Its methods may be called
// from any process; two runs of one job at once are the schedule's to prevent.
type Reconciler struct {
	parts
	source      *scan.Source
	destination *scan.Destination
	settle      time.Duration
}

// parts are what a reconciler is put together from.
type parts struct {
	name      string
	sweep     *scan.Sweep
	instances instances
	deliver   func(context.Context, inbox.Change) error
	effects   func(o *scan.Object, live, void []plan.Document) (map[string]coordinator.Effect, error)
	input     func(c inbox.Change) (any, error)
	policy    plan.Policy
	bounds    plan.Bounds
	plans     plan.Plans
	drifts    plan.Drifts

	grace    time.Duration
	patience time.Duration // how long one of the first actions of a kind may take until it is read back
	workers  int           // how many keys are verified, or acted on, at once
	wake     func()
	log      logrus.FieldLogger
}

// New returns a reconciler that writes to db. o may be nil. Every fault of c and o is reported at once.
func New(db Store, c Config, o *Options) (*Reconciler, error) {
	o = cmp.Or(o, new(Options))
	if err := c.validate(db, o); err != nil {
		return nil, fmt.Errorf("new reconciler %q: %w", c.Name, err)
	}
	if c.Effects == nil {
		c.Effects = Made(c.Step, nil)
	}
	sweep, err := scan.New(scan.Config{
		Name: c.Name, Source: c.Source, Destination: c.Destination, Store: db, Mapping: c.Mapping, Proceed: schedule.Proceed,
		Begin: o.Begin, Overlap: o.Overlap, Safety: o.Safety, Timeout: o.Timeout, Attempts: o.Attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("new reconciler %q: %w", c.Name, err)
	}
	return assemble(&parts{
		name: c.Name, sweep: sweep, deliver: c.Deliver, effects: c.Effects, input: c.Input,
		instances: &inLedger{saga: c.Saga, step: c.Step, ledger: c.Coordinator.Ledger(), coordinator: c.Coordinator, fields: c.Fields},
		policy:    o.Policy, bounds: o.Bounds, plans: db, drifts: db, grace: o.Grace, wake: o.Wake, log: o.Log,
	}), nil
}

// assemble puts a reconciler together, with the defaults of what it may be without.
func assemble(p *parts) *Reconciler {
	r := &Reconciler{parts: *p, source: &p.sweep.Source, destination: &p.sweep.Destination}
	r.bounds = r.bounds.OrDefaults()
	r.settle = cmp.Or(r.destination.Settle, 2*time.Second)
	r.grace = cmp.Or(r.grace, 24*time.Hour)
	r.patience = cmp.Or(r.patience, time.Minute)
	r.workers = cmp.Or(r.workers, 8)
	if r.input == nil {
		r.input = func(c inbox.Change) (any, error) { return c.Body, nil }
	}
	if r.log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		r.log = silent
	}
	return r
}

func (c *Config) validate(db Store, o *Options) error {
	var faults []error
	need := func(ok bool, what string) {
		if !ok {
			faults = append(faults, errors.New(what))
		}
	}
	need(db != nil, "there is no Store: a plan needs a place")
	need(c.Source.Get != nil, "the Source has no Get: what a listing tells is old, so there must be a way to ask")
	need(c.Source.All != nil, "the Source has no All: only a whole listing shows what is missing")
	need(c.Source.Want != nil, "the Source has no Want: what a document should be would be unknown")
	need(c.Destination.Marked != nil, "the Destination has no Marked: documents that the ledger does not know would never be found")
	need(c.Destination.Find != nil, "the Destination has no Find: what a listing tells is old, so there must be a way to ask")
	need(c.Coordinator != nil, "it has no Coordinator: its ledger is the third side")
	need(c.Saga != "", "no Saga is named")
	need(c.Step != "", "no Step is named: one step of the saga makes the document")
	need(c.Deliver != nil, "it has no Deliver: nothing could be repaired")
	need(o.Grace >= 0, "the Grace is negative")
	return errors.Join(append(faults, o.Bounds.Faults())...)
}

// proceed asks whether the run may go on.
func (r *Reconciler) proceed(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return r.sweep.Proceed(ctx)
}
