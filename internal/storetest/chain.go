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

// known is what a process that can run the suite's works claims with.
var known = []ledger.Version{{Saga: theSaga, Version: 1}}

// started is the first record of a running work.
func started() machine.Record {
	return machine.Record{Kind: machine.KindStarted, Version: 1, Revision: "r1", Body: []byte(`{"order":10492}`), Status: saga.Running}
}

// doing is a record of a kind about the first step, after which the work stands at status.
func doing(k machine.Kind, s saga.Status) machine.Record {
	return machine.Record{Kind: k, Step: "invoice", Direction: saga.Forward, Attempt: 1, Status: s}
}

// arming makes r a record that arms an attempt.
func arming(r machine.Record, attempt int) machine.Record {
	r.Dispatch = &machine.Dispatch{Step: "invoice", Direction: saga.Forward, Attempt: attempt, Key: "am-key", Budget: 30 * time.Second}
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

	// Of a random history.
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

// add appends r, which must be stored, moves the view and returns the record as it was sealed.
func (c *chain) add(r machine.Record, s *ledger.Schedule) machine.Record {
	e := c.entry(r, s)
	c.moved(e, c.b.want(c.token, e, ledger.Appended))
	return e.Record
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
	return of(ledger.First(c.b.Context(), c.b, ledger.Filter{Saga: c.id.Saga, Work: c.id.Work}))[0]
}

// history is the work's whole chain.
func (c *chain) history() []machine.Record { return of(c.b.History(c.b.Context(), c.id)) }

// signals are all that were posted to the work.
func (c *chain) signals() []machine.Signal { return of(c.b.Signals(c.b.Context(), c.id)) }

// post posts a signal with a key of its own.
func (c *chain) post(s Store, key string) {
	of(s.Post(c.b.Context(), c.id, machine.Signal{Kind: machine.SignalWake, Key: key, Actor: "suite", Reason: "because"}))
}

// consuming makes r a record that names the work's signals at these places.
func (c *chain) consuming(r machine.Record, places ...int) machine.Record {
	all := c.signals()
	for _, p := range places {
		r.Signals = append(r.Signals, all[p].ID)
	}
	return r
}

// fresh is the view of a work that is not started yet.
func (b *bench) fresh(t machine.Token, work string) *chain {
	return &chain{b: b, token: t, id: saga.ID{Saga: theSaga, Work: work}}
}

// start accepts a work.
func (b *bench) start(t machine.Token, work string, s *ledger.Schedule) *chain {
	c := b.fresh(t, work)
	c.add(started(), s)
	return c
}

// many starts n works in one batch.
func (b *bench) many(t machine.Token, n int, s *ledger.Schedule) (batch []ledger.Entry) {
	for i := range n {
		batch = append(batch, b.fresh(t, order(i)).entry(started(), s))
	}
	of(b.Append(b.Context(), t, batch))
	return batch
}

// want appends one entry and expects an answer.
func (b *bench) want(t machine.Token, e ledger.Entry, r ledger.Result) ledger.Answer {
	b.Helper()
	a := b.settle(b, t, []ledger.Entry{e})[0]
	if a.Result != r {
		b.Fatalf("append record %d of %s: got %s (%v), want %s", e.Record.Seq, e.ID, a.Result, a.Err, r)
	}
	return a
}

// list returns the first heads of a listing, however many pages that takes.
func (b *bench) list(f ledger.Filter) []ledger.Instance { return of(ledger.First(b.Context(), b, f)) }

// claim claims as a process that knows the suite's definition.
func (b *bench) claim(t machine.Token, limit int) []ledger.Instance {
	return of(b.Claim(b.Context(), t, ledger.Claim{Limit: limit, Known: known})).Instances
}

// order names the i-th of many works.
func order(i int) string { return fmt.Sprintf("shop:order:%04d", i) }
