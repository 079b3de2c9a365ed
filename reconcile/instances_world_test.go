package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

const orderSaga = "order-to-invoice"

var (
	anna    = saga.Actor{Name: "anna", Reason: "test"}
	errAway = errors.New("connection reset by peer")
)

// world is a shop, its books and its mails.
type sagaWorld struct {
	mu     sync.Mutex
	orders map[string]*order
	docs   []*invoice
	mails  map[string]int
	faults []string // of the next calls to the books and the mail: "", "cut" (it happened), "lost" (it did not), "refused"
	writes int
	slow   time.Duration // how long writing an invoice takes

	unversioned bool // orders have no version

	stopped time.Time // when the old script was, whose work is taken over; zero: there was none
}

// invoice is a document. Written is what we wrote, as its mark keeps it.
type invoice struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	Total    string `json:"total"`
	Revision string `json:"revision"`
	Written  string `json:"written"`
	Void     bool   `json:"void,omitempty"`
}

func (i invoice) ExternalID() string { return i.ID }

type letter struct{ ID string }

func (l letter) ExternalID() string { return l.ID }

func newSagaWorld() *sagaWorld {
	return &sagaWorld{orders: map[string]*order{}, mails: map[string]int{}}
}

func (w *sagaWorld) lock() func() {
	w.mu.Lock()
	return w.mu.Unlock
}

// pass lets virtual time go by.
func pass(d time.Duration) {
	if time.Now().Year() > 2020 {
		panic("pass is for virtual time: wait for what you wait for")
	}
	time.Sleep(d) //nolint:forbidigo // virtual
	synctest.Wait()
}

// request is one call to a destination. It says whether it takes effect and what is answered.
func (w *sagaWorld) request() (effect bool, err error) {
	w.writes++
	fault := ""
	if len(w.faults) > 0 {
		fault, w.faults = w.faults[0], w.faults[1:]
	}
	switch fault {
	case "cut":
		return true, errAway
	case "lost":
		return false, errAway
	case "refused":
		return false, saga.Permanent(errors.New("422"))
	default:
		return true, nil
	}
}

// live are the documents of a key that count.
func (w *sagaWorld) live(key string) (live []*invoice) {
	for _, d := range w.docs {
		if d.Key == key && !d.Void {
			live = append(live, d)
		}
	}
	return live
}

