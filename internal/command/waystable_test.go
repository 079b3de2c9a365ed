package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

type wayCall = saga.Call[string]

func act(context.Context, wayCall) (made, error)                { return made{}, nil }
func undo(context.Context, wayCall, *made) error                { return nil }
func undoKnown(context.Context, wayCall, made) error            { return nil }
func find(context.Context, wayCall) (saga.Finding[made], error) { return saga.NotFound[made](), nil }

// kinds are the steps that a review can be about, each as x of its definition.
var kinds = map[string]func() *saga.Action[string, made]{
	"idempotent": func() *saga.Action[string, made] { return saga.Do("x", act).Idempotent().UndoMaybe(undo) },
	"keyed":      func() *saga.Action[string, made] { return saga.Do("x", act).Keyed(time.Hour).UndoMaybe(undo) },
	"keyed, find": func() *saga.Action[string, made] {
		return saga.Do("x", act).Keyed(time.Hour).Find(find).Undo(undoKnown)
	},
	"find":         func() *saga.Action[string, made] { return saga.Do("x", act).Find(find).Undo(undoKnown) },
	"at most once": func() *saga.Action[string, made] { return saga.Do("x", act).AtMostOnce().UndoMaybe(undo) },
	"at most once, find": func() *saga.Action[string, made] {
		return saga.Do("x", act).AtMostOnce().Find(find).NoUndo("it is a mail")
	},
}

// waits are those that send nothing.
var waitKinds = map[string]func() saga.Step[string]{
	"await":        func() saga.Step[string] { return awaiting().Within(time.Hour, saga.AskPerson) },
	"await, find":  func() saga.Step[string] { return awaiting().Within(time.Hour, saga.AskPerson).Find(find) },
	"await, or no": func() saga.Step[string] { return awaiting().Within(time.Hour, saga.Compensate) },
	"approve": func() saga.Step[string] {
		return saga.Approve[string]("x").By("finance").Within(time.Hour).Ask(saga.Do("ask", act).Idempotent().NoUndo("a mail"))
	},
	"delay": func() saga.Step[string] { return saga.Delay[string]("x", time.Hour) },
	"until": func() saga.Step[string] { return saga.Until("x", func(wayCall) time.Time { return time.Time{} }) },
}

func awaiting() *saga.Answer[string, made] {
	return saga.Await("x", func(wayCall, saga.Message) (made, error) { return made{}, nil }).On("paid", func(wayCall) string { return "1" }).EachRun()
}

var places = []string{"before", "pivot", "behind"}

// defined is a saga with x before its pivot, behind it, or as its pivot, and a step behind it where that may be; nil where x cannot stand
// there. deadline: it has one.
func defined(t *testing.T, version int, x saga.Step[string], place string, deadline bool) *program.Spec {
	t.Helper()
	other := func(name string) *saga.Action[string, made] {
		return saga.Do(name, act).Idempotent().EachRun().UndoMaybe(undo)
	}
	steps, last := []saga.Step[string]{other("first")}, saga.Step[string](other("last"))
	switch place {
	case "before":
		last = other("last").Pivot()
	case "behind":
		steps = append(steps, other("ship").Pivot())
	}
	orders := [][]saga.Step[string]{{x, last}, {last, x}}
	if x == nil {
		orders = [][]saga.Step[string]{{last}}
	}
	for _, rest := range orders {
		all := append(slices.Clone(steps), rest...)
		if deadline {
			all = append(all, saga.Deadline[string](40*time.Minute, saga.AskPerson))
		}
		d, err := saga.Define(waysID.Saga, version, all...)
		if err == nil && (place != "before" || d.Spec().PivotIndex() >= d.Spec().Index("x")) {
			return d.Spec()
		} else if err != nil && !strings.Contains(err.Error(), "must come after") {
			t.Fatal(err)
		}
	}
	return nil
}

func doing(kind, place string) saga.Step[string] {
	a := kinds[kind]().Retry(saga.Retry{Attempts: 2, Within: 90 * time.Minute})
	if !strings.Contains(kind, "at most once") {
		a.EachRun()
	}
	if place == "pivot" {
		a.Pivot()
	}
	return a
}

func begun(t *testing.T, spec *program.Spec, x *behaviour) *ways {
	t.Helper()
	w := &ways{t: t, spec: spec, st: &machine.State{ID: waysID}, now: time.Now().UTC().Truncate(time.Second), step: x}
	w.feed(machine.Event{Start: &machine.Start{Revision: "1", Input: []byte(`"3 lines"`), Starter: "sam"}})
	return w
}

