package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

const ofRun = "run:"

// OfRun is the request of [Operator.Rerun] to do a run again, named by its revision ([saga.Summary]), once: when another run has
// followed it by then, nothing is done, and the answer says where that one stands.
func OfRun(revision string) string { return ofRun + revision }

// Rerun runs a work once more at the version of the source that it has: one that is completed, and
// what it made was edited or deleted at a destination by hand; one that is compensated, and its
// source still wants it; one in review whose policy is used up and of which nothing is in doubt.
// Every step gets a new key and is told what it left behind ([saga.Call.PreviousID]); a step that
// is done once per work (a mail) and was done, or may have been, is not done again by it. What its
// action says is gone at the destination ([saga.PreviousGone]) is made again.
//
// The run is a sub-revision ("17+1", see [saga.SubRevision]): older than the source's next version,
// which takes the work on as ever. It takes the newest version of the definition. request names
// what is asked for, as in "ticket 4711" or [OfRun] of the run that was looked at: the same request
// again changes nothing, whatever became of the first, and is answered as a duplicate. Without one
// nothing is done ([ErrInvalid]): a request that is repeated would be another run each time.
//
// What its source cancelled matches [ErrWithdrawn], a step that may have happened [ErrInDoubt], and
// everything else that has not ended [ErrNotEnded]; the error says what to do instead.
func (op *Operator) Rerun(ctx context.Context, id saga.ID, request string, by saga.Actor) (Started, error) {
	if err := by.Validate(); err != nil {
		return Started{}, fmt.Errorf("rerun %s:\n%w", id, err)
	}
	if request == "" {
		return Started{}, fmt.Errorf("rerun %s: %w: say which run is meant (OfRun), or name the request: asked for twice it would be done twice", id, ErrInvalid)
	}
	s, err := op.stand(ctx, id)
	if err != nil {
		return Started{}, fmt.Errorf("rerun %s: %w", id, err)
	}
	sum := machine.Summarize(s.spec, s.st)
	key, run, named := "rerun:"+request, "", false
	if run, named = strings.CutPrefix(request, ofRun); named { // what is read and not begun, such as before a cancel, does not count for ever
		key += ":" + s.st.TailHash.String()
	}
	said, err := op.signals(ctx, id, func(sig *machine.Signal) bool { return sig.Key == key || sig.Kind == machine.SignalRevise })
	if err != nil {
		return Started{}, fmt.Errorf("rerun %s: %w", id, err)
	}
	sig := machine.Signal{Kind: machine.SignalRevise, Key: key, Actor: by.Name, Reason: by.Reason, ByHand: true, News: s.repeated(said)}
	for i := range said {
		if said[i].Key == key {
			return Started{Summary: sum, Duplicate: true}, nil
		}
	}
	if named {
		switch is := saga.CompareRevisions(run, s.st.Revision); {
		case is > 0:
			return Started{Summary: sum}, fmt.Errorf("rerun %s: %w: it has no run %q, the last is %q", id, ErrChangesNothing, run, s.st.Revision)
		case is < 0, s.followed(run):
			return Started{Summary: sum, Duplicate: true}, nil
		}
	}
	if err := s.notRerun(sig); err != nil {
		return Started{Summary: sum}, fmt.Errorf("rerun %s: %w", id, err)
	}
	if _, err := op.post(ctx, id, sig); err != nil {
		return Started{Summary: sum}, fmt.Errorf("rerun %s: %w", id, err)
	}
	return Started{Summary: sum, Revised: true}, nil
}

// followed reports whether another run is to follow the one at a revision: it was asked for, and is not read or not begun yet.
func (s *standing) followed(run string) bool {
	n := s.st.PendingRevision
	return n != nil && !n.Withdrawn && saga.CompareRevisions(n.Revision, run) > 0 ||
		slices.ContainsFunc(s.unread, func(u machine.Signal) bool { return saga.CompareRevisions(u.Revision, run) > 0 })
}

// repeated is what the source said last, as a sub-revision of its own. A version that was heard and
// taken back by a cancel was never begun: what it brought is in its signal.
func (s *standing) repeated(said []machine.Signal) machine.News {
	n := machine.News{Revision: saga.SubRevision(s.st.NewestRevision), Version: s.st.Version, Input: s.st.Input, Identity: s.st.Identity}
	for i := range said {
		if said[i].Revision == s.st.NewestRevision && len(said[i].Input) > 0 {
			n.Input, n.Identity, n.Version = said[i].Input, said[i].Identity, max(n.Version, said[i].Version)
		}
	}
	for i := range s.unread { // others asked, too, and are not heard yet
		if s.unread[i].Revision == n.Revision {
			n.Revision = saga.SubRevision(n.Revision)
		}
	}
	return n
}

// notRerun says why a work cannot be run again now, and what can be done instead.
func (s *standing) notRerun(sig machine.Signal) error {
	why := ErrNotEnded
	switch st := s.st; {
	case s.spec == nil || machine.Takes(s.spec, st, s.at, machine.Choice{Verb: machine.VerbRerun}):
		return s.wouldNote(sig)
	case st.RecordsGone:
		return ErrForgotten
	case st.InputGone != nil:
		return ErrInputGone
	case st.Withdrawn:
		why = ErrWithdrawn
	case st.Reason == saga.ReasonExhausted:
		return fmt.Errorf("%w: what may have happened is not sent again under a new key. %s", ErrInDoubt, s.next())
	}
	return fmt.Errorf("%w: it is %s. %s", why, s.is(), s.next())
}
