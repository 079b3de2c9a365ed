package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Config says which three sides are compared: a source of truth, a ledger and a destination. All
// but Changed is required.
type Config struct {
	// Name of the job: of its listings, its plans and its drift. Without a slash.
	Name string

	// Source is the one of the inbox: asked for an object by Fetch, it says by Decide what should
	// be of it, and its Apply carries out what follows.
	Source *inbox.Source
	// Type is that of the objects that are compared, as webhooks have it: order.
	Type string
	// All lists every object, in an order that changes do not move (by creation or id), a page for
	// each call. next is the cursor of the next page, which the provider can read again later: no
	// offset, no page number. The last page has none. What cannot be answered is an error and never
	// an empty page: an empty page says that there is nothing.
	All func(ctx context.Context, q Query) (page []Listed, next string, err error)
	// Changed lists objects that changed at or after q.Since, in the order of (Changed, ID), for
	// [Reconciler.SyncChanges], which goes back to the Source's Begin at first, and after a rebuild. The lower bound is inclusive. Nil:
	// there is no SyncChanges.
	Changed func(ctx context.Context, q Query) (page []Listed, next string, err error)

	// Destination is where documents are made. It has Marked and Find.
	Destination Destination
	// Coordinator runs the saga, or another process does: here it need not run. Its ledger is the
	// third side.
	Coordinator *coordinator.Coordinator
	// Step of the Source's saga makes the document: its external id is the document's.
	Step string
	// Fields says what the document should say for an input of the saga; see [FieldsOf].
	Fields func(input json.RawMessage) (Fields, error)
}

// Query asks for one page.
type Query struct {
	Partition string
	Since     time.Time // changed at or after; Changed only
	Until     time.Time // what changed after it may be left out; Changed only
	Cursor    string    // next of the page before; empty for the first
	Limit     int       // how many we would like; the provider may give fewer
}

// Listed is one object of the source as a listing tells it:
//
//	type Listed struct {
//		ID      string
//		Version inbox.Version // as webhooks tell it; zero when the object has none
//		Created time.Time
//		Changed time.Time // by the source's clock
//		Deleted bool
//		Body    json.RawMessage // whole, as a fetch would give it
//	}
type Listed = scan.Listed

// Partition is one part of a whole listing:
//
//	type Partition struct {
//		Name  string
//		Count int64 // what it holds by the provider's word; -1: it does not say
//	}
type Partition = scan.Partition

// Fields are what a document says, field by field, in a normal form: money as whole minor units,
// times in UTC, lists sorted, texts trimmed. Only what is ours is in them.
type Fields = map[string]string

// Document is something at the destination:
//
//	type Document struct {
//		ID       string // the destination's name for it
//		Key      string // our mark on it, which is the work id; empty: it is not ours
//		Fields   map[string]string // what it says where the fields are ours
//		Void     bool   // it does not count any more
//		Locked   bool   // posted, paid, or in a closed period: it cannot be changed
//		Foreign  bool   // fields that are not ours differ from what we wrote
//		Created  time.Time
//		Revision string          // of the object that it shows, by its mark; empty: the mark does not say
//		Intact   bool            // it says what was written for Revision, word for word
//		Body     json.RawMessage // as the destination tells it, for Config.Effects; listings do not keep it
//	}
type Document = plan.Document

// Destination is where documents are made.
type Destination struct {
	// Limits bound how often this process asks it.
	Limits inbox.Limits
	// Marked lists everything that carries our mark, void and posted ones too, a page for each
	// call, as Config.All does.
	Marked func(ctx context.Context, q Query) (page []Document, next string, err error)
	// Partitions are as those of Config.
	Partitions func(ctx context.Context) ([]Partition, error)
	// Find asks for everything under one key, which is a work id. It asks by list or by id where a
	// search index may be behind.
	Find func(ctx context.Context, key string) ([]Document, error)
	// Void voids one document that carries our mark, where a person has decided so (amends drift): one of several, or one that no
	// instance can undo. One that is void is no error. Nil: a person does it at the destination.
	Void func(ctx context.Context, d Document) error
	// Settle is how long the destination may take until everybody who asks is told of what was
	// made. 2 seconds.
	Settle time.Duration
}

// FieldsOf is Config.Fields of a saga whose input is an I.
func FieldsOf[I any](fields func(I) Fields) func(json.RawMessage) (Fields, error) {
	return func(input json.RawMessage) (Fields, error) {
		var i I
		err := program.Decode(input, &i)
		return fields(i), err
	}
}

