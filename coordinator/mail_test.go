package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// Messages that several may mean (machine/A13).

// paidSaga waits for a payment by a key that the test chooses: the customer's, or the work's.
func paidSaga(t testing.TB, name string, key func(saga.Call[order]) string, undone *atomic.Int64, tune func(*saga.Answer[order, thing])) saga.Program {
	t.Helper()
	paid := saga.Await("paid", func(_ saga.Call[order], m saga.Message) (thing, error) {
		switch string(m.Body) {
		case "no":
			return thing{}, errors.New("it is not a payment")
		case "boom":
			panic("a bug")
		}
		return thing{ID: string(m.Body)}, nil
	}).On("payment", key).EachRun().Within(30*time.Minute, saga.Compensate)
	if tune != nil {
		tune(paid)
	}
	d, err := saga.Define(name, 1,
		saga.Do("reserve", func(_ context.Context, c saga.Call[order]) (thing, error) { return thing{ID: "r-" + c.Work}, nil }).
			Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { undone.Add(1); return nil }),
		paid,
		saga.Do("ship", func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "s"}, nil }).Idempotent().NoUndo("x").Pivot())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func customer(saga.Call[order]) string { return "cust-7" }

func ofWork(c saga.Call[order]) string { return c.Work }

// desk is a test in virtual time over one memory ledger.
type mailDesk struct {
	*testing.T

	l      ledger.Ledger
	p      *process
	log    lines
	undone atomic.Int64
}

func mailed(t *testing.T, define func(*mailDesk) []saga.Program, do func(*mailDesk)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &mailDesk{T: t, l: memory.New(nil)}
		d.p = several(t, d.l, config{opts: coordinator.Options{Log: d.log.logger()}}, define(d)...)
		pass(time.Second)
		do(d)
	})
}

func (d *mailDesk) start(name, work string) {
	d.Helper()
	if _, err := d.p.Start(d.Context(), name, work, order{}, nil); err != nil {
		d.Fatal(err)
	}
	pass(time.Second)
}

func (d *mailDesk) deliver(key, id, body string, want ...string) {
	d.Helper()
	ack, err := d.p.Deliver(d.Context(), saga.Message{Name: "payment", Key: key, ID: id, Body: []byte(body)})
	if err != nil {
		d.Fatal(err)
	}
	got := []string{}
	for _, id := range ack.IDs {
		got = append(got, id.Saga+" "+id.Work)
	}
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		d.Errorf("message %s was for %q, want %q", id, got, want)
	}
	pass(time.Second)
}

func (d *mailDesk) want(name, work string, status saga.Status, reason saga.Reason) {
	d.Helper()
	sum, err := d.p.Show(d.Context(), saga.ID{Saga: name, Work: work})
	if err != nil || sum.Status != status || sum.Reason != reason {
		d.Errorf("%s %s is %s %s, want %s %s (%v)", name, work, sum.Status, sum.Reason, status, reason, err)
	}
}

// What was cancelled or gave up takes nothing from the living, and what comes meanwhile is kept for who waits next.
func TestWhatGaveUpTakesNoMessage(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", customer, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "first")
		if err := d.p.Cancel(d.Context(), saga.ID{Saga: "pay", Work: "first"}, anna); err != nil {
			d.Fatal(err)
		}
		pass(time.Second)
		d.want("pay", "first", saga.Compensated, "")
		d.deliver("cust-7", "evt_1", "p_1")
		d.start("pay", "second")
		d.want("pay", "second", saga.Completed, "")
		d.start("pay", "third")
		d.deliver("cust-7", "evt_2", "p_2", "pay third")
		d.want("pay", "third", saga.Completed, "")
		d.start("pay", "fourth")
		pass(40 * time.Minute)
		d.want("pay", "fourth", saga.Compensated, "")
		d.start("pay", "fifth")
		d.deliver("cust-7", "evt_3", "p_3", "pay fifth")
		d.want("pay", "fifth", saga.Completed, "")
		d.want("pay", "first", saga.Compensated, "")
		d.want("pay", "fourth", saga.Compensated, "")
	})
}

