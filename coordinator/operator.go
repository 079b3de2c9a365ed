package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Operator says things to works, as a person or a program on a person's behalf. It needs the ledger only: no
// definition, no session. Everything it does is a signal with an actor and a reason, applied by whoever holds
// the work.
type Operator struct {
	ledger ledger.Ledger

	mu    sync.Mutex
	specs map[ledger.Version]*saga.Spec
}

// NewOperator returns an operator over l.
func NewOperator(l ledger.Ledger) *Operator {
	return &Operator{ledger: l, specs: map[ledger.Version]*saga.Spec{}}
}

// By says who wants something, and why. Both are recorded and both are required.
type By struct {
	Actor  string
	Reason string
}

func (b By) check() error {
	var faults []error
	if b.Actor == "" {
		faults = append(faults, errors.New("say who you are (actor)"))
	}
	if b.Reason == "" {
		faults = append(faults, errors.New("say why (reason); it is kept in the ledger"))
	}
	return errors.Join(faults...)
}

// Verdict is a person's word on a step in review.
type Verdict struct {
	happened   bool
	externalID string
}

// Happened says that the step's effect is there, under the given external id ("" when it has none). The step
// counts as done.
func Happened(externalID string) Verdict { return Verdict{happened: true, externalID: externalID} }

// DidNotHappen says that the step had no effect. It may be done again, under a new key.
func DidNotHappen() Verdict { return Verdict{} }

// Errors of the operator's verbs.
var (
	// ErrNotInReview: only a work in review takes a verdict.
	ErrNotInReview = errors.New("the work is not in review")
	// ErrOtherStep: the review is about another step.
	ErrOtherStep = errors.New("the review is not about this step")
	// ErrFinished: the work has ended and does not change.
	ErrFinished = errors.New("the work has ended")
)

// Resolve posts a person's verdict on the step a review is about, or on one that was adopted as done because it could not
// be told, whatever the work's status is: then it is confirmed, or done under a new key. It is applied by the coordinator that takes
// the work up, and refused there if the step has moved on meanwhile.
func (op *Operator) Resolve(ctx context.Context, id saga.ID, step string, v Verdict, by By) error {
	if err := by.check(); err != nil {
		return fmt.Errorf("resolve %s step %q:\n%w", id, step, err)
	}
	st, err := op.fold(ctx, id)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", id, err)
	}
	spec, err := op.spec(ctx, st)
	if err != nil {
		return err
	}
	ss, dir := st.IssueOf(spec, step)
	if ss == nil && st.Status != saga.Review {
		return fmt.Errorf("resolve %s: %w: it is %s", id, ErrNotInReview, st.Status)
	}
	if ss == nil {
		return fmt.Errorf("resolve %s: %w: %s", id, ErrOtherStep, saga.Next(spec, st))
	}
	attempt := ss.Forward.Attempts
	if dir == saga.Undo {
		attempt = ss.Undo.Attempts
	}
	sig := saga.Signal{
		Kind: saga.SignalResolve, Key: fmt.Sprintf("resolve:%d:%t:%s", st.Seq, v.happened, v.externalID), Actor: by.Actor, Reason: by.Reason,
		Verdict: saga.Verdict{Step: step, Direction: dir, Attempt: attempt, Happened: v.happened, ExternalID: v.externalID},
	}
	if err := op.ledger.Post(ctx, id, sig); err != nil {
		return fmt.Errorf("resolve %s: %w", id, err)
	}
	return nil
}

// Cancel asks that what the work has done be undone. It is refused, on record, once the pivot may have
// happened; a work that has ended matches [ErrFinished].
func (op *Operator) Cancel(ctx context.Context, id saga.ID, by By) error {
	if err := by.check(); err != nil {
		return fmt.Errorf("cancel %s:\n%w", id, err)
	}
	st, err := op.fold(ctx, id)
	if err != nil {
		return fmt.Errorf("cancel %s: %w", id, err)
	}
	if st.Status.Terminal() {
		return fmt.Errorf("cancel %s: %w: it is %s", id, ErrFinished, st.Status)
	}
	sig := saga.Signal{Kind: saga.SignalCancel, Key: fmt.Sprintf("cancel:%d", st.Seq), Actor: by.Actor, Reason: by.Reason}
	if err := op.ledger.Post(ctx, id, sig); err != nil {
		return fmt.Errorf("cancel %s: %w", id, err)
	}
	return nil
}

// Keep leaves a work as it stands that the source cancelled and that could not be undone by itself (review,
// conflict). It is applied by the coordinator that takes the work up.
func (op *Operator) Keep(ctx context.Context, id saga.ID, by By) error {
	if err := by.check(); err != nil {
		return fmt.Errorf("keep %s:\n%w", id, err)
	}
	st, err := op.fold(ctx, id)
	if err != nil {
		return fmt.Errorf("keep %s: %w", id, err)
	}
	if st.Status != saga.Review {
		return fmt.Errorf("keep %s: %w: it is %s", id, ErrNotInReview, st.Status)
	}
	if st.Reason != saga.ReasonConflict {
		return fmt.Errorf("keep %s: %w for a cancel by its source, but because: %s", id, ErrNotInReview, st.Reason)
	}
	sig := saga.Signal{Kind: saga.SignalKeep, Key: fmt.Sprintf("keep:%d", st.Seq), Actor: by.Actor, Reason: by.Reason}
	if err := op.ledger.Post(ctx, id, sig); err != nil {
		return fmt.Errorf("keep %s: %w", id, err)
	}
	return nil
}

// Show returns the summary of a work.
func (op *Operator) Show(ctx context.Context, id saga.ID) (saga.Summary, error) {
	st, err := op.fold(ctx, id)
	if err != nil {
		return saga.Summary{}, fmt.Errorf("show %s: %w", id, err)
	}
	return op.summarize(ctx, st)
}

// fold loads and folds a work's chain.
func (op *Operator) fold(ctx context.Context, id saga.ID) (*saga.State, error) {
	st, _, err := op.stand(ctx, id)
	return st, err
}

// stand loads and folds a work's chain, with the signals that no record has consumed yet.
func (op *Operator) stand(ctx context.Context, id saga.ID) (*saga.State, []saga.Signal, error) {
	chains, err := op.ledger.Load(ctx, []saga.ID{id})
	if err != nil {
		return nil, nil, err
	}
	if len(chains) == 0 {
		return nil, nil, ledger.ErrNotFound
	}
	st, err := saga.Fold(id, chains[0].Records)
	if err != nil {
		return nil, nil, err
	}
	unread := slices.DeleteFunc(chains[0].Signals, func(s saga.Signal) bool { return st.Saw(s.ID) })
	return st, unread, nil
}

func (op *Operator) summarize(ctx context.Context, st *saga.State) (saga.Summary, error) {
	spec, err := op.spec(ctx, st)
	if err != nil {
		return saga.Summary{}, err
	}
	return saga.Summarize(spec, st), nil
}

// spec returns the structure the ledger knows for the work's definition, or nil when it knows none.
func (op *Operator) spec(ctx context.Context, st *saga.State) (*saga.Spec, error) {
	v := ledger.Version{Saga: st.ID.Saga, Version: st.Version}
	op.mu.Lock()
	spec, ok := op.specs[v]
	op.mu.Unlock()
	r, reads := op.ledger.(ledger.Reader)
	if ok || !reads {
		return spec, nil
	}
	ds, err := r.Definitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	for i := range ds {
		op.specs[ledger.Version{Saga: ds[i].Spec.Saga, Version: ds[i].Spec.Version}] = &ds[i].Spec
	}
	return op.specs[v], nil
}