// Options are what a [Reconciler] may do, and its times. Zero fields take the default named at
// each.
type Options struct {
	// Tenant is that of the objects, where the source has several.
	Tenant string
	// Partitions names the parts in which the source is listed whole, with what each holds if the
	// provider counts: ranges of creation time, for example. An object never leaves its part. Nil:
	// one part, without a count.
	Partitions func(ctx context.Context) ([]Partition, error)
	// Visible says whether a listing would show the object of a document, if it existed: providers
	// hide what is archived, older than some age or of another account. Nil: everything. Silence
	// about the others proves nothing.
	Visible func(workID string) bool
	// Mapping is the version of what Config.Fields makes of inputs. When it changes, a plan in
	// which most documents differ is no surprise.
	Mapping string
	// Effects says which steps' results the documents of an object show, by the names of the steps:
	// those that count, and those that are void. A step that it does not name is taken as its class
	// allows: what can be asked for is asked for when the instance goes on, what is idempotent is
	// done then, and what can be neither (a mail) counts as done and is listed as unconfirmed. What
	// it says is believed. A void document shows that the saga was undone before, so that a mail
	// may have been sent: then say NotDone of it only with evidence that outlives an undo, such as
	// the mail server's log. It is pure. Nil: a document that stands was made by the Step, and its
	// id is the result.
	Effects func(o *Listed, live, void []Document) (map[string]Effect, error)

	// Enforce names the fields that are written again when they were changed at the destination,
	// and Ignore those that are left as they are. What is done about every other field a person
	// decides.
	Enforce, Ignore []string
	// Recreate makes a document again that the ledger knows and the destination has lost.
	Recreate bool
	// Create, Update and Destroy bound what one run may do without an approval of its plan. 1000 or
	// 20 %, the same, and 10 or 1 %, whichever is less; ten actions are never too many of a
	// percentage.
	Create, Update, Destroy Bound

	// Overlap is how far behind its cursor SyncChanges looks, for what the source shows late. 10
	// minutes.
	Overlap time.Duration
	// Safety is how old a change is to be before the cursor may stand on it. 5 seconds.
	Safety time.Duration
	// Timeout bounds one call to source or destination, and Attempts is how often one is tried. 1
	// minute, 4.
	Timeout  time.Duration
	Attempts int
	// Grace is how long the source must have had no object before that counts as proven. 24 hours.
	Grace time.Duration

	// Log gets one line for a plan and one for what was done, and one for each key that could not
	// be verified or whose action failed; never a body. Default: logrus' standard logger.
	Log logrus.FieldLogger
}

// Bound is a limit on one kind of action. Zero fields take the default.
type Bound struct {
	Count   int64   // at most so many in one run
	Percent float64 // of all objects and documents
	Ask     bool    // none without an approval of the plan
}

// policy is what is done about fields that were changed at the destination.
func (o *Options) policy() plan.Policy {
	p := plan.Policy{Recreate: o.Recreate, Fields: map[string]plan.Rule{}}
	for _, field := range o.Enforce {
		p.Fields[field] = plan.Enforce
	}
	for _, field := range o.Ignore {
		p.Fields[field] = plan.Ignore
	}
	return p
}

// bounds are those of a plan.
func (o *Options) bounds() plan.Bounds {
	return plan.Bounds{Create: plan.Bound(o.Create), Update: plan.Bound(o.Update), Destroy: plan.Bound(o.Destroy)}
}

// Store is what a reconciler writes: listings, plans and drift; and what the inbox has heard of objects without versions. Every store of
// ours has it.
type Store interface {
	hearing

	scan.Store
	plan.Plans
	plan.Drifts
}

// Reconciler compares source, ledger and destination of one job, and repairs what it may. Its
// methods may be called from any process; two runs of one job at once are the schedule's to
// prevent.
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
	void      func(context.Context, plan.Document) error
	hearing   hearing
	effects   func(o *scan.Listed, live, void []plan.Document) (map[string]Effect, error)
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

// New returns a reconciler that writes to db. o may be nil. Every fault of c and o is reported at
// once.
func New(db Store, given Config, o *Options) (*Reconciler, error) {
	c := &config{Config: given, Options: *cmp.Or(o, new(Options))}
	if err := c.validate(db); err != nil {
		return nil, fmt.Errorf("new reconciler %q: %w", c.Name, err)
	}
	if c.Effects == nil {
		c.Effects = byStep(c.Step, nil)
	}
	sweep, err := scan.New(scan.Config{
		Name: c.Name, Source: c.side(), Destination: c.Destination.side(), Store: db, Mapping: c.Mapping, Proceed: schedule.Proceed,
		Begin: c.Source.Begin, Overlap: c.Overlap, Safety: c.Safety, Timeout: c.Timeout, Attempts: c.Attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("new reconciler %q: %w", c.Name, err)
	}
	return assemble(&parts{
		name: c.Name, sweep: sweep, deliver: c.deliver, void: c.Destination.Void, hearing: db, effects: c.Effects, input: c.input,
		instances: &inLedger{saga: c.Source.Saga, step: c.Step, ledger: c.Coordinator.Ledger(), coordinator: c.Coordinator, fields: c.Fields},
		policy:    c.policy(), bounds: c.bounds(), plans: db, drifts: db, grace: c.Grace, wake: c.Source.Wake, log: c.Log,
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
		r.log = logrus.StandardLogger()
	}
	return r
}

// config is what a reconciler is made of.
type config struct {
	Config
	Options
}

func (c *config) validate(db Store) error {
	var wrong faults.List
	need := func(ok bool, what string) { wrong.Whenf(!ok, "%s", what) }
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
	need(c.Changed == nil || c.Source == nil || !c.Source.Begin.IsZero(), "it has Changed, and its Source no Begin: what changed before your sagas began would be started without bounds; "+
		"say when that was, or time.Unix(0, 0) for everything")
	need(c.Destination.Marked != nil, "the Destination has no Marked: documents that the ledger does not know would never be found")
	need(c.Destination.Find != nil, "the Destination has no Find: what a listing tells is old, so there must be a way to ask")
	need(c.Coordinator != nil, "it has no Coordinator: its ledger is the third side")
	need(c.Step != "", "no Step is named: one step of the saga makes the document")
	need(c.Fields != nil, "it has no Fields: what a document should say would be unknown")
	need(c.Grace >= 0, "the Grace is negative")
	for _, field := range c.Ignore {
		need(!slices.Contains(c.Enforce, field), fmt.Sprintf("the field %q is to be enforced and to be ignored", field))
	}
	return errors.Join(append(wrong, c.bounds().Faults())...)
}

// proceed asks whether the run may go on.
func (r *Reconciler) proceed(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return r.sweep.Proceed(ctx)
}