func failing(c program.Class, more ...func(*program.Outcome)) []program.Outcome {
	o := program.Outcome{Class: c, Error: "it said no"}
	for _, say := range more {
		say(&o)
	}
	return []program.Outcome{o}
}

func outage(o *program.Outcome) { o.Outage = true }

// faults of a step that sends.
var faults = map[string][]program.Outcome{
	"refused": failing(saga.Refused), "refused at last": {{Class: saga.Unknown}, {Class: saga.Refused, Error: "no"}}, "unknown": failing(saga.Unknown),
	"not sent": failing(saga.Unsent), "outage": failing(saga.Unknown, outage), "fault": failing(saga.Fault), "its process dies": nil,
	"refused under its key": failing(saga.RefusedKey), "unknown, then refused under its key": {{Class: saga.Unknown}, {Class: saga.RefusedKey, Error: "no"}},
	"cannot be undone": failing(saga.NotUndoable), "unknown, then cannot be undone": {{Class: saga.Unknown}, {Class: saga.NotUndoable, Error: "no"}},
	"half of it refused": failing(saga.Refused, func(o *program.Outcome) { o.Maybe = true }),
}

var lookups = map[string]program.Evidence{
	"not found": {Answer: program.AnswerNotFound}, "unclear": {Answer: program.AnswerUnclear, Error: "503"},
	"several":   {Answer: program.AnswerSeveral, IDs: []string{"x_1", "x_2"}},
	"half-made": {Answer: program.AnswerUnfinished, ExternalID: "x_1", Output: []byte(`{"id":"x_1"}`)},
	"found":     {Answer: program.AnswerFound, ExternalID: "x_1", Output: []byte(`{"id":"x_1"}`)},
}

// wayTable is which reviews there are: by reason, by kind of step.
type wayTable struct {
	t     *testing.T
	seen  map[string]map[string]bool
	cases int
	most  int // choices until it ends; 0: three
}

// check takes every choice that a person has where the work is in review, paused or waiting.
func (tb *wayTable) check(name, kind string, w *ways) {
	tb.t.Helper()
	column := string(w.st.Reason)
	if w.st.Status == saga.Paused || w.st.Status == saga.Waiting {
		column = string(w.st.Status)
	} else if w.st.Status != saga.Review {
		return
	}
	if _, dir := w.st.Issue(w.spec); dir == saga.Undo {
		kind += ", its undo"
	}
	if tb.seen[column] == nil {
		tb.seen[column] = map[string]bool{}
	}
	tb.seen[column][kind] = true
	tb.cases++
	if w.st.Reason == saga.ReasonHung { // nothing is read while the attempt is open: the way out is the end of its process
		w.feed(machine.Event{Over: true})
		if w.st.Reason == saga.ReasonHung {
			tb.t.Errorf("%s: its process has ended, and it hangs\n%s", name, w.story())
		}
		return
	}
	before, all := w.standing(), w.offered()
	for i := range all {
		then := w.fork()
		if err := then.take(&all[i]); err != nil {
			tb.t.Errorf("%s: %s: %s %v\n%s", name, before, all[i].When, err, w.story())
		} else if after := then.standing(); after == before {
			tb.t.Errorf("%s: %s: amends %s changes nothing of %s\n%s", name, kind, all[i].Verb, after, w.story())
		}
	}
	if !w.wayOut(cmp.Or(tb.most, 3)) {
		tb.t.Errorf("%s: %s %s: no way out by %d choices (%s)\n%s", name, column, kind, len(all), w.st.Note, w.story())
	}
}

// pauses are the moments at which a person pauses the work, besides.
func (tb *wayTable) play(name, kind string, w *ways, pausedAt func() bool) {
	tb.t.Helper()
	if pausedAt != nil {
		w.until(true, func() bool { return w.last.Do.Do != machine.Act && pausedAt() })
		if w.st.Status.Live() {
			if err := w.run("pause", "--reason", "it has to wait"); err != nil {
				tb.t.Errorf("%s: %v\n%s", name, err, w.story())
				return
			}
			w.until(false, nil)
			tb.check(name+", paused", kind, w)
		}
		return
	}
	w.until(false, nil)
	tb.check(name, kind, w)
	n := len(w.chain)
	if w.until(true, nil); len(w.chain) > n {
		tb.check(name+", its time passes", kind, w)
	}
}

