package ledger_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// book is a copy of a ledger that a test can damage. It reads like the ledger it was copied from.
type book struct {
	ledger.Catalogue // nil: what is not there is not asked

	heads   []ledger.Instance
	records map[saga.ID][]machine.Record
	signals map[saga.ID][]machine.Signal
	listed  func() // called before every listing

	acts     []ledger.Act
	actsHead ledger.Act

	definitions []ledger.Definition
	overview    ledger.Overview
}

// copy adds a work that did what another one did.
func (b *book) copy(from, to saga.ID) {
	h := *b.head(from)
	h.Number, h.ID = int64(len(b.heads))+1, to
	b.heads = append(b.heads, h)
	b.records[to], b.signals[to] = slices.Clone(b.records[from]), b.signals[from]
	for i := range b.records[to] {
		b.records[to][i].Snapshot = nil
	}
	b.head(to).Base = 1
	b.reseal(to, 0)
}

// describe says what the steps of both sagas are.
func (b *book) describe(steps ...program.StepSpec) {
	for _, name := range []string{done.Saga, another.Saga} {
		b.definitions = append(b.definitions, ledger.Definition{Spec: program.Spec{Saga: name, Version: 1, Steps: steps}})
	}
}

func (b *book) List(_ context.Context, f ledger.Filter) (page ledger.Page, err error) {
	if b.listed != nil {
		b.listed()
	}
	at, err := f.Position()
	if err != nil {
		return page, err
	}
	for _, h := range b.heads {
		if f.ExternalID != "" && !slices.ContainsFunc(b.records[h.ID], func(r machine.Record) bool { return r.ExternalID == f.ExternalID }) {
			continue
		}
		if h.Number <= at.Number || f.Work != "" && h.ID != (saga.ID{Saga: f.Saga, Work: f.Work}) {
			continue
		}
		if n := len(page.Instances); n == max(f.Limit, 1) {
			page.Next = f.Behind(ledger.Position{Number: page.Instances[n-1].Number, ID: page.Instances[n-1].ID})
			break
		}
		page.Instances = append(page.Instances, h)
	}
	return page, nil
}

func (b *book) History(_ context.Context, id saga.ID) ([]machine.Record, error) {
	return slices.Clone(b.records[id]), nil
}

func (b *book) Signals(_ context.Context, id saga.ID) ([]machine.Signal, error) {
	return b.signals[id], nil
}

func (b *book) ActChain(_ context.Context, after int64, limit int) (page []ledger.Act, head ledger.Act, err error) {
	for _, a := range b.acts {
		if a.Number > after && len(page) < limit {
			page = append(page, a)
		}
	}
	return page, b.actsHead, nil
}

// act puts n looks into the chain of acts.
func (b *book) act(n int) {
	for range n {
		a := ledger.Act{Control: ledger.Control{Kind: ledger.DeedLooked, Name: "bodies", Actor: "anna", Reason: "a complaint", At: time.Unix(1, 0)}, Number: b.actsHead.Number + 1}
		a.Hash = a.Sum(b.actsHead.Hash)
		b.acts, b.actsHead = append(b.acts, a), ledger.Act{Number: a.Number, Hash: a.Hash}
	}
}

func (b *book) Duplicates(context.Context, ledger.Filter) ([]ledger.Duplicate, error) {
	return nil, nil
}
func (b *book) Sessions(context.Context) ([]ledger.Session, error)       { return nil, nil }
func (b *book) Overview(context.Context) (ledger.Overview, error)        { return b.overview, nil }
func (b *book) Definitions(context.Context) ([]ledger.Definition, error) { return b.definitions, nil }

// head is the head to damage.
func (b *book) head(id saga.ID) *ledger.Instance {
	return &b.heads[slices.IndexFunc(b.heads, func(h ledger.Instance) bool { return h.ID == id })]
}

// reseal gives the records behind place i hashes that follow, as somebody does who knows how.
func (b *book) reseal(id saga.ID, i int) {
	rs := b.records[id]
	for ; i < len(rs); i++ {
		var prev machine.Hash
		if i > 0 {
			prev = rs[i-1].Hash
		}
		rs[i].Hash = rs[i].Sum(id, machine.Salt{}, prev)
	}
}

// The works of a sound ledger.
var (
	done    = saga.ID{Saga: "order-to-invoice", Work: "done"}
	waits   = saga.ID{Saga: "order-to-invoice", Work: "waits"}
	review  = saga.ID{Saga: "order-to-invoice", Work: "review"}
	another = saga.ID{Saga: "order-to-crm", Work: "done"}

	undone = saga.ID{Saga: "order-to-invoice", Work: "undone"} // of another ledger
)

