package repair_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile"
	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/reconcile/store/memory"
	"github.com/amends-dev/amends/reconcile/sweep"
	"github.com/amends-dev/amends/saga"
)

// world is a shop, its books and a ledger. Everything in it is at hand for the tests to break.
type world struct {
	mu     sync.Mutex
	orders map[string]*order       // by key
	docs   []*drift.Document       // at the destination
	works  map[string]*drift.Known // the ledger, by key
	mails  map[string]int          // by key
	last   int                     // document made

	// Faults, by key; and what is done before some call is answered.
	getFails, findFails, deliverFails map[string]error
	mangles                           map[string]bool // what is made there is wrong
	slow                              time.Duration   // how long a work takes
	onLook                            func(key string)
	delivered                         []string // keys, in that order
	asked                             int      // calls to source and destination
	frozen                            error    // set: whoever writes gets it, and broke is true
	broke                             bool
}

// order is an object of the shop.
type order struct {
	Version   int64  `json:"version"`
	Total     string `json:"total"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

func newWorld() *world {
	return &world{
		orders: map[string]*order{}, works: map[string]*drift.Known{}, mails: map[string]int{},
		getFails: map[string]error{}, findFails: map[string]error{}, deliverFails: map[string]error{}, mangles: map[string]bool{},
	}
}

func keyOf(n int) string { return fmt.Sprintf("shop:order:%05d", n) }

func idOf(key string) string { return key[strings.LastIndexByte(key, ':')+1:] }

// sold puts an order into the shop, at version 1.
func (w *world) sold(key string) { w.orders[key] = &order{Version: 1, Total: "10.00"} }

// changed is a newer version of an order.
func (w *world) changed(key, total string) {
	w.orders[key] = &order{Version: w.orders[key].Version + 1, Total: total}
}

// done is an order with which all is well.
func (w *world) done(key string) {
	w.sold(key)
	w.works[key] = &drift.Known{Works: 1, Status: saga.Completed, Revision: "1", Made: w.make(key, "10.00", "1").ID}
	w.mails[key] = 1
}

// make puts a document into the books.
func (w *world) make(key, total, revision string) *drift.Document {
	w.last++
	if w.mangles[key] {
		total = "0.01"
	}
	d := &drift.Document{
		ID: fmt.Sprintf("inv_%05d", w.last), Key: key, Fields: drift.Fields{"total": total}, Revision: revision, Intact: true,
		Created: time.Date(2026, 11, 1, 0, 0, w.last, 0, time.UTC),
	}
	w.docs = append(w.docs, d)
	return d
}

// live are the documents of a key that count.
func (w *world) live(key string) (live []*drift.Document) {
	for _, d := range w.docs {
		if d.Key == key && !d.Void {
			live = append(live, d)
		}
	}
	return live
}

func (w *world) lock() func() {
	w.mu.Lock()
	return w.mu.Unlock
}

// source is the shop as a sweep reads it.
func (w *world) source() sweep.Source {
	page := func(_ context.Context, q sweep.Query) (sweep.Page, error) {
		defer w.lock()()
		w.asked++
		var p sweep.Page
		for _, key := range slices.Sorted(maps.Keys(w.orders)) {
			if key <= q.Cursor {
				continue
			}
			if len(p.Objects) == q.Limit {
				p.Next = keyNamed(p.Objects[len(p.Objects)-1].ID)
				break
			}
			p.Objects = append(p.Objects, *w.object(key))
		}
		return p, nil
	}
	return sweep.Source{
		Object: reconcile.Object{Source: "shop", Type: "order"}, Quota: fast(), All: page,
		Get: func(_ context.Context, id string) (*sweep.Object, error) {
			key := keyNamed(id)
			if w.onLook != nil {
				w.onLook(key)
			}
			defer w.lock()()
			w.asked++
			if err := w.getFails[key]; err != nil {
				return nil, err
			}
			if w.orders[key] == nil {
				return nil, nil
			}
			return w.object(key), nil
		},
		Want: want,
	}
}

func keyNamed(id string) string { return "shop:order:" + id }

func want(o *sweep.Object) (drift.Truth, error) {
	var ord order
	if err := json.Unmarshal(o.Body, &ord); err != nil {
		return drift.Truth{}, err
	}
	if ord.Total == "" {
		return drift.Truth{Key: keyNamed(o.ID)}, errors.New("it has no total")
	}
	return drift.Truth{
		Key: keyNamed(o.ID), Revision: strconv.FormatInt(ord.Version, 10), Wanted: !ord.Cancelled, Fields: drift.Fields{"total": ord.Total},
	}, nil
}

func (w *world) object(key string) *sweep.Object {
	o := w.orders[key]
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return &sweep.Object{ID: idOf(key), Version: reconcile.Counter(o.Version), Body: body}
}

// destination are the books.
func (w *world) destination() sweep.Destination {
	return sweep.Destination{
		Quota: fast(), Settle: 2 * time.Second,
		Marked: func(_ context.Context, q sweep.Query) (sweep.Documents, error) {
			defer w.lock()()
			w.asked++
			var p sweep.Documents
			for _, d := range w.docs {
				if d.ID <= q.Cursor {
					continue
				}
				if len(p.Documents) == q.Limit {
					p.Next = p.Documents[len(p.Documents)-1].ID
					break
				}
				p.Documents = append(p.Documents, *d)
			}
			return p, nil
		},
		Find: func(_ context.Context, key string) ([]drift.Document, error) {
			defer w.lock()()
			w.asked++
			if err := w.findFails[key]; err != nil {
				return nil, err
			}
			var found []drift.Document
			for _, d := range w.docs {
				if d.Key == key {
					found = append(found, *d)
				}
			}
			return found, nil
		},
	}
}

func fast() *reconcile.Quota {
	return reconcile.NewQuota(reconcile.Limits{PerSecond: 1e6})
}

// write is asked by whoever is about to change anything.
func (w *world) write() error {
	w.broke = w.broke || w.frozen != nil
	return w.frozen
}

// deliver is a Hearer's function over a saga that makes an invoice and sends one mail.
func (w *world) deliver(_ context.Context, c reconcile.Change) error {
	defer w.lock()()
	key := c.String()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	w.delivered = append(w.delivered, key)
	var o order
	if err := json.Unmarshal(c.Body, &o); err != nil {
		return reconcile.Permanent(err)
	}
	k := w.works[key]
	switch {
	case k == nil && o.Cancelled, k != nil && saga.CompareRevisions(c.Revision, k.Revision) <= 0:
		return nil
	case k == nil:
		k = &drift.Known{Works: 1}
		w.works[key] = k
	}
	w.begin(k, func() {
		k.Revision = c.Revision
		if o.Cancelled {
			k.Status = saga.Compensated
			for _, d := range w.live(key) {
				d.Void = true
			}
			return
		}
		w.fulfil(key, k, o.Total)
	})
	return nil
}

// begin runs the saga of a work: at once, or in its time.
func (w *world) begin(k *drift.Known, run func()) {
	k.Status, k.Overdue = saga.Running, false
	end := func() {
		if run(); k.Status == saga.Running {
			k.Status = saga.Completed
		}
	}
	if w.slow == 0 {
		end()
		return
	}
	time.AfterFunc(w.slow, func() {
		defer w.lock()()
		end()
	})
}

// fulfil makes the document, or brings the one up to date that is there, and sends the one mail. What is posted cannot
// be changed, and of several nobody knows which: then the work is for a person.
func (w *world) fulfil(key string, k *drift.Known, total string) {
	switch live := w.live(key); {
	case len(live) == 0:
		k.Made = w.make(key, total, k.Revision).ID
	case len(live) > 1 || live[0].Locked:
		k.Status, k.Reason = saga.Review, saga.ReasonInDoubt
		return
	default:
		d := live[0]
		k.Made, d.Fields, d.Revision, d.Intact = d.ID, drift.Fields{"total": total}, k.Revision, true
	}
	if w.mails[key] == 0 {
		w.mails[key]++
	}
}

// ledger is the world's third side.
type ledger struct{ *world }

func (w ledger) Heads(_ context.Context, after string, limit int) ([]repair.Head, error) {
	defer w.lock()()
	var heads []repair.Head
	for _, key := range slices.Sorted(maps.Keys(w.works)) {
		if key > after && len(heads) < limit {
			k := *w.works[key]
			k.Made, k.InDoubt = "", false
			heads = append(heads, repair.Head{Key: key, Known: k})
		}
	}
	return heads, nil
}

func (w ledger) Known(_ context.Context, key string) (*drift.Known, error) {
	defer w.lock()()
	if w.works[key] == nil {
		return nil, nil
	}
	k := *w.works[key]
	return &k, nil
}

func (w ledger) Resume(_ context.Context, key string, _ repair.By) error {
	defer w.lock()()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	k, o := w.works[key], w.orders[key]
	w.begin(k, func() {
		if o != nil {
			k.Revision = strconv.FormatInt(o.Version, 10)
			w.fulfil(key, k, o.Total)
		}
	})
	return nil
}

func (w ledger) Again(_ context.Context, key, _ string, _ repair.By) error {
	defer w.lock()()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	k := w.works[key]
	w.begin(k, func() { w.fulfil(key, k, w.orders[key].Total) })
	return nil
}

func (w ledger) Adopt(_ context.Context, as []repair.Adoption, _ repair.By) ([]repair.Adopted, error) {
	defer w.lock()()
	out := make([]repair.Adopted, len(as))
	for i, a := range as {
		if err := cmp.Or(w.write(), w.deliverFails[a.Key]); err != nil {
			out[i].Err = err
			continue
		}
		if w.works[a.Key] != nil {
			out[i].Known = true
			continue
		}
		invoice := a.Effects["invoice"]
		k := &drift.Known{Works: 1, Status: saga.Completed, Revision: a.Change.Revision, Made: invoice.ExternalID}
		w.works[a.Key], w.mails[a.Key] = k, max(1, w.mails[a.Key]) // counts as sent
		switch {
		case a.Cancelled:
			k.Status, k.Made = saga.Compensated, ""
		case a.Quarantine != "":
			k.Status, k.Reason = saga.Review, saga.ReasonInDoubt
		case invoice.Revision != "" && invoice.Revision != a.Change.Revision:
			total := w.orders[a.Key].Total
			w.begin(k, func() { w.fulfil(a.Key, k, total) })
		}
		out[i].Status = k.Status
	}
	return out, nil
}

// effects says what a document shows.
func effects(_ *sweep.Object, live []drift.Document) (map[string]repair.Effect, error) {
	if len(live) == 0 {
		return nil, nil
	}
	return map[string]repair.Effect{"invoice": {ExternalID: live[0].ID}}, nil
}

// job is a reconciler over a world, with the store it writes to.
type job struct {
	*repair.Reconciler
	*world
	t     *testing.T
	store *memory.Store
	lists *sweep.Sweep
}

// settings may change what a job is made of.
type settings struct {
	repair.Config
	sweep sweep.Config
}

func (w *world) job(t *testing.T, change func(*settings)) *job {
	t.Helper()
	return w.jobOver(t, memory.New(nil), change)
}

// jobOver is the job in another process, or another time.
func (w *world) jobOver(t *testing.T, store *memory.Store, change func(*settings)) *job {
	t.Helper()
	c := settings{
		sweep: sweep.Config{Name: "orders", Source: w.source(), Destination: w.destination(), Store: store, Mapping: "1"},
		Config: repair.Config{
			Works: ledger{w}, Deliver: w.deliver, Effects: effects, Plans: store, Drifts: store, Workers: 1,
			Approved: func(context.Context) (bool, error) { return true, nil },
		},
	}
	if change != nil {
		change(&c)
	}
	var err error
	if c.Sweep, err = sweep.New(c.sweep); err != nil {
		t.Fatal(err)
	}
	r, err := repair.New(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &job{Reconciler: r, world: w, t: t, store: store, lists: c.Sweep}
}

// many lets a job do as much as there is.
func many(c *settings) {
	all := drift.Bound{Count: 1_000_000, Percent: 100}
	c.Bounds.Create, c.Bounds.Update, c.Bounds.Destroy = all, all, all
}

func (j *job) mustPlan() repair.Report {
	j.t.Helper()
	return j.must(j.Plan(j.t.Context()))
}

func (j *job) mustRun() repair.Report {
	j.t.Helper()
	return j.must(j.Run(j.t.Context()))
}

func (j *job) must(r repair.Report, err error) repair.Report {
	j.t.Helper()
	if err != nil {
		j.t.Fatalf("%v (%+v)", err, r)
	}
	return r
}

// rows are the findings of the newest plan.
func (j *job) rows() []drift.Row {
	j.t.Helper()
	p, err := j.store.Latest(j.t.Context(), "orders")
	if err != nil {
		j.t.Fatal(err)
	}
	rows, err := j.store.Findings(j.t.Context(), drift.FindingQuery{Number: p.Number, Limit: 1_000_000})
	if err != nil {
		j.t.Fatal(err)
	}
	return rows
}

// row is the finding about one key; zero when there is none.
func (j *job) row(key string) drift.Row {
	j.t.Helper()
	for _, r := range j.rows() {
		if r.Key == key {
			return r
		}
	}
	return drift.Row{}
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	if time.Now().Year() > 2020 {
		panic("pass is for virtual time: wait for what you wait for")
	}
	time.Sleep(d) //nolint:forbidigo // virtual
}
