package drift_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/reconcile/drift"
	"github.com/amends-dev/amends/saga"
)

const key = "shop:order:10492"

var (
	sold    = drift.Fields{"total": "4200", "customer": "cus_7"}
	changed = drift.Fields{"total": "4100", "customer": "cus_7"}
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
)

func wanted(revision string) *drift.Truth {
	return &drift.Truth{Key: key, Revision: revision, Wanted: true, Fields: sold}
}

func cancelled() *drift.Truth { return &drift.Truth{Key: key, Revision: "2"} }

func gone(proven bool) *drift.Truth { return &drift.Truth{Key: key, Proven: proven} }

func doc(id string, f drift.Fields) drift.Document {
	return drift.Document{ID: id, Key: key, Fields: f, Created: monday}
}

func locked(d drift.Document) drift.Document  { d.Locked = true; return d }
func foreign(d drift.Document) drift.Document { d.Foreign = true; return d }
func void(d drift.Document) drift.Document    { d.Void = true; return d }
func touched(d drift.Document) drift.Document { d.Intact = false; return d }
func intact(d drift.Document, revision string) drift.Document {
	d.Revision, d.Intact = revision, true
	return d
}
func late(d drift.Document) drift.Document { d.Created = d.Created.Add(time.Hour); return d }

func done() *drift.Known {
	return &drift.Known{Works: 1, Status: saga.Completed, Revision: "1", Made: "inv_1"}
}

func said(k *drift.Known, f drift.Fields) *drift.Known { k.Fields = f; return k }
func stands(s saga.Status) *drift.Known                { return &drift.Known{Works: 1, Status: s, Revision: "1"} }

