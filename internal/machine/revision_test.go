package machine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// beginAt returns a desk whose work was started for revision 1.
func beginAt(t tester, lines string) *desk {
	t.Helper()
	return newDesk(t, lines).startAt("1")
}

// through completes the revision that is being worked on: every step succeeds, with an id that
// names it.
func (d *desk) through() *desk {
	d.t.Helper()
	for d.last.Do.Do == Act {
		d.succeed(d.last.Do.Step + "-" + d.st.Revision)
	}
	return d.wants("rest", saga.Completed)
}

// runs checks which revision is being worked on, and which was heard of and waits.
func (d *desk) runs(revision, waits string) *desk {
	d.t.Helper()
	newer := ""
	if d.st.PendingRevision != nil {
		newer = d.st.PendingRevision.Revision
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
		"running":     func() *desk { return beginAt(t, orderToInvoice).fail(saga.Unsent) },
		"in doubt":    func() *desk { return beginAt(t, orderToInvoice).succeed("1").fail(saga.Unknown) },
		"in review":   func() *desk { return beginAt(t, "a at-most-once no-undo").fail(saga.Unknown) },
		"going back":  func() *desk { return beginAt(t, "a find undo").cancelAfter(saga.Unknown) },
		"completed":   func() *desk { return beginAt(t, orderToInvoice).through() },
		"compensated": func() *desk { return beginAt(t, "a idempotent undo").fail(saga.Refused) },
	}
	for where, reach := range places {
		t.Run(where, func(t *testing.T) {
			for _, rev := range []string{"1", "0", "", "no revision"} {
				d := reach()
				before, due, note := *d.st, d.st.Due, d.st.Note
				d.revise(rev).noted("not newer than 1")
				d.gone(rev)
				if d.st.Revision != "1" || d.st.PendingRevision != nil || d.st.NewestRevision != "1" {
					t.Errorf("%q: revision %q, heard %q, newer %+v", rev, d.st.Revision, d.st.NewestRevision, d.st.PendingRevision)
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
		d := beginAt(t, orderToInvoice).fail(saga.Unsent).revise("9").runs("9", "").fail(saga.Unsent)
		d.revise("10").runs("10", "").fail(saga.Unsent)
		d.revise("9").noted("not newer than 10")
		d.revise("2026-11-20T10:00:00Z").runs("2026-11-20T10:00:00Z", "").fail(saga.Unsent)
		d.revise("2026-11-20T09:59:59.999Z").noted("not newer").revise("11").noted("not newer")
		d.revise("1/1").runs("1/1", "")
	})
	t.Run("also while one waits", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).succeed("1").fail(saga.Unknown).revise("5").runs("1", "5")
		d.revise("4").noted("not newer than 5").runs("1", "5").revise("5").noted("not newer than 5").runs("1", "5")
	})
}

// "V1: ... Nor does an input that cannot be kept". And one that is as large as an input may be is
// kept as it is: an empty body would read as the source's cancel.
func TestV1InputThatCannotBeKept(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", program.MaxInput-2) + `"`)
	places := map[string]func() *desk{
		"at a boundary": func() *desk { return beginAt(t, orderToInvoice).through() },
		"in doubt":      func() *desk { return beginAt(t, orderToInvoice).succeed("1").fail(saga.Unknown) },
	}
	for where, reach := range places {
		for what, input := range map[string]json.RawMessage{
			"none": nil, "no JSON": json.RawMessage(`{"lines":`), "too large": append(json.RawMessage(` `), append(large[:len(large)-1:len(large)-1], `x"`...)...),
		} {
			d := reach()
			d.signal(Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 1, Input: input}})
			d.noted("no input that can be kept").runs("1", "")
			if d.revise("2"); d.st.NewestRevision != "2" {
				t.Errorf("%s, %s: the version that was mended is %s", where, what, d.tail().Said())
			}
		}
		d := reach()
		d.signal(Signal{Kind: SignalRevise, News: News{Revision: "2", Version: 1, Input: large}})
		input := d.st.Input
		if d.st.PendingRevision != nil {
			input = d.st.PendingRevision.Input
		}
		if string(input) != string(large) || d.st.PendingRevision != nil && d.st.PendingRevision.Withdrawn || d.tail().BodyDropped {
			t.Errorf("%s: an input of %d bytes is kept as %d", where, len(large), len(input))
		}
	}
}

