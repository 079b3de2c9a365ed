package saga

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// beginAt returns a desk whose work was started for revision 1.
func beginAt(t tester, lines string) *desk {
	t.Helper()
	return newDesk(t, lines).startAt("1")
}

// through completes the revision that is being worked on: every step succeeds, with an id that names it.
func (d *desk) through() *desk {
	d.t.Helper()
	for d.last.Do.Do == Act {
		d.succeed(d.last.Do.Step + "-" + d.st.Revision)
	}
	return d.wants("rest", Completed)
}

// runs checks which revision is being worked on, and which was heard of and waits.
func (d *desk) runs(revision, waits string) *desk {
	d.t.Helper()
	newer := ""
	if d.st.Newer != nil {
		newer = d.st.Newer.Revision
	}
	if d.st.Revision != revision || newer != waits {
		d.t.Fatalf("it runs revision %q and %q waits, want %q and %q", d.st.Revision, newer, revision, waits)
	}
	return d
}

// told is what the step of the latest command is told of an earlier revision.
func (d *desk) told() string {
	d.t.Helper()
	in := d.st.Invocation(d.last.Do)
	if in.Previous == nil {
		return ""
	}
	return in.Previous.ExternalID
}

// "V1: ... What is not newer than the newest heard is noted and changes nothing".
func TestV1NotNewer(t *testing.T) {
	places := map[string]func() *desk{
		"running":     func() *desk { return beginAt(t, orderToInvoice).fail(Unsent) },
		"in doubt":    func() *desk { return beginAt(t, orderToInvoice).succeed("1").fail(Unknown) },
		"in review":   func() *desk { return beginAt(t, "a at-most-once no-undo").fail(Unknown) },
		"going back":  func() *desk { return beginAt(t, "a find undo").cancelAfter(Unknown) },
		"completed":   func() *desk { return beginAt(t, orderToInvoice).through() },
		"compensated": func() *desk { return beginAt(t, "a idempotent undo").fail(Refused) },
	}
	for where, reach := range places {
		t.Run(where, func(t *testing.T) {
			for _, rev := range []string{"1", "0", "", "no revision"} {
				d := reach()
				before, due, note := *d.st, d.st.Due, d.st.Note
				d.revise(rev).noted("not newer than 1")
				d.gone(rev)
				if d.st.Revision != "1" || d.st.Newer != nil || d.st.Heard != "1" {
					t.Errorf("%q: revision %q, heard %q, newer %+v", rev, d.st.Revision, d.st.Heard, d.st.Newer)
				}
				if d.st.Status != before.Status && rev != "" || d.st.Note != note && rev != "" {
					t.Errorf("%q: the work was %s %q and is %s %q", rev, before.Status, note, d.st.Status, d.st.Note)
				}
				if rev != "" && d.st.Due != due {
					t.Errorf("%q moved the due time from %s to %s", rev, due, d.st.Due)
				}
			}
		})
	}
	t.Run("as numbers and as times", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).fail(Unsent).revise("9").runs("9", "").fail(Unsent)
		d.revise("10").runs("10", "").fail(Unsent)
		d.revise("9").noted("not newer than 10")
		d.revise("2026-11-20T10:00:00Z").runs("2026-11-20T10:00:00Z", "").fail(Unsent)
		d.revise("2026-11-20T09:59:59.999Z").noted("not newer").revise("11").noted("not newer")
		d.revise("1/1").runs("1/1", "")
	})
	t.Run("also while one waits", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).succeed("1").fail(Unknown).revise("5").runs("1", "5")
		d.revise("4").noted("not newer than 5").runs("1", "5").revise("5").noted("not newer than 5").runs("1", "5")
	})
}

