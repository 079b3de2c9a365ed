package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/amends-dev/amends/saga"
)

// adopt takes the work over, by at most so many records; 0: by all there are. Every one is held
// against R3 and R4, and arms nothing.
func (d *desk) adopt(a *Adoption, most int) error {
	d.t.Helper()
	for n := 0; most == 0 || n < most; n++ {
		before := dump(d.t, d.st)
		r, err := Adopt(d.spec, d.st, a)
		again, err2 := Adopt(d.spec, d.st, a)
		if !reflect.DeepEqual(r, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
			d.t.Fatalf("R3: the same adoption was decided twice differently:\n%+v, %v\n%+v, %v", r, err, again, err2)
		}
		if after := dump(d.t, d.st); !bytes.Equal(before, after) {
			d.t.Fatalf("R3: deciding changed the state\nfrom %s\nto   %s", before, after)
		}
		if r == nil || err != nil {
			return err
		}
		if r.Dispatch != nil || len(r.Signals) > 0 || r.Wait != 0 {
			d.t.Fatalf("D1: a record of an adoption arms, waits or reads: %+v", r)
		}
		d.store(*r)
	}
	return nil
}

// takeOver is adopt for adoptions that fit.
func (d *desk) takeOver(a *Adoption) *desk {
	d.t.Helper()
	if err := d.adopt(a, 0); err != nil {
		d.t.Fatal(err)
	}
	return d
}

// parseAdoption reads what a story says.
func parseAdoption(args, lines []string) (*Adoption, int, error) {
	a := &Adoption{Revision: args[0], Input: json.RawMessage(`"3 lines"`), Actor: "rebuild", Effects: map[string]Effect{}}
	most := 0
	for _, w := range args[1:] {
		name, value, _ := strings.Cut(w, "=")
		var err error
		switch name {
		case "cancelled":
			a.Cancelled = true
		case "records":
			most, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	for _, line := range lines {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "quarantine" {
			a.Quarantine = strings.TrimSpace(rest)
			continue
		}
		e, err := parseEffect(strings.Fields(rest))
		if err != nil {
			return nil, 0, err
		}
		a.Effects[name] = e
	}
	return a, most, nil
}

// parseEffect reads what stands of a step: its external id, if it has one, and among the words
//
//	of=revision   which it shows
//	unknown, not-done, foreign
func parseEffect(words []string) (e Effect, err error) {
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "of":
			e.Revision = value
		case "unknown":
			e.Unknown = true
		case "not-done":
			e.NotDone = true
		case "foreign":
			e.Foreign = true
		default:
			if value != "" || e.ExternalID != "" {
				return e, fmt.Errorf("unknown word %q", w)
			}
			e.ExternalID, e.Output = w, output(w)
		}
	}
	return e, nil
}

// lost returns a desk whose ledger was lost.
func lost(t tester, lines string) *desk { t.Helper(); return newDesk(t, lines) }