// "V2: a newer version with the same identity as the one heard before is noted; only what was heard
// moves on".
func TestV2SaysTheSame(t *testing.T) {
	for where, d := range map[string]*desk{
		"backing off": beginAt(t, orderToInvoice).fail(saga.Unsent),
		"in doubt":    beginAt(t, orderToInvoice).succeed("1").fail(saga.Unknown),
		"in review":   beginAt(t, "a at-most-once no-undo").fail(saga.Unknown),
		"completed":   beginAt(t, orderToInvoice).through(),
	} {
		status, due := d.st.Status, d.st.Due
		d.same("3").noted("says the same").runs("1", "")
		if d.st.Status != status || d.st.Due != due || d.st.NewestRevision != "3" {
			t.Errorf("%s: %s until %s, heard %q", where, d.st.Status, d.st.Due, d.st.NewestRevision)
		}
		d.revise("2").noted("not newer than 3")
	}
	t.Run("as the one that waits", func(t *testing.T) {
		d := beginAt(t, orderToInvoice).succeed("1").fail(saga.Unknown).revise("2").same("3").noted("says the same").runs("1", "3")
		d.due().found(KindFound, "inv").runs("3", "")
		if string(d.st.Input) != `"as of 2"` {
			t.Errorf("it runs on %s", d.st.Input)
		}
	})
}

// "V2: ... Not so when the work went back meanwhile, or the source had cancelled it: then it runs
// again".
func TestV2RestoredAsItWas(t *testing.T) {
	beginAt(t, "a idempotent undo").fail(saga.Refused).same("2").runs("2", "").wants("act a forward", saga.Running)
	beginAt(t, "a find undo").cancelAfter(saga.Unknown).same("2").runs("1", "2").wants("wait", saga.Compensating)
	d := outgrown(t, mailLast, withoutMail).through().gone("3").review(saga.ReasonConflict)
	d.same("4").runs("4", "").wants("act customer forward", saga.Running)
}

// "V3: a newer version is begun at a step boundary ... It may be running, waiting to repeat what
// was provably not sent, completed, compensated, or in review without a doubt".
func TestV3Boundaries(t *testing.T) {
	const ap = "a idempotent undo attempts=2\np idempotent undo pivot\nr find"
	for where, reach := range map[string]func(tester) *desk{
		"before the first step is armed": func(t tester) *desk { d := newDesk(t, ap); d.busy = true; d.startAt("1"); d.busy = false; return d },
		"between two steps":              func(t tester) *desk { return beginAt(t, ap).without("1") },
		"waiting after not sent":         func(t tester) *desk { return beginAt(t, ap).fail(saga.Unsent) },
		"waiting behind the pivot":       func(t tester) *desk { return beginAt(t, ap).succeed("1").succeed("2").fail(saga.Unsent) },
		"completed":                      func(t tester) *desk { return beginAt(t, ap).through() },
		"compensated":                    func(t tester) *desk { return beginAt(t, ap).succeed("1").fail(saga.Refused).succeed("") },
		"review: given up": func(t tester) *desk {
			return beginAt(t, ap).fail(saga.Unsent).wait(longest).fail(saga.Unsent).review(saga.ReasonExhausted)
		},
		"review: behind the pivot": func(t tester) *desk {
			return beginAt(t, ap).succeed("1").succeed("2").fail(saga.Refused).review(saga.ReasonAfterPivot)
		},
		"review: at fault": func(t tester) *desk { return beginAt(t, ap).fail(saga.Fault).review(saga.ReasonPoison) },
	} {
		t.Run(where, func(t *testing.T) {
			d := reach(t)
			n := len(d.chain)
			d.revise("2").runs("2", "").wants("act a forward", saga.Running)
			if r := &d.chain[n]; r.Kind != KindRevised || r.Revision != "2" || len(r.Signals) != 1 || d.st.Compensating {
				t.Errorf("recorded %+v", r)
			}
			if string(d.st.Input) != `"as of 2"` {
				t.Errorf("it runs on %s", d.st.Input)
			}
		})
	}
}

