package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Operator says things to works, as a person or a program on a person's behalf. It needs the ledger
// only: no definition, no session. Everything it does is a signal with an actor and a reason,
// applied by the coordinator that holds the work.
type Operator struct {
	ledger   ledger.Ledger
	programs func(*machine.State) saga.Program // a coordinator's, to read answers with; nil where it is not known
	posted   func(id saga.ID)                  // a signal was posted here; nil: no coordinator runs here

	mu    sync.Mutex
	specs map[ledger.Version]*program.Spec
}

// NewOperator returns an operator over l.
func NewOperator(l ledger.Ledger) *Operator {
	return &Operator{ledger: l, programs: func(*machine.State) saga.Program { return nil }, specs: map[ledger.Version]*program.Spec{}}
}

// Happened says that the step's effect is there, under the given external id ("" when it has none).
// The step counts as done.
func Happened(externalID string) saga.Resolution {
	return saga.Resolution{Happened: true, ExternalID: externalID}
}

// DidNotHappen says that the step had no effect. It may be done again, under a new key.
func DidNotHappen() saga.Resolution { return saga.Resolution{} }

// Errors of the operator's verbs. Whatever is refused with one of them, nothing was stored.
var (
	// ErrNotInReview: only a work in review, or one that a person has paused, takes a resolution or
	// a skip.
	ErrNotInReview = errors.New("the work is neither in review nor paused")
	// ErrOtherStep: the review is about another step.
	ErrOtherStep = errors.New("the review is not about this step")
	// ErrFinished: the work has ended and does not change.
	ErrFinished = errors.New("the work has ended")
	// ErrAtRest: what is not moving cannot be paused.
	ErrAtRest = errors.New("the work does not move by itself")
	// ErrNotPaused: only what a person has paused can be resumed.
	ErrNotPaused = errors.New("the work is not paused")
	// ErrNotWaiting: only what waits for a time can be woken.
	ErrNotWaiting = errors.New("the work waits for no time")
	// ErrNotAsking: only what waits for an answer can be answered by hand, or wait longer.
	ErrNotAsking = errors.New("the work waits for no answer")
	// ErrUnderWay: an attempt is under way, and its answer comes first.
	ErrUnderWay = errors.New("an attempt is under way")
	// ErrChangesNothing: the coordinator would read it, and put on record why it changes nothing.
	ErrChangesNothing = errors.New("it would change nothing")
	// ErrInDoubt: a step may have happened, and has to be settled first.
	ErrInDoubt = errors.New("a step may have happened")
	// ErrNotEnded: only what has ended, or was given up, is run again.
	ErrNotEnded = errors.New("the work has not ended")
	// ErrWithdrawn: its source cancelled it, and only a newer version of its source runs it again.
	ErrWithdrawn = errors.New("its source cancelled it")
)

// standing is where a work stands, and what was said to it that is not read yet.
type standing struct {
	st     *machine.State
	spec   *program.Spec // nil: the ledger does not know the definition
	unread []machine.Signal
	at     time.Time // by the ledger's clock
}

// next is what is safe to do, in words.
func (s *standing) next() string { return machine.Next(s.spec, s.st) }

// is says where the work stands, as the end of a sentence.
func (s *standing) is() string {
	if s.st.Status == saga.Review {
		return "in review"
	}
	return string(s.st.Status)
}

// post posts a signal. In a process that runs a coordinator the work is told at once.
func (op *Operator) post(ctx context.Context, id saga.ID, sig machine.Signal) error {
	err := op.ledger.Post(ctx, id, sig)
	if err == nil && op.posted != nil {
		op.posted(id)
	}
	return err
}

// order posts what a person wants of a work. say refuses it or says which signal it is.
func (op *Operator) order(ctx context.Context, id saga.ID, verb string, by saga.Actor, say func(*standing) (machine.Signal, error)) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("%s %s:\n%w", verb, id, err)
	}
	s, err := op.stand(ctx, id)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	if s.st.Reason == saga.ReasonHung && (verb == "resolve" || verb == "skip" || verb == "retry") {
		return fmt.Errorf("%s %s: %w while its action has not returned: %s", verb, id, ErrChangesNothing, s.next())
	}
	sig, err := say(s)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	sig.Key, sig.Actor, sig.Reason, sig.ByHand = fmt.Sprintf("%s:%d%s", verb, s.st.Seq, sig.Key), by.Name, by.Reason, true
	if err := op.post(ctx, id, sig); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	return nil
}

