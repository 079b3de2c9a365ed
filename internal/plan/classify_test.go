package plan_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

const key = "shop:order:10492"

var (
	sold    = plan.Fields{"total": "4200", "customer": "cus_7"}
	changed = plan.Fields{"total": "4100", "customer": "cus_7"}
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
)

func wanted(revision string) *plan.Truth {
	return &plan.Truth{Key: key, Revision: revision, Wanted: true, Fields: sold}
}

func cancelled() *plan.Truth { return &plan.Truth{Key: key, Revision: "2"} }

func gone(proven bool) *plan.Truth { return &plan.Truth{Key: key, Proven: proven} }

func doc(id string, f plan.Fields) plan.Document {
	return plan.Document{ID: id, Key: key, Fields: f, Created: monday}
}

func locked(d plan.Document) plan.Document  { d.Locked = true; return d }
func foreign(d plan.Document) plan.Document { d.Foreign = true; return d }
func void(d plan.Document) plan.Document    { d.Void = true; return d }
func touched(d plan.Document) plan.Document { d.Intact = false; return d }
func intact(d plan.Document, revision string) plan.Document {
	d.Revision, d.Intact = revision, true
	return d
}
func late(d plan.Document) plan.Document { d.Created = d.Created.Add(time.Hour); return d }

func done() *plan.Known {
	return &plan.Known{Works: 1, Status: saga.Completed, Revision: "1", Made: "inv_1"}
}

func byHand(k *plan.Known) *plan.Known { k.Revision += "+1"; return k }

func said(k *plan.Known, f plan.Fields) *plan.Known { k.Fields = f; return k }
func stands(s saga.Status) *plan.Known              { return &plan.Known{Works: 1, Status: s, Revision: "1"} }

func docs(ds ...plan.Document) []plan.Document { return ds }