// soundBook copies a ledger with a finished work of five records, of which the fourth carries a
// snapshot and the third consumes a signal; one that waits for a retry; one in review; and one of
// another saga, in hand.
func soundBook(t *testing.T) *book {
	t.Helper()
	l := memory.New(nil)
	lease, err := l.OpenSession(t.Context(), time.Hour, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []saga.ID{done, waits, review} {
		fill(t, l, lease.Token, id)
	}
	w := writer{t: t, l: l, token: lease.Token, id: another}
	w.add(machine.Record{Kind: machine.KindStarted, Version: 1, Revision: "r1", Status: saga.Running, Dispatch: arm("contact")}, true)
	b := &book{records: map[saga.ID][]machine.Record{}, signals: map[saga.ID][]machine.Signal{}}
	if b.heads, err = ledger.First(t.Context(), l, ledger.Filter{}); err != nil {
		t.Fatal(err)
	}
	for _, h := range b.heads {
		if b.records[h.ID], err = l.History(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		if b.signals[h.ID], err = l.Signals(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// writer appends one work's records.
type writer struct {
	t     *testing.T
	l     *memory.DB
	token machine.Token
	id    saga.ID
	head  int64
	seq   int64
	tail  machine.Hash
}

func (w *writer) add(r machine.Record, hold bool) {
	w.t.Helper()
	r.Seal(w.id, machine.Salt{}, w.seq, w.tail, w.token)
	e := ledger.Entry{ID: w.id, Number: w.head, Prev: w.tail, Record: r, Schedule: &ledger.Schedule{Hold: hold}}
	as, err := w.l.Append(w.t.Context(), w.token, []ledger.Entry{e})
	if err != nil || as[0].Result != ledger.Appended {
		w.t.Fatalf("append record %d of %s: %+v, %v", r.Seq, w.id, as, err)
	}
	w.head, w.seq, w.tail = as[0].Number, r.Seq, r.Hash
}

func arm(step string) *machine.Dispatch {
	return &machine.Dispatch{Step: step, Direction: saga.Forward, Attempt: 1, Key: "am-" + step, Budget: time.Second}
}

func ended(k machine.Kind, step string, s saga.Status) machine.Record {
	return machine.Record{Kind: k, Step: step, Direction: saga.Forward, Attempt: 1, Status: s}
}

// fill writes one of the works.
func fill(t *testing.T, l *memory.DB, token machine.Token, id saga.ID) {
	t.Helper()
	w := writer{t: t, l: l, token: token, id: id}
	w.add(machine.Record{
		Kind: machine.KindStarted, Version: 1, Revision: "r1", Body: json.RawMessage(`{"order":"<1>"}`),
		Status: saga.Running, Dispatch: arm("customer"),
	}, true)
	switch id {
	default: // undone
		r := ended(machine.KindDone, "customer", saga.Running)
		r.ExternalID = "cus_1"
		w.add(r, true)
		back := arm("customer")
		back.Direction = saga.Undo
		w.add(machine.Record{Kind: machine.KindCancelled, Status: saga.Compensating, Dispatch: back}, true)
		r = ended(machine.KindDone, "customer", saga.Compensated)
		r.Direction = saga.Undo
		w.add(r, false)
	case waits:
		r := ended(machine.KindNotSent, "customer", saga.Retrying)
		r.Wait = time.Hour
		w.add(r, false)
	case review:
		r := ended(machine.KindUnknown, "customer", saga.Review)
		r.Reason = saga.ReasonInDoubt
		w.add(r, false)
	case done:
		r := ended(machine.KindDone, "customer", saga.Running)
		r.ExternalID, r.Body = "cus_1", json.RawMessage(`{"id": "cus_1"}`)
		w.add(r, true)
		if _, err := l.Post(t.Context(), id, machine.Signal{Kind: machine.SignalConflict, Key: "k", Actor: "shop", Reason: "again"}); err != nil {
			t.Fatal(err)
		}
		signals, err := l.Signals(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		w.add(machine.Record{Kind: machine.KindNoted, Status: saga.Running, Signals: []int64{signals[0].ID}, Actor: "shop", Why: "again"}, true)
		history, err := l.History(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		st, err := machine.Fold(id, history)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := json.Marshal(st)
		if err != nil {
			t.Fatal(err)
		}
		w.add(machine.Record{Kind: machine.KindDispatched, Status: saga.Running, Dispatch: arm("invoice"), Snapshot: snapshot}, true)
		w.add(ended(machine.KindDone, "invoice", saga.Completed), false)
	}
}