// "V1: ... Nor does an input that cannot be kept". And one that is as large as an input may be is kept as it is: an
// empty body would read as the source's cancel.
func TestV1InputThatCannotBeKept(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", MaxInput-2) + `"`)
	places := map[string]func() *desk{
		"at a boundary": func() *desk { return beginAt(t, orderToInvoice).through() },
		"in doubt":      func() *desk { return beginAt(t, orderToInvoice).succeed("1").fail(Unknown) },
	}
	for where, reach := range places {
		for what, input := range map[string]json.RawMessage{
			"none": nil, "no JSON": json.RawMessage(`{"lines":`), "too large": append(json.RawMessage(` `), append(large[:len(large)-1:len(large)-1], `x"`...)...),
		} {
			d := reach()
			d.signal(Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 1, Input: input}})
			d.noted("no input that can be kept").runs("1", "")
			if d.revise("2"); d.st.Heard != "2" {
				t.Errorf("%s, %s: the version that was mended is %s", where, what, d.tail().Error)
			}
		}
		d := reach()
		d.signal(Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 1, Input: large}})
		input := d.st.Input
		if d.st.Newer != nil {
			input = d.st.Newer.Input
		}
		if string(input) != string(large) || d.st.Newer != nil && d.st.Newer.Gone || d.tail().BodyDropped {
			t.Errorf("%s: an input of %d bytes is kept as %d", where, len(large), len(input))
		}
	}
}

// "V2: a newer version with the same identity as the one heard before is noted; only what was heard moves on".
func TestV2SaysTheSame(t *testing.T) {
	for where, d := range map[string]*desk{
		"backing off": beginAt(t, orderToInvoice).fail(Unsent),
		"in doubt":    beginAt(t, orderToInvoice).succeed("1").fail(Unknown),
		"in review":   beginAt(t, "a at-most-once no-undo").fail(Unknown),
		"completed":   beginAt(t, orderToInvoice).through(),
	} {
		status, due := d.st.Status, d.st.Due
		d.same("3").noted("says the same").runs("1", "")
		if d.st.Status != status || d.st.Due != due || d.st.Heard != "3" {
			t.Errorf("%s: %s until %s, heard %q", where, d.st.Status, d.st.Due, d.st.Heard)
		}
		d.revise("2").noted("not newer than 3")
	}
	t.Run("as the one that waits", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).succeed("1").fail(Unknown).revise("2").same("3").noted("says the same").runs("1", "3")
		d.due().found(KindFound, "inv").runs("3", "")
		if string(d.st.Input) != `"as of 2"` {
			t.Errorf("it runs on %s", d.st.Input)
		}
	})
}

// "V2: ... Not so when the work went back meanwhile, or the source had cancelled it: then it runs again".
func TestV2RestoredAsItWas(t *testing.T) {
	beginAt(t, "a idempotent undo").fail(Refused).same("2").runs("2", "").wants("act a forward", Running)
	beginAt(t, "a find undo").cancelAfter(Unknown).same("2").runs("1", "2").wants("wait", Compensating)
	d := beginAt(t, orderToInvoice).through().gone("2").review(ReasonConflict)
	d.same("3").runs("3", "").wants("act customer forward", Running)
}

