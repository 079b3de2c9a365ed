package coordinator

import (
	"context"
	"crypto/sha256"
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
	programs func(*machine.State) saga.Program            // a coordinator's, to read answers with; nil where it is not known
	counts   func(ctx context.Context, by, source string) // a coordinator's, of what a layer blocked; nil: no coordinator is here
	posted   func(id saga.ID, sig *machine.Signal) bool   // a signal was posted here, and is the work in hand? nil: no coordinator runs here

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
	// ErrInputGone: what is undone or run again needs the input, which has gone by retention, or is sealed and this process has no key to it.
	ErrInputGone = errors.New("its input is not here, and no step can be run without it: if it is sealed, give the keys (AMENDS_KEYS); if it has gone by retention, change what it made at the destination, by hand")
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
	posted int64     // signals received
	at     time.Time // by the ledger's clock
}

// next is what happens by itself and what to look at, in words, and where it is said what can be done.
func (s *standing) next() string { return machine.Summarize(s.spec, s.st).Next }

// is says where the work stands, as the end of a sentence.
func (s *standing) is() string {
	if s.st.Status == saga.Review {
		return "in review"
	}
	return string(s.st.Status)
}

// post posts a signal, and has the work told at once.
func (op *Operator) post(ctx context.Context, id saga.ID, sig machine.Signal) (ledger.Posted, error) {
	p, err := op.ledger.Post(ctx, id, sig)
	if err == nil {
		op.announce(id, sig, p)
	}
	return p, err
}

// announce has a work told of a signal that was posted: here when it is in hand here, and by other processes else.
func (op *Operator) announce(id saga.ID, sig machine.Signal, p ledger.Posted) {
	sig.ID, sig.At = p.Number, p.At
	if op.posted == nil || !op.posted(id, &sig) {
		op.stir()
	}
}

// stir has other processes look for what there is to claim, where the ledger can tell them.
func (op *Operator) stir() {
	if s, ok := op.ledger.(ledger.Stirrer); ok {
		s.Stir()
	}
}

// order posts what a person wants of a work, where it is a choice of the work. say says which signal it is, or what else is wrong with it.
func (op *Operator) order(ctx context.Context, id saga.ID, verb string, by saga.Actor, say func(*standing) (machine.Choice, machine.Signal, error)) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("%s %s:\n%w", verb, id, err)
	}
	s, err := op.stand(ctx, id)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	act, sig, err := say(s)
	if err == nil {
		err = s.refuses(act, sig)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	sig.Key, sig.Actor, sig.Reason, sig.ByHand = fmt.Sprintf("%s:%d%s", verb, s.st.Seq, sig.Key), by.Name, by.Reason, true
	if _, err := op.post(ctx, id, sig); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	return nil
}

// refusals say what a work is not that takes an act.
var refusals = map[string]error{
	machine.VerbPause: ErrAtRest, machine.VerbResume: ErrNotPaused, machine.VerbWake: ErrNotWaiting, machine.VerbUndo: ErrNotEnded,
	machine.VerbComplete: ErrNotAsking, machine.VerbFail: ErrNotAsking, machine.VerbExtend: ErrNotAsking,
	machine.VerbResolve: ErrNotInReview, machine.VerbSkip: ErrNotInReview, machine.VerbRetry: ErrChangesNothing, machine.VerbCancel: ErrChangesNothing,
}

// refuses is why a work does not take an act as it stands: it is none of its choices, or the machine would only put it on record.
func (s *standing) refuses(act machine.Choice, sig machine.Signal) error {
	st, verb := s.st, act.Verb
	if s.spec == nil || machine.Takes(s.spec, st, s.at, act) || s.undoes(verb) {
		return s.wouldNote(sig)
	}
	about := verb == machine.VerbRetry || verb == machine.VerbSkip || verb == machine.VerbResolve
	held := st.Status == saga.Review || st.Status == saga.Paused
	why := refusals[verb]
	switch {
	case about && st.Reason == saga.ReasonHung:
		return fmt.Errorf("%w while its action has not returned: %s", ErrChangesNothing, s.next())
	case st.RecordsGone:
		return ErrForgotten
	case verb == machine.VerbUndo && st.InputGone != nil:
		return ErrInputGone
	case verb == machine.VerbUndo && st.Status != saga.Compensated:
		return fmt.Errorf("%w: it is %s. To undo what it has done so far, cancel it", why, s.is())
	case st.Status.Terminal() && (verb == machine.VerbPause || verb == machine.VerbRetry || verb == machine.VerbCancel):
		why = ErrFinished
	case verb == machine.VerbRetry && st.Attempting():
		why = ErrUnderWay
	case about && held && sig.Step == "":
		why = ErrOtherStep
	case verb == machine.VerbUndo && st.Status == saga.Compensated, about && held:
		why = ErrChangesNothing
	}
	if errors.Is(why, ErrChangesNothing) {
		if err := s.wouldNote(sig); err != nil { // it says it better
			return err
		}
	}
	return fmt.Errorf("%w: it is %s. %s", why, s.is(), s.next())
}

