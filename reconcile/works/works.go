package works

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/repair"
	"github.com/amends-dev/amends/saga"
)

// Ledger is what is needed of a ledger beside a coordinator.
type Ledger interface {
	Load(ctx context.Context, ids []saga.ID) ([]ledger.Chain, error)
	Post(ctx context.Context, id saga.ID, s saga.Signal) error
	List(ctx context.Context, f ledger.Filter) (ledger.Page, error)
}

// Config sets up [Works].
type Config struct {
	// Saga whose works make the documents, and Document the step that makes one: its external id is the document's.
	Saga     string
	Document string
	// Coordinator has the saga registered. It need not run.
	Coordinator *coordinator.Coordinator
	// Ledger is the coordinator's.
	Ledger Ledger
	// Input turns a state of the object into the input of the saga. Nil: it is the object's body.
	Input func(c inbox.Change) (any, error)
	// Fields says what the document should say for an input of the saga, in the words of the source's Want. With it a
	// newer version of an object that changed nothing of ours (our own mark at the source is one) is told from news.
	// Nil: every newer version is news.
	Fields func(input json.RawMessage) (plan.Fields, error)
	// Overdue is for how long a live work may have been due without a step before it counts as stuck. 15 minutes.
	Overdue time.Duration
}

// Works is a ledger as a reconciler sees it. Make one with [New].
type Works struct{ c Config }

var _ repair.Works = (*Works)(nil)

// New returns the works of one saga. Every fault of c is reported at once.
func New(c Config) (*Works, error) {
	var faults []error
	need := func(ok bool, what string) {
		if !ok {
			faults = append(faults, errors.New(what))
		}
	}
	need(c.Saga != "", "no Saga is named")
	need(c.Document != "", "no step is named that makes the Document")
	need(c.Coordinator != nil, "there is no Coordinator: nobody could adopt")
	need(c.Ledger != nil, "there is no Ledger")
	need(c.Overdue >= 0, "Overdue is negative")
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("works for a reconciler: %w", err)
	}
	if c.Overdue == 0 {
		c.Overdue = 15 * time.Minute
	}
	if c.Input == nil {
		c.Input = func(c inbox.Change) (any, error) { return c.Body, nil }
	}
	return &Works{c}, nil
}