// "V3: a newer version is begun at a step boundary ... It may be running, waiting to repeat what was provably not
// sent, completed, compensated, or in review without a doubt".
func TestV3Boundaries(t *testing.T) {
	const ap = "a idempotent undo attempts=2 give-up=review\np idempotent undo pivot\nr find"
	for where, reach := range map[string]func(*testing.T) *desk{
		"before the first step is armed": func(t *testing.T) *desk { d := newDesk(t, ap); d.busy = true; d.startAt("1"); d.busy = false; return d },
		"between two steps":              func(t *testing.T) *desk { return beginAt(t, ap).without("1") },
		"waiting after not sent":         func(t *testing.T) *desk { return beginAt(t, ap).fail(Unsent) },
		"waiting behind the pivot":       func(t *testing.T) *desk { return beginAt(t, ap).succeed("1").succeed("2").fail(Unsent) },
		"completed":                      func(t *testing.T) *desk { return beginAt(t, ap).through() },
		"compensated":                    func(t *testing.T) *desk { return beginAt(t, ap).succeed("1").fail(Refused).succeed("") },
		"review: given up": func(t *testing.T) *desk {
			return beginAt(t, ap).fail(Unsent).due().fail(Unsent).review(ReasonExhausted)
		},
		"review: behind the pivot": func(t *testing.T) *desk {
			return beginAt(t, ap).succeed("1").succeed("2").fail(Refused).review(ReasonAfterPivot)
		},
		"review: at fault": func(t *testing.T) *desk { return beginAt(t, ap).fail(Fault).review(ReasonPoison) },
	} {
		t.Run(where, func(t *testing.T) {
			d := reach(t)
			n := len(d.chain)
			d.revise("2").runs("2", "").wants("act a forward", Running)
			if r := &d.chain[n]; r.Kind != KindRevised || r.Revision != "2" || len(r.Signals) != 1 || d.st.Turned {
				t.Errorf("recorded %+v", r)
			}
			if string(d.st.Input) != `"as of 2"` {
				t.Errorf("it runs on %s", d.st.Input)
			}
		})
	}
}

// "V3: ... nothing is open, in doubt or half-made, and the work is not on its way back". "V4: elsewhere it is heard
// and waits. A later one replaces it. The work goes on as if nothing had been said, to the next boundary".
func TestV4Waits(t *testing.T) {
	const abc = "a idempotent undo\nb find undo\nc idempotent undo pivot\nd at-most-once"
	for _, c := range []struct {
		where string
		reach func(*testing.T) *desk
		on    func(*desk) *desk // to the boundary
	}{
		{"in doubt, to be repeated", func(t *testing.T) *desk { return beginAt(t, abc).fail(Unknown) }, func(d *desk) *desk { return d.due().succeed("1").due() }},
		{"in doubt, to be looked up", func(t *testing.T) *desk { return beginAt(t, abc).succeed("1").fail(Unknown) },
			func(d *desk) *desk { return d.due().found(KindFound, "b1") }},
		{"in doubt, and not there", func(t *testing.T) *desk { return beginAt(t, abc).succeed("1").fail(Unknown) },
			func(d *desk) *desk { return d.due().found(KindNotFound) }},
		{"not sent after a maybe", func(t *testing.T) *desk { return beginAt(t, abc).fail(Unknown).due().fail(Unsent) }, func(d *desk) *desk { return d.due().succeed("1").due() }},
		{"half-made", func(t *testing.T) *desk {
			d := beginAt(t, abc).succeed("1").fail(Unknown).due()
			d.busy = true
			return d.found(KindUnfinished, "half")
		}, func(d *desk) *desk { d.busy = false; return d.tick().succeed("b1") }},
		{"review: in doubt", func(t *testing.T) *desk {
			return beginAt(t, abc).succeed("1").succeed("2").succeed("3").fail(Unknown).review(ReasonInDoubt)
		},
			func(d *desk) *desk { return d.verdict("mail") }},
		{"review: two at the destination", func(t *testing.T) *desk {
			return beginAt(t, abc).succeed("1").fail(Unknown).due().found(KindSeveral, "b1", "b2").review(ReasonInDoubt)
		}, func(d *desk) *desk { return d.verdict("b1") }},
	} {
		t.Run(c.where, func(t *testing.T) {
			d, calm := c.reach(t), c.reach(t)
			d.revise("2").runs("1", "2")
			if r := d.tail(); r.Kind != KindHeard || len(r.Signals) != 1 {
				t.Errorf("recorded %+v", r)
			}
			d.revise("3").runs("1", "3")
			if d.st.Status != calm.st.Status || d.st.Reason != calm.st.Reason || d.st.Due != calm.st.Due || d.st.Note != calm.st.Note || d.last.Do != calm.last.Do {
				t.Errorf("the work is %s %s until %s (%q), and %s; without the news it is %s %s until %s (%q), and %s", d.st.Status, d.st.Reason, d.st.Due, d.st.Note,
					d.last.Do, calm.st.Status, calm.st.Reason, calm.st.Due, calm.st.Note, calm.last.Do)
			}
			c.on(d).runs("3", "").wants("act a forward", Running)
			i := slices.IndexFunc(d.chain, func(r Record) bool { return r.Kind == KindRevised })
			if r := &d.chain[i]; string(d.st.Input) != `"as of 3"` || len(r.Signals) != 0 || d.chain[i-1].Arm != nil {
				t.Errorf("it runs on %s by %+v", d.st.Input, r)
			}
		})
	}
}