// A late message that only the instance that gave up can mean reaches a person through it, once; where the step says NoUndo it is a
// note.
func TestALateMessageReachesAPerson(t *testing.T) {
	noUndo := func(a *saga.Answer[order, thing]) { a.NoUndo("a test") }
	mailed(t, func(d *mailDesk) []saga.Program {
		byID := func(c saga.Call[order]) string { return c.ExternalID("reserve") }
		return []saga.Program{paidSaga(d, "pay", ofWork, &d.undone, nil), paidSaga(d, "id", byID, &d.undone, nil), paidSaga(d, "note", ofWork, &d.undone, noUndo)}
	}, func(d *mailDesk) {
		for _, name := range []string{"pay", "id", "note"} {
			d.start(name, name)
		}
		pass(40 * time.Minute)
		d.deliver("pay", "evt_1", "p_1", "pay pay")
		d.want("pay", "pay", saga.Review, saga.ReasonLate)
		d.deliver("pay", "evt_1", "p_1", "pay pay") // again
		d.deliver("r-id", "evt_2", "p_2", "id id")
		d.want("id", "id", saga.Review, saga.ReasonLate)
		d.deliver("note", "evt_3", "p_3", "note note")
		d.want("note", "note", saga.Compensated, "")
	})
}

// Two sagas that wait for one name and key each use a message once, alike whether it comes early or late.
func TestAMessageIsForEachSaga(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program {
		return []saga.Program{paidSaga(d, "invoice", customer, &d.undone, nil), paidSaga(d, "ship", customer, &d.undone, nil)}
	}, func(d *mailDesk) {
		d.deliver("cust-7", "early", "p_1")
		d.start("ship", "1")
		d.start("invoice", "1")
		d.start("ship", "2")
		d.want("ship", "1", saga.Completed, "")
		d.want("invoice", "1", saga.Completed, "")
		d.want("ship", "2", saga.Waiting, "")
		d.deliver("cust-7", "early", "p_1", "invoice 1", "ship 1")
		d.start("invoice", "2")
		d.deliver("cust-7", "late", "p_2", "ship 2", "invoice 2")
		d.want("ship", "2", saga.Completed, "")
		d.want("invoice", "2", saga.Completed, "")
	})
}

// The oldest wait uses a message that its definition does not decline; what a wait loses, declines or is done without goes to the next.
func TestTheOldestWaitIsFirst(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", customer, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "b")
		d.start("pay", "a")
		if shared, err := d.l.Shared(d.Context()); err != nil || len(shared) != 1 {
			d.Errorf("two wait for one key, and %+v is told (%v)", shared, err)
		}
		op := coordinator.NewOperator(d.l)                  // knows no definition
		for i, body := range []string{"no", "p_1", "p_2"} { // all before they are read
			if _, err := op.Deliver(d.Context(), saga.Message{Name: "payment", Key: "cust-7", ID: fmt.Sprint("evt_", i), Body: []byte(body)}); err != nil {
				d.Fatal(err)
			}
		}
		pass(time.Minute)
		for _, work := range []string{"a", "b"} {
			d.want("pay", work, saga.Completed, "")
		}
		if shared, err := d.l.Shared(d.Context()); err != nil || len(shared) != 0 {
			d.Errorf("nothing waits, and %+v is told (%v)", shared, err)
		}
		if waits, err := d.l.Waits(d.Context(), "payment", "cust-7"); err != nil || len(waits) != 0 {
			d.Errorf("what is answered leaves %+v (%v)", waits, err)
		}
	})
}