// told reads an adoption as stories have it.
func told(t tester, head string, lines ...string) *Adoption {
	t.Helper()
	a, _, err := parseAdoption(strings.Fields(head), lines)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const orderLost = `customer idempotent no-undo
invoice find undo
mark-synced idempotent undo pivot
receipt at-most-once
`

// D1: between the records of an adoption nothing is armed, no signal is read, and no other record
// folds.
func TestD1NobodysBeforeItsEnd(t *testing.T) {
	t.Parallel()
	a := told(t, "17", "customer cus_7", "invoice inv_1", "mark-synced not-done", "receipt not-done")
	for n := 1; n < 3; n++ {
		d := lost(t, orderLost)
		if err := d.adopt(a, n); err != nil {
			t.Fatal(err)
		}
		if d.st.Status != saga.Adopting || !d.st.Adopting {
			t.Fatalf("after %d records the work is %s", n, d.st.Status)
		}
		for what, ev := range map[string]Event{
			"a claim": {}, "a fail-over": {Changed: d.now, Unread: true}, "a cancel": {Signal: &Signal{ID: 1, Kind: SignalCancel}},
			"a newer version": d.news("18", 1, false), "the source's cancel": {Signal: &Signal{ID: 1, Kind: SignalCancel, News: News{Revision: "18"}}},
			"a wake": {Signal: &Signal{ID: 1, Kind: SignalWake}}, "what cannot be stored": {Signal: &Signal{ID: 1, Kind: SignalWake}, Invalid: 2},
		} {
			dec, err := Decide(d.spec, d.st, d.event(ev))
			if err != nil || dec.Record != nil || dec.Do.Do != Rest {
				t.Errorf("%s after %d records: %+v, %v", what, n, dec, err)
			}
		}
		for _, r := range []Record{
			{Kind: KindDispatched, Status: saga.Running, Dispatch: &Dispatch{Step: "customer", Direction: saga.Forward, Attempt: 1}}, {Kind: KindNoted, Status: saga.Adopting},
			{Kind: KindRevised, Status: saga.Running, Revision: "18", Body: json.RawMessage(`{"input":1}`)}, {Kind: KindResumed, Status: saga.Adopting},
			{Kind: KindAdopted, Status: saga.Adopting, Dispatch: &Dispatch{Step: "customer", Direction: saga.Forward, Attempt: 1}},
		} {
			r.Seal(order, Salt{}, d.st.Seq, d.st.TailHash, 7)
			if err := d.st.clone().Apply(&r); err == nil {
				t.Errorf("%s (%s) folds between the records of an adoption", r.Kind, r.Status)
			}
		}
	}
	d := begin(t, orderLost)
	r := Record{Kind: KindAdopted, Step: "receipt", Direction: saga.Forward, Status: saga.Running}
	r.Seal(order, Salt{}, d.st.Seq, d.st.TailHash, 7)
	if err := d.st.clone().Apply(&r); err == nil {
		t.Error("a work that was not begun by an adoption adopts")
	}
}

// D2 to D7: what a step is after it was adopted, by what is said of it and by its class, and where
// the work stands.
func TestWhatIsAdopted(t *testing.T) {
	t.Parallel()
	const stands, older, unconfirmed, asked, open, foreign = "done", "older", "unconfirmed", "asked", "open", "foreign"
	is := func(ss *StepState) string {
		switch {
		case ss == nil:
			return open
		case ss.Unconfirmed:
			return unconfirmed
		case ss.Previous != nil:
			return older
		case ss.Forward.NeedsReview != "":
			return foreign
		case ss.Forward.Phase == InDoubt:
			return asked
		default:
			return string(ss.Forward.Phase)
		}
	}
	for class, want := range map[string]map[string]string{ // what is said → what follows
		"idempotent":           {"x_1": stands, "x_1 of=16": older, "unknown": unconfirmed, "not-done": open, "": open, "foreign": foreign},
		"idempotent lookup":    {"x_1": stands, "x_1 of=16": older, "unknown": unconfirmed, "not-done": open, "": asked, "foreign": foreign},
		"keyed=1h":             {"x_1": stands, "x_1 of=16": older, "unknown": unconfirmed, "not-done": open, "": unconfirmed, "foreign": foreign},
		"keyed=1h lookup":      {"x_1": stands, "x_1 of=16": older, "unknown": unconfirmed, "not-done": open, "": asked, "foreign": foreign},
		"find":                 {"x_1": stands, "x_1 of=16": older, "unknown": unconfirmed, "not-done": open, "": asked, "foreign": foreign},
		"find once":            {"x_1": stands, "x_1 of=16": stands, "unknown": unconfirmed, "not-done": open, "": asked, "foreign": foreign},
		"at-most-once lookup":  {"x_1": stands, "x_1 of=16": stands, "unknown": unconfirmed, "not-done": open, "": unconfirmed, "foreign": foreign},
		"at-most-once":         {"x_1": stands, "x_1 of=16": stands, "unknown": unconfirmed, "not-done": open, "": unconfirmed, "foreign": foreign},
		"at-most-once no-undo": {"": unconfirmed},
	} {
		for said, want := range want {
			t.Run(class+" "+said, func(t *testing.T) {
				t.Parallel()
				undo := " undo"
				if strings.Contains(class, "no-undo") {
					undo = " pivot"
				}
				a := told(t, "17")
				if said != "" {
					a = told(t, "17", "x "+said)
				}
				status, reason := saga.Running, saga.Reason("")
				switch want {
				case stands, unconfirmed:
					status = saga.Completed
				case foreign:
					a.Quarantine, status, reason = "it does not match", saga.Review, saga.ReasonInDoubt
				}
				d := lost(t, "x "+class+undo).takeOver(a)
				if got := is(d.st.Step("x")); got != want || d.st.Status != status || d.st.Reason != reason || d.st.Adopting {
					t.Errorf("the step is %s and the work %s %s, want %s, %s %s", got, d.st.Status, d.st.Reason, want, status, reason)
				}
			})
		}
	}
}

// D3: what could not be told is not done again by a revision either, unless repeating it is
// harmless.
func TestD3UnconfirmedStays(t *testing.T) {
	t.Parallel()
	for step, again := range map[string]bool{
		"x idempotent undo": true, "x keyed=1h undo": false, "x find undo": false, "x at-most-once undo": false,
	} {
		d := lost(t, step).takeOver(told(t, "17", "x unknown")).revise("18")
		if got := d.tail().Dispatch != nil; got != again || d.st.Status.Terminal() == again {
			t.Errorf("%s: done again: %v, want %v (%s)", step, got, again, d.st.Status)
		}
	}
}

// D4: what can be asked for is asked for, once it has settled; a step behind one that was not there
// is asked for, too.
func TestD4Asked(t *testing.T) {
	t.Parallel()
	d := lost(t, "a find undo\nb find undo\nc keyed=1h lookup undo").takeOver(told(t, "17")).tick().wants("wait", saga.Running)
	if until := noon.Add(saga.DefaultTimeout + saga.DefaultSettle); !d.last.Do.Until.Equal(until) {
		t.Errorf("asked at %s, want %s", d.last.Do.Until, until)
	}
	d.due().wants("look a forward", saga.Running)
	d.found(KindNotFound).wants("act a forward", saga.Running)
	d.succeed("a_1").wants("look b forward", saga.Running)
	d.found(KindFound, "b_1").wants("look c forward", saga.Running)
	d.found(KindNotFound).wants("act c forward", saga.Running)
	d.succeed("c_1").wants("rest", saga.Completed)
}

// D7: what the source cancelled.
func TestD7Cancelled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines  []string
		status saga.Status
		reason saga.Reason
	}{
		{nil, saga.Compensated, ""},
		{[]string{"invoice not-done", "receipt not-done"}, saga.Compensated, ""},
		{[]string{"receipt unknown"}, saga.Compensated, ""},
		{[]string{"invoice inv_1", "receipt not-done"}, saga.Compensating, ""},
		{[]string{"invoice inv_1", "mark-synced", "receipt not-done"}, saga.Compensating, ""},
		{[]string{"invoice inv_1", "mark-synced", "receipt mail_1"}, saga.Compensating, ""},
		{[]string{"invoice inv_1", "mark-synced"}, saga.Compensating, ""}, // the mail may be out, and needs no undo
		{[]string{"invoice inv_1"}, saga.Compensating, ""},
		{[]string{"receipt mail_1"}, saga.Compensated, ""},
		{[]string{"mark-synced unknown", "receipt not-done"}, saga.Compensating, ""}, // and so may the mark, which can be undone
	} {
		d := lost(t, orderLost).takeOver(told(t, "17 cancelled", c.lines...))
		if d.st.Status != c.status || d.st.Reason != c.reason {
			t.Errorf("%q: %s %s, want %s %s", c.lines, d.st.Status, d.st.Reason, c.status, c.reason)
		}
	}
}