// "V4: ... a work on its way back, until everything is undone. There it begins, by a record of its own".
func TestV4OnTheWayBack(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo").succeed("a1").cancelAfter(Unknown).revise("2").runs("1", "2").wants("wait", Compensating)
	d.due().found(KindFound, "b1").wants("act b undo", Compensating).succeed("").wants("act a undo", Compensating)
	d.succeed("").runs("2", "").wants("act a forward", Running)
	if before := d.chain[len(d.chain)-2]; before.Kind != KindDone || before.Direction != Undo || before.Status != Compensating || d.told() != "" {
		t.Errorf("the last undo is recorded as %+v, and the step is told %q", before, d.told())
	}
	// an undo that nobody could do, and then somebody did
	d = beginAt(t, "a idempotent undo\nb find undo").succeed("a1").fail(Refused).fail(Refused).review(ReasonUndoFailed)
	note := d.st.Note
	d.revise("2").runs("1", "2").review(ReasonUndoFailed)
	if d.st.Note != note {
		t.Errorf("the review was about %q and is now about %q", note, d.st.Note)
	}
	d.verdict("by hand").runs("2", "").wants("act a forward", Running)
}

// "V5: a step that needs no undo can be left in doubt when everything else is undone. Before the newer version begins
// it is looked up, or a person asked, unless it is Idempotent: else it would be made a second time".
func TestV5LeftInDoubt(t *testing.T) {
	t.Run("looked up when it has settled", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(Unknown).wants("rest", Compensated)
		d.revise("2").runs("1", "2").wants("wait until 12:01:00", Compensating).due().wants("look a forward", Compensating)
		d.found(KindFound, "a1").runs("2", "").wants("act a forward", Running)
		if d.told() != "a1" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("and not there", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(Unknown).revise("2").due().found(KindNotFound).wants("act a forward", Running)
		if d.told() != "" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("half-made", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(Unknown).revise("2").due().found(KindUnfinished, "half").wants("act a forward", Running)
		if d.told() != "half" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("nobody can tell", func(t *testing.T) {
		d := beginAt(t, "a at-most-once no-undo").cancelAfter(Unknown).verdictIs(Compensated)
		d.revise("2").runs("1", "2").review(ReasonInDoubt).verdict("mail").runs("2", "").wants("rest", Completed)
		d = beginAt(t, "a at-most-once no-undo").cancelAfter(Unknown).revise("2").review(ReasonInDoubt)
		d.verdict("").runs("2", "").wants("wait", Retrying).due().wants("act a forward", Running)
	})
	t.Run("two of them", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(Unknown).revise("2").due().found(KindSeveral, "a1", "a2").review(ReasonInDoubt)
		if d.verdict("a2").wants("act a forward", Running); d.told() != "a2" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("a key of the earlier revision is of no use", func(t *testing.T) {
		beginAt(t, "a keyed=24h no-undo").cancelAfter(Unknown).revise("2").review(ReasonInDoubt)
	})
	t.Run("a late answer ends it", func(t *testing.T) {
		d := beginAt(t, "a find no-undo\nb find undo").cancelAfter(Unknown).revise("2").late("a", "a1").runs("2", "")
		if d.wants("wait", Retrying); d.st.Step("a").Previous == nil {
			t.Error("what was learned late is forgotten")
		}
	})
	t.Run("repeating it is harmless", func(t *testing.T) {
		beginAt(t, "a idempotent no-undo").cancelAfter(Unknown).revise("2").runs("2", "").wants("wait until 12:01:00", Retrying)
	})
}

// verdictIs checks the status alone.
func (d *desk) verdictIs(s Status) *desk {
	d.t.Helper()
	if d.st.Status != s {
		d.t.Fatalf("the work is %s, want %s", d.st.Status, s)
	}
	return d
}

// "V6: a revision begins at the first step, with a fresh policy, under keys of its own (F24) and with the newest
// version of the definition that was heard of".
func TestV6BeginsAnew(t *testing.T) {
	d := beginAt(t, "a idempotent undo attempts=2\nb idempotent undo attempts=2 give-up=review").succeed("1").fail(Unsent).due().fail(Unsent).review(ReasonExhausted)
	d.now = d.now.Add(48 * time.Hour) // longer than the policy's clock runs
	old := []string{d.st.Step("a").Forward.Key, d.st.Step("b").Forward.Key}
	d.revise("2").wants("act a forward", Running)
	if want := StepKey(RootKey(order.Saga, order.Work, "2"), "a", Forward, 0); d.key() != want || slices.Contains(old, d.key()) {
		t.Errorf("armed under %s, want %s", d.key(), want)
	}
	d.succeed("1").wants("act b forward", Running)
	if want := StepKey(RootKey(order.Saga, order.Work, "2"), "b", Forward, 0); d.key() != want {
		t.Errorf("armed under %s, want %s", d.key(), want)
	}
	d.fail(Unsent).wants("wait", Retrying).due().fail(Unsent).review(ReasonExhausted) // two tries of its own
}

// "V6": another version of the definition takes over with the record that begins the revision, and never an older one.
func TestV6DefinitionVersion(t *testing.T) {
	v2, err := define(order.Saga, 2, "a idempotent undo\nx find undo\nb find undo")
	if err != nil {
		t.Fatal(err)
	}
	d := beginAt(t, "a idempotent undo\nb find undo").through()
	d.next = v2
	n := len(d.chain)
	d.feed(d.news("2", 2, false)).wants("act a forward", Running)
	if r := d.chain[n]; r.Kind != KindRevised || r.Version != 2 || r.Arm != nil || d.st.Version != 2 {
		t.Errorf("recorded %+v", r)
	}
	d.succeed("a2").wants("act x forward", Running)
	if d.told() != "" {
		t.Errorf("a step that is new is told %q", d.told())
	}
	d.succeed("x2").wants("act b forward", Running)
	if d.told() != "b-1" {
		t.Errorf("b is told %q", d.told())
	}
	t.Run("C1: undone in the order of the definition", func(t *testing.T) {
		d.fail(Refused).wants("act b undo", Compensating).succeed("").wants("act x undo", Compensating).succeed("").wants("act a undo", Compensating)
		d.succeed("").wants("rest", Compensated)
	})
	t.Run("never an older one", func(t *testing.T) {
		d.feed(d.news("3", 1, false)).runs("3", "")
		if d.st.Version != 2 {
			t.Errorf("version %d", d.st.Version)
		}
	})
	t.Run("heard first", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo\nb find undo").fail(Unknown)
		d.next = v2
		d.feed(d.news("2", 2, false)).runs("1", "2").due().succeed("1")
		if d.runs("2", ""); d.st.Version != 2 {
			t.Errorf("version %d", d.st.Version)
		}
	})
	t.Run("C1: a step that is not there any more is the last, and a person's", func(t *testing.T) {
		v3, err := define(order.Saga, 3, "a idempotent undo\nc find undo")
		if err != nil {
			t.Fatal(err)
		}
		d := beginAt(t, "a idempotent undo\nb find undo").through()
		d.next = v3
		d.feed(d.news("2", 3, false)).succeed("a2").fail(Refused).wants("act a undo", Compensating).succeed("").review(ReasonAfterPivot)
	})
}

// "V7: each step is told what an earlier revision left at its destination until it is done anew or undone".
func TestV7Previous(t *testing.T) {
	d := beginAt(t, orderToInvoice).through().revise("2")
	for _, step := range []string{"customer", "invoice", "mark-synced"} {
		d.wants("act "+step+" forward", Running)
		in := d.st.Invocation(d.last.Do)
		if in.Previous == nil || in.Previous.ExternalID != step+"-1" || string(in.Previous.Output) != string(output(step+"-1")) {
			t.Errorf("%s is told %+v", step, in.Previous)
		}
		if _, done := in.Results[step]; done || in.Revision != "2" {
			t.Errorf("%s runs for revision %s, with results %+v", step, in.Revision, in.Results)
		}
		d.fail(Unsent).due() // every attempt is told the same
		if d.told() != step+"-1" {
			t.Errorf("%s is told %q the second time", step, d.told())
		}
		d.succeed(step + "-2")
		if ss := d.st.Step(step); ss.Previous != nil || ss.ExternalID != step+"-2" {
			t.Errorf("%s is %+v", step, ss)
		}
	}
	t.Run("over a revision that did not come so far", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).through().revise("2").succeed("c2").fail(Unsent).revise("3").succeed("c3")
		if d.wants("act invoice forward", Running); d.told() != "invoice-1" {
			t.Errorf("the invoice is told %q", d.told())
		}
	})
	t.Run("an update need not say again what it updated", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).through().revise("2").succeed("c2").succeed("")
		if got := d.st.Step("invoice").ExternalID; got != "invoice-1" {
			t.Errorf("the invoice is %q", got)
		}
	})
	t.Run("not after an undo", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").succeed("a1").fail(Refused).succeed("").verdictIs(Compensated)
		if d.revise("2").wants("act a forward", Running); d.told() != "" {
			t.Errorf("what was undone is told: %q", d.told())
		}
	})
	t.Run("also after the way back, of what needs no undo", func(t *testing.T) {
		d := beginAt(t, "a find no-undo\nb find undo").succeed("a1").fail(Refused).verdictIs(Compensated)
		if d.revise("2").wants("act a forward", Running); d.told() != "a1" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("a lookup is told, too, and what it does not find still stands", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").succeed("a1").succeed("b1").revise("2").fail(Unknown).due().wants("look a forward", Running)
		if d.told() != "a1" {
			t.Errorf("the lookup is told %q", d.told())
		}
		if d.found(KindNotFound).wants("act a forward", Running); d.told() != "a1" {
			t.Errorf("the next attempt is told %q", d.told())
		}
	})
}

