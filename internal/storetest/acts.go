package storetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
)

// repeating: each look is put on record twice.
type repeating struct{ Store }

func (r repeating) Did(ctx context.Context, kind ledger.ControlKind, what string, by saga.Actor) error {
	ok(r.Store.Did(ctx, kind, what, by))
	return r.Store.Did(ctx, kind, what, by)
}

// Whatever people do at once, in two processes: it makes one chain, numbered without a gap, each with
// its hash over the one before, of which the head is known, and in it each act is once.
func raceActs(b *bench) {
	const people, each = 6, 5
	stores := b.stores()
	var mu sync.Mutex
	want := map[string]int{}
	b.atOnce(people, func(i int) {
		p := person{b: b, Store: stores[i%2], name: fmt.Sprint("person ", i)}
		for n := range each {
			for _, act := range p.acts(i, n) {
				mu.Lock()
				want[act]++
				mu.Unlock()
			}
		}
	})
	for act, n := range b.chained() {
		if want[act] -= n; want[act] == 0 {
			delete(want, act)
		}
	}
	if len(want) > 0 {
		b.Errorf("these acts are too few in the chain, where the number is negative too many: %v", want)
	}
}

// person does everything of which an act is put on record.
type person struct {
	Store
	b    *bench
	name string
	was  ledger.Control
}

func (p *person) acts(i, n int) (did []string) {
	by, ctx := saga.Actor{Name: p.name, Reason: fmt.Sprint("reason ", n)}, p.b.Context()
	done := func(kind ledger.ControlKind) { did = append(did, fmt.Sprint(kind, by)) }
	ok(p.Store.Did(ctx, ledger.DeedLooked, "bodies", by))
	done(ledger.DeedLooked)
	ok(p.Store.Decide(ctx, fmt.Sprint("job ", i%3), []plan.Decision{{Finding: finding(fmt.Sprint(i, "-", n%2), plan.Diverged, plan.Ask), Verdict: plan.Accept, By: by}}))
	done(ledger.DeedDecide)
	c := control(p.name, p.was)
	c.Actor, c.Reason = by.Name, by.Reason
	p.was = of(p.Store.SetControl(ctx, 0, c))
	done(c.Kind)
	if p.b.harness.LosesAnswers { // what follows does not know what became of it
		return did
	}
	ok(p.Store.Turn(ctx, fmt.Sprint("job ", i%3), func(now time.Time, a *schedule.Agenda) error {
		r := planned(now, fmt.Sprint(i, "-", n))
		r.By, r.Why, r.Ask = by.Name, by.Reason, "all"
		a.New = append(a.New, r)
		return nil
	}))
	done(ledger.DeedRun)
	o := object(fmt.Sprint(i, "-", n))
	ok(p.Store.Update(ctx, o, func(_ time.Time, e *intake.Entry) error { e.Accepted, e.Held = 1, 1; return nil }))
	if of(p.Store.EndHold(ctx, o.Source, intake.ActRelease, by)) > 0 {
		done(intake.ActRelease)
	}
	return did
}

// chained walks the chain of acts in small pages and counts what is in it.
func (b *bench) chained() map[string]int {
	counts := map[string]int{}
	for last := (ledger.Act{}); ; {
		page, head, err := b.ActChain(b.Context(), last.Number, 7)
		ok(err)
		for _, a := range page {
			if a.Number != last.Number+1 || !bytes.Equal(a.Hash, a.Sum(last.Hash)) {
				b.Fatalf("behind act %d comes %d with the hash %x, want %x", last.Number, a.Number, a.Hash, a.Sum(last.Hash))
			}
			counts[fmt.Sprint(a.Kind, saga.Actor{Name: a.Actor, Reason: a.Reason})]++
			last = a
		}
		if len(page) == 0 {
			if head.Number != last.Number || !bytes.Equal(head.Hash, last.Hash) {
				b.Errorf("the head is act %d with the hash %x, the last one %d with %x", head.Number, head.Hash, last.Number, last.Hash)
			}
			return counts
		}
	}
}