// "V3: ... nothing is open, in doubt or half-made, and the work is not on its way back". "V4:
// elsewhere it is heard and waits. A later one replaces it. The work goes on as if nothing had been
// said, to the next boundary".
func TestV4Waits(t *testing.T) {
	const abc = "a idempotent undo\nb find undo\nc idempotent undo pivot\nd at-most-once"
	for _, c := range []struct {
		where string
		reach func(tester) *desk
		on    func(*desk) *desk // to the boundary
	}{
		{"in doubt, to be repeated", func(t tester) *desk { return beginAt(t, abc).fail(saga.Unknown) }, func(d *desk) *desk { return d.due().succeed("1").due() }},
		{"in doubt, to be looked up", func(t tester) *desk { return beginAt(t, abc).succeed("1").fail(saga.Unknown) },
			func(d *desk) *desk { return d.due().found(KindFound, "b1") }},
		{"in doubt, and not there", func(t tester) *desk { return beginAt(t, abc).succeed("1").fail(saga.Unknown) },
			func(d *desk) *desk { return d.due().found(KindNotFound) }},
		{"not sent after a maybe", func(t tester) *desk { return beginAt(t, abc).fail(saga.Unknown).due().fail(saga.Unsent) }, func(d *desk) *desk { return d.due().succeed("1").due() }},
		{"half-made", func(t tester) *desk {
			d := beginAt(t, abc).succeed("1").fail(saga.Unknown).due()
			d.busy = true
			return d.found(KindUnfinished, "half")
		}, func(d *desk) *desk { d.busy = false; return d.tick().succeed("b1") }},
		{"review: in doubt", func(t tester) *desk {
			return beginAt(t, abc).succeed("1").succeed("2").succeed("3").fail(saga.Unknown).review(saga.ReasonInDoubt)
		},
			func(d *desk) *desk { return d.resolution("mail") }},
		{"review: two at the destination", func(t tester) *desk {
			return beginAt(t, abc).succeed("1").fail(saga.Unknown).due().found(KindSeveral, "b1", "b2").review(saga.ReasonInDoubt)
		}, func(d *desk) *desk { return d.resolution("b1") }},
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
			c.on(d).runs("3", "").wants("act a forward", saga.Running)
			i := slices.IndexFunc(d.chain, func(r Record) bool { return r.Kind == KindRevised })
			if r := &d.chain[i]; string(d.st.Input) != `"as of 3"` || len(r.Signals) != 0 || d.chain[i-1].Dispatch != nil {
				t.Errorf("it runs on %s by %+v", d.st.Input, r)
			}
		})
	}
}

// A step that was undone and is done again for a newer version is done, in the summary too: the
// undo was of the version before.
func TestASummaryForgetsTheUndoOfAnEarlierVersion(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb idempotent").succeed("a1").fail(saga.Refused).succeed("").wants("rest", saga.Compensated)
	if s := Summarize(d.spec, d.st).Steps["a"]; s.Status != "undone" || s.Done || s.Undo == nil || !s.Undo.Done {
		t.Errorf("undone, it is %+v", s)
	}
	d.revise("2").runs("2", "").succeed("a2").succeed("b2").wants("rest", saga.Completed)
	if s := Summarize(d.spec, d.st).Steps["a"]; s.Status != "done" || !s.Done || s.Undo != nil {
		t.Errorf("done again, it is %+v", s)
	}
}