// "V8: no step is armed before every attempt of earlier revisions on it, forward or undo, has settled".
func TestV8SettlesFirst(t *testing.T) {
	const a = "a idempotent undo timeout=10s settle=1m\nb find undo"
	t.Run("done by a later attempt", func(t *testing.T) {
		d := beginAt(t, a).fail(Unknown).due().succeed("1").fail(Unsent)
		d.revise("2").runs("2", "").wants("wait until 12:01:10", Retrying)
		d.lag = time.Second
		d.now = noon.Add(70 * time.Second)
		d.tick().wants("wait until 12:01:10", Retrying).wait(time.Second).wants("act a forward", Running)
	})
	t.Run("an undo that may still arrive", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo timeout=10s settle=1m\nb find undo").succeed("1").fail(Refused).wants("act a undo", Compensating)
		d.fail(Unknown).due().succeed("").wants("rest", Compensated)
		d.revise("2").wants("wait until 12:01:10", Retrying).due().wants("act a forward", Running)
	})
	t.Run("of two revisions back", func(t *testing.T) {
		d := beginAt(t, a).fail(Unknown).due().succeed("1").fail(Unsent).revise("2").revise("3").runs("3", "")
		d.wants("wait until 12:01:10", Retrying)
	})
	t.Run("a person's word is older than the revision", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo timeout=10s settle=1m attempts=1 give-up=review").fail(Unknown).review(ReasonExhausted).revise("2").runs("1", "2")
		d.verdict("").runs("2", "").wants("wait until 12:01:10", Retrying)
	})
	t.Run("all answered", func(t *testing.T) {
		beginAt(t, a).fail(Unsent).due().succeed("1").fail(Unsent).revise("2").wants("act a forward", Running)
	})
}

