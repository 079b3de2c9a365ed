package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/saga"
)

// instances are the ledger as a reconciler needs it: where the instances of one saga stand, by
// natural key, which is the work id.
type instances interface {
	// Heads returns what is known of instances in the order of their keys, behind after, by their
	// heads alone: Made and InDoubt are not told.
	Heads(ctx context.Context, after string, limit int) ([]plan.Head, error)
	// Known returns everything that is known of one instance; nil when there is none.
	Known(ctx context.Context, key string) (*plan.Known, error)
	// Resume wakes an instance that should have moved.
	Resume(ctx context.Context, key string, by saga.Actor) error
	// Adopt records what stands, and makes and sends nothing. It answers each at its own index; one
	// that the ledger knows already is left as it is, and one whose adoption was cut off is taken
	// up. It may be repeated.
	Adopt(ctx context.Context, as []coordinator.Adoption) ([]coordinator.Adopted, error)
	// Rerun runs a completed instance once more, at the revision it has. The same request again
	// changes nothing.
	Rerun(ctx context.Context, key, request string, by saga.Actor) error
	// Undo undoes a completed instance. Asked again it changes nothing.
	Undo(ctx context.Context, key string, by saga.Actor) error
}

// defaultOverdue is for how long a live instance may have been due without a step before it counts
// as stuck.
const defaultOverdue = 15 * time.Minute

// inLedger are the instances of one saga in the ledger of a coordinator.
//
// An instance counts as live for as long as it moves by itself, and also when it has ended and was
// told something that no coordinator has heard yet: a start with a newer revision is a promise. It
// is overdue when nothing has happened for longer than defaultOverdue since it was due, by the
// database's clock.
type inLedger struct {
	saga, step  string // the step that makes the document
	ledger      ledger.Ledger
	coordinator *coordinator.Coordinator
	fields      func(input json.RawMessage) (plan.Fields, error)
}

// Heads lists instances. What it says of lateness is by this machine's clock and a reason to look,
// no more.
func (w *inLedger) Heads(ctx context.Context, after string, limit int) ([]plan.Head, error) {
	var heads []ledger.Instance
	for whole := false; !whole && len(heads) < limit; {
		page, err := ledger.First(ctx, w.ledger, ledger.Filter{Saga: w.saga, ByWork: true, AfterWork: after, Limit: limit})
		if err != nil {
			return nil, err
		}
		if whole = len(page) < limit; len(page) > 0 {
			after = page[len(page)-1].ID.Work
		}
		heads = append(heads, slices.DeleteFunc(page, func(h ledger.Instance) bool { return h.Erased() })...) // they are found by their keys
	}
	now := time.Now()
	listed := make([]plan.Head, len(heads))
	for i := range heads {
		h := &heads[i]
		k := plan.Known{Works: 1, Status: standing(h), Reason: h.Reason, Revision: h.Revision}
		k.Overdue = overdue(k.Status, now, h.Due, h.Updated)
		listed[i] = plan.Head{Key: h.ID.Work, Known: k}
	}
	return listed, nil
}

// Known returns everything that is known of one work; nil when there is none.
func (w *inLedger) Known(ctx context.Context, key string) (*plan.Known, error) {
	id := saga.ID{Saga: w.saga, Work: key}
	chains, err := w.ledger.Load(ctx, []saga.ID{id})
	if err != nil || len(chains) == 0 {
		return nil, err
	}
	c := &chains[0]
	st, err := machine.Fold(id, c.Records)
	if err != nil {
		return nil, fmt.Errorf("the chain does not fold; run amends check: %w", err)
	}
	if st.Adopting { // it was cut off: adopting it again takes it up
		return nil, nil
	}
	k := &plan.Known{Works: 1, Status: standing(&c.Instance), Reason: st.Reason, Revision: applied(st)}
	if ss := st.Step(w.step); ss != nil {
		if k.Made = made(ss); c.Instance.Erased() { // a hash is no document
			k.Made = ""
		}
		if ss.Undo.Phase == machine.Done && k.Status == saga.Completed { // as far as its document goes (machine/V19)
			k.Status = saga.Compensated
		}
	}
	if w.fields != nil && st.InputGone == nil { // else it is not known what the document should say
		if k.Fields, err = w.fields(st.Input); err != nil {
			return nil, fmt.Errorf("what the document of %s should say: %w", key, err)
		}
	}
	k.Held = st.HeldRevision != ""
	k.InDoubt = st.Status.Live() && inDoubt(st)
	k.Overdue = overdue(k.Status, c.At, c.Instance.Due, st.Updated, st.Due, deadline(st))
	return k, nil
}