// Resolve posts a person's resolution of the step a review is about, or on one that was adopted as
// done because it could not be told, whatever the work's status is: then it is confirmed, or done
// under a new key. It is applied by the coordinator that takes the work up, and refused there if
// the step has moved on meanwhile. Of an undo the external id is not that of what the step made.
func (op *Operator) Resolve(ctx context.Context, id saga.ID, step string, v saga.Resolution, by saga.Actor) error {
	return op.order(ctx, id, "resolve", by, func(s *standing) (machine.Signal, error) {
		ss, dir := s.st.IssueOf(s.spec, step)
		if ss == nil && s.st.Status != saga.Review && s.st.Status != saga.Paused {
			return machine.Signal{}, fmt.Errorf("%w: it is %s", ErrNotInReview, s.is())
		}
		if ss == nil {
			return machine.Signal{}, fmt.Errorf("%w: %s", ErrOtherStep, s.next())
		}
		if dir == saga.Undo && v.Happened && v.ExternalID != "" && v.ExternalID == ss.ExternalID {
			return machine.Signal{}, fmt.Errorf("%w: %s is what step %q made, and the review is about its undo. If it is undone, say so without an id; if it is not, undo it first",
				ErrOtherStep, v.ExternalID, step)
		}
		if ss != nil && ss.Answering().Asks != nil && ss.Forward.Phase == machine.Waiting {
			return machine.Signal{}, fmt.Errorf("%w: step %q waits for an answer. %s", ErrOtherStep, ss.Name, s.next())
		}
		sig := machine.Signal{Kind: machine.SignalResolve, Key: fmt.Sprintf(":%t:%s", v.Happened, v.ExternalID), Resolution: latestOf(ss, dir)}
		sig.Happened, sig.ExternalID = v.Happened, v.ExternalID
		return sig, s.wouldNote(sig)
	})
}

// latestOf names the latest attempt of a step.
func latestOf(ss *machine.StepState, dir saga.Direction) saga.Resolution {
	v := saga.Resolution{Step: ss.Name, Direction: dir, Attempt: ss.Forward.Attempts}
	if dir == saga.Undo {
		v.Attempt = ss.Undo.Attempts
	}
	return v
}

// Cancel asks that what the work has done be undone. A work that is undone already, or whose pivot
// has happened or may have, matches [ErrChangesNothing]; one that has ended [ErrFinished]. While an
// attempt is under way the cancel is stored, and refused on record if the pivot may have happened by then.
func (op *Operator) Cancel(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "cancel", by, func(s *standing) (machine.Signal, error) {
		if s.st.Status.Terminal() {
			return machine.Signal{}, fmt.Errorf("%w: it is %s", ErrFinished, s.is())
		}
		sig := machine.Signal{Kind: machine.SignalCancel}
		if s.attempting() {
			return sig, nil
		}
		return sig, s.wouldNote(sig)
	})
}

// Keep leaves a work as it stands that the source cancelled and that could not be undone by itself
// (review, conflict). It is applied by the coordinator that takes the work up.
func (op *Operator) Keep(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "keep", by, func(s *standing) (machine.Signal, error) {
		switch {
		case s.st.Status != saga.Review:
			return machine.Signal{}, fmt.Errorf("%w: it is %s", ErrNotInReview, s.is())
		case s.st.Reason != saga.ReasonConflict:
			return machine.Signal{}, fmt.Errorf("%w for a cancel by its source, but because: %s", ErrNotInReview, s.st.Reason)
		}
		return machine.Signal{Kind: machine.SignalKeep}, nil
	})
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
func (op *Operator) fold(ctx context.Context, id saga.ID) (*machine.State, error) {
	s, err := op.stand(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.st, nil
}

// errUnfolded is why nothing can be said of a work: its chain does not load, or not fold.
var errUnfolded = errors.New("its chain cannot be read; run amends check")

// stand loads and folds a work's chain, with the signals that no record has consumed yet.
func (op *Operator) stand(ctx context.Context, id saga.ID) (*standing, error) {
	chains, err := op.ledger.Load(ctx, []saga.ID{id})
	if err != nil {
		return nil, err
	}
	if len(chains) == 0 {
		return nil, ledger.ErrNotFound
	}
	c := &chains[0]
	st, err := machine.Fold(id, c.Records)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfolded, err)
	}
	unread := slices.DeleteFunc(c.Signals, func(s machine.Signal) bool { return st.Saw(s.ID) })
	spec, err := op.spec(ctx, st)
	return &standing{st: st, spec: spec, unread: unread, at: c.At}, err
}

// signals returns the signals posted to a work that are of a kind.
func (op *Operator) signals(ctx context.Context, id saga.ID, of func(*machine.Signal) bool) ([]machine.Signal, error) {
	all, err := op.ledger.Signals(ctx, id)
	return slices.DeleteFunc(all, func(s machine.Signal) bool { return !of(&s) }), err
}

func (op *Operator) summarize(ctx context.Context, st *machine.State) (saga.Summary, error) {
	spec, err := op.spec(ctx, st)
	if err != nil {
		return saga.Summary{}, err
	}
	return machine.Summarize(spec, st), nil
}

// spec returns the structure the ledger knows for the work's definition, or nil when it knows none.
func (op *Operator) spec(ctx context.Context, st *machine.State) (*program.Spec, error) {
	v := ledger.Version{Saga: st.ID.Saga, Version: st.Version}
	op.mu.Lock()
	spec, ok := op.specs[v]
	op.mu.Unlock()
	if ok {
		return spec, nil
	}
	ds, err := op.ledger.Definitions(ctx)
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