// "V8: ... Attempts are counted on over revisions, and a late answer names its key, so none is credited to another
// revision".
func TestV8AttemptsCountOn(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo").fail(Unknown).due().succeed("a1").fail(Unsent).revise("2").due()
	if got := d.armed().Attempt; got != 3 {
		t.Fatalf("attempt %d, want 3", got)
	}
	d.fail(Unknown).late("a", "a9").noted("earlier revision").wants("wait", Retrying)
	if d.st.Step("a").Forward.Phase != InDoubt {
		t.Error("an answer of revision 1 closed the step of revision 2")
	}
	d.signal(Signal{Kind: SignalLate, Verdict: Verdict{Step: "a", Direction: Forward, Attempt: 3, Happened: true, ExternalID: "a2"}})
	if ss := d.st.Step("a"); ss.Forward.Phase != Done || ss.ExternalID != "a2" {
		t.Errorf("its own late answer does not: %+v", ss)
	}
	t.Run("undos, too", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo\nb find undo").succeed("1").fail(Refused).succeed("").revise("2").succeed("2").fail(Refused)
		if d.wants("act a undo", Compensating); d.armed().Attempt != 2 || d.armed().Key != StepKey(RootKey(order.Saga, order.Work, "2"), "a", Undo, 0) {
			t.Errorf("armed %+v", d.armed())
		}
	})
}

