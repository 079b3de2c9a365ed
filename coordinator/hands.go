package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What a person does to a work by hand, beside a resolution (machine/S14 to S17). Each is refused here
// where the machine would only note it, and looked at again when it is applied.

// Pause holds a work where it is, going forward or back, until it is resumed or decided about
// ([Operator.Retry], [Operator.Skip], [Operator.Resolve], [Operator.Cancel]). An attempt that is
// under way is answered first. What is in review, or paused already, matches [ErrAtRest].
func (op *Operator) Pause(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "pause", by, func(s *standing) (machine.Choice, machine.Signal, error) {
		return machine.Choice{Verb: machine.VerbPause}, machine.Signal{Kind: machine.SignalPause, Key: s.behind(machine.SignalResume)}, nil
	})
}

// Resume lets a paused work go on where it was, one that is in review because its deadline has passed without
// one, and one that is in review for a late answer as it is.
func (op *Operator) Resume(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "resume", by, resuming)
}

func resuming(s *standing) (machine.Choice, machine.Signal, error) {
	return machine.Choice{Verb: machine.VerbResume}, machine.Signal{Kind: machine.SignalResume, Key: s.behind(machine.SignalPause)}, nil
}

// Wake ends the wait that a work is in, for the time of a [saga.Delay], of a [saga.Until] or of its start: it
// goes on at once. Who did so, and why, is in its history. What waits for no time matches [ErrNotWaiting].
func (op *Operator) Wake(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "wake", by, waking)
}

func waking(s *standing) (machine.Choice, machine.Signal, error) {
	sig := machine.Signal{Kind: machine.SignalEndWait}
	if ss, dir := s.st.Issue(s.spec); ss != nil && dir == saga.Forward && ss.Forward.Phase == machine.Waiting {
		sig.Resolution = saga.Resolution{Step: ss.Name, Direction: dir}
	}
	return machine.Choice{Verb: machine.VerbWake}, sig, nil
}

// Retry has the step at issue tried again, or its undo: at once, under the key that it has, with a
// fresh policy. What may have happened still may, so a step that cannot be asked for is not tried
// again ([ErrChangesNothing]): a person must look.
func (op *Operator) Retry(ctx context.Context, id saga.ID, by saga.Actor) error {
	return op.order(ctx, id, "retry", by, retrying)
}

func retrying(s *standing) (machine.Choice, machine.Signal, error) {
	sig := machine.Signal{Kind: machine.SignalRetry}
	if ss, dir := s.st.Issue(s.spec); ss != nil {
		sig.Resolution = latestOf(ss, dir)
	}
	return machine.Choice{Verb: machine.VerbRetry}, sig, nil
}

// Skip says that a step did not happen and will not, and lets the work go on without it. "" is the
// step at issue; a step that was skipped already can be named, to give the result that a later step
// asks for. result is what later steps find; nil is nothing, and a later step that needs one goes
// to review. What may still arrive of the step is undone when the work goes back; a newer version
// of the source does it again. Of an undo that was refused it says that what the step made stands.
func (op *Operator) Skip(ctx context.Context, id saga.ID, step string, result *program.Result, by saga.Actor) error {
	if err := checkResult(result); err != nil {
		return fmt.Errorf("skip %s: %w", id, err)
	}
	return op.order(ctx, id, "skip", by, skipping(step, result))
}

func skipping(step string, result *program.Result) func(*standing) (machine.Choice, machine.Signal, error) {
	return func(s *standing) (machine.Choice, machine.Signal, error) {
		act, sig := machine.Choice{Verb: machine.VerbSkip}, machine.Signal{Kind: machine.SignalSkip}
		ss, dir := s.st.Issue(s.spec)
		if step != "" && (ss == nil || ss.Name != step) {
			ss, dir, act.Step = s.st.Step(step), saga.Forward, step
		}
		if ss != nil {
			sig.Resolution = latestOf(ss, dir)
		}
		if result != nil {
			sig.ExternalID, sig.Output = result.ExternalID, result.Output
			sum := sha256.Sum256(result.Output)
			sig.Key = fmt.Sprintf(":%s:%x", result.ExternalID, sum[:8])
		}
		return act, sig, nil
	}
}

// checkResult refuses a result that would not be kept.
func checkResult(r *program.Result) error {
	switch {
	case r == nil || len(r.Output) == 0:
		return nil
	case !json.Valid(r.Output):
		return errors.New("the result is not valid JSON")
	case len(r.Output) > program.MaxOutput:
		return fmt.Errorf("the result has %d bytes, and at most %d are kept", len(r.Output), program.MaxOutput)
	default:
		return nil
	}
}

// says reports whether a signal of a kind waits to be read.
func (s *standing) says(kind machine.SignalKind) bool {
	return slices.ContainsFunc(s.unread, func(u machine.Signal) bool { return u.Kind == kind })
}

// behind makes a signal another one than the same said before one of a kind that waits to be read:
// who pauses, resumes and pauses again has said three things.
func (s *standing) behind(kind machine.SignalKind) (key string) {
	for _, u := range s.unread {
		if u.Kind == kind {
			key = fmt.Sprintf(":%d", u.ID)
		}
	}
	return key
}

// wouldNote is the error of a signal that the machine would only put on record as it stands.
func (s *standing) wouldNote(sig machine.Signal) error {
	r := s.trial(sig)
	if r == nil || r.Kind != machine.KindNoted {
		return nil
	}
	return fmt.Errorf("%w: %s. %s", ErrChangesNothing, strings.TrimPrefix(strings.TrimPrefix(r.Note, string(sig.Kind)+": "), "resolution: "), s.next())
}

// trial asks the machine what it would record of a signal now. It is nil where that cannot be told:
// others' signals come first, an attempt is under way, or the ledger does not know the definition.
func (s *standing) trial(sig machine.Signal) *machine.Record {
	if s.spec == nil || len(s.unread) > 0 {
		return nil
	}
	sig.At = s.at
	d, err := machine.Decide(s.spec, s.st, machine.Event{Now: machine.Moment{Earliest: s.at, Latest: s.at}, Newest: &program.Spec{Version: s.st.Version}, Signal: &sig})
	if err != nil { // it does not fit now: the process that holds the work asks again
		return nil
	}
	return d.Record
}