// Each row of the table of classes, and the cases beside them.
func TestClasses(t *testing.T) {
	t.Parallel()
	overdue := stands(saga.Running)
	overdue.Overdue = true
	doubt := stands(saga.Retrying)
	doubt.InDoubt = true
	two := done()
	two.Works = 2
	again := done()
	again.Revision = "1+1"
	review := stands(saga.Review)
	review.Reason = saga.ReasonInDoubt
	for _, c := range []struct {
		name   string
		truth  *plan.Truth
		docs   []plan.Document
		looked int
		known  *plan.Known
		policy plan.Policy
		class  plan.Class
		do     plan.Verb
	}{
		{"in sync", wanted("1"), docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.InSync, plan.Nothing},
		{"in sync at a newer version that changes nothing of ours", wanted("2"), docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.InSync, plan.Nothing},
		{"missing, looked for once", wanted("1"), nil, 1, nil, plan.Policy{}, plan.Missing, plan.Look},
		{"missing", wanted("1"), nil, 2, nil, plan.Policy{}, plan.Missing, plan.Start},
		{"missing beside a void one", wanted("1"), docs(void(doc("inv_0", sold))), 2, nil, plan.Policy{}, plan.Missing, plan.Start},
		{"the ledger is lost", wanted("1"), docs(doc("inv_1", sold)), 0, nil, plan.Policy{}, plan.LedgerLost, plan.Adopt},
		{"adopt, but it differs", wanted("1"), docs(doc("inv_1", changed)), 0, nil, plan.Policy{}, plan.AdoptMismatch, plan.Ask},
		{"the ledger is lost, and the document is as it was at an older version", wanted("2"), docs(intact(doc("inv_1", changed), "1")), 0, nil, plan.Policy{}, plan.LedgerLost, plan.Adopt},
		{"the same, and it is posted", wanted("2"), docs(locked(intact(doc("inv_1", changed), "1"))), 0, nil, plan.Policy{}, plan.Locked, plan.Ask},
		{"the same, but somebody touched it", wanted("2"), docs(touched(intact(doc("inv_1", changed), "1"))), 0, nil, plan.Policy{}, plan.AdoptMismatch, plan.Ask},
		{"untouched, and it claims the present version", wanted("1"), docs(intact(doc("inv_1", changed), "1")), 0, nil, plan.Policy{}, plan.AdoptMismatch, plan.Ask},
		{"untouched, and its mark tells no version", wanted("1"), docs(intact(doc("inv_1", changed), "")), 0, nil, plan.Policy{}, plan.AdoptMismatch, plan.Ask},
		{"in doubt", wanted("1"), nil, 2, doubt, plan.Policy{}, plan.InDoubt, plan.Nothing},
		{"in review", wanted("1"), nil, 2, review, plan.Policy{}, plan.InDoubt, plan.Ask},
		{"a phantom, looked for once", wanted("1"), nil, 1, done(), plan.Policy{}, plan.PhantomDone, plan.Look},
		{"a phantom", wanted("1"), nil, 2, done(), plan.Policy{}, plan.PhantomDone, plan.Ask},
		{"a phantom that is made anew", wanted("1"), nil, 2, done(), plan.Policy{Recreate: true}, plan.PhantomDone, plan.Again},
		{"stale", wanted("2"), docs(doc("inv_1", changed)), 0, done(), plan.Policy{}, plan.Stale, plan.Revise},
		{"changed there", wanted("1"), docs(doc("inv_1", changed)), 0, done(), plan.Policy{}, plan.Diverged, plan.Ask},
		{"changed there, and the version moved without any news", wanted("2"), docs(doc("inv_1", changed)), 0, said(done(), sold), plan.Policy{}, plan.Diverged, plan.Ask},
		{"changed at the source, and the ledger can tell", wanted("2"), docs(doc("inv_1", changed)), 0, said(done(), changed), plan.Policy{}, plan.Stale, plan.Revise},
		{"changed there, enforced", wanted("1"), docs(doc("inv_1", changed)), 0, done(), plan.Policy{Fields: map[string]plan.Rule{"total": plan.Enforce}}, plan.Diverged, plan.Again},
		{"changed there and posted, enforced", wanted("1"), docs(locked(doc("inv_1", changed))), 0, done(), plan.Policy{Fields: map[string]plan.Rule{"total": plan.Enforce}}, plan.Diverged, plan.Ask},
		{"changed there, ignored", wanted("1"), docs(doc("inv_1", changed)), 0, done(), plan.Policy{Fields: map[string]plan.Rule{"total": plan.Ignore}}, plan.Diverged, plan.Nothing},
		{"changed there, one enforced, one in review", wanted("1"), docs(doc("inv_1", plan.Fields{"total": "1", "customer": "2"})), 0, done(), plan.Policy{Fields: map[string]plan.Rule{"total": plan.Enforce}}, plan.Diverged, plan.Ask},
		{"changed there, one enforced, one left", wanted("1"), docs(doc("inv_1", plan.Fields{"total": "1", "customer": "2"})), 0, done(), plan.Policy{Fields: map[string]plan.Rule{"total": plan.Enforce, "customer": plan.Ignore}}, plan.Diverged, plan.Ask},
		{"enforced before, at a version of our own", wanted("1"), docs(doc("inv_1", sold)), 0, again, plan.Policy{}, plan.InSync, plan.Nothing},
		{"enforced before, and changed there again", wanted("1"), docs(doc("inv_1", changed)), 0, again, plan.Policy{}, plan.Diverged, plan.Ask},
		{"changed there, not ours", wanted("1"), docs(foreign(doc("inv_1", sold))), 0, done(), plan.Policy{}, plan.DivergedForeign, plan.Nothing},
		{"changed at the source, posted", wanted("2"), docs(locked(doc("inv_1", changed))), 0, done(), plan.Policy{}, plan.Locked, plan.Ask},
		{"two of them", wanted("1"), docs(late(doc("inv_2", sold)), doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.Duplicate, plan.Ask},
		{"two of them, one void", wanted("1"), docs(doc("inv_1", sold), void(doc("inv_2", sold))), 0, done(), plan.Policy{}, plan.InSync, plan.Nothing},
		{"an orphan, not proven", gone(false), docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.Orphan, plan.Nothing},
		{"an orphan", gone(true), docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.Orphan, plan.Ask},
		{"cancelled, unknown who made it", cancelled(), docs(doc("inv_1", sold)), 0, nil, plan.Policy{}, plan.Orphan, plan.Ask},
		{"cancelled", cancelled(), docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.SourceGone, plan.Withdraw},
		{"cancelled, the work was undone, and it stands", cancelled(), docs(doc("inv_1", sold)), 0, stands(saga.Compensated), plan.Policy{}, plan.Orphan, plan.Ask},
		{"cancelled, without a version", &plan.Truth{Key: key, Proven: true}, docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.Orphan, plan.Ask},
		{"cannot be read", &plan.Truth{Key: key, Unreadable: "no total"}, docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.Unreadable, plan.Ask},
		{"paused by its source, which is not done with it", held(wanted("2")), docs(doc("inv_1", changed)), 0, heldBy(stands(saga.Paused)), plan.Policy{}, plan.InSync, plan.Nothing},
		{"its source is not done with it, and nothing was begun", held(wanted("2")), nil, 2, nil, plan.Policy{}, plan.InSync, plan.Nothing},
		{"its source is not done with it, and the ledger was lost", held(wanted("1")), docs(doc("inv_1", sold)), 0, nil, plan.Policy{}, plan.LedgerLost, plan.Adopt},
		{"paused by its source, which was not asked", nil, docs(doc("inv_1", changed)), 0, heldBy(stands(saga.Paused)), plan.Policy{}, plan.InSync, plan.Nothing},
		{"paused by its source, which cancelled it", cancelled(), docs(doc("inv_1", changed)), 0, heldBy(stands(saga.Paused)), plan.Policy{}, plan.Stuck, plan.Ask},
		{"its source is not done with it, and there are two", held(wanted("2")), docs(doc("inv_1", sold), doc("inv_2", sold)), 0, done(), plan.Policy{}, plan.Duplicate, plan.Ask},
		{"its source is not done with it, and a person holds it", held(wanted("2")), docs(doc("inv_1", sold)), 0, stands(saga.Paused), plan.Policy{}, plan.Stuck, plan.Ask},
		{"paused by its source, which is done with it", wanted("3"), docs(doc("inv_1", changed)), 0, heldBy(stands(saga.Paused)), plan.Policy{}, plan.Stale, plan.Revise},
		{"paused", wanted("1"), docs(doc("inv_1", changed)), 0, stands(saga.Paused), plan.Policy{}, plan.Stuck, plan.Ask},
		{"being adopted", wanted("1"), docs(doc("inv_1", changed)), 0, stands(saga.Adopting), plan.Policy{}, plan.Stuck, plan.Ask},
		{"cancelled and posted", cancelled(), docs(locked(doc("inv_1", sold))), 0, done(), plan.Policy{}, plan.SourceGone, plan.Ask},
		{"cancelled, and nothing stands", cancelled(), docs(void(doc("inv_1", sold))), 0, stands(saga.Compensated), plan.Policy{}, plan.InSync, plan.Nothing},
		{"stuck", wanted("1"), nil, 2, overdue, plan.Policy{}, plan.Stuck, plan.Resume},
		{"on its way", wanted("1"), nil, 2, stands(saga.Running), plan.Policy{}, plan.InSync, plan.Nothing},
		{"two works", wanted("1"), docs(doc("inv_1", sold)), 0, two, plan.Policy{}, plan.DupLedger, plan.Halt},
		{"the source was not asked", nil, docs(doc("inv_1", sold)), 0, done(), plan.Policy{}, plan.NoSource, plan.Nothing},
		{"the source was not asked, and nothing stands", nil, nil, 0, done(), plan.Policy{}, plan.NoSource, plan.Nothing},
		{"the ledger alone has it", gone(false), nil, 0, done(), plan.Policy{}, plan.NoSource, plan.Nothing},
		{"the ledger alone has it, undone", gone(false), nil, 0, stands(saga.Compensated), plan.Policy{}, plan.NoSource, plan.Nothing},
		{"the ledger alone has it, on its way", gone(false), nil, 0, stands(saga.Running), plan.Policy{}, plan.InSync, plan.Nothing},
		{"the source has it no more, and its document is void", gone(false), docs(void(doc("inv_1", sold))), 0, stands(saga.Compensated), plan.Policy{}, plan.InSync, plan.Nothing},
		{"proven to be gone, and nothing stands", gone(true), nil, 0, done(), plan.Policy{}, plan.InSync, plan.Nothing},
		{"cancelled, and there is nothing", cancelled(), nil, 0, done(), plan.Policy{}, plan.InSync, plan.Nothing},
		{"undone, and wanted again", wanted("2"), nil, 2, stands(saga.Compensated), plan.Policy{}, plan.Stale, plan.Revise},
		{"undone by a person, and what is newer says the same", wanted("2"), nil, 2, said(byHand(stands(saga.Compensated)), sold), plan.Policy{}, plan.Missing, plan.Ask},
		{"undone by a person, and changed since", wanted("2"), nil, 2, said(byHand(stands(saga.Compensated)), plan.Fields{"total": "1"}), plan.Policy{}, plan.Stale, plan.Revise},
		{"undone, and what is newer says the same", wanted("2"), nil, 2, said(stands(saga.Compensated), sold), plan.Policy{}, plan.Stale, plan.Revise},
		{"undone, and still wanted", wanted("1"), nil, 2, stands(saga.Compensated), plan.Policy{}, plan.Missing, plan.Ask},
		{"undone, and it stands", wanted("1"), docs(doc("inv_1", sold)), 0, stands(saga.Compensated), plan.Policy{}, plan.Orphan, plan.Ask},
	} {
		i := plan.Item{Key: key, Truth: c.truth, Documents: c.docs, Looked: c.looked, Known: c.known}
		if f := plan.Classify(&i, &c.policy); f.Class != c.class || f.Action != c.do || f.Reason == "" {
			t.Errorf("%s: %s, %s (%s); want %s, %s", c.name, f.Class, f.Action, f.Reason, c.class, c.do)
		}
	}
	if f := plan.Classify(&plan.Item{Documents: docs(plan.Document{ID: "inv_9"})}, &plan.Policy{}); f.Class != plan.Foreign || f.Action != plan.Nothing {
		t.Errorf("what is not ours: %+v", f)
	}
}

// intake/D1: a difference holds back what is newer where a person may have changed the document or it is posted, and not where it
// says what was applied.
func TestWhatHoldsBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stands plan.Document
		want   plan.Hold
	}{
		{doc("inv_1", sold), plan.Lets}, {locked(doc("inv_1", sold)), plan.Holds},
		{doc("inv_1", plan.Fields{"total": "77", "customer": "7"}), plan.Holds},
	} {
		truth := wanted("1")
		truth.Fields = changed // of the same second as what was applied
		f := plan.Classify(&plan.Item{Key: "k", Truth: truth, Documents: docs(c.stands), Known: said(done(), sold)}, &plan.Policy{})
		if f.Class != plan.Diverged || f.Action != plan.Ask || f.Hold() != c.want {
			t.Errorf("where %+v stands it found %+v, which holds: %d, want %d", c.stands, f, f.Hold(), c.want)
		}
	}
}