// Past the pivot a cancel would be refused, so it is not what a work that tries in vain is said to
// take.
func TestASummaryOffersNoCancelPastThePivot(t *testing.T) {
	d := begin(t, "a idempotent undo\nb idempotent no-undo pivot\nc idempotent no-undo").succeed("a1").fail(saga.Unsent)
	if next := Summarize(d.spec, d.st).Next; d.st.Status != saga.Retrying || !strings.Contains(next, "cancel it") {
		t.Errorf("in front of the pivot it is %s: %s", d.st.Status, next)
	}
	d.due().succeed("b1").fail(saga.Unsent)
	if next := Summarize(d.spec, d.st).Next; d.st.Status != saga.Retrying || strings.Contains(next, "cancel it") || !strings.Contains(next, "pause it") {
		t.Errorf("behind the pivot it is %s: %s", d.st.Status, next)
	}
}

// "V4: ... a work on its way back, until everything is undone. There it begins, by a record of its
// own".
func TestV4OnTheWayBack(t *testing.T) {
	d := beginAt(t, "a idempotent undo\nb find undo").succeed("a1").cancelAfter(saga.Unknown).revise("2").runs("1", "2").wants("wait", saga.Compensating)
	d.due().found(KindFound, "b1").wants("act b undo", saga.Compensating).succeed("").wants("act a undo", saga.Compensating)
	d.succeed("").runs("2", "").wants("act a forward", saga.Running)
	if before := d.chain[len(d.chain)-2]; before.Kind != KindDone || before.Direction != saga.Undo || before.Status != saga.Compensating || d.told() != "" {
		t.Errorf("the last undo is recorded as %+v, and the step is told %q", before, d.told())
	}
	// an undo that nobody could do, and then somebody did
	d = beginAt(t, "a idempotent undo\nb find undo").succeed("a1").fail(saga.Refused).fail(saga.Refused).review(saga.ReasonUndoFailed)
	note := d.st.Note
	d.revise("2").runs("1", "2").review(saga.ReasonUndoFailed)
	if d.st.Note != note {
		t.Errorf("the review was about %q and is now about %q", note, d.st.Note)
	}
	d.resolution("by hand").runs("2", "").wants("act a forward", saga.Running)
}

