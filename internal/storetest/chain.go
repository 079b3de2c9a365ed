package storetest

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// The two schedules a writer can give, and none.
var (
	hold    = &ledger.Schedule{Hold: true, Class: ledger.ClassBegun}
	release = &ledger.Schedule{Class: ledger.ClassBegun}
	keep    *ledger.Schedule // neither status, holder nor due time change
)

// theSaga is the definition of most works of the suite.
const theSaga = "order-to-invoice"

// theSalt is that of every instance of the suite.
var theSalt = machine.Salt{0, 1, 2, 3, 250, 251, 252, 253, 254, 255, 0, 0, 0, 0, 0, 0}

func id(work string) saga.ID { return saga.ID{Saga: theSaga, Work: work} }

// known is what a process that can run the suite's works claims with.
var known = []ledger.Version{{Saga: theSaga, Version: 1}}

// started is the first record of a running work.
func started() machine.Record {
	return machine.Record{
		Kind: machine.KindStarted, Version: 1, Revision: "r1", Body: []byte(`{"order":10492}`), Status: saga.Running,
	}
}

// doing is a record of a kind about the first step, after which the work stands at status.
func doing(k machine.Kind, s saga.Status) machine.Record {
	return machine.Record{Kind: k, Step: "invoice", Direction: saga.Forward, Attempt: 1, Status: s}
}

// due makes r a record whose work wants attention after wait.
func due(r machine.Record, wait time.Duration) machine.Record {
	r.Wait = wait
	return r
}

// arming makes r a record that arms an attempt.
func arming(r machine.Record, attempt int) machine.Record {
	r.Dispatch = &machine.Dispatch{
		Step: "invoice", Direction: saga.Forward, Attempt: attempt,
		Key: "am-key", Budget: 30 * time.Second,
	}
	return r
}

// reviewed parks the work for a person.
func reviewed() machine.Record {
	r := doing(machine.KindParked, saga.Review)
	r.Reason = saga.ReasonInDoubt
	return r
}

// chain is a writer's view of one work.
type chain struct {
	b     *bench
	token machine.Token // whose hand the records are in
	id    saga.ID
	head  int64
	seq   int64
	tail  machine.Hash

	revision string // that the work is at
	status   saga.Status
	reason   saga.Reason
	before   *chain // the view before the last record
}

// entry seals r as the successor of what the writer has seen last.
func (c *chain) entry(r machine.Record, s *ledger.Schedule) ledger.Entry {
	r.Seal(c.id, theSalt, c.seq, c.tail, c.token)
	e := ledger.Entry{ID: c.id, Number: c.head, Prev: c.tail, Record: r, Schedule: s}
	if c.seq == 0 {
		e.Salt = theSalt
	}
	return e
}

// add appends r, which must be stored, and moves the view.
func (c *chain) add(r machine.Record, s *ledger.Schedule) ledger.Answer {
	c.b.Helper()
	e := c.entry(r, s)
	a := c.b.one(c.token, e)
	if a.Result != ledger.Appended {
		c.b.Fatalf("append record %d of %s: got %s (%v), want %s", e.Record.Seq, c.id, a.Result, a.Err, ledger.Appended)
	}
	c.moved(e, a)
	return a
}

// moved tells the view that e was stored.
func (c *chain) moved(e ledger.Entry, a ledger.Answer) {
	c.seq, c.tail, c.head = e.Record.Seq, e.Record.Hash, a.Number
}

// view is another writer's view, as it is now.
func (c *chain) view(t machine.Token) *chain {
	v := *c
	v.token = t
	return &v
}

// now is the work's head.
func (c *chain) now() ledger.Instance {
	c.b.Helper()
	return c.b.head(c.id)
}

// history is the work's whole chain.
func (c *chain) history() []machine.Record {
	c.b.Helper()
	rs, err := c.b.History(c.b.Context(), c.id)
	if err != nil {
		c.b.Fatalf("history of %s: %v", c.id, err)
	}
	return rs
}

// fresh is the view of a work that is not started yet.
func (b *bench) fresh(t machine.Token, work string) *chain {
	return &chain{b: b, token: t, id: id(work)}
}

