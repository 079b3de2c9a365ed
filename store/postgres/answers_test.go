package postgres_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/postgres"
)

// oneFault strikes once: what is written, behind the statement or the commit, or what is read.
type oneFault struct{ armed atomic.Int64 }

func (o *oneFault) draw(statement string, _, inTx bool) fault {
	if inTx && !o.readsOnly(statement) { // it is the commit that counts
		return none
	}
	return fault(o.armed.Swap(int64(none)))
}

func (*oneFault) readsOnly(statement string) bool { return statement != "" && !writes(statement) }

// What the database undid, before or behind the rows and at the commit, the store does again.
// When it is not known what became of a statement or a commit, it does so where the verb may be
// done again. Of the others the caller learns, and nothing is done twice behind his back. What an
// attempt that failed has read does not count.
func TestEveryVerbIsDoneAgain(t *testing.T) {
	t.Parallel()
	one := new(oneFault)
	f := &faults{draw: one.draw}
	v := variant{options: *postgres.Between(f.between, migrate), faults: f}
	l := v.open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	ctx := t.Context()
	first := start(token, "w")
	head := appendAll(t, l, token, []ledger.Entry{first}, ledger.Appended)[0].Number
	spec := &program.Spec{Saga: "s", Version: 1}
	event := func(name string) []intake.Event {
		return []intake.Event{{Object: intake.Object{Source: "shop", Type: "order", ID: name}, Dedupe: intake.DigestOf(name)}}
	}
	if err := l.Accept(ctx, event("0")); err != nil {
		t.Fatal(err)
	}
	ref, err := l.Draft(ctx, "done")
	if err == nil {
		_, err = l.Finish(ctx, ref, &plan.Plan{ID: "aa", Job: "done"})
	}
	if err != nil {
		t.Fatal(err)
	}
	type verb struct {
		name  string
		again bool // the store does it again
		do    func() error
	}
	var draft plan.Ref
	control := ledger.Control{Kind: ledger.ControlPause, Name: "all", Nonce: 1, Actor: "ann", Body: json.RawMessage(`1`)}
	pages := 0
	finding := []plan.Finding{{Key: "k", Class: plan.Missing, Action: plan.Start}}
	for _, verb := range []verb{
		{"open session", true, func() error { _, err := l.OpenSession(ctx, time.Hour, "", nil); return err }},
		{"renew", true, func() error { _, err := l.Renew(ctx, token, ledger.Renewal{TTL: time.Hour}); return err }},
		{"describe", true, func() error { return l.Describe(ctx, spec) }},
		{"append a start", true, func() error {
			_, err := l.Append(ctx, token, []ledger.Entry{start(token, time.Now().String())})
			return err
		}},
		{"append a record", true, func() error {
			first = next(first, head, token, machine.Record{Kind: machine.KindNoted, Status: saga.Running}, nil)
			_, err := l.Append(ctx, token, []ledger.Entry{first})
			return err
		}},
		{"load", true, func() error { _, err := l.Load(ctx, []saga.ID{first.ID}); return err }},
		{"list", true, func() error { _, err := ledger.First(ctx, l, ledger.Filter{}); return err }},
		{"post", true, func() error {
			_, err := l.Post(ctx, first.ID, machine.Signal{Kind: machine.SignalWake, Key: "k"})
			return err
		}},
		{"give back", true, func() error { return l.GiveBack(ctx, token, []ledger.Return{{Number: head}}) }},
		{"set a control", true, func() error {
			is, err := l.SetControl(ctx, 0, control)
			control.Version = is.Version
			control.Nonce++
			return err
		}},
		{"controls", true, func() error {
			all, _, err := l.Controls(ctx)
			if err == nil && len(all) != 1 {
				t.Errorf("%d controls are there, want one: %+v", len(all), all)
			}
			return err
		}},
		{"deliveries", true, func() error { _, err := l.Deliveries(ctx, intake.DeliveryFilter{}); return err }},
		{"draft", true, func() (err error) { draft, err = l.Draft(ctx, "job"); return err }},
		{"find", true, func() error { return l.Find(ctx, draft, finding) }},
		{"finish", true, func() error { _, err := l.Finish(ctx, draft, &plan.Plan{ID: "bb", Job: "job"}); return err }},
		{"approve", true, func() error { return l.Approve(ctx, "aa", saga.Actor{Name: "ann"}) }},
		{"done", true, func() error { return l.Done(ctx, ref, nil) }},
		{"remember", true, func() error { return l.Remember(ctx, plan.Ref{Job: "job", Number: 1}, plan.Part{}, finding) }},
		{"advance", true, func() error {
			pages++
			_, err := l.Advance(ctx, scan.Position{Name: "p", Serial: int64(pages) - 1, State: json.RawMessage(`{}`)}, scan.Catch{})
			return err
		}},
		{"claim", false, func() error { _, err := l.Claim(ctx, token, ledger.Claim{}); return err }},
		{"count", true, func() error { return l.Count(ctx, 7, []ledger.Duplicate{{ID: first.ID, Count: 1}}) }},
		{"catch up", false, func() error { _, _, err := l.CatchUp(ctx); return err }},
		{"accept", false, func() error { return l.Accept(ctx, event(time.Now().String())) }},
		{"judge", false, func() error {
			_, err := l.Judge(ctx, 1, func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error { return nil })
			return err
		}},
		{"lease", false, func() error {
			_, err := l.Lease(ctx, 1, func(time.Time, *intake.Entry) error { return nil })
			return err
		}},
		{"update", false, func() error {
			return l.Update(ctx, event("0")[0].Object, func(time.Time, *intake.Entry) error { return nil })
		}},
		{"turn", false, func() error { return l.Turn(ctx, "job", func(time.Time, *schedule.Agenda) error { return nil }) }},
		{"bury", true, func() error { return l.Bury(ctx, token) }},
	} {
		for _, what := range []fault{undone, undoneLate, unknown, cut} {
			one.armed.Store(int64(what))
			err := verb.do()
			if struck := one.armed.Swap(int64(none)) == int64(none); !struck {
				t.Errorf("%s: nothing went wrong: the test proves nothing", verb.name)
			}
			again := verb.again || what == undone || what == undoneLate
			if again && err != nil || !again && !pgdb.Unknown(err) {
				t.Errorf("%s, fault %d: error %v, want the store to do it again: %t", verb.name, what, err, again)
			}
		}
	}
}