// "V5: a step that needs no undo can be left in doubt when everything else is undone. Before the
// newer version begins it is looked up, or a person asked, unless it is Idempotent: else it would
// be made a second time".
func TestV5LeftInDoubt(t *testing.T) {
	t.Run("looked up when it has settled", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(saga.Unknown).wants("rest", saga.Compensated)
		d.revise("2").runs("1", "2").wants("wait until 12:01:00", saga.Compensating).due().wants("look a forward", saga.Compensating)
		d.found(KindFound, "a1").runs("2", "").wants("act a forward", saga.Running)
		if d.told() != "a1" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("and not there", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(saga.Unknown).revise("2").due().found(KindNotFound).wants("act a forward", saga.Running)
		if d.told() != "" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("half-made", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(saga.Unknown).revise("2").due().found(KindUnfinished, "half").wants("act a forward", saga.Running)
		if d.told() != "half" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("nobody can tell", func(t *testing.T) {
		d := beginAt(t, "a at-most-once no-undo").cancelAfter(saga.Unknown).resolutionIs(saga.Compensated)
		d.revise("2").runs("1", "2").review(saga.ReasonInDoubt).resolution("mail").runs("2", "").wants("rest", saga.Completed)
		d = beginAt(t, "a at-most-once no-undo").cancelAfter(saga.Unknown).revise("2").review(saga.ReasonInDoubt)
		d.resolution("").runs("2", "").wants("wait", saga.Retrying).due().wants("act a forward", saga.Running)
	})
	t.Run("two of them", func(t *testing.T) {
		d := beginAt(t, "a find no-undo").cancelAfter(saga.Unknown).revise("2").due().found(KindSeveral, "a1", "a2").review(saga.ReasonInDoubt)
		if d.resolution("a2").wants("act a forward", saga.Running); d.told() != "a2" {
			t.Errorf("it is told %q", d.told())
		}
	})
	t.Run("a key of the earlier revision is of no use", func(t *testing.T) {
		beginAt(t, "a keyed=24h no-undo").cancelAfter(saga.Unknown).revise("2").review(saga.ReasonInDoubt)
	})
	t.Run("a late answer ends it", func(t *testing.T) {
		d := beginAt(t, "a find no-undo\nb find undo").cancelAfter(saga.Unknown).revise("2").late("a", "a1").runs("2", "")
		if d.wants("wait", saga.Retrying); d.st.Step("a").Previous == nil {
			t.Error("what was learned late is forgotten")
		}
	})
	t.Run("repeating it is harmless", func(t *testing.T) {
		beginAt(t, "a idempotent no-undo").cancelAfter(saga.Unknown).revise("2").runs("2", "").wants("wait until 12:01:00", saga.Retrying)
	})
}

// resolutionIs checks the status alone.
func (d *desk) resolutionIs(s saga.Status) *desk {
	d.t.Helper()
	if d.st.Status != s {
		d.t.Fatalf("the work is %s, want %s", d.st.Status, s)
	}
	return d
}

// "V6: a revision begins at the first step, with a fresh policy, under keys of its own (F24) and
// with the newest version of the definition that was heard of".
func TestV6BeginsAnew(t *testing.T) {
	d := beginAt(t, "a idempotent undo attempts=2\nb idempotent undo attempts=2").succeed("1").fail(saga.Unsent).wait(longest).fail(saga.Unsent).review(saga.ReasonExhausted)
	d.now = d.now.Add(48 * time.Hour) // longer than the policy's clock runs
	old := []string{d.st.Step("a").Forward.Key, d.st.Step("b").Forward.Key}
	d.revise("2").wants("act a forward", saga.Running)
	if want := StepKey(RootKey(order.Saga, order.Work, "2"), "a", saga.Forward, 0); d.key() != want || slices.Contains(old, d.key()) {
		t.Errorf("armed under %s, want %s", d.key(), want)
	}
	d.succeed("1").wants("act b forward", saga.Running)
	if want := StepKey(RootKey(order.Saga, order.Work, "2"), "b", saga.Forward, 0); d.key() != want {
		t.Errorf("armed under %s, want %s", d.key(), want)
	}
	d.fail(saga.Unknown).wants("wait", saga.Retrying).due().fail(saga.Unknown).review(saga.ReasonExhausted) // two tries of its own
}

// "V6": another version of the definition takes over with the record that begins the revision, and
// never an older one.
func TestV6DefinitionVersion(t *testing.T) {
	v2, err := define(order.Saga, 2, "a idempotent undo\nx find undo\nb find undo")
	if err != nil {
		t.Fatal(err)
	}
	d := beginAt(t, "a idempotent undo\nb find undo").through()
	d.next = v2
	n := len(d.chain)
	d.feed(d.news("2", 2, false)).wants("act a forward", saga.Running)
	if r := d.chain[n]; r.Kind != KindRevised || r.Version != 2 || r.Dispatch != nil || d.st.Version != 2 {
		t.Errorf("recorded %+v", r)
	}
	d.succeed("a2").wants("act x forward", saga.Running)
	if d.told() != "" {
		t.Errorf("a step that is new is told %q", d.told())
	}
	d.succeed("x2").wants("act b forward", saga.Running)
	if d.told() != "b-1" {
		t.Errorf("b is told %q", d.told())
	}
	t.Run("C1: undone in the order of the definition", func(t *testing.T) {
		d.fail(saga.Refused).wants("act b undo", saga.Compensating).succeed("").wants("act x undo", saga.Compensating).succeed("").wants("act a undo", saga.Compensating)
		d.succeed("").wants("rest", saga.Compensated)
	})
	t.Run("never an older one", func(t *testing.T) {
		d.feed(d.news("3", 1, false)).runs("3", "")
		if d.st.Version != 2 {
			t.Errorf("version %d", d.st.Version)
		}
	})
	t.Run("heard first", func(t *testing.T) {
		d := beginAt(t, "a idempotent undo\nb find undo").fail(saga.Unknown)
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
		d.feed(d.news("2", 3, false)).succeed("a2").fail(saga.Refused).wants("act a undo", saga.Compensating).succeed("").review(saga.ReasonAfterPivot)
	})
}