// TestEveryReviewHasAWayOut takes every choice that is offered to people, for every reason and every kind of step: none is refused or only
// noted, each changes where the work stands, and some lead to an end, although the destination goes on as before.
func TestEveryReviewHasAWayOut(t *testing.T) {
	t.Parallel()
	tb := &wayTable{t: t, seen: map[string]map[string]bool{}}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, place := range places {
			if defined(t, 1, doing(kind, place), place, false) == nil {
				continue
			}
			tb.sends(kind, place)
			tb.goesBack(kind, place)
		}
		if kind == "at most once" {
			tb.revised(kind, "behind")
		} else {
			tb.revised(kind, "before")
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(waitKinds)) {
		for _, place := range []string{"before", "behind"} {
			tb.waits(kind, place)
		}
	}
	tb.late()
	tb.written()
}

// moments is at how many attempts a person pauses it.
func moments() int {
	if pace.AtNight() {
		return 3
	}
	return 1
}

// sends plays a step that fails in each way there is.
func (tb *wayTable) sends(kind, place string) {
	spec := func(deadline bool) *program.Spec { return defined(tb.t, 1, doing(kind, place), place, deadline) }
	for fault, outcomes := range faults {
		for lookup, said := range lookups {
			if !strings.Contains(kind, "find") && lookup != "not found" {
				continue
			}
			x := &behaviour{act: outcomes, look: said, undo: []program.Outcome{{Class: program.Succeeded}}}
			name := fmt.Sprintf("%s, %s the pivot, %s, %s", kind, place, fault, lookup)
			tb.play(name, kind, begun(tb.t, spec(false), x), nil)
			tb.play(name+", with a deadline", kind, begun(tb.t, spec(true), x), nil)
			for at := 1; at <= moments(); at++ {
				w := begun(tb.t, spec(false), x)
				tb.play(name, kind, w, func() bool { ss := w.st.Step("x"); return ss != nil && ss.Forward.Attempts >= at })
			}
		}
	}
	for _, back := range []bool{false, true} {
		w := begun(tb.t, spec(false), &behaviour{act: []program.Outcome{done("x_1")}})
		if back {
			w.until(false, func() bool { ss := w.st.Step("x"); return ss != nil && ss.Forward.Phase == machine.Done })
			tb.news(w, "2", true)
		}
		w.until(true, func() bool { return w.last.Do.Do == machine.Act && w.last.Do.Step == "x" })
		w.feed(machine.Event{Hung: "it hangs"})
		tb.check(kind+", hung", kind, w)
	}
}

// goesBack plays an undo that fails in each way there is.
func (tb *wayTable) goesBack(kind, place string) {
	for fault, outcomes := range faults {
		for lookup, said := range lookups {
			if !strings.Contains(kind, "find") && lookup != "not found" {
				continue
			}
			for _, made := range []program.Outcome{done("x_1"), {Class: program.Succeeded}} {
				for at := range moments() + 1 {
					x := &behaviour{act: []program.Outcome{made}, look: said, undo: outcomes}
					w := begun(tb.t, defined(tb.t, 1, doing(kind, place), place, false), x)
					w.until(false, func() bool { ss := w.st.Step("x"); return ss != nil && ss.Forward.Phase == machine.Done })
					tb.news(w, "2", true)
					name := fmt.Sprintf("%s, %s the pivot, its undo %s, %s, known %t", kind, place, fault, lookup, made.Output != nil)
					if at == 0 {
						tb.play(name, kind, w, nil)
					} else {
						tb.play(name, kind, w, func() bool { return w.st.Step("x").Undo.Attempts >= at })
					}
				}
			}
		}
	}
}

// news is what the source says: a newer version, or that it cancelled the object.
func (tb *wayTable) news(w *ways, revision string, gone bool) {
	tb.t.Helper()
	for w.last.Do.Do == machine.Act { // nothing is read while an attempt is open
		w.answer(w.last.Do)
	}
	s := machine.Signal{Kind: machine.SignalRevise, News: machine.News{Revision: revision, Version: 1, Input: []byte(`"4 lines"`)}}
	if w.next != nil {
		s.Version = w.next.Version
	}
	if gone {
		s = machine.Signal{Kind: machine.SignalCancel, News: machine.News{Revision: revision}}
	}
	_, _ = w.Post(tb.t.Context(), waysID, s)
	_ = w.read(nil) // a note is as good
}