// undoes reports whether an act takes back what was said before and is not read yet.
func (s *standing) undoes(verb string) bool {
	return verb == machine.VerbPause && s.st.Status.Parked() && len(s.unread) > 0 || verb == machine.VerbResume && s.says(machine.SignalPause)
}

// Resolve posts a person's resolution of the step a review is about, or on one that was adopted as
// done because it could not be told, whatever the work's status is: then it is confirmed, or done
// under a new key. It is applied by the coordinator that takes the work up, and refused there if
// the step has moved on meanwhile. Of an undo the external id is not that of what the step made. With
// an Output, what happened has that result; it may be given to a step that is done and whose result
// was not kept, too, which an Output alone is about.
func (op *Operator) Resolve(ctx context.Context, id saga.ID, step string, v saga.Resolution, by saga.Actor) error {
	if err := checkResult(&program.Result{Output: v.Output}); err != nil {
		return fmt.Errorf("resolve %s: %w", id, err)
	}
	return op.order(ctx, id, "resolve", by, resolving(step, v))
}

func resolving(step string, v saga.Resolution) func(*standing) (machine.Choice, machine.Signal, error) {
	return func(s *standing) (machine.Choice, machine.Signal, error) {
		act := machine.Choice{Verb: machine.VerbResolve, Step: step, Says: machine.SayDidNotHappen}
		sig := machine.Signal{Kind: machine.SignalResolve, Key: fmt.Sprintf(":%t:%s", v.Happened, v.ExternalID)}
		if v.Happened {
			act.Says = machine.SayHappened
		}
		if ss, dir := s.st.IssueOf(s.spec, step); ss != nil && ss != s.st.Awaited() { // that is answered, or voted on
			sig.Resolution = latestOf(ss, dir)
			if dir == saga.Undo && v.Happened && v.ExternalID != "" && v.ExternalID == ss.ExternalID {
				return act, sig, fmt.Errorf("%w: %s is what step %q made, and the review is about its undo. If it is undone, say so without an id; if it is not, undo it first",
					ErrOtherStep, v.ExternalID, step)
			}
		}
		if sig.Happened, sig.ExternalID, sig.Output = v.Happened, v.ExternalID, v.Output; len(v.Output) > 0 {
			sum := sha256.Sum256(v.Output)
			sig.Key += fmt.Sprintf(":%x", sum[:8])
			if !v.Happened || sig.Direction == saga.Undo {
				return act, sig, fmt.Errorf("%w: a result is of what happened, and not of an undo", ErrOtherStep)
			}
		}
		return act, sig, nil
	}
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
	return op.order(ctx, id, "cancel", by, cancelling)
}

func cancelling(*standing) (machine.Choice, machine.Signal, error) {
	return machine.Choice{Verb: machine.VerbCancel}, machine.Signal{Kind: machine.SignalCancel}, nil
}

// Undo has a work undone that is completed, behind its pivot, too: newest step first, as its definition says, or review where
// that does not have a step that stands. With the name of a step it is undone from that one on: what was done before stays, also by a
// step that its definition does not have any more, and the work is completed again then. It can be run again ([Operator.Rerun]), and a
// newer version of its source runs it as ever. One that is undone or given up already, and a step of which nothing stands, match
// [ErrChangesNothing], and one that has not ended [ErrNotEnded]: that is cancelled.
func (op *Operator) Undo(ctx context.Context, id saga.ID, from string, by saga.Actor) error {
	return op.order(ctx, id, "undo", by, undoing(from))
}

func undoing(from string) func(*standing) (machine.Choice, machine.Signal, error) {
	return func(s *standing) (machine.Choice, machine.Signal, error) {
		sig := machine.Signal{Kind: machine.SignalCancel, News: machine.News{Revision: s.repeated(nil).Revision}}
		if sig.Step = from; from != "" {
			sig.Key = ":" + from
		}
		return machine.Choice{Verb: machine.VerbUndo}, sig, nil
	}
}

// Keep leaves a work as it stands that the source cancelled and that could not be undone by itself
// (review, conflict). It is applied by the coordinator that takes the work up.
func (op *Operator) Keep(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "keep", by, func(*standing) (machine.Choice, machine.Signal, error) {
		return machine.Choice{Verb: machine.VerbResolve, Says: machine.SayKeep}, machine.Signal{Kind: machine.SignalKeep}, nil
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
	return &standing{st: st, spec: spec, unread: unread, posted: c.Instance.Posted, at: c.At}, err
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
