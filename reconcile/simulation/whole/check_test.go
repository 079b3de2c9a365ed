package whole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// broken fails with at most three of a list.
func broken(t *testing.T, s *scene, what string, list []string) {
	t.Helper()
	if len(list) > 0 {
		t.Errorf("seed %d, %s: %s: %d, as\n%s", s.seed, s.mode.name, what, len(list), strings.Join(list[:min(3, len(list))], "\n"))
	}
}

// always checks what was watched from the first moment to the last: I-2 and I-4 as they could have
// been broken at any time, I-5 at the gate.
func (s *scene) always(t *testing.T) {
	t.Helper()
	broken(t, s, "at the books", s.books.broken)
	broken(t, s, "at the mail server", s.post.broken)
	broken(t, s, "at the gate", s.watch.broken)
	broken(t, s, "faults", s.faults)
}

// quiet makes a process that only answers questions and reconciles.
func (s *scene) quiet(t *testing.T) *process {
	t.Helper()
	_, p, err := s.boot(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// settled checks the end of an order by order: I-1, I-2, I-5. Those that nobody told of are left
// out.
func (s *scene) settled(t *testing.T, p *process, told func(*order) bool) {
	t.Helper()
	var one, mails, risen []string
	for _, o := range s.shop.orders {
		k := p.known(t, o.key)
		live := s.books.totals(o.key)
		switch {
		case !told(o):
		case o.wanted() && (!slices.Equal(live, []string{o.last().Total}) || k == nil || k.Status != saga.Completed):
			one = append(one, fmt.Sprintf("%s is %v, its invoices say %v, its work is %+v", o.key, *o.last(), live, k))
		case o.wanted() && s.post.mails[o.key] != 1 && !s.unconfirmed(t, o.key):
			mails = append(mails, fmt.Sprintf("%d mails about %s", s.post.mails[o.key], o.key))
		case !o.wanted() && len(live) > 0 && !s.asked(t, o):
			risen = append(risen, fmt.Sprintf("%s is %v, its invoices say %v, its work is %+v, and its drifts are %+v", o.key, *o.last(), live, k, s.drifts(t, o.key)))
		}
	}
	broken(t, s, "I-1: not one invoice per paid order, as it should be", one)
	broken(t, s, "I-2: not one mail, and nothing about it is unknown", mails)
	broken(t, s, "I-5: an invoice stands for an order that is gone", risen)
	if len(risen) > 0 {
		plan, err := s.db.Latest(t.Context(), "orders")
		t.Logf("the newest plan: %+v, %v", plan, err)
	}
}

// unconfirmed reports whether nobody can tell if the mail was sent, because the ledger that knew it
// was lost.
func (s *scene) unconfirmed(t *testing.T, key string) bool {
	t.Helper()
	id := saga.ID{Saga: sagaName, Work: key}
	records, err := s.db.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	st, err := machine.Fold(id, records)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(st.Unconfirmed(), "receipt")
}

// drifts are what the store remembers of a key.
func (s *scene) drifts(t *testing.T, key string) []plan.Drift {
	t.Helper()
	ds, err := s.db.Drifts(t.Context(), plan.DriftQuery{Job: "orders", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// asked reports whether a person is asked about an order that was deleted without a word that
// reached us: its invoice is an orphan, and orphans are never voided by themselves.
func (s *scene) asked(t *testing.T, o *order) bool {
	t.Helper()
	if !o.last().deleted || s.mode.webhooks && o.told && !s.lostOnce() {
		return false
	}
	ds, err := s.db.Drifts(t.Context(), plan.DriftQuery{Job: "orders", Key: o.key, Class: plan.Orphan})
	if err != nil {
		t.Fatal(err)
	}
	return len(ds) == 1 && ds[0].Action == plan.Ask
}

func (s *scene) lostOnce() bool { return s.rebuilds > 0 }

// gate checks I-3: what the gate has accepted is what the shop has.
func (s *scene) gate(t *testing.T, told func(*order) bool) {
	t.Helper()
	var differ []string
	for _, o := range s.shop.orders {
		if !told(o) || o.last().deleted && !o.told || o.last().deleted && s.lostOnce() {
			continue // silence tells nobody anything
		}
		of := object
		of.ID = o.id
		e, err := s.db.Entry(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		n := len(o.states) - 1
		switch {
		case e == nil && o.last().deleted: // gone before anybody had heard of it
		case e == nil || e.Deleted != o.last().deleted || e.Owing() || e.Blocked != "":
			differ = append(differ, fmt.Sprintf("%s: %v; the shop has %+v", o.key, e, o.states))
		case e.Deleted:
		case e.Fingerprint != o.last().print || e.Version.Compare(s.shop.version(o, n)) != 0:
			differ = append(differ, fmt.Sprintf("%s: %s at %s; the shop has %+v", o.key, e.Body, e.Version.Revision(), o.states))
		}
	}
	broken(t, s, "I-3: the gate is not as the source", differ)
}

// dry checks I-6 and I-7: one more comparison plans nothing, and it wrote nothing that is not a
// planner's.
func (s *scene) dry(t *testing.T, p *process) {
	t.Helper()
	writes, papers, mails := p.writes.Load(), s.books.writes, s.post.calls
	r, err := p.reconciler.Plan(t.Context())
	if err != nil || r.Result == schedule.Partial || r.Result == schedule.Failed {
		t.Fatalf("seed %d, %s: plan: %+v, %v", s.seed, s.mode.name, r, err)
	}
	if r.Planned != 0 {
		t.Errorf("seed %d, %s: I-6: a second reconciliation plans %d: %+v\n%s", s.seed, s.mode.name, r.Planned, r, s.planned(t))
	}
	if p.writes.Load() != writes || s.books.writes != papers || s.post.calls != mails {
		t.Errorf("seed %d, %s: I-7: a dry run wrote: %d to ledger, inbox and outcomes, %d to the books, %d mails",
			s.seed, s.mode.name, p.writes.Load()-writes, s.books.writes-papers, s.post.calls-mails)
	}
}

// planned are the actions of the newest plan.
func (s *scene) planned(t *testing.T) string {
	t.Helper()
	latest, err := s.db.Latest(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.db.Findings(t.Context(), plan.FindingQuery{Plan: latest.Ref(), Acting: true, Limit: 3})
	return fmt.Sprintf("%+v %v", rows, err)
}

// vanished checks I-9: the shop answers as if it had never had an order, to listings and to
// questions by id, for longer than the grace. Nothing is undone.
func (s *scene) vanished(t *testing.T, p *process) {
	t.Helper()
	writes := s.books.writes
	s.shop.empty = true
	for range 4 {
		r, err := p.reconciler.Run(t.Context(), approved())
		latest, failed := s.db.Latest(t.Context(), "orders")
		if err = errors.Join(err, failed); err != nil {
			t.Fatalf("seed %d, %s: I-9: %+v, %v", s.seed, s.mode.name, r, err)
		}
		if n := latest.Acts(plan.Destroy); n > 0 || s.books.writes != writes {
			t.Errorf("seed %d, %s: I-9: the source is empty, and %d destructive actions are planned, %d calls changed the books",
				s.seed, s.mode.name, n, s.books.writes-writes)
		}
		_ = pause(t.Context(), grace)
	}
	s.shop.empty = false
}

// rebuilt checks I-8: a ledger made anew of what shop and books have equals the one there was, on
// works that had ended. Then it takes the other's place, and everything holds as before.
func (s *scene) rebuilt(t *testing.T) {
	t.Helper()
	before := s.quiet(t)
	s.db = memory.New(nil)
	p := s.quiet(t)
	writes, mails := s.books.writes, s.post.calls
	r, err := p.reconciler.Rebuild(t.Context(), time.Now(), saga.Actor{Name: "anna", Reason: "what if"})
	if err != nil || r.Result != schedule.OK || r.Failed > 0 {
		t.Fatalf("seed %d, %s: I-8: rebuild: %+v, %v", s.seed, s.mode.name, r, err)
	}
	if s.books.writes != writes || s.post.calls != mails {
		t.Errorf("seed %d, %s: I-8: the rebuild made or sent something", s.seed, s.mode.name)
	}
	var differ []string
	for _, o := range s.shop.orders {
		was, is := before.known(t, o.key), p.known(t, o.key)
		if why := s.unlike(o, was, is); why != "" {
			differ = append(differ, fmt.Sprintf("%s: %s: it was %+v, and is %v; the shop has %+v", o.key, why, was, is, o.states))
		}
	}
	broken(t, s, "I-8: the rebuilt ledger differs", differ)
}

// known is what the ledger says of an order; nil when it has none.
func (p *process) known(t *testing.T, key string) *saga.Summary {
	t.Helper()
	s, err := p.coordinator.Show(t.Context(), saga.ID{Saga: sagaName, Work: key})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// applied is the newest version that it has taken note of.
func applied(s *saga.Summary) string {
	if s.PendingRevision == "" && saga.CompareRevisions(s.NewestRevision, s.Revision) > 0 {
		return s.NewestRevision
	}
	return s.Revision
}

// unlike says how a rebuilt work differs from what it was.
func (s *scene) unlike(o *order, was, is *saga.Summary) string {
	stands := func(k *saga.Summary) bool { return k != nil && k.Status == saga.Completed }
	switch {
	case was != nil && !was.Status.Terminal():
		return "it had not ended"
	case o.last().deleted && stands(was): // an orphan: nobody can say what its invoice is for
		return ""
	case stands(was) != stands(is):
		return "one of them stands"
	case !stands(was):
		if is != nil && is.Status != saga.Compensated {
			return "nothing stood"
		}
		return ""
	case was.Steps["invoice"].ExternalID != is.Steps["invoice"].ExternalID:
		return "another invoice"
	case !s.sameVersion(o, applied(was), applied(is)):
		return "another revision"
	}
	return ""
}

// sameVersion reports whether two revisions name the same version of an order, or two that say the
// same: the gate hands on no version that is no news. Of two changes within one tick of the shop's
// clock the gate makes two revisions, and the shop has one.
func (s *scene) sameVersion(o *order, a, b string) bool {
	if a == b {
		return true
	}
	for _, x := range s.named(o, a) {
		if slices.Contains(s.named(o, b), x) {
			return true
		}
	}
	return false
}

// named is what the shop said of an order at versions with that revision.
func (s *scene) named(o *order, revision string) (said []content) {
	if t, err := intake.ParseTime(revision); err == nil && s.shop.step > 0 {
		revision = intake.At(t.Time().Truncate(s.shop.step), s.shop.step).Revision()
	}
	for n := range o.states {
		if s.shop.version(o, n).Revision() == revision {
			said = append(said, o.states[n].content)
		}
	}
	return said
}

// goOn lets a process run on what there is, with all its rounds.
func (s *scene) goOn(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	running, p, err := s.boot(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	go p.run(running, s)
	_ = pause(ctx, d)
	stop()
	<-p.done
	for _, err := range p.errs {
		s.faults = append(s.faults, err.Error())
	}
}