// Who has paid pays once, where the step says so, however the order changes.
func TestPaidThenChanged(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program {
		p, err := saga.Define("pay", 1,
			saga.Await("paid", func(_ saga.Call[order], m saga.Message) (thing, error) { return thing{ID: string(m.Body)}, nil }).
				On("payment", ofWork).Once().Within(30*time.Minute, saga.Compensate),
			saga.Do("ship", func(_ context.Context, c saga.Call[order]) (thing, error) {
				return thing{ID: c.ExternalID("paid")}, nil
			}).
				Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { d.undone.Add(1); return nil }))
		if err != nil {
			d.Fatal(err)
		}
		return []saga.Program{p}
	}, func(d *mailDesk) {
		begin := func(revision string) {
			if _, err := d.p.Start(d.Context(), "pay", "1", order{Total: len(revision)}, &saga.StartOptions{Revision: revision}); err != nil {
				d.Fatal(err)
			}
			pass(time.Second)
		}
		begin("1")
		d.deliver("1", "evt", "p_1", "pay 1")
		for _, revision := range []string{"2", "30"} {
			begin(revision)
			d.want("pay", "1", saga.Completed, "")
		}
		pass(40 * time.Minute)
		if sum, _ := d.p.Show(d.Context(), saga.ID{Saga: "pay", Work: "1"}); sum.Revision != "30" || sum.Steps["ship"].ExternalID != "p_1" || d.undone.Load() != 0 {
			d.Errorf("in the end %s with %+v, undone %d", sum.Revision, sum.Steps["ship"], d.undone.Load())
		}
	})
}

// A bug in read is no business decision: what came is kept, and a retry reads it.
func TestABugInRead(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", ofWork, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "w")
		_, err := d.p.Deliver(d.Context(), saga.Message{Name: "payment", Key: "w", ID: "1", Body: []byte("boom")})
		if !errors.Is(err, coordinator.ErrBroken) {
			d.Error(err)
		}
		pass(40 * time.Minute)
		d.want("pay", "w", saga.Review, saga.ReasonPoison)
		if log := d.log.String(); !strings.Contains(log, "a bug") || !strings.Contains(log, "mail_test.go") {
			d.Errorf("the log does not say where: %.300s", log)
		}
		d.p.kill()
		d.p = several(d, d.l, config{}, paidMended(d))
		pass(time.Second)
		if err := d.p.Retry(d.Context(), saga.ID{Saga: "pay", Work: "w"}, anna); err != nil {
			d.Fatal(err)
		}
		pass(time.Second)
		d.want("pay", "w", saga.Completed, "")
		if d.undone.Load() != 0 {
			d.Error("it was undone")
		}
	})
}

func paidMended(d *mailDesk) saga.Program {
	p, err := saga.Define("pay", 1,
		saga.Do("reserve", func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "r"}, nil }).
			Idempotent().UndoMaybe(func(context.Context, saga.Call[order], *thing) error { d.undone.Add(1); return nil }),
		saga.Await("paid", func(_ saga.Call[order], m saga.Message) (thing, error) { return thing{ID: string(m.Body)}, nil }).
			On("payment", ofWork).EachRun().Within(30*time.Minute, saga.Compensate),
		saga.Do("ship", func(context.Context, saga.Call[order]) (thing, error) { return thing{ID: "s"}, nil }).Idempotent().NoUndo("x").Pivot())
	if err != nil {
		d.Fatal(err)
	}
	return p
}

// Of a hundred pairs of instances with one key exactly one takes the message of each, early or late, on two processes.
func TestOneOfEachPair(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, open func() ledger.Ledger) {
		t.Helper()
		t.Run("early", func(t *testing.T) { pairs(t, open, "e", true) })
		t.Run("late", func(t *testing.T) { pairs(t, open, "l", false) })
	})
}