// revised plays a newer version: what an earlier one left is gone, a step is left in doubt, and the definition does not have it any more.
func (tb *wayTable) revised(kind, place string) {
	for lookup, said := range lookups {
		x := &behaviour{act: []program.Outcome{done("x_1"), {Class: saga.Gone, Error: "gone"}}, look: said, undo: []program.Outcome{{Class: program.Succeeded}}}
		w := begun(tb.t, defined(tb.t, 1, doing(kind, place), place, false), x)
		w.until(false, nil)
		tb.news(w, "2", false)
		tb.play(kind+", what was left is gone, "+lookup, kind, w, nil)

		x = &behaviour{act: failing(saga.Unknown), look: said, undo: []program.Outcome{{Class: program.Succeeded}}}
		w = begun(tb.t, defined(tb.t, 1, doing(kind, place), place, false), x)
		w.until(false, func() bool { ss := w.st.Step("x"); return ss != nil && ss.Forward.Phase == machine.InDoubt })
		tb.news(w, "2", false)
		tb.play(kind+", in doubt, and a newer version waits, "+lookup, kind, w, nil)
	}
	x := &behaviour{act: []program.Outcome{done("x_1")}, undo: []program.Outcome{{Class: program.Succeeded}}}
	w := begun(tb.t, defined(tb.t, 1, doing(kind, place), place, false), x)
	w.until(false, nil)
	w.next = defined(tb.t, 2, nil, place, false)
	tb.news(w, "2", false)
	w.until(false, nil)
	tb.news(w, "3", true)
	tb.play(kind+", not in the definition any more", kind, w, nil)

	for _, x2 := range []saga.Step[string]{nil, saga.Delay[string]("x", time.Hour)} { // a newer version does not have it, or it is a wait there
		for _, gone := range []bool{false, true} {
			if !gone && place == "behind" { // it comes too late
				continue
			}
			w = begun(tb.t, defined(tb.t, 1, doing(kind, place), place, false), x)
			w.until(false, func() bool { return w.last.Do.Do == machine.Act && w.last.Do.Step == "last" })
			w.feed(machine.Event{Outcome: &program.Outcome{Class: saga.Unsent}})
			w.next = defined(tb.t, 2, x2, place, false)
			tb.news(w, "2", false)
			w.until(false, func() bool { return w.last.Do.Do == machine.Act && w.last.Do.Step == "first" })
			w.feed(machine.Event{Outcome: &program.Outcome{Class: saga.Unsent}})
			name := fmt.Sprintf("%s, not in the newer version, a wait there %t, cancelled by the source %t", kind, x2 != nil, gone)
			if gone {
				tb.news(w, "3", true)
			} else if err := w.run("cancel", "--reason", "given up"); err != nil {
				tb.t.Errorf("%s: %v", name, err)
			}
			tb.play(name, kind, w, nil)
		}
	}

	w = begunBy(tb.t, defined(tb.t, 1, doing(kind, place), place, false), &machine.Adoption{
		Revision: "1", Input: []byte(`"3 lines"`), Quarantine: "another amount", Effects: map[string]machine.Effect{"first": {ExternalID: "f"}, "x": {ExternalID: "x_1", Foreign: true}},
	}, x)
	tb.play(kind+", adopted, in quarantine", kind, w, nil)
}

// begunBy is a work that a rebuild took over.
func begunBy(t *testing.T, spec *program.Spec, a *machine.Adoption, x *behaviour) *ways {
	t.Helper()
	w := &ways{t: t, spec: spec, st: &machine.State{ID: waysID}, now: time.Now().UTC().Truncate(time.Second), step: x}
	for {
		r, err := machine.Adopt(spec, w.st, a)
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			w.feed(machine.Event{})
			return w
		}
		w.store(r)
	}
}

var (
	yesOf = map[string]string{"approve": "approve", "await": "complete", "await, find": "complete", "await, or no": "complete"}
	noOf  = map[string]string{"approve": "reject", "await": "fail", "await, find": "fail", "await, or no": "fail"}
)

// says has a person say yes or no.
func (tb *wayTable) says(w *ways, verb string) {
	tb.t.Helper()
	said := desk.Choice{Verb: verb}
	if verb == "complete" {
		said.Flags = append(said.Flags, desk.Saying{Name: "body", Example: "JSON"})
	}
	if verb == "complete" || verb == "fail" {
		said.Flags = append(said.Flags, desk.Saying{Name: "reason", Example: "it said so"})
	}
	if err := w.take(&said); err != nil {
		tb.t.Error(err)
	}
}

