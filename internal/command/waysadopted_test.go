package command

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// TestEveryAdoptedReviewHasAWayOut rebuilds works of which the ledger was lost, with approvals and waits before, between and behind what
// stands, and whatever their destinations may tell of each step: no review, and no wait, is left that people cannot end.
func TestEveryAdoptedReviewHasAWayOut(t *testing.T) {
	t.Parallel()
	tb := &wayTable{t: t, seen: map[string]map[string]bool{}, most: 6}
	for _, kind := range slices.Sorted(maps.Keys(waitKinds)) {
		tb.adopted(kind, waitKinds[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if pace.AtNight() || kind == "find" { // what is adopted of a step that sends comes to the same reviews as what fails
			tb.adopted(kind, func() saga.Step[string] { return doing(kind, "before") })
		}
	}
	t.Logf("%d reviews, pauses and waits", tb.cases)
}

// tells is what is told of a step; nil: nothing is.
var tells = map[string]*machine.Effect{
	"not named": nil, "stands": {ExternalID: "x_1", Output: []byte(`{"id":"x_1"}`)}, "unknown": {Unknown: true}, "not done": {NotDone: true}, "foreign": {ExternalID: "x_2", Foreign: true},
}

func (tb *wayTable) adopted(kind string, x func() saga.Step[string]) {
	other := func(name string) *saga.Action[string, made] {
		return saga.Do(name, act).Idempotent().EachRun().UndoMaybe(undo)
	}
	d, err := saga.Define(waysID.Saga, 1,
		other("first"), saga.Approve[string]("released").By("finance").Within(time.Hour), x(), other("ship").Pivot(), saga.Delay[string]("rest", time.Hour),
		saga.Do("mail", act).AtMostOnce().NoUndo("a mail"))
	if err != nil {
		d, err = saga.Define(waysID.Saga, 1, // x must come behind the pivot
			other("first"), saga.Approve[string]("released").By("finance").Within(time.Hour), other("ship").Pivot(), x(), saga.Delay[string]("rest", time.Hour),
			saga.Do("mail", act).AtMostOnce().NoUndo("a mail"))
	}
	if err != nil {
		tb.t.Fatal(kind, err)
	}
	spec := d.Spec()
	told := []string{"first", "ship", "mail"}
	if !spec.Steps[spec.Index("x")].Waits() {
		told = append(told, "x")
	}
	words := slices.Sorted(maps.Keys(tells))
	for n := range pow(len(words), len(told)) {
		if !pace.AtNight() && n%len(words) > 1 { // of the first step two things are told by day
			continue
		}
		a := machine.Adoption{Revision: "1", Input: []byte(`"3 lines"`), Effects: map[string]machine.Effect{}, Actor: "anna", Reason: "the ledger was lost"}
		name := kind
		for i, m := 0, n; i < len(told); i, m = i+1, m/len(words) {
			word := words[m%len(words)]
			name += fmt.Sprintf(", %s %s", told[i], word)
			if e := tells[word]; e != nil {
				a.Effects[told[i]] = *e
			}
			if word == "foreign" {
				a.Quarantine = "it says something else"
			}
		}
		for lookup, cancelled := range map[string]bool{"not found": false, "unclear": true, "several": false} {
			a.Cancelled = cancelled
			w := &ways{t: tb.t, spec: spec, st: &machine.State{ID: waysID}, now: time.Now().UTC().Truncate(time.Second)}
			w.step = &behaviour{act: []program.Outcome{done("x_9")}, look: lookups[lookup], undo: []program.Outcome{{Class: program.Succeeded}}}
			for r := w.adopts(&a); r != nil; r = w.adopts(&a) {
				w.store(r)
			}
			w.feed(machine.Event{})
			tb.play(fmt.Sprintf("%s, %s, cancelled %t", name, lookup, cancelled), kind, w, nil)
		}
	}
}

func (w *ways) adopts(a *machine.Adoption) *machine.Record {
	w.t.Helper()
	r, err := machine.Adopt(w.spec, w.st, a)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func pow(base, n int) int {
	p := 1
	for range n {
		p *= base
	}
	return p
}