// D7: compensated means that nobody is asked about what nobody can tell, whatever the source says
// again; and a restored object does not send it again.
func TestD7NothingIsOwed(t *testing.T) {
	t.Parallel()
	d := lost(t, orderLost).takeOver(told(t, "17 cancelled")).gone("18")
	if d.st.Status != saga.Compensated {
		t.Fatalf("cancelled once more it is %s %s", d.st.Status, d.st.Reason)
	}
	d.revise("19").succeed("cus_7").succeed("inv_1").succeed("").wants("rest", saga.Completed)
	if r := d.st.Step("receipt"); !r.Unconfirmed || r.Forward.Attempts > 0 {
		t.Errorf("the receipt: %+v", r)
	}
	if d.gone("20"); d.st.Status != saga.Compensating {
		t.Errorf("cancelled behind the mail that may be out: %s %s", d.st.Status, d.st.Reason)
	}
}

// D8: an adoption that was cut off and repeated with what stands by then. A newer version of the
// source begins a revision; what was said before and is not said now stays; what is contradicted is
// corrected.
func TestD8CutOffAndChanged(t *testing.T) {
	t.Parallel()
	d := lost(t, orderLost)
	if err := d.adopt(told(t, "17", "customer cus_7", "invoice inv_1", "mark-synced", "receipt mail_1"), 4); err != nil {
		t.Fatal(err)
	}
	d.takeOver(told(t, "18", "invoice not-done", "mark-synced of=17"))
	if d.st.Revision != "18" || d.st.Status != saga.Running || d.chain[4].Kind != KindRevised || d.chain[4].Status != saga.Adopting {
		t.Fatalf("the work is %s at %s: %+v", d.st.Status, d.st.Revision, d.chain)
	}
	if ss := d.st.Step("customer"); ss.Previous == nil || ss.Previous.ExternalID != "cus_7" {
		t.Errorf("the customer of 17: %+v", ss)
	}
	if ss := d.st.Step("invoice"); ss.Forward.Phase != Ready || ss.Previous != nil {
		t.Errorf("the invoice that is gone: %+v", ss)
	}
	if ss := d.st.Step("receipt"); !ss.Unconfirmed { // it was not recorded before
		t.Errorf("the receipt: %+v", ss)
	}
	d.tick().wants("act customer forward", saga.Running).succeed("cus_7").succeed("inv_2").succeed("").wants("rest", saga.Completed)
}