// waits plays what waits, for people, an answer or a time.
func (tb *wayTable) waits(kind, place string) {
	for what, x := range map[string]*behaviour{
		"time passes": {look: lookups["not found"]}, "cannot tell": {look: lookups["unclear"]}, "several": {look: lookups["several"]},
		"its lookup fails":  {look: program.Evidence{Answer: program.AnswerUnclear, Error: "nil map", Stack: "goroutine 1"}},
		"the program fails": {asked: "nil map", look: lookups["not found"]},
	} {
		name := fmt.Sprintf("%s, %s the pivot, %s", kind, place, what)
		for _, deadline := range []bool{false, true} {
			tb.play(name, kind, begun(tb.t, defined(tb.t, 1, waitKinds[kind](), place, deadline), x), nil)
			w := begun(tb.t, defined(tb.t, 1, waitKinds[kind](), place, deadline), x)
			tb.play(name, kind, w, func() bool { return w.st.Status == saga.Waiting })
			w.now = w.now.Add(3 * time.Hour) // its end passes while a person has it
			w = w.fork()
			if w.st.Status == saga.Paused {
				if err := w.run("resume", "--reason", "it may"); err != nil {
					tb.t.Errorf("%s: %v", name, err)
				}
				tb.play(name+", resumed late", kind, w, nil)
			}
		}
	}
	if no := noOf[kind]; no != "" {
		for _, paused := range []bool{false, true} {
			w := begun(tb.t, defined(tb.t, 1, waitKinds[kind](), place, false), &behaviour{look: lookups["not found"]})
			w.until(false, nil)
			if paused {
				if err := w.run("pause", "--reason", "it has to wait"); err != nil {
					tb.t.Error(err)
				}
			}
			tb.says(w, no)
			tb.play(fmt.Sprintf("%s, %s the pivot, no, paused %t", kind, place, paused), kind, w, nil)
		}
	}
	if yes, no := yesOf[kind], noOf[kind]; no != "" { // a newer version, behind a pivot that an earlier one passed
		for _, no := range []string{"", no} {
			w := begun(tb.t, defined(tb.t, 1, waitKinds[kind](), place, false), &behaviour{look: lookups["not found"]})
			w.until(false, nil)
			tb.says(w, yes)
			w.until(true, nil)
			tb.news(w, "2", false)
			if w.until(false, nil); no != "" {
				tb.says(w, no)
			}
			tb.play(fmt.Sprintf("%s, %s the pivot, %q in a newer version", kind, place, no), kind, w, nil)
		}
	}
	stands := map[string]machine.Effect{"first": {ExternalID: "f"}, "last": {NotDone: true}}
	if place == "behind" {
		stands["ship"] = machine.Effect{ExternalID: "s"}
	}
	w := begunBy(tb.t, defined(tb.t, 1, waitKinds[kind](), place, false), &machine.Adoption{Revision: "1", Input: []byte(`"3 lines"`), Effects: stands}, &behaviour{look: lookups["not found"]})
	tb.play(kind+", adopted", kind, w, nil)
}

// late plays a success that comes when it was given up.
func (tb *wayTable) late() {
	request := saga.Do("submit", act).Idempotent().UndoMaybe(undo)
	d, err := saga.Define(waysID.Saga, 1, saga.Step[string](request.EachRun()), saga.Await("x", func(wayCall, saga.Message) (made, error) { return made{}, nil }).Callback("submit").Within(time.Hour, saga.AskPerson))
	if err != nil {
		tb.t.Fatal(err)
	}
	w := begun(tb.t, d.Spec(), &behaviour{})
	key := w.st.Step("submit").Forward.Key
	w.feed(machine.Event{Outcome: &program.Outcome{Class: saga.Unknown}})
	if err := w.run("cancel", "--reason", "given up"); err != nil {
		tb.t.Fatal(err)
	}
	w.until(true, nil)
	_, _ = w.Post(tb.t.Context(), waysID, machine.Signal{Kind: machine.SignalAnswer, Resolution: saga.Resolution{Step: "x", StepKey: key}})
	_ = w.read(nil)
	tb.play("a late success", "await", w, nil)
}
