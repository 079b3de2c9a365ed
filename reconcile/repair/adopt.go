package repair

import (
	"fmt"

	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/saga"
)

// adoption is what stands of the object of s, to be recorded.
func (r *Reconciler) adoption(s *sight) (Adoption, error) {
	live, void := apart(s.item.Documents)
	a := Adoption{Key: s.item.Key, Change: s.change(r.source.Object)}
	err := guard(func() (err error) {
		a.Effects, err = r.effects(s.object, live, void)
		return err
	})
	if err != nil {
		return a, fmt.Errorf("tell the effects that stand: %w", err)
	}
	if len(live) == 1 {
		a.date(live[0].Revision, len(s.finding.Changes) == 0)
	}
	return a, nil
}

// id is the external id of the effect.
func (e *Effect) id() string {
	if made, ok := e.Output.(saga.Identified); ok && e.ExternalID == "" {
		return made.ExternalID()
	}
	return e.ExternalID
}

// date says of which version of the object the effects are. What is unknown or was not done has none. A document that
// says what it should is up to date, whichever version wrote it; only one that was made once more at the present version
// ("17+1") says so, so that the keys of that run are not used again.
func (a *Adoption) date(revision string, exact bool) {
	newer := saga.CompareRevisions(revision, a.Change.Revision)
	again := newer > 0 && saga.CompareRevisions(saga.BaseRevision(revision), saga.BaseRevision(a.Change.Revision)) == 0
	if revision == "" || !again && (exact || newer >= 0) {
		return
	}
	for step, e := range a.Effects {
		if e.Revision == "" && !e.Unknown && !e.NotDone {
			e.Revision = revision
			a.Effects[step] = e
		}
	}
}

// livingOf returns the documents that count.
func livingOf(docs []plan.Document) []plan.Document {
	live, _ := apart(docs)
	return live
}

// apart returns the documents that count, and those that are void.
func apart(docs []plan.Document) (live, void []plan.Document) {
	for _, d := range docs {
		if d.Void {
			void = append(void, d)
		} else {
			live = append(live, d)
		}
	}
	return live, void
}