// D8: an effect that shows a sub-revision brings the work to it, so that the keys of that run are
// not used again.
func TestD8SubRevision(t *testing.T) {
	t.Parallel()
	d := lost(t, orderLost).takeOver(told(t, "17", "customer cus_7", "invoice inv_1 of=17+2", "mark-synced of=17+1", "receipt mail_1"))
	if d.st.Status != saga.Completed || d.st.Revision != "17+2" {
		t.Errorf("the work is %s at %s", d.st.Status, d.st.Revision)
	}
}

// What is wrong with an adoption is said at once, and all of it.
func TestAdoptSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := told(t, "x", "nobody", "invoice unknown foreign", "receipt of=y")
	a.Input = nil
	_, err := Adopt(structure(t, orderLost), &State{ID: order}, a)
	for _, want := range []string{`"x"`, `"nobody"`, "only one can hold", `"y"`, "no input", "Quarantine"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if _, err := Adopt(structure(t, orderLost), &State{ID: order}, told(t, "17", "invoice of=18")); err == nil {
		t.Error("an effect of a version that the source does not have is adopted")
	}
	d := lost(t, orderLost)
	if err := d.adopt(told(t, "17"), 1); err != nil {
		t.Fatal(err)
	}
	next, err := define(order.Saga, 2, orderLost)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Adopt(next, d.st, told(t, "17")); err == nil {
		t.Error("another version of the definition goes on with an adoption")
	}
}

// D9: what is known is not adopted.
func TestD9Known(t *testing.T) {
	t.Parallel()
	for _, d := range []*desk{begin(t, orderLost), lost(t, orderLost).takeOver(told(t, "17"))} {
		if r, err := Adopt(d.spec, d.st, told(t, "18", "invoice inv_9")); r != nil || err != nil {
			t.Errorf("a work that is known: %+v, %v", r, err)
		}
	}
}

// The words of an adoption stand in ledgers, and its summary is read by programs. They never
// change.
func TestAdoptionIsAFormat(t *testing.T) {
	t.Parallel()
	d := lost(t, "invoice find undo\nreceipt at-most-once no-undo").takeOver(told(t, "17", "invoice inv_1"))
	var got []string
	for i := range d.chain {
		r := &d.chain[i]
		got = append(got, strings.TrimSpace(strings.Join([]string{string(r.Kind), r.Step, string(r.ErrorClass), r.ExternalID, string(r.Body), string(r.Status)}, " ")))
	}
	want := []string{`started    "3 lines" adopting`, `adopted invoice  inv_1 {"id":"inv_1"} adopting`, `adopted receipt unknown   completed`}
	if !slices.Equal(got, want) {
		t.Errorf("the records are\n%q\nwant\n%q", got, want)
	}
	s := Summarize(d.spec, d.st)
	const steps = `{"invoice":{"done":true,"status":"done","externalId":"inv_1","attempts":0,"error":"","repeat":"find","evidence":"adopted"},` +
		`"receipt":{"done":true,"status":"done","externalId":"","attempts":0,"error":"","repeat":"at-most-once","evidence":"adopted","unconfirmed":true}}`
	if got := string(dump(t, s.Steps)); got != steps {
		t.Errorf("the steps are\n%s\nwant\n%s", got, steps)
	}
}