func docs(ds ...drift.Document) []drift.Document { return ds }

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
		truth  *drift.Truth
		docs   []drift.Document
		looked int
		known  *drift.Known
		policy drift.Policy
		class  drift.Class
		do     drift.Verb
	}{
		{"in sync", wanted("1"), docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.InSync, drift.Nothing},
		{"in sync at a newer version that changes nothing of ours", wanted("2"), docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.InSync, drift.Nothing},
		{"missing, looked for once", wanted("1"), nil, 1, nil, drift.Policy{}, drift.Missing, drift.Look},
		{"missing", wanted("1"), nil, 2, nil, drift.Policy{}, drift.Missing, drift.Start},
		{"missing beside a void one", wanted("1"), docs(void(doc("inv_0", sold))), 2, nil, drift.Policy{}, drift.Missing, drift.Start},
		{"the ledger is lost", wanted("1"), docs(doc("inv_1", sold)), 0, nil, drift.Policy{}, drift.LedgerLost, drift.Adopt},
		{"adopt, but it differs", wanted("1"), docs(doc("inv_1", changed)), 0, nil, drift.Policy{}, drift.AdoptMismatch, drift.Ask},
		{"the ledger is lost, and the document is as it was at an older version", wanted("2"), docs(intact(doc("inv_1", changed), "1")), 0, nil, drift.Policy{}, drift.LedgerLost, drift.Adopt},
		{"the same, and it is posted", wanted("2"), docs(locked(intact(doc("inv_1", changed), "1"))), 0, nil, drift.Policy{}, drift.Locked, drift.Ask},
		{"the same, but somebody touched it", wanted("2"), docs(touched(intact(doc("inv_1", changed), "1"))), 0, nil, drift.Policy{}, drift.AdoptMismatch, drift.Ask},
		{"untouched, and it claims the present version", wanted("1"), docs(intact(doc("inv_1", changed), "1")), 0, nil, drift.Policy{}, drift.AdoptMismatch, drift.Ask},
		{"untouched, and its mark tells no version", wanted("1"), docs(intact(doc("inv_1", changed), "")), 0, nil, drift.Policy{}, drift.AdoptMismatch, drift.Ask},
		{"in doubt", wanted("1"), nil, 2, doubt, drift.Policy{}, drift.InDoubt, drift.Nothing},
		{"in review", wanted("1"), nil, 2, review, drift.Policy{}, drift.InDoubt, drift.Ask},
		{"a phantom, looked for once", wanted("1"), nil, 1, done(), drift.Policy{}, drift.PhantomDone, drift.Look},
		{"a phantom", wanted("1"), nil, 2, done(), drift.Policy{}, drift.PhantomDone, drift.Ask},
		{"a phantom that is made anew", wanted("1"), nil, 2, done(), drift.Policy{Recreate: true}, drift.PhantomDone, drift.Again},
		{"stale", wanted("2"), docs(doc("inv_1", changed)), 0, done(), drift.Policy{}, drift.Stale, drift.Revise},
		{"changed there", wanted("1"), docs(doc("inv_1", changed)), 0, done(), drift.Policy{}, drift.Diverged, drift.Ask},
		{"changed there, and the version moved without any news", wanted("2"), docs(doc("inv_1", changed)), 0, said(done(), sold), drift.Policy{}, drift.Diverged, drift.Ask},
		{"changed at the source, and the ledger can tell", wanted("2"), docs(doc("inv_1", changed)), 0, said(done(), changed), drift.Policy{}, drift.Stale, drift.Revise},
		{"changed there, enforced", wanted("1"), docs(doc("inv_1", changed)), 0, done(), drift.Policy{Fields: map[string]drift.Rule{"total": drift.Enforce}}, drift.Diverged, drift.Again},
		{"changed there and posted, enforced", wanted("1"), docs(locked(doc("inv_1", changed))), 0, done(), drift.Policy{Fields: map[string]drift.Rule{"total": drift.Enforce}}, drift.Diverged, drift.Ask},
		{"changed there, ignored", wanted("1"), docs(doc("inv_1", changed)), 0, done(), drift.Policy{Fields: map[string]drift.Rule{"total": drift.Ignore}}, drift.Diverged, drift.Nothing},
		{"changed there, one enforced, one in review", wanted("1"), docs(doc("inv_1", drift.Fields{"total": "1", "customer": "2"})), 0, done(), drift.Policy{Fields: map[string]drift.Rule{"total": drift.Enforce}}, drift.Diverged, drift.Ask},
		{"changed there, one enforced, one left", wanted("1"), docs(doc("inv_1", drift.Fields{"total": "1", "customer": "2"})), 0, done(), drift.Policy{Fields: map[string]drift.Rule{"total": drift.Enforce, "customer": drift.Ignore}}, drift.Diverged, drift.Ask},
		{"enforced before, at a version of our own", wanted("1"), docs(doc("inv_1", sold)), 0, again, drift.Policy{}, drift.InSync, drift.Nothing},
		{"enforced before, and changed there again", wanted("1"), docs(doc("inv_1", changed)), 0, again, drift.Policy{}, drift.Diverged, drift.Ask},
		{"changed there, not ours", wanted("1"), docs(foreign(doc("inv_1", sold))), 0, done(), drift.Policy{}, drift.DivergedForeign, drift.Nothing},
		{"changed at the source, posted", wanted("2"), docs(locked(doc("inv_1", changed))), 0, done(), drift.Policy{}, drift.Locked, drift.Ask},
		{"two of them", wanted("1"), docs(late(doc("inv_2", sold)), doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.Duplicate, drift.Ask},
		{"two of them, one void", wanted("1"), docs(doc("inv_1", sold), void(doc("inv_2", sold))), 0, done(), drift.Policy{}, drift.InSync, drift.Nothing},
		{"an orphan, not proven", gone(false), docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.Orphan, drift.Nothing},
		{"an orphan", gone(true), docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.Orphan, drift.Ask},
		{"cancelled, unknown who made it", cancelled(), docs(doc("inv_1", sold)), 0, nil, drift.Policy{}, drift.Orphan, drift.Ask},
		{"cancelled", cancelled(), docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.SourceGone, drift.Withdraw},
		{"cancelled, the work was undone, and it stands", cancelled(), docs(doc("inv_1", sold)), 0, stands(saga.Compensated), drift.Policy{}, drift.Orphan, drift.Ask},
		{"cancelled, without a version", &drift.Truth{Key: key, Proven: true}, docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.Orphan, drift.Ask},
		{"cannot be read", &drift.Truth{Key: key, Unreadable: "no total"}, docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.Unreadable, drift.Ask},
		{"paused", wanted("1"), docs(doc("inv_1", changed)), 0, stands(saga.Paused), drift.Policy{}, drift.Stuck, drift.Ask},
		{"being adopted", wanted("1"), docs(doc("inv_1", changed)), 0, stands(saga.Adopting), drift.Policy{}, drift.Stuck, drift.Ask},
		{"cancelled and posted", cancelled(), docs(locked(doc("inv_1", sold))), 0, done(), drift.Policy{}, drift.SourceGone, drift.Ask},
		{"cancelled, and nothing stands", cancelled(), docs(void(doc("inv_1", sold))), 0, stands(saga.Compensated), drift.Policy{}, drift.InSync, drift.Nothing},
		{"stuck", wanted("1"), nil, 2, overdue, drift.Policy{}, drift.Stuck, drift.Resume},
		{"on its way", wanted("1"), nil, 2, stands(saga.Running), drift.Policy{}, drift.InSync, drift.Nothing},
		{"two works", wanted("1"), docs(doc("inv_1", sold)), 0, two, drift.Policy{}, drift.DupLedger, drift.Halt},
		{"the source was not asked", nil, docs(doc("inv_1", sold)), 0, done(), drift.Policy{}, drift.InSync, drift.Nothing},
		{"undone, and wanted again", wanted("2"), nil, 2, stands(saga.Compensated), drift.Policy{}, drift.Stale, drift.Revise},
		{"undone, and still wanted", wanted("1"), nil, 2, stands(saga.Compensated), drift.Policy{}, drift.Missing, drift.Ask},
		{"undone, and it stands", wanted("1"), docs(doc("inv_1", sold)), 0, stands(saga.Compensated), drift.Policy{}, drift.Orphan, drift.Ask},
	} {
		i := drift.Item{Key: key, Truth: c.truth, Documents: c.docs, Looked: c.looked, Known: c.known}
		if f := drift.Classify(&i, &c.policy); f.Class != c.class || f.Do != c.do || f.Why == "" {
			t.Errorf("%s: %s, %s (%s); want %s, %s", c.name, f.Class, f.Do, f.Why, c.class, c.do)
		}
	}
	if f := drift.Classify(&drift.Item{Documents: docs(drift.Document{ID: "inv_9"})}, &drift.Policy{}); f.Class != drift.Foreign || f.Do != drift.Nothing {
		t.Errorf("what is not ours: %+v", f)
	}
}

