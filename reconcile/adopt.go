package reconcile

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// adoptee is what stands of one object, as far as source and destination tell. See
// [coordinator.Adoption].
type adoptee struct {
	key        string         // the work id
	change     inbox.Snapshot // the object as the source has it
	effects    map[string]Effect
	cancelled  bool
	quarantine string
}

// adopt records what stands. It answers each at its own index.
func (r *Reconciler) adopt(ctx context.Context, as []adoptee, by saga.Actor) ([]coordinator.Adopted, error) {
	known := make([]coordinator.Adoption, len(as))
	for i, a := range as {
		known[i] = coordinator.Adoption{
			Work: a.key, Input: r.input(a.change), Revision: a.change.Revision, Effects: a.effects,
			Cancelled: a.cancelled, Quarantine: a.quarantine, By: by,
		}
	}
	return r.instances.Adopt(ctx, known)
}

// adoption is what stands of the object of s, to be recorded: what differs is of an older version, and is brought up to date.
func (r *Reconciler) adoption(s *sight) (adoptee, error) {
	return r.adoptee(s, len(s.finding.Changes) == 0)
}

// adoptee is what stands of the object of s; exact: as it should be.
func (r *Reconciler) adoptee(s *sight, exact bool) (adoptee, error) {
	live, void := apart(s.item.Documents)
	a := adoptee{key: s.item.Key, change: s.stands(r.source.Object)}
	err := guard(func() (err error) {
		a.effects, err = r.effects(s.object, live, void)
		return err
	})
	if err != nil {
		return a, fmt.Errorf("tell the effects that stand: %w", err)
	}
	if len(live) == 1 {
		a.date(live[0].Revision, exact)
	}
	return a, nil
}

// idOf is the external id of an effect.
func idOf(e *Effect) string {
	if made, ok := e.Output.(saga.Identified); ok && e.ExternalID == "" {
		return made.ExternalID()
	}
	return e.ExternalID
}

// date says of which version of the object the effects are. What is unknown or was not done has
// none. A document that says what it should is up to date, whichever version wrote it; only one
// that was made once more at the present version ("17+1") says so, so that the keys of that run are
// not used again.
func (a *adoptee) date(revision string, exact bool) {
	newer := saga.CompareRevisions(revision, a.change.Revision)
	again := newer > 0 && saga.CompareRevisions(saga.BaseRevision(revision), saga.BaseRevision(a.change.Revision)) == 0
	if revision == "" || !again && (exact || newer >= 0) {
		return
	}
	for step, e := range a.effects {
		if e.Revision == "" && !e.Unknown && !e.NotDone {
			e.Revision = revision
			a.effects[step] = e
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