// "V9: a step that is AtMostOnce, or says Once, and is done stays done. EachRevision opts out".
func TestV9DoneOncePerWork(t *testing.T) {
	const steps = "a idempotent once undo\nb find undo\nmail at-most-once no-undo\nletter at-most-once each no-undo"
	d := beginAt(t, steps).through().revise("2")
	d.wants("act b forward", Running).succeed("b2").wants("act letter forward", Running)
	if d.told() != "letter-1" {
		t.Errorf("the letter is told %q", d.told())
	}
	d.succeed("l2").wants("rest", Completed)
	if ss := d.st.Step("mail"); ss.ExternalID != "mail-1" || ss.Forward.Attempts != 1 || ss.Previous != nil {
		t.Errorf("the mail is %+v", ss)
	}
	t.Run("what is not done is done", func(t *testing.T) {
		d := beginAt(t, "b find undo\nmail at-most-once no-undo").succeed("b1").fail(Unsent).revise("2").succeed("b2").wants("act mail forward", Running)
		d.succeed("m2").revise("3").succeed("b3").wants("rest", Completed)
	})
	t.Run("its result is there for the steps behind it", func(t *testing.T) {
		d := beginAt(t, "a idempotent once undo\nb find undo").through().revise("2").wants("act b forward", Running)
		if r, ok := d.st.Invocation(d.last.Do).Results["a"]; !ok || r.ExternalID != "a-1" {
			t.Errorf("b finds %+v", r)
		}
	})
	t.Run("not when it was undone", func(t *testing.T) {
		beginAt(t, "a idempotent once undo\nb find undo").succeed("a1").fail(Refused).succeed("").verdictIs(Compensated).
			revise("2").wants("act a forward", Running)
	})
}