// applied is the newest version of the object that the work has taken note of. One that said the
// same, or came while the work was being undone, was heard and changed nothing; told again it would
// change nothing, either.
func applied(st *machine.State) string {
	if st.PendingRevision == nil && saga.CompareRevisions(st.NewestRevision, st.Revision) > 0 {
		return st.NewestRevision
	}
	return st.Revision
}

// standing is the status of a work. One that has ended and has a signal that no coordinator has
// consumed yet is running again.
func standing(h *ledger.Instance) saga.Status {
	if h.Status.Terminal() && h.Posted > h.Consumed {
		return saga.Running
	}
	return h.Status
}

// made is the external id of the document, also of one that an earlier revision has left.
func made(ss *machine.StepState) string {
	switch {
	case ss.Undo.Phase == machine.Done:
		return ""
	case ss.ExternalID == "" && ss.Previous != nil:
		return ss.Previous.ExternalID
	default:
		return ss.ExternalID
	}
}

func inDoubt(st *machine.State) bool {
	return slices.ContainsFunc(st.Steps, func(ss machine.StepState) bool {
		return ss.Forward.Phase == machine.InDoubt || ss.Undo.Phase == machine.InDoubt
	})
}

// deadline is until when the attempts that are under way may take.
func deadline(st *machine.State) (last time.Time) {
	for i := range st.Steps {
		for _, e := range []*machine.Effort{&st.Steps[i].Forward, &st.Steps[i].Undo} {
			if e.Phase == machine.Started && e.Deadline.After(last) {
				last = e.Deadline
			}
		}
	}
	return last
}

// overdue reports whether a work that moves by itself should have done so since the latest of some
// times.
func overdue(s saga.Status, now time.Time, times ...time.Time) bool {
	return s.Live() && !slices.ContainsFunc(times, func(t time.Time) bool { return t.Add(defaultOverdue).After(now) })
}

// Resume wakes a work that should have moved. The coordinators that know its saga are told, and the
// history keeps actor and reason.
func (w *inLedger) Resume(ctx context.Context, key string, by saga.Actor) error {
	id := saga.ID{Saga: w.saga, Work: key}
	chains, err := w.ledger.Load(ctx, []saga.ID{id})
	if err != nil {
		return fmt.Errorf("resume %s: %w", id, err)
	}
	if len(chains) == 0 {
		return fmt.Errorf("resume %s: %w", id, ledger.ErrNotFound)
	}
	h := &chains[0].Instance
	_, err = w.ledger.Post(ctx, id, machine.Signal{
		Kind: machine.SignalWake, Key: fmt.Sprintf("stuck:%s", h.Updated.UTC().Format(time.RFC3339Nano)), Actor: by.Name, Reason: by.Reason,
	})
	return err
}

// Adopt records what stands.
func (w *inLedger) Adopt(ctx context.Context, as []coordinator.Adoption) ([]coordinator.Adopted, error) {
	for i := range as {
		as[i].Saga = w.saga
	}
	return w.coordinator.Adopt(ctx, as)
}

// Rerun runs a completed instance once more.
func (w *inLedger) Rerun(ctx context.Context, key, request string, by saga.Actor) error {
	_, err := w.coordinator.Rerun(ctx, saga.ID{Saga: w.saga, Work: key}, request, by)
	return err
}

// Undo undoes a completed instance.
func (w *inLedger) Undo(ctx context.Context, key string, by saga.Actor) error {
	return w.coordinator.Undo(ctx, saga.ID{Saga: w.saga, Work: key}, "", by)
}