// Heads returns where works stand, in the order of their keys. What it says of lateness is by this machine's clock and
// a reason to look, no more.
func (w *Works) Heads(ctx context.Context, after string, limit int) ([]plan.Head, error) {
	heads, err := ledger.Heads(ctx, w.c.Ledger, ledger.Filter{Saga: w.c.Saga, ByWork: true, AfterWork: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	listed := make([]plan.Head, len(heads))
	for i := range heads {
		h := &heads[i]
		k := plan.Known{Works: 1, Status: standing(h), Reason: h.Reason, Revision: h.Revision}
		k.Overdue = w.overdue(k.Status, now, h.Due, h.Updated)
		listed[i] = plan.Head{Key: h.ID.Work, Known: k}
	}
	return listed, nil
}

// Known returns everything that is known of one work; nil when there is none.
func (w *Works) Known(ctx context.Context, key string) (*plan.Known, error) {
	id := saga.ID{Saga: w.c.Saga, Work: key}
	chains, err := w.c.Ledger.Load(ctx, []saga.ID{id})
	if err != nil || len(chains) == 0 {
		return nil, err
	}
	c := &chains[0]
	st, err := saga.Fold(id, c.Records)
	if err != nil {
		return nil, fmt.Errorf("the chain does not fold; run amends check: %w", err)
	}
	if st.Adopting { // it was cut off: adopting it again takes it up
		return nil, nil
	}
	k := &plan.Known{Works: 1, Status: standing(&c.Head), Reason: st.Reason, Revision: applied(st)}
	if ss := st.Step(w.c.Document); ss != nil {
		k.Made = made(ss)
	}
	if w.c.Fields != nil {
		if k.Fields, err = w.c.Fields(st.Input); err != nil {
			return nil, fmt.Errorf("what the document of %s should say: %w", key, err)
		}
	}
	k.InDoubt = st.Status.Live() && inDoubt(st)
	k.Overdue = w.overdue(k.Status, c.At, c.Head.Due, st.Updated, st.Due, deadline(st))
	return k, nil
}

// applied is the newest version of the object that the work has taken note of. One that said the same, or came while the
// work was being undone, was heard and changed nothing; told again it would change nothing, either.
func applied(st *saga.State) string {
	if st.Newer == nil && saga.CompareRevisions(st.Heard, st.Revision) > 0 {
		return st.Heard
	}
	return st.Revision
}

// standing is the status of a work. One that has ended, and was told something that nobody has heard yet, is on its
// way again.
func standing(h *ledger.Head) saga.Status {
	if h.Status.Terminal() && h.Posted > h.Consumed {
		return saga.Running
	}
	return h.Status
}

// made is the external id of the document, also of one that an earlier revision has left.
func made(ss *saga.StepState) string {
	switch {
	case ss.Undo.Phase == saga.Done:
		return ""
	case ss.ExternalID == "" && ss.Previous != nil:
		return ss.Previous.ExternalID
	default:
		return ss.ExternalID
	}
}

func inDoubt(st *saga.State) bool {
	for i := range st.Steps {
		if st.Steps[i].Forward.Phase == saga.InDoubt || st.Steps[i].Undo.Phase == saga.InDoubt {
			return true
		}
	}
	return false
}

// deadline is until when the attempts that are under way may take.
func deadline(st *saga.State) (last time.Time) {
	for i := range st.Steps {
		for _, e := range []*saga.Effort{&st.Steps[i].Forward, &st.Steps[i].Undo} {
			if e.Phase == saga.Started && e.Deadline.After(last) {
				last = e.Deadline
			}
		}
	}
	return last
}

// overdue reports whether a work that moves by itself should have done so since the latest of some times.
func (w *Works) overdue(s saga.Status, now time.Time, times ...time.Time) bool {
	if !s.Live() {
		return false
	}
	for _, t := range times {
		if t.Add(w.c.Overdue).After(now) {
			return false
		}
	}
	return true
}

// Resume wakes a work that should have moved: whoever can run it is told, and the history says who did and why.
func (w *Works) Resume(ctx context.Context, key string, by repair.By) error {
	id := saga.ID{Saga: w.c.Saga, Work: key}
	chains, err := w.c.Ledger.Load(ctx, []saga.ID{id})
	if err != nil {
		return fmt.Errorf("resume %s: %w", id, err)
	}
	if len(chains) == 0 {
		return fmt.Errorf("resume %s: %w", id, ledger.ErrNotFound)
	}
	h := &chains[0].Head
	return w.c.Ledger.Post(ctx, id, saga.Signal{
		Kind: saga.SignalWake, Key: fmt.Sprintf("stuck:%s", h.Updated.UTC().Format(time.RFC3339Nano)), Actor: by.Actor, Reason: by.Reason,
	})
}

// Adopt records what stands, and makes and sends nothing.
func (w *Works) Adopt(ctx context.Context, as []repair.Adoption, by repair.By) ([]repair.Adopted, error) {
	out := make([]repair.Adopted, len(as))
	var known []coordinator.Adoption
	var at []int // the index in as of each
	for i := range as {
		a, err := w.adoption(&as[i], by)
		if err != nil {
			out[i].Err = err
			continue
		}
		known, at = append(known, a), append(at, i)
	}
	answers, err := w.c.Coordinator.Adopt(ctx, known)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		out[at[i]] = repair.Adopted{Status: a.Status, Known: a.Known, Err: a.Err}
	}
	return out, nil
}

func (w *Works) adoption(a *repair.Adoption, by repair.By) (coordinator.Adoption, error) {
	c := a.Change
	input, err := w.c.Input(c)
	if err != nil {
		return coordinator.Adoption{}, fmt.Errorf("adopt %s: its input: %w", a.Key, err)
	}
	effects := make(map[string]coordinator.Effect, len(a.Effects))
	for step, e := range a.Effects {
		effects[step] = coordinator.Effect(e)
	}
	return coordinator.Adoption{
		Saga: w.c.Saga, Work: a.Key, Input: input, Revision: c.Revision, Effects: effects,
		Cancelled: a.Cancelled, Quarantine: a.Quarantine, By: coordinator.By(by),
	}, nil
}

// Again runs a completed work once more, at the revision it has.
func (w *Works) Again(ctx context.Context, key, request string, by repair.By) error {
	_, err := w.c.Coordinator.Rerun(ctx, saga.ID{Saga: w.c.Saga, Work: key}, request, coordinator.By(by))
	return err
}