// "V10: when an earlier revision passed the pivot, what is refused or given up goes to review and never back".
func TestV10PivotStands(t *testing.T) {
	const steps = "a idempotent undo attempts=2\np idempotent undo attempts=2 pivot\nr find"
	for _, step := range []string{"a", "p"} {
		at := func(t *testing.T) *desk {
			t.Helper()
			d := beginAt(t, steps).through().revise("2")
			if step == "p" {
				d.succeed("a2")
			}
			return d.wants("act "+step+" forward", Running)
		}
		t.Run(step+" refused", func(t *testing.T) { at(t).fail(Refused).review(ReasonAfterPivot) })
		t.Run(step+" refused after a maybe", func(t *testing.T) { at(t).fail(Unknown).due().fail(Refused).review(ReasonAfterPivot) })
		t.Run(step+" given up", func(t *testing.T) { at(t).fail(Unsent).due().fail(Unsent).review(ReasonExhausted) })
		t.Run(step+" cancelled by a person", func(t *testing.T) { at(t).fail(Unsent).cancel().noted("too late").wants("wait", Retrying) })
		t.Run(step+" and a person says it was mended", func(t *testing.T) {
			d := at(t).fail(Refused).verdict("by hand")
			if d.wants(map[string]string{"a": "act p forward", "p": "act r forward"}[step], Running); len(d.undone()) > 0 {
				t.Errorf("undone: %v", d.undone())
			}
		})
	}
	// an earlier revision that did not come so far does not count
	beginAt(t, steps).succeed("a1").fail(Unsent).revise("2").fail(Refused).wants("act a undo", Compensating)
}

// "V11: the way back owes an undo to what this revision made and to what an earlier one left standing (C2)".
func TestV11UndoesAllRevisions(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo\nc find undo\nd find no-undo").through().revise("2").succeed("a2").fail(Refused)
	for _, want := range []string{"c-1", "b-1", "a2"} {
		if d.last.Do.Do != Act || d.last.Do.Direction != Undo {
			t.Fatalf("the machine says %s, want an undo of %s", d.last.Do, want)
		}
		in := d.st.Invocation(d.last.Do)
		if in.Undoing == nil || in.Undoing.ExternalID != want {
			t.Errorf("the undo of %s gets %+v, want %s", in.Step, in.Undoing, want)
		}
		d.succeed("")
	}
	d.wants("rest", Compensated)
	t.Run("an update in doubt", func(t *testing.T) {
		d := beginAt(t, "a find undo").through().revise("2").cancelAfter(Unknown).due().found(KindNotFound).wants("act a undo", Compensating)
		if in := d.st.Invocation(d.last.Do); in.Undoing == nil || in.Undoing.ExternalID != "a-1" {
			t.Errorf("the undo gets %+v", in.Undoing)
		}
	})
	t.Run("not twice", func(t *testing.T) {
		d := beginAt(t, "a find undo\nb find undo").succeed("a1").fail(Refused).succeed("").revise("2").fail(Refused).wants("rest", Compensated)
		if len(d.undone()) != 1 {
			t.Errorf("undone: %v", d.undone())
		}
	})
}

// "F17: except for AtMostOnce: there a lookup is evidence and never a licence to send again", nor is it one for a
// newer revision that begins after the way back: a person says whether it stands.
func TestF17HoldsOverRevisions(t *testing.T) {
	for id, next := range map[string]string{"mail_1": "slot p forward", "": "slot m forward"} {
		d := begin(t, "a idempotent undo\nm at-most-once lookup no-undo\np idempotent undo pivot").succeed("1").fail(Unknown)
		d.cancel()
		d.succeed("1") // compensated, and m is left in doubt
		d.signal(Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 1, Input: json.RawMessage(`"x"`)}})
		d.due()
		d.found(KindNotFound).review(ReasonInDoubt)
		d.verdict(id)
		for range 5 {
			if d.last.Do.String() == next || d.st.Status.Terminal() {
				break
			}
			switch d.last.Do.Do {
			case Act:
				if d.last.Do.Step != "a" {
					next = d.last.Do.String()
				} else {
					d.succeed("1")
				}
			case Wait:
				d.due()
			default:
				d.tick()
			}
		}
		if got := d.last.Do.Step; id != "" && got != "p" || id == "" && got != "m" {
			t.Errorf("after the verdict %q comes step %q", id, got)
		}
	}
}
