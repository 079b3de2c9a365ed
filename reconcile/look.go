package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/saga"
)

// sight is one natural key as the three sides have it now.
type sight struct {
	item    plan.Item
	object  *scan.Listed // nil: the source has none, or was not asked
	number  *numbered    // of an object without a version; nil: it has one
	gone    int          // how often the source was asked, and had none
	finding plan.Finding
	err     error // why the look failed; the rest is then not to be used
}

// change is the object as an inbox hands it to Decide.
func (s *sight) change(of inbox.Object) inbox.Snapshot {
	return change(of, s.object, s.item.Truth.Revision)
}

// look asks the three sides about s. The ledger is read first: what the other two say then is at
// least as new, and a work that began meanwhile refuses a second start by itself. Where the ledger
// alone decides, the other two are not asked.
func (r *Reconciler) look(ctx context.Context, s *sight, proven bool) {
	key := s.item.Key
	s.err = guard(func() (err error) {
		if s.item.Known, err = r.instances.Known(ctx, key); err != nil {
			return fmt.Errorf("ask the ledger: %w", err)
		}
		if decides(s.item.Known) {
			return nil
		}
		if err = r.get(ctx, s, proven); err != nil {
			return fmt.Errorf("ask the source: %w", err)
		}
		if err = r.find(ctx, s); err != nil {
			return fmt.Errorf("ask the destination: %w", err)
		}
		return nil
	})
	if s.err == nil {
		s.classify(&r.policy)
	}
}

// classify says what there is to say about the three sides. Two treatments are left to a person. A
// saga takes nothing over that is not newer than what it has applied, so a withdrawal at that very
// version, or an older one, would be planned for ever. And a void document under our mark shows
// that a work was there which the ledger has lost: a new one would send its mail once more.
func (s *sight) classify(p *plan.Policy) {
	s.finding = plan.Classify(&s.item, p)
	f := &s.finding
	switch {
	case f.Action == plan.Withdraw && saga.CompareRevisions(f.SourceRevision, f.LedgerRevision) <= 0:
		f.Action, f.Reason = plan.Ask, fmt.Sprintf("the source cancelled it at %s, and the saga has applied %s: it would not hear of it", f.SourceRevision, f.LedgerRevision)
		f.Suggestion = "undo it by hand, or change the object at the source so that its version grows"
	case f.Action == plan.Start && len(s.item.Documents) > 0:
		f.Action, f.Reason = plan.Ask, fmt.Sprintf("%s is void and carries our mark, and the ledger knows no work: it was lost", s.item.Documents[0].ID)
		f.Suggestion = "amends reconcile rebuild records what was undone; then a newer version is made without a second mail"
	}
}

// decides reports whether the ledger has the last word on a key: the saga is not done with it. What its source holds the source lets go.
func decides(k *plan.Known) bool {
	return k != nil && !k.Held && (k.Works > 1 || k.InDoubt || k.Overdue || k.Status.Parked() || k.Status.Live())
}

// get asks the source for the object.
func (r *Reconciler) get(ctx context.Context, s *sight, proven bool) error {
	key := s.item.Key
	id := r.id(key)
	var o *scan.Listed
	err := r.ask(ctx, r.source.Quota, func(ctx context.Context) (err error) {
		o, err = r.source.Get(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	s.object = o
	if o == nil {
		s.gone++
		s.item.Truth = r.absent(key, proven) // it is asked once more
		return nil
	}
	s.gone = 0
	if s.number, err = r.number(ctx, o); err != nil {
		return err
	}
	s.item.Truth = r.truth(key, o, s.number)
	return nil
}

// absent is what the source says by having no such object. It says nothing where it would not show
// it.
func (r *Reconciler) absent(key string, proven bool) *plan.Truth {
	if r.source.Visible != nil && !r.source.Visible(key) {
		return nil
	}
	return &plan.Truth{Key: key, Proven: proven}
}

// truth is what the source says about an object. One that cannot be read is a truth as well.
func (r *Reconciler) truth(key string, o *scan.Listed, n *numbered) *plan.Truth {
	var t plan.Truth
	err := guard(func() (err error) {
		t, err = r.source.Want(o)
		return err
	})
	if t.Revision == "" {
		t.Revision = o.Version.Revision()
	}
	if t.Revision == "" && n != nil {
		t.Revision = n.revision()
	}
	switch {
	case err != nil:
	case t.Key != key:
		err = fmt.Errorf("the object %s that was asked for has the key %s", o.ID, t.Key)
	case t.Revision == "":
		err = errors.New("it has no version, and Decide gave it no revision: a newer state could not be told from an older one")
	default:
		err = saga.CheckRevision(t.Revision)
	}
	if err != nil {
		return &plan.Truth{Key: key, Revision: t.Revision, Unreadable: err.Error()}
	}
	t.Wanted = t.Wanted && !o.Deleted
	t.Proven = t.Proven || !t.Wanted // it says so itself
	return &t
}

// find asks the destination for everything that carries the mark.
func (r *Reconciler) find(ctx context.Context, s *sight) error {
	err := r.ask(ctx, r.destination.Quota(), func(ctx context.Context) (err error) {
		s.item.Documents, err = r.destination.Find(ctx, s.item.Key)
		return err
	})
	if err != nil {
		return err
	}
	if len(livingOf(s.item.Documents)) == 0 {
		s.item.Looked++
	} else {
		s.item.Looked = 0
	}
	return nil
}

// again reports whether one look proves nothing: it found no object or no document, and the next
// look may find one.
func (s *sight) again() bool {
	return s.err == nil && (s.finding.Action == plan.Look || s.gone > 0 && s.gone < plan.Looks && s.item.Truth != nil)
}

// lookAt looks at keys, as many at once as there are workers. What one side does not have is looked
// at twice, apart by the time in which the destination settles; that wait is one for all of them.
// proven says of which keys the source's silence has been proven otherwise.
func (r *Reconciler) lookAt(ctx context.Context, l *looks, sights []*sight, proven func(key string) bool) error {
	look := func(s *sight) { r.look(ctx, s, proven(s.item.Key)) }
	l.each(ctx, r.workers, sights, look)
	var again []*sight
	for _, s := range sights {
		if s.again() {
			again = append(again, s)
		}
	}
	if len(again) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := nap.For(ctx, r.settle); err != nil {
		return err
	}
	l.each(ctx, r.workers, again, look)
	return ctx.Err()
}

// id is the source's id of the object with a natural key.
func (r *Reconciler) id(key string) string {
	if r.source.ID != nil {
		return r.source.ID(key)
	}
	return key[strings.LastIndexByte(key, ':')+1:]
}

// guard calls functions of the user's. A panic is an error of that one key.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return call()
}