// D6: the review is about what is in quarantine, also where an earlier step is asked for; what was
// found there is not ours when a person says so, and ours when a person says that.
func TestD6Quarantine(t *testing.T) {
	t.Parallel()
	const lines = "a find undo\nb find undo\nmail at-most-once pivot"
	start := func() *desk {
		return lost(t, lines).takeOver(told(t, "17", "b b_9 foreign", "mail not-done", "quarantine b_9 is another's"))
	}
	d := start()
	if ss, dir := d.st.Issue(d.spec); ss == nil || ss.Name != "b" || dir != saga.Forward || ss.ExternalID != "b_9" || d.st.Note != "b_9 is another's" {
		t.Errorf("the review is about %+v %s: %s", ss, dir, d.st.Note)
	}
	if next := Next(d.spec, d.st); !strings.Contains(next, `step "b"`) || !strings.Contains(next, "cancel it") {
		t.Errorf("next: %s", next)
	}
	if d.resolution(""); d.st.Step("b").ExternalID != "" {
		t.Errorf("not ours, and still there: %+v", d.st.Step("b"))
	}
	d.due().found(KindFound, "a_1").wants("act b forward", saga.Running)
	if key := StepKey(RootKey(order.Saga, order.Work, "17"), "b", saga.Forward, 1); d.key() != key {
		t.Errorf("done again under %s, want the new key %s", d.key(), key)
	}
	d = start().resolution("b_9").due().found(KindFound, "a_1").wants("act mail forward", saga.Running)
	if ss := d.st.Step("b"); ss.Forward.Phase != Done || ss.ExternalID != "b_9" || ss.Evidence != KindResolved {
		t.Errorf("ours: %+v", ss)
	}
	d = start().cancel().review(saga.ReasonInDoubt).resolution("b_9").wants("look b undo", saga.Compensating)
	d.found(KindFound, "b_9").wants("act b undo", saga.Compensating).succeed("").due().found(KindNotFound).wants("rest", saga.Compensated)
}

// D6: nobody knows what that says which did not match, so the next version is news although it says
// what the input says. The one behind it is compared with that one.
func TestD6News(t *testing.T) {
	t.Parallel()
	d := lost(t, "a idempotent pivot").takeOver(told(t, "17", "a a_9 foreign", "quarantine it says something else")).resolution("a_9").wants("rest", saga.Completed)
	d.same("18").wants("act a forward", saga.Running)
	if d.st.Revision != "18" || d.st.Step("a").Previous == nil {
		t.Errorf("at %s, %+v", d.st.Revision, d.st.Step("a"))
	}
	d.succeed("a_9").same("19").wants("rest", saga.Completed)
	if d.st.Revision != "18" || d.st.NewestRevision != "19" {
		t.Errorf("at %s, heard of %s", d.st.Revision, d.st.NewestRevision)
	}
}

// D6: several that do not match are decided about one after the other, before anything is armed.
func TestD6Several(t *testing.T) {
	t.Parallel()
	d := lost(t, "a find undo\nb find undo\nmail at-most-once pivot").
		takeOver(told(t, "17", "a a_9 foreign", "b b_9 foreign", "mail not-done", "quarantine both are another's"))
	for range 2 {
		if d.tick().review(saga.ReasonInDoubt); slices.ContainsFunc(d.chain, func(r Record) bool { return r.Dispatch != nil }) {
			t.Fatal("something was armed")
		}
		ss, _ := d.st.Issue(d.spec)
		d.resolution(ss.ExternalID)
	}
	d.wants("act mail forward", saga.Running)
}