func pairs(t *testing.T, open func() ledger.Ledger, name string, early bool) {
	t.Helper()
	n := 30
	if pace.AtNight() {
		n = 100
	}
	var undone atomic.Int64
	d := paidSaga(t, name, func(c saga.Call[order]) string { return fmt.Sprint(name, c.Input.Total) }, &undone, nil)
	l := open()
	ps := []*process{several(t, l, config{}, d), several(t, open(), config{}, d)}
	var all sync.WaitGroup
	deliver := func(i int) {
		if _, err := ps[i%2].Deliver(t.Context(), saga.Message{Name: "payment", Key: fmt.Sprint(name, i), ID: fmt.Sprint(name, "evt", i), Body: []byte("p")}); err != nil {
			t.Error(err)
		}
	}
	for i := range n {
		if early {
			all.Go(func() { deliver(i) })
		}
	}
	all.Wait()
	for i := range 2 * n {
		all.Go(func() {
			if _, err := ps[i%2].Start(t.Context(), name, fmt.Sprint(i%2, "-", i/2), order{Total: i / 2}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range n {
		if !early {
			all.Go(func() { deliver(i) })
		}
	}
	all.Wait()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if got := in(t, l, name); got[saga.Completed] >= n && got[saga.Completed]+got[saga.Waiting] == 2*n {
			break
		}
	}
	for i := range n {
		done := 0
		for _, half := range []string{"0-", "1-"} {
			if sum, err := ps[0].Show(t.Context(), saga.ID{Saga: name, Work: fmt.Sprint(half, i)}); err != nil {
				t.Error(err)
			} else if sum.Status == saga.Completed {
				done++
			}
		}
		if done != 1 {
			t.Errorf("message %d ended %d waits", i, done)
		}
	}
	ps[0].kill()
	ps[1].kill()
}

// A message that is kept while a wait has given up is its own again when a person has it wait longer.
func TestWhatIsKeptIsFoundAgain(t *testing.T) {
	asks := func(a *saga.Answer[order, thing]) { a.Within(30*time.Minute, saga.AskPerson) }
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", customer, &d.undone, asks)} }, func(d *mailDesk) {
		d.start("pay", "w")
		pass(40 * time.Minute)
		d.want("pay", "w", saga.Review, saga.ReasonUnanswered)
		d.deliver("cust-7", "evt", "p_1")
		if err := d.p.Extend(d.Context(), saga.ID{Saga: "pay", Work: "w"}, "", time.Now().Add(time.Hour), anna); err != nil {
			d.Fatal(err)
		}
		pass(time.Minute)
		d.want("pay", "w", saga.Completed, "")
	})
}

// Two that gave up, each of which alone can be meant in its way, hand a message to and fro no more than a few times.
func TestTwoThatGaveUp(t *testing.T) {
	key := func(saga.Call[order]) string { return "r-a" } // the work id of one, and an id that only the other has
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", key, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "a")
		d.start("pay", "r-a")
		pass(40 * time.Minute)
		if _, err := coordinator.NewOperator(d.l).Deliver(d.Context(), saga.Message{Name: "payment", Key: "r-a", ID: "1", Body: []byte("no")}); err != nil {
			d.Fatal(err)
		}
		pass(20 * time.Minute)
		for _, work := range []string{"a", "r-a"} {
			if rs, err := d.l.History(d.Context(), saga.ID{Saga: "pay", Work: work}); err != nil || len(rs) > 16 {
				d.Errorf("%s has %d records (%v)", work, len(rs), err)
			}
		}
	})
}

// What one saga cannot read, or has too much of, keeps the message from no other.
func TestASagaThatCannotReadKeepsNoOtherFromIt(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program {
		broken, err := saga.Define("audit", 1, saga.Await("paid", func(saga.Call[order], saga.Message) (thing, error) { panic("a bug") }).
			On("payment", customer).EachRun().Within(day, saga.AskPerson))
		if err != nil {
			d.Fatal(err)
		}
		return []saga.Program{broken, paidSaga(d, "pay", customer, &d.undone, nil)}
	}, func(d *mailDesk) {
		d.start("audit", "1")
		d.start("pay", "1")
		if _, err := d.p.Deliver(d.Context(), saga.Message{Name: "payment", Key: "cust-7", ID: "1", Body: []byte("p_1")}); !errors.Is(err, coordinator.ErrBroken) {
			d.Error(err)
		}
		pass(time.Minute)
		d.want("pay", "1", saga.Completed, "")
		d.want("audit", "1", saga.Review, saga.ReasonPoison)
	})
}