// Opening is done again as well, whichever of its statements goes wrong.
func TestOpeningIsDoneAgain(t *testing.T) {
	t.Parallel()
	url := migrated.URL(t)
	for _, what := range []fault{undone, undoneLate, unknown, cut} {
		for n := int64(1); ; n++ {
			var left atomic.Int64
			left.Store(n)
			f := &faults{draw: func(string, bool, bool) fault {
				if left.Add(-1) == 0 {
					return what
				}
				return none
			}}
			l, err := postgres.Open(t.Context(), url, postgres.Between(f.between, migrate))
			if err == nil {
				err = l.Close()
			}
			if err != nil {
				t.Errorf("fault %d at statement %d: %v", what, n, err)
			}
			if left.Load() > 0 { // there are not so many
				if n == 1 {
					t.Error("nothing went wrong: the test proves nothing")
				}
				break
			}
		}
	}
}

// Repetitions have a bound. What never comes through is told as what it is.
func TestRepetitionsEnd(t *testing.T) {
	t.Parallel()
	var always atomic.Bool
	f := &faults{draw: func(_ string, _, _ bool) fault {
		if always.Load() {
			return undoneLate
		}
		return none
	}}
	v := variant{options: *postgres.Between(f.between, migrate), faults: f}
	l := v.open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	always.Store(true)
	es := []ledger.Entry{start(token, "a"), start(token, "b")}
	if as, err := l.Append(t.Context(), token, es); !pgdb.Undone(err) {
		t.Errorf("append where others are always first: %+v, %v", as, err)
	}
	always.Store(false)
	appendAll(t, l, token, es, ledger.Appended)
}