// Of several documents the one to keep is proposed: what the ledger knows, else the oldest, a
// posted one first.
func TestWhichToKeep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		docs  []plan.Document
		known *plan.Known
		keep  string
	}{
		{docs(late(doc("inv_2", sold)), doc("inv_0", sold)), nil, "keep inv_0: it is the oldest. "},
		{docs(doc("inv_0", sold), late(doc("inv_1", sold))), done(), "keep inv_1: the ledger knows it. "},
		{docs(doc("inv_0", sold), late(locked(doc("inv_2", sold)))), nil, "keep inv_2: it is the oldest that is posted. "},
	} {
		f := plan.Classify(&plan.Item{Key: key, Truth: wanted("1"), Documents: c.docs, Known: c.known}, &plan.Policy{})
		if f.Class != plan.Duplicate || len(f.Suggestion) < len(c.keep) || f.Suggestion[:len(c.keep)] != c.keep {
			t.Errorf("proposed %q, want %q", f.Suggestion, c.keep)
		}
	}
}

// Whatever the three sides say: there is a class with words; nothing is made while a document
// stands, a step is in doubt or the destination was asked once only; nothing is undone that is
// wanted; and nothing is done by itself about what is posted or stands twice.
func TestNothingRash(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		i := plan.Item{Key: rapid.SampledFrom([]string{key, key, key, ""}).Draw(r, "key"), Looked: rapid.IntRange(0, 3).Draw(r, "looked")}
		if rapid.Bool().Draw(r, "truth") {
			i.Truth = &plan.Truth{
				Key: key, Revision: rapid.SampledFrom([]string{"", "1", "2"}).Draw(r, "revision"), Wanted: rapid.Bool().Draw(r, "wanted"),
				Proven: rapid.Bool().Draw(r, "proven"), Fields: sold, Unreadable: rapid.SampledFrom([]string{"", "", "no total"}).Draw(r, "unreadable"),
			}
		}
		lockedOnes, live := 0, 0
		for range rapid.IntRange(0, 3).Draw(r, "documents") {
			d := doc("inv_1", rapid.SampledFrom([]plan.Fields{sold, changed}).Draw(r, "fields"))
			d.Void, d.Locked, d.Intact = rapid.Bool().Draw(r, "void"), rapid.Bool().Draw(r, "locked"), rapid.Bool().Draw(r, "intact")
			d.Revision = rapid.SampledFrom([]string{"", "1", "2"}).Draw(r, "shows")
			i.Documents = append(i.Documents, d)
			if !d.Void {
				live++
				if d.Locked {
					lockedOnes++
				}
			}
		}
		if rapid.Bool().Draw(r, "known") {
			i.Known = &plan.Known{
				Works: 1, Revision: rapid.SampledFrom([]string{"1", "2"}).Draw(r, "applied"), InDoubt: rapid.Bool().Draw(r, "doubt"), Fields: rapid.SampledFrom([]plan.Fields{nil, sold, changed}).Draw(r, "said"),
				Status: rapid.SampledFrom([]saga.Status{saga.Running, saga.Retrying, saga.Compensating, saga.Review, saga.Paused, saga.Adopting, saga.Completed, saga.Compensated}).Draw(r, "status"),
			}
		}
		policy := plan.Policy{Recreate: rapid.Bool().Draw(r, "recreate"), Fields: map[string]plan.Rule{"total": rapid.SampledFrom([]plan.Rule{plan.Review, plan.Enforce, plan.Ignore}).Draw(r, "rule")}}
		f := plan.Classify(&i, &policy)
		makes := f.Risk() == plan.Create
		switch {
		case f.Class == "" || f.Action == "" || f.Reason == "":
			r.Fatalf("no words: %+v", f)
		case makes && (live > 0 || i.Looked < plan.Looks || i.Truth == nil || !i.Truth.Wanted):
			r.Fatalf("it would make another: %+v", f)
		case (makes || f.Action == plan.Withdraw || f.Action == plan.Adopt) && i.Known != nil && i.Known.InDoubt:
			r.Fatalf("over the head of a doubt: %+v", f)
		case f.Action == plan.Withdraw && (i.Truth == nil || i.Truth.Wanted || i.Truth.Revision == ""):
			r.Fatalf("it would undo what nobody cancelled: %+v", f)
		case f.Action == plan.Adopt && (i.Known != nil || live != 1 || len(f.Changes) > 0 && !i.Documents[slices.IndexFunc(i.Documents, func(d plan.Document) bool { return !d.Void })].Intact):
			r.Fatalf("it would adopt what is not ours as it stands: %+v", f)
		case f.Action.Acts() && i.Truth != nil && i.Truth.Unreadable != "" && f.Action != plan.Resume:
			r.Fatalf("it would act for what cannot be read: %+v", f)
		case (f.Risk() == plan.Update || f.Action == plan.Withdraw) && lockedOnes > 0:
			r.Fatalf("it would touch what is posted: %+v", f)
		case live > 1 && f.Action != plan.Ask && f.Action != plan.Nothing && f.Action != plan.Halt && f.Action != plan.Resume:
			r.Fatalf("it would act on several: %+v", f)
		}
	})
}

// held is a truth of an object that is being changed.
func held(t *plan.Truth) *plan.Truth { t.Held = true; return t }

// heldBy is a work that its source paused.
func heldBy(k *plan.Known) *plan.Known { k.Held = true; return k }