// A post whose answer is lost, to one that waits, is not taken from it by one that gave up.
func TestAPostWhoseAnswerIsLost(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program {
		return []saga.Program{paidSaga(d, "pay", func(c saga.Call[order]) string { return "a" }, &d.undone, nil)}
	}, func(d *mailDesk) {
		d.start("pay", "a")
		pass(20 * time.Minute)
		d.start("pay", "b")
		d.p.kill() // what is posted is read later
		faulty := ledgertest.Faulty(d.l, ledgertest.LoseAnswer(1, ledgertest.Post))
		op := coordinator.NewOperator(faulty)
		m := saga.Message{Name: "payment", Key: "a", ID: "1", Body: []byte("p_1")}
		if _, err := op.Deliver(d.Context(), m); err == nil {
			d.Fatal("the answer is not lost")
		}
		if ack, err := op.Deliver(d.Context(), m); err != nil || len(ack.IDs) != 1 || ack.IDs[0].Work != "a" {
			d.Errorf("again: %+v, %v", ack, err)
		}
		d.p = several(d, d.l, config{}, paidSaga(d, "pay", func(saga.Call[order]) string { return "a" }, &d.undone, nil))
		pass(time.Minute)
		d.want("pay", "a", saga.Completed, "")
		d.want("pay", "b", saga.Waiting, "")
	})
}

// A chain that the ledger does not give at once is waited for by who delivers: a message is not called stored for nothing.
func TestALoadThatFailsOnce(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", ofWork, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "w")
		op := coordinator.NewOperator(ledgertest.Faulty(d.l, ledgertest.FailBefore(1, ledgertest.Load)))
		if _, err := op.Deliver(d.Context(), saga.Message{Name: "payment", Key: "w", ID: "1", Body: []byte("p_1")}); err == nil {
			d.Error("it is told that the message is delivered")
		}
		d.deliver("w", "1", "p_1", "pay w")
		d.want("pay", "w", saga.Completed, "")
	})
}

// What a source's inbox brings and a definition cannot read is on record, once: it is not brought again and again.
func TestWhatCannotBeReadIsOnRecordOnce(t *testing.T) {
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", ofWork, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "w")
		change := saga.Change{ID: saga.ID{Saga: "pay", Work: "shop:payment:1"}, Message: &saga.Message{Name: "payment", Key: "w", ID: "1", Body: []byte("boom")}}
		for range 3 {
			if err := d.p.Apply(d.Context(), change); err != nil {
				d.Error(err)
			}
			pass(time.Minute)
		}
		d.want("pay", "w", saga.Review, saga.ReasonPoison)
		if signals, err := d.l.Signals(d.Context(), saga.ID{Saga: "pay", Work: "w"}); err != nil || len(signals) != 1 {
			d.Errorf("there are %d signals (%v)", len(signals), err)
		}
	})
}

// A chain that cannot be loaded for a moment keeps its place: what another leaves is offered to it all the same.
func TestAnOfferOutlastsALoadThatFails(t *testing.T) {
	key := func(saga.Call[order]) string { return "one" }
	mailed(t, func(d *mailDesk) []saga.Program { return []saga.Program{paidSaga(d, "pay", key, &d.undone, nil)} }, func(d *mailDesk) {
		d.start("pay", "a")
		d.start("pay", "b")
		d.p.kill()
		op := coordinator.NewOperator(d.l)
		if err := op.Cancel(d.Context(), saga.ID{Saga: "pay", Work: "a"}, anna); err != nil {
			d.Fatal(err)
		}
		if ack, err := op.Deliver(d.Context(), saga.Message{Name: "payment", Key: "one", ID: "1", Body: []byte("p_1")}); err != nil || ack.IDs[0].Work != "a" {
			d.Fatal(ack, err)
		}
		faulty := ledgertest.Faulty(d.l, ledgertest.FailBetween(1, 6, ledgertest.Load))
		d.p = several(d, faulty, config{}, paidSaga(d, "pay", key, &d.undone, nil))
		pass(time.Minute)
		d.want("pay", "a", saga.Compensated, "")
		d.want("pay", "b", saga.Completed, "")
	})
}
