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
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Config says which three sides are compared: a source of truth, a ledger and a destination. What says nothing else is
// required.
type Config struct {
	// Name of the job: of its listings, its plans and its drift. Without a slash.
	Name string

	// Source is the one of the inbox: asked for an object by Fetch, it says by Decide what should be of it, and its Apply
	// carries out what follows.
	Source *inbox.Source
	// Type and Tenant are those of the objects that are compared, as webhooks have them: order. Tenant may be empty.
	Type, Tenant string
	// All lists every object, in an order that changes do not move (by creation or id), and by a cursor that is no place in
	// the list: no offset, no page number.
	All func(ctx context.Context, q Query) (Page, error)
	// Changed lists objects that changed at or after q.Since, in the order of (Changed, ID), for [Reconciler.SyncChanges].
	// The lower bound is inclusive. Nil: there is no SyncChanges.
	Changed func(ctx context.Context, q Query) (Page, error)
	// Partitions names the parts in which the source is listed whole, with what each holds if the provider counts: ranges of
	// creation time, for example. An object never leaves its part. Nil: one part, without a count.
	Partitions func(ctx context.Context) ([]Partition, error)
	// Visible says whether a listing would show the object of a document, if it existed: providers hide what is archived,
	// older than some age or of another account. Nil: everything. Silence about the others proves nothing.
	Visible func(workID string) bool

	// Destination is where documents are made. It has Marked and Find.
	Destination Destination
	// Coordinator runs the saga, or another process does: here it need not run. Its ledger is the third side.
	Coordinator *coordinator.Coordinator
	// Step of the Source's saga makes the document: its external id is the document's.
	Step string
	// Fields says what the document should say for an input of the saga; see [FieldsOf].
	Fields func(input json.RawMessage) (plan.Fields, error)
	// Mapping is the version of what Fields makes of inputs. When it changes, a plan in which most documents differ is no
	// surprise.
	Mapping string
	// Effects says which steps' results the documents of an object show, by the names of the steps: those that count, and
	// those that are void. What it does not name is as [coordinator.Adoption.Effects] has it; what it says is believed. A
	// void document shows that the saga was undone before, so that a mail may have been sent: then say NotDone of it only
	// with evidence that outlives an undo, such as the mail server's log. It is pure. Nil: [Made] by the Step.
	Effects func(o *Object, live, void []plan.Document) (map[string]coordinator.Effect, error)
}

// What a user's functions list by. They are those of package scan.
type (
	// Query asks for one page.
	Query = scan.Query
	// Page is one page of objects.
	Page = scan.Page
	// Object is one object of the source.
	Object = scan.Object
	// Partition is one part of a whole listing.
	Partition = scan.Partition
	// Documents is one page of documents.
	Documents = scan.Documents
	// Destination is where documents are made.
	Destination = scan.Destination
)

// FieldsOf is Config.Fields of a saga whose input is an I.
func FieldsOf[I any](fields func(I) plan.Fields) func(json.RawMessage) (plan.Fields, error) {
	return func(input json.RawMessage) (plan.Fields, error) {
		var i I
		err := json.Unmarshal(input, &i)
		return fields(i), err
	}
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
	deliver   func(context.Context, inbox.Snapshot) error
	effects   func(o *scan.Object, live, void []plan.Document) (map[string]coordinator.Effect, error)
	input     func(c inbox.Snapshot) any // of the saga, for a state of an object
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
	c.Source.Quota = cmp.Or(c.Source.Quota, inbox.NewQuota(inbox.Limits{})) // the source's inbox shares it
	sweep, err := scan.New(scan.Config{
		Name: c.Name, Source: c.side(), Destination: c.Destination, Store: db, Mapping: c.Mapping, Proceed: schedule.Proceed,
		Begin: o.Begin, Overlap: o.Overlap, Safety: o.Safety, Timeout: o.Timeout, Attempts: o.Attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("new reconciler %q: %w", c.Name, err)
	}
	return assemble(&parts{
		name: c.Name, sweep: sweep, deliver: c.deliver, effects: c.Effects, input: c.input,
		instances: &inLedger{saga: c.Source.Saga, step: c.Step, ledger: c.Coordinator.Ledger(), coordinator: c.Coordinator, fields: c.Fields},
		policy:    o.Policy, bounds: o.Bounds, plans: db, drifts: db, grace: o.Grace, wake: c.Source.Wake, log: o.Log,
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
		r.input = func(c inbox.Snapshot) any { return c.Body }
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
	need(c.Source != nil, "there is no Source: it says what should be")
	if c.Source != nil {
		need(c.Source.Name != "", "the Source has no Name: work ids begin with it")
		need(c.Source.Fetch != nil, "the Source has no Fetch: what a listing tells is old, so there must be a way to ask")
		need(c.Source.Decide != nil, "the Source has no Decide: what should be of an object would be unknown")
		need(c.Source.Apply != nil, "the Source has no Apply: nothing could be repaired")
		need(c.Source.Saga != "", "the Source has no Saga: there would be nothing to run")
	}
	need(c.Type != "", "no Type of objects is named: their work ids contain it")
	need(c.All != nil, "it has no All: only a whole listing shows what is missing")
	need(c.Destination.Marked != nil, "the Destination has no Marked: documents that the ledger does not know would never be found")
	need(c.Destination.Find != nil, "the Destination has no Find: what a listing tells is old, so there must be a way to ask")
	need(c.Coordinator != nil, "it has no Coordinator: its ledger is the third side")
	need(c.Step != "", "no Step is named: one step of the saga makes the document")
	need(c.Fields != nil, "it has no Fields: what a document should say would be unknown")
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