func (w *sagaWorld) program(t *testing.T) saga.Program {
	t.Helper()
	receipt := saga.Do("receipt", w.mail).AtMostOnce().NoUndo("the shop tells the customer")
	steps := []saga.Step[order]{
		saga.Identity(func(o order) any { return o.Total }),
		saga.Do("invoice", w.write).Find(w.find).Update(w.rewrite).UndoMaybe(w.void).Timeout(max(saga.DefaultTimeout, 2*w.slow)),
		receipt,
	}
	if !w.stopped.IsZero() {
		steps = append(steps[:2:2], saga.TakeOver[order](w.stopped), receipt.When(func(c saga.Call[order]) bool { return !c.WasThere("invoice") }))
	}
	d, err := saga.Define(orderSaga, 1, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (w *sagaWorld) rewrite(ctx context.Context, c saga.Call[order], _ string) (invoice, error) {
	return w.write(ctx, c)
}

func (w *sagaWorld) write(_ context.Context, c saga.Call[order]) (invoice, error) {
	if err := c.Sending(); err != nil {
		return invoice{}, err
	}
	if w.slow > 0 { // timers of a bubble that are over at once, on two threads, are more than the race detector of Go 1.26 stands
		<-time.After(w.slow)
	}
	defer w.lock()()
	effect, err := w.request()
	made := &invoice{ID: fmt.Sprintf("inv_%d", len(w.docs)+1), Key: c.Work}
	for _, d := range w.docs {
		if d.ID == c.PreviousID() && !d.Void {
			made = d
		}
	}
	if effect {
		made.Total, made.Written, made.Revision = c.Input.Total, c.Input.Total, c.Revision
		if !slices.Contains(w.docs, made) {
			w.docs = append(w.docs, made)
		}
	}
	return *made, err
}

func (w *sagaWorld) find(_ context.Context, c saga.Call[order]) (saga.Finding[invoice], error) {
	defer w.lock()()
	var found []invoice
	for _, d := range w.live(c.Work) {
		if d.Revision == c.Revision || d.ID != c.PreviousID() {
			found = append(found, *d)
		}
	}
	if !w.stopped.IsZero() && len(found) == 1 && found[0].Total != c.Input.Total {
		return saga.FoundOther(found[0], "it says "+found[0].Total), nil
	}
	return saga.Found(found...), nil
}

func (w *sagaWorld) void(_ context.Context, c saga.Call[order], made *invoice) error {
	if err := c.Sending(); err != nil {
		return err
	}
	id := c.ExternalID(c.Step)
	if made != nil {
		id = made.ID
	}
	defer w.lock()()
	for _, d := range w.docs {
		d.Void = d.Void || d.ID == id
	}
	w.writes++
	return nil
}

func (w *sagaWorld) mail(_ context.Context, c saga.Call[order]) (letter, error) {
	if err := c.Sending(); err != nil {
		return letter{}, err
	}
	defer w.lock()()
	effect, err := w.request()
	if effect {
		w.mails[c.Work]++
	}
	return letter{ID: "mail-" + c.Work}, err
}

// process is a coordinator over a ledger, and the job that reconciles it.
type process struct {
	*coordinator.Coordinator
	*reconcile.Reconciler
	plans *memory.DB
	world *sagaWorld
	t     *testing.T
	stop  func() error // once it runs
}

// wiring is how the reconciler of a process is made. Tests change it.
type wiring struct {
	reconcile.Config
	reconcile.Options
}

// orders are the objects of the shop.
var orders = inbox.Object{Source: "shop", Type: "order"}

// from takes another shop.
func (c *wiring) from(s scan.Source) {
	c.All, c.Changed, c.Source.Limits = reconcile.Pages(s.All), reconcile.Pages(s.Changed), fastLimits
	c.Source.Fetch = func(ctx context.Context, o inbox.Object) (inbox.Fetched, error) {
		known, err := s.Get(ctx, o.ID)
		if err != nil || known == nil {
			return inbox.Fetched{Gone: err == nil}, err
		}
		return inbox.Fetched{Version: known.Version, Body: known.Body}, nil
	}
}

// boot makes a process. It does not run yet.
func (w *sagaWorld) boot(t *testing.T, l ledger.Ledger, plans *memory.DB, mailed bool) *process {
	t.Helper()
	return w.bootWith(t, l, plans, func(c *wiring) { c.Effects = w.effects(mailed) })
}

func (w *sagaWorld) bootWith(t *testing.T, l ledger.Ledger, plans *memory.DB, change func(*wiring)) *process {
	t.Helper()
	silent := logrus.New()
	silent.SetLevel(logrus.PanicLevel)
	c, err := coordinator.New(l, &coordinator.Options{Log: silent, Poll: 5 * time.Second, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), w.program(t)); err != nil {
		t.Fatal(err)
	}
	p := &process{Coordinator: c, plans: plans, world: w, t: t}
	all := reconcile.Bound{Count: 1000, Percent: 100}
	how := wiring{
		Config: reconcile.Config{
			Name: "orders", Source: &inbox.Source{Name: orders.Source, Saga: orderSaga, Decide: decide, Apply: c.Apply, Begin: time.Unix(0, 0)}, Type: orders.Type,
			Destination: reconcile.DestinationOf(w.destination()), Coordinator: c, Step: "invoice",
			Fields: reconcile.FieldsOf(func(o order) plan.Fields { return plan.Fields{"total": o.Total} }),
		},
		Options: reconcile.Options{Mapping: "1", Effects: w.effects(false), Create: all, Update: all, Destroy: all},
	}
	how.from(w.source())
	change(&how)
	if p.Reconciler, err = reconcile.New(plans, how.Config, &how.Options); err != nil {
		t.Fatal(err)
	}
	return p
}

// begin runs the coordinator.
func (p *process) begin() *process {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Coordinator.Run(ctx) }()
	p.stop = func() error { stop(); return <-done }
	synctest.Wait()
	return p
}

// halt stops the coordinator.
func (p *process) halt() {
	p.t.Helper()
	if err := p.stop(); err != nil {
		p.t.Fatal(err)
	}
}

// decide says what the instance of an order should be.
func decide(c inbox.Snapshot) (saga.Change, error) {
	var o order
	err := json.Unmarshal(c.Body, &o)
	if o.Cancelled {
		return saga.Change{Want: saga.WantWithdrawn, Input: o, Reason: "cancelled"}, err
	}
	if o.Editing {
		return saga.Change{Want: saga.WantHeld, Input: o, Reason: "a clerk edits it"}, err
	}
	return saga.Change{Input: o}, err
}

func (p *process) deliver(ctx context.Context, c inbox.Snapshot) error {
	ch, err := (&inbox.Source{Saga: orderSaga, Decide: decide}).Change(c)
	if err != nil {
		return err
	}
	return p.Coordinator.Apply(ctx, ch)
}

// hears is a webhook that came.
func (p *process) hears(id string) {
	p.t.Helper()
	if err := p.deliver(p.t.Context(), p.world.change(id)); err != nil {
		p.t.Fatal(err)
	}
}

func (w *sagaWorld) change(id string) inbox.Snapshot {
	defer w.lock()()
	o := w.object(id)
	return inbox.Snapshot{
		Object: inbox.Object{Source: "shop", Type: "order", ID: id}, Version: o.Version, Revision: o.Version.Revision(), Body: o.Body,
	}
}

func (w *sagaWorld) object(id string) *scan.Listed {
	o := w.orders[id]
	version := inbox.Counter(o.Version)
	if w.unversioned {
		version, o = inbox.Version{}, &order{Total: o.Total, Cancelled: o.Cancelled}
	}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return &scan.Listed{ID: id, Version: version, Body: body}
}

func (w *sagaWorld) source() scan.Source {
	return scan.Source{
		Object: inbox.Object{Source: "shop", Type: "order"}, Quota: fast(),
		All: func(context.Context, scan.Query) (scan.Page, error) {
			defer w.lock()()
			var p scan.Page
			for _, id := range slices.Sorted(maps.Keys(w.orders)) {
				p.Objects = append(p.Objects, *w.object(id))
			}
			return p, nil
		},
		Get: func(_ context.Context, id string) (*scan.Listed, error) {
			defer w.lock()()
			if w.orders[id] == nil {
				return nil, nil
			}
			return w.object(id), nil
		},
	}
}

func (w *sagaWorld) destination() scan.Destination {
	list := func(key string) []plan.Document {
		defer w.lock()()
		var docs []plan.Document
		for _, d := range w.docs {
			if key == "" || d.Key == key {
				body, err := json.Marshal(d)
				if err != nil {
					panic(err)
				}
				docs = append(docs, plan.Document{
					ID: d.ID, Key: d.Key, Fields: plan.Fields{"total": d.Total}, Void: d.Void, Revision: d.Revision, Intact: d.Total == d.Written, Body: body,
				})
			}
		}
		return docs
	}
	return scan.Destination{
		Limits: fastLimits,
		Marked: func(context.Context, scan.Query) (scan.Documents, error) {
			return scan.Documents{Documents: list("")}, nil
		},
		Find: func(_ context.Context, key string) ([]plan.Document, error) { return list(key), nil },
	}
}

// effects says what stands: the invoice, and the mail where the mail server keeps a record of what
// it has sent.
func (w *sagaWorld) effects(mailed bool) func(*scan.Listed, []plan.Document, []plan.Document) (map[string]reconcile.Effect, error) {
	return func(o *scan.Listed, live, _ []plan.Document) (map[string]reconcile.Effect, error) {
		es := map[string]reconcile.Effect{}
		for _, d := range live {
			var made invoice
			if err := json.Unmarshal(d.Body, &made); err != nil {
				return nil, err
			}
			es["invoice"] = reconcile.Effect{Output: made}
		}
		if mailed {
			defer w.lock()()
			es["receipt"] = reconcile.Effect{NotDone: true}
			if w.mails[keyNamed(o.ID)] > 0 {
				es["receipt"] = reconcile.Effect{ExternalID: "mail-" + keyNamed(o.ID)}
			}
		}
		return es, nil
	}
}
