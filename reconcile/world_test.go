package reconcile_test

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
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// world is a shop, its books and a ledger. Everything in it is at hand for the tests to break.
type world struct {
	mu     sync.Mutex
	orders map[string]*order      // by key
	docs   []*plan.Document       // at the destination
	works  map[string]*plan.Known // the ledger, by key
	cutOff map[string]bool        // works whose adoption was cut off: the ledger lists them, and knows nothing of them
	mails  map[string]int         // by key
	last   int                    // document made

	// Faults, by key; and what is done before some call is answered.
	getFails, findFails, deliverFails map[string]error
	mangles                           map[string]bool // what is made there is wrong
	slow                              time.Duration   // how long a work takes
	doubtful                          bool            // an answer is lost, and looked for meanwhile
	onLook                            func(key string)
	delivered                         []string // keys, in that order
	asked                             int      // calls to source and destination
	onWrite                           func() error
	frozen                            error // set: whoever writes gets it, and broke is true
	broke                             bool
}

// order is an object of the shop.
type order struct {
	Version   int64  `json:"version"`
	Total     string `json:"total"`
	Cancelled bool   `json:"cancelled,omitempty"`
	Editing   bool   `json:"editing,omitempty"`
}

func newWorld() *world {
	return &world{
		orders: map[string]*order{}, works: map[string]*plan.Known{}, mails: map[string]int{},
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
	w.works[key] = &plan.Known{Works: 1, Status: saga.Completed, Revision: "1", Made: w.make(key, "10.00", "1").ID}
	w.mails[key] = 1
}

// make puts a document into the books.
func (w *world) make(key, total, revision string) *plan.Document {
	w.last++
	if w.mangles[key] {
		total = "0.01"
	}
	d := &plan.Document{
		ID: fmt.Sprintf("inv_%05d", w.last), Key: key, Fields: plan.Fields{"total": total}, Revision: revision, Intact: true,
		Created: time.Date(2026, 11, 1, 0, 0, w.last, 0, time.UTC),
	}
	w.docs = append(w.docs, d)
	return d
}

// live are the documents of a key that count.
func (w *world) live(key string) (live []*plan.Document) {
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
func (w *world) source() scan.Source {
	page := func(_ context.Context, q scan.Query) (scan.Page, error) {
		defer w.lock()()
		w.asked++
		var p scan.Page
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
	return scan.Source{
		Object: inbox.Object{Source: "shop", Type: "order"}, Quota: fast(), All: page,
		Get: func(_ context.Context, id string) (*scan.Listed, error) {
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

func want(o *scan.Listed) (plan.Truth, error) {
	var ord order
	if err := json.Unmarshal(o.Body, &ord); err != nil {
		return plan.Truth{}, err
	}
	if ord.Total == "" {
		return plan.Truth{Key: keyNamed(o.ID)}, errors.New("it has no total")
	}
	return plan.Truth{
		Key: keyNamed(o.ID), Revision: strconv.FormatInt(ord.Version, 10), Wanted: !ord.Cancelled, Fields: plan.Fields{"total": ord.Total},
	}, nil
}

func (w *world) object(key string) *scan.Listed {
	o := w.orders[key]
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return &scan.Listed{ID: idOf(key), Version: inbox.Counter(o.Version), Body: body}
}

// destination are the books.
func (w *world) destination() scan.Destination {
	return scan.Destination{
		Limits: fastLimits, Settle: 2 * time.Second,
		Marked: func(_ context.Context, q scan.Query) (scan.Documents, error) {
			defer w.lock()()
			w.asked++
			var p scan.Documents
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
		Find: func(_ context.Context, key string) ([]plan.Document, error) {
			defer w.lock()()
			w.asked++
			if err := w.findFails[key]; err != nil {
				return nil, err
			}
			var found []plan.Document
			for _, d := range w.docs {
				if d.Key == key {
					found = append(found, *d)
				}
			}
			return found, nil
		},
	}
}

var fastLimits = inbox.Limits{PerSecond: 1e6}

func fast() *asking.Quota { return asking.NewQuota(asking.Limits(fastLimits)) }

// write is asked by whoever is about to change anything.
func (w *world) write() error {
	w.broke = w.broke || w.frozen != nil
	if w.onWrite != nil {
		return w.onWrite()
	}
	return w.frozen
}

// deliver is a Processor's function over a saga that makes an invoice and sends one mail.
func (w *world) deliver(_ context.Context, c inbox.Snapshot) error {
	defer w.lock()()
	key := c.String()
	if err := cmp.Or(w.write(), w.deliverFails[key]); err != nil {
		return err
	}
	w.delivered = append(w.delivered, key)
	var o order
	if err := json.Unmarshal(c.Body, &o); err != nil {
		return asking.Permanent(err)
	}
	k := w.works[key]
	switch {
	case k == nil && o.Cancelled, k != nil && saga.CompareRevisions(c.Revision, k.Revision) <= 0:
		return nil
	case k == nil:
		k = &plan.Known{Works: 1}
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
func (w *world) begin(k *plan.Known, run func()) {
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
	k.InDoubt = w.doubtful
	time.AfterFunc(w.slow, func() {
		defer w.lock()()
		k.InDoubt = false
		end()
	})
}

// fulfil makes the document, or brings the one up to date that is there, and sends the one mail.
// What is posted cannot be changed, and of several nobody knows which: then the work is for a
// person.
func (w *world) fulfil(key string, k *plan.Known, total string) {
	switch live := w.live(key); {
	case len(live) == 0:
		k.Made = w.make(key, total, k.Revision).ID
	case len(live) > 1 || live[0].Locked:
		k.Status, k.Reason = saga.Review, saga.ReasonInDoubt
		return
	default:
		d := live[0]
		k.Made, d.Fields, d.Revision, d.Intact = d.ID, plan.Fields{"total": total}, k.Revision, true
	}
	if w.mails[key] == 0 {
		w.mails[key]++
	}
}

// pass lets virtual time pass. Whoever works meanwhile sees what the test did before, and the test
// what they did.
func (w *world) pass(d time.Duration) {
	w.lock()()
	defer func() { w.lock()() }()
	if time.Now().Year() > 2020 {
		panic("pass is for virtual time: wait for what you wait for")
	}
	time.Sleep(d) //nolint:forbidigo // virtual
}