// start accepts a work whose first record is r.
func (b *bench) start(t machine.Token, work string, r machine.Record, s *ledger.Schedule) *chain {
	b.Helper()
	c := b.fresh(t, work)
	c.add(r, s)
	return c
}

// append appends entries in one batch. An error is a failure: nothing is broken on purpose.
func (b *bench) append(t machine.Token, es ...ledger.Entry) []ledger.Answer {
	b.Helper()
	as, err := b.Append(b.Context(), t, es)
	if err != nil {
		b.Fatalf("append %d records: %v", len(es), err)
	}
	if len(as) != len(es) {
		b.Fatalf("append %d records: got %d answers", len(es), len(as))
	}
	return as
}

// one appends one entry.
func (b *bench) one(t machine.Token, e ledger.Entry) ledger.Answer {
	b.Helper()
	return b.append(t, e)[0]
}

// want appends one entry and expects an answer.
func (b *bench) want(t machine.Token, e ledger.Entry, r ledger.Result) {
	b.Helper()
	if a := b.one(t, e); a.Result != r {
		b.Fatalf("append record %d of %s: got %s (%v), want %s", e.Record.Seq, e.ID, a.Result, a.Err, r)
	}
}

// head is a work's head, which must exist.
func (b *bench) head(id saga.ID) ledger.Instance {
	b.Helper()
	heads := b.list(ledger.Filter{Saga: id.Saga, Work: id.Work})
	if len(heads) != 1 {
		b.Fatalf("list %s: got %d heads, want 1", id, len(heads))
	}
	return heads[0]
}

func (b *bench) page(f ledger.Filter) ledger.Page {
	b.Helper()
	page, err := b.List(b.Context(), f)
	if err != nil {
		b.Fatalf("list %+v: %v", f, err)
	}
	return page
}

// list returns the first heads of a listing, however many pages that takes.
func (b *bench) list(f ledger.Filter) []ledger.Instance {
	b.Helper()
	heads, err := ledger.First(b.Context(), b, f)
	if err != nil {
		b.Fatalf("list %+v: %v", f, err)
	}
	return heads
}

func (b *bench) load(ids ...saga.ID) []ledger.Chain {
	b.Helper()
	chains, err := b.Load(b.Context(), ids)
	if err != nil {
		b.Fatalf("load %v: %v", ids, err)
	}
	return chains
}

// claim claims as a process that knows the suite's definition.
func (b *bench) claim(t machine.Token, limit int) []ledger.Instance {
	b.Helper()
	return b.claimAs(t, ledger.Claim{Limit: limit, Known: known})
}

func (b *bench) claimAs(t machine.Token, c ledger.Claim) []ledger.Instance {
	b.Helper()
	got, err := b.Claim(b.Context(), t, c)
	if err != nil {
		b.Fatalf("claim: %v", err)
	}
	return got.Instances
}

// post posts a signal with a key of its own.
func (b *bench) post(id saga.ID, key string) {
	b.Helper()
	s := machine.Signal{Kind: machine.SignalWake, Key: key, Actor: "suite", Reason: "because"}
	if err := b.Post(b.Context(), id, s); err != nil {
		b.Fatalf("post %s to %s: %v", key, id, err)
	}
}

func (b *bench) signals(id saga.ID) []machine.Signal {
	b.Helper()
	ss, err := b.Signals(b.Context(), id)
	if err != nil {
		b.Fatalf("signals of %s: %v", id, err)
	}
	return ss
}

// consuming makes r a record that names the work's signals at these places.
func (b *bench) consuming(id saga.ID, r machine.Record, places ...int) machine.Record {
	b.Helper()
	ss := b.signals(id)
	for _, p := range places {
		if p >= len(ss) {
			b.Fatalf("%s has %d signals, more were posted", id, len(ss))
		}
		r.Signals = append(r.Signals, ss[p].ID)
	}
	return r
}

// works names heads by their work ids, for comparing.
func works(heads []ledger.Instance) []string {
	names := make([]string, len(heads))
	for i, h := range heads {
		names[i] = h.ID.Work
	}
	return names
}

// order names the i-th of many works.
func order(i int) string { return fmt.Sprintf("shop:order:%04d", i) }