// Of several documents the one to keep is proposed: what the ledger knows, else the oldest, a posted one first.
func TestWhichToKeep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		docs  []drift.Document
		known *drift.Known
		keep  string
	}{
		{docs(late(doc("inv_2", sold)), doc("inv_0", sold)), nil, "keep inv_0: it is the oldest. "},
		{docs(doc("inv_0", sold), late(doc("inv_1", sold))), done(), "keep inv_1: the ledger knows it. "},
		{docs(doc("inv_0", sold), late(locked(doc("inv_2", sold)))), nil, "keep inv_2: it is the oldest that is posted. "},
	} {
		f := drift.Classify(&drift.Item{Key: key, Truth: wanted("1"), Documents: c.docs, Known: c.known}, &drift.Policy{})
		if f.Class != drift.Duplicate || len(f.Propose) < len(c.keep) || f.Propose[:len(c.keep)] != c.keep {
			t.Errorf("proposed %q, want %q", f.Propose, c.keep)
		}
	}
}

// Whatever the three sides say: there is a class with words; nothing is made while a document stands, a step is in doubt
// or the destination was asked once only; nothing is undone that is wanted; and nothing is done by itself about what
// is posted or stands twice.
func TestNothingRash(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		i := drift.Item{Key: rapid.SampledFrom([]string{key, key, key, ""}).Draw(r, "key"), Looked: rapid.IntRange(0, 3).Draw(r, "looked")}
		if rapid.Bool().Draw(r, "truth") {
			i.Truth = &drift.Truth{
				Key: key, Revision: rapid.SampledFrom([]string{"", "1", "2"}).Draw(r, "revision"), Wanted: rapid.Bool().Draw(r, "wanted"),
				Proven: rapid.Bool().Draw(r, "proven"), Fields: sold, Unreadable: rapid.SampledFrom([]string{"", "", "no total"}).Draw(r, "unreadable"),
			}
		}
		lockedOnes, live := 0, 0
		for range rapid.IntRange(0, 3).Draw(r, "documents") {
			d := doc("inv_1", rapid.SampledFrom([]drift.Fields{sold, changed}).Draw(r, "fields"))
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
			i.Known = &drift.Known{
				Works: 1, Revision: rapid.SampledFrom([]string{"1", "2"}).Draw(r, "applied"), InDoubt: rapid.Bool().Draw(r, "doubt"), Fields: rapid.SampledFrom([]drift.Fields{nil, sold, changed}).Draw(r, "said"),
				Status: rapid.SampledFrom([]saga.Status{saga.Running, saga.Retrying, saga.Compensating, saga.Review, saga.Paused, saga.Adopting, saga.Completed, saga.Compensated}).Draw(r, "status"),
			}
		}
		policy := drift.Policy{Recreate: rapid.Bool().Draw(r, "recreate"), Fields: map[string]drift.Rule{"total": rapid.SampledFrom([]drift.Rule{drift.Review, drift.Enforce, drift.Ignore}).Draw(r, "rule")}}
		f := drift.Classify(&i, &policy)
		makes := f.Risk() == drift.Create
		switch {
		case f.Class == "" || f.Do == "" || f.Why == "":
			r.Fatalf("no words: %+v", f)
		case makes && (live > 0 || i.Looked < drift.Looks || i.Truth == nil || !i.Truth.Wanted):
			r.Fatalf("it would make another: %+v", f)
		case (makes || f.Do == drift.Withdraw || f.Do == drift.Adopt) && i.Known != nil && i.Known.InDoubt:
			r.Fatalf("over the head of a doubt: %+v", f)
		case f.Do == drift.Withdraw && (i.Truth == nil || i.Truth.Wanted || i.Truth.Revision == ""):
			r.Fatalf("it would undo what nobody cancelled: %+v", f)
		case f.Do == drift.Adopt && (i.Known != nil || live != 1 || len(f.Changes) > 0 && !i.Documents[slices.IndexFunc(i.Documents, func(d drift.Document) bool { return !d.Void })].Intact):
			r.Fatalf("it would adopt what is not ours as it stands: %+v", f)
		case f.Do.Acts() && i.Truth != nil && i.Truth.Unreadable != "" && f.Do != drift.Resume:
			r.Fatalf("it would act for what cannot be read: %+v", f)
		case (f.Risk() == drift.Update || f.Do == drift.Withdraw) && lockedOnes > 0:
			r.Fatalf("it would touch what is posted: %+v", f)
		case live > 1 && f.Do != drift.Ask && f.Do != drift.Nothing && f.Do != drift.Halt && f.Do != drift.Resume:
			r.Fatalf("it would act on several: %+v", f)
		}
	})
}
