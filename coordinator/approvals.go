package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What people decide for the instances that wait for it (see [saga.Approve]).

// Errors of votes. A vote that matches [ErrNoVote] or [ErrOtherShown] is in the history of its instance, and counts for nothing.
var (
	// ErrNotOpen: nothing is to be decided at that step, or not any more.
	ErrNotOpen = machine.ErrNotOpen
	// ErrOtherShown: what is to be decided is not what the vote is about: the person has to look again.
	ErrOtherShown = machine.ErrOtherShown
	// ErrNoVote: that person has no vote: the roles are others, or it is the starter.
	ErrNoVote = machine.ErrNoVote
	// ErrVoted: that person has voted so before, and it counts.
	ErrVoted = machine.ErrVoted
)

// Approval is what people decide at a step of an instance, and how they have voted so far.
type Approval struct {
	ID      saga.ID
	Run     string // the revision that the instance is at
	Step    string
	About   *saga.About     // what the definition says about it; nil: nothing
	Shown   json.RawMessage // what they decide about: saga, version, work id, step, input, the results of earlier steps, and About
	Digest  string          // of Shown and of the run; a vote says it
	Roles   []string        // who may vote now
	Needed  int             // how many have to approve
	Votes   []saga.Vote
	Since   time.Time
	Until   time.Time // without a decision by then it is rejected
	Outcome string    // of what is not to be decided any more: approved, rejected, or why else; empty: it is
}

// Path is the approval's page, below where the handler of package approval is mounted.
func (a *Approval) Path() string { return approvalPath(a.ID, a.Step) }

func approvalPath(id saga.ID, step string) string {
	return "/" + url.PathEscape(id.Saga) + "/" + url.PathEscape(id.Work) + "/" + url.PathEscape(step)
}

// brief is what a step says to people whom it asks to vote, or nil.
func (w *work) brief(step string) *program.Brief {
	b := machine.BriefOf(w.spec(), w.st, step)
	if b != nil {
		b.Path = approvalPath(w.id, b.Step)
	}
	return b
}

// Voter is a person who votes. Where the name and the roles come from decides who can vote: take them from a login, never
// from what a request says of itself.
type Voter struct {
	saga.Actor
	Roles []string
}

// Approval returns what people decide at a step of an instance, "" the one that it waits at. What was never to be decided matches
// [ErrNotOpen].
func (op *Operator) Approval(ctx context.Context, id saga.ID, step string) (Approval, error) {
	s, err := op.stand(ctx, id)
	if err != nil {
		return Approval{}, fmt.Errorf("approval of %s: %w", id, err)
	}
	a, err := s.approval(step, "")
	if err != nil {
		return Approval{}, fmt.Errorf("approval of %s: %w", id, err)
	}
	return a, nil
}

// approval is what people decide at a step, "" the one of which shown is the digest, the one at issue, or one that was decided.
func (s *standing) approval(step, shown string) (a Approval, err error) {
	ss := s.st.Step(step)
	if step == "" {
		ss, _ = s.st.Issue(s.spec)
		for i := range s.st.Steps {
			one := &s.st.Steps[i]
			if b := one.Ballot(); b != nil && b.Digest == shown {
				ss = one
				break
			}
			if one.Ballot() != nil && (one.Forward.Phase == machine.Waiting || ss == nil || ss.Ballot() == nil) {
				ss = one
			}
		}
	}
	if ss == nil || ss.Ballot() == nil || s.spec == nil || s.spec.Index(ss.Name) < 0 || s.spec.Steps[s.spec.Index(ss.Name)].Approval == nil {
		return a, fmt.Errorf("%w: it is %s. %s", ErrNotOpen, s.is(), s.next())
	}
	if p := ss.Forward.Phase; p == "" || p == machine.Ready { // a newer version does not come to it before the steps in front of it are done
		return a, fmt.Errorf("%w yet: it is %s. %s", ErrNotOpen, s.is(), s.next())
	}
	spec, b := s.spec.Steps[s.spec.Index(ss.Name)].Approval, ss.Ballot()
	a = Approval{
		ID: s.st.ID, Run: s.st.Revision, Step: ss.Name, Shown: b.Shown, Digest: b.Digest, Roles: machine.Voters(spec, b.Since, s.at), Needed: spec.Votes, Votes: b.Votes,
		Since: b.Since, Until: ss.WaitsUntil, About: program.AboutOf(b.Shown),
	}
	switch {
	case ss.Forward.Phase == machine.Waiting && !s.st.Compensating && !s.st.Status.Terminal() && (s.at.Before(ss.WaitsUntil) || ss.Forward.NeedsReview != ""):
	case ss.Forward.Phase == machine.Done:
		a.Outcome = "approved"
	case ss.Forward.Phase == machine.Refused:
		a.Outcome = ss.Forward.Error
	case s.st.Compensating:
		a.Outcome = "it is undone"
	default:
		a.Outcome = "its time is over"
	}
	return a, nil
}

// Approvals lists what people have to decide, oldest first.
func (op *Operator) Approvals(ctx context.Context) iter.Seq2[Approval, error] {
	return func(yield func(Approval, error) bool) {
		steps, err := op.approvalSteps(ctx)
		if err != nil {
			yield(Approval{}, fmt.Errorf("list approvals: %w", err))
			return
		}
		var all []Approval
		seen := map[saga.ID]bool{}
		for at, step := range steps {
			for _, status := range []saga.Status{saga.Waiting, saga.Retrying, saga.Running} {
				for h, err := range op.List(ctx, Filter{Saga: at.Saga, Step: at.Work, Status: status}) {
					if err != nil {
						yield(Approval{}, err)
						return
					}
					a, err := op.Approval(ctx, h.ID, step)
					switch {
					case errors.Is(err, ErrNotOpen), errors.Is(err, ErrNotFound): // it moved meanwhile, or has not come to it
					case err != nil:
						yield(Approval{}, err)
						return
					case a.Outcome == "" && !seen[h.ID]:
						seen[h.ID] = true
						all = append(all, a)
					}
				}
			}
		}
		slices.SortStableFunc(all, func(a, b Approval) int { return a.Since.Compare(b.Since) })
		for i := range all {
			if !yield(all[i], nil) {
				return
			}
		}
	}
}

// approvalSteps are the approvals by saga and, for the work, by the step that an instance may show while people decide: the approval
// itself, or one that asks for it.
func (op *Operator) approvalSteps(ctx context.Context) (map[saga.ID]string, error) {
	ds, err := op.ledger.Definitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	steps := map[saga.ID]string{}
	for i := range ds {
		for j := range ds[i].Spec.Steps {
			at := saga.ID{Saga: ds[i].Spec.Saga, Work: ds[i].Spec.Steps[j].Name}
			if s := &ds[i].Spec.Steps[j]; s.Approval != nil {
				steps[at] = s.Name
			} else if s.Asks != nil {
				steps[at] = s.Asks.Approval
			}
		}
	}
	return steps, nil
}

// Vote has a person vote at a step of an instance, "" the one that it waits at. shown is the digest of what that person was shown:
// [Approval].Digest. A vote is stored when Vote returns without an error, and counted by the coordinator that takes the
// instance up: what happened before it in the ledger comes first. The same again stores nothing: before
// it is read it is no error, and then it matches [ErrVoted]. What would not count by now is refused, and on record.
func (op *Operator) Vote(ctx context.Context, id saga.ID, step string, approve bool, shown string, by Voter) error {
	verb := "reject"
	if approve {
		verb = "approve"
	}
	err := by.Validate()
	if err != nil {
		return fmt.Errorf("%s %s:\n%w", verb, id, err)
	}
	s, err := op.stand(ctx, id)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	a, err := s.approval(step, shown)
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	sig := machine.Signal{
		Kind: machine.SignalVote, At: s.at, Actor: by.Name, Reason: by.Reason, ByHand: true, Resolution: saga.Resolution{Step: a.Step},
		Said: machine.Said{Vote: &machine.Cast{Approve: approve, Roles: slices.Clone(by.Roles), Shown: shown}},
	}
	objection := machine.Objection(s.spec, s.st, &sig)
	if errors.Is(objection, ErrVoted) {
		op.blocked(ctx, ledger.ByVote, id.Saga)
		return fmt.Errorf("%s %s: %w", verb, id, objection)
	}
	// Said twice it is one signal: it is named after who votes how on what, and since when that is to be decided at this version.
	said := strings.Join([]string{a.Step, shown, machine.Person(by.Name), s.st.Revision, a.Since.Format(time.RFC3339Nano)}, "\x00")
	if objection != nil { // the same is said once in the history, however often it is tried
		said += "\x00" + objection.Error()
	}
	sum := sha256.Sum256([]byte(said))
	sig.Key = verb + ":" + hex.EncodeToString(sum[:16])
	if objection == nil { // what was read, and did not count then, may count now
		before, err := op.signals(ctx, id, func(old *machine.Signal) bool { return strings.HasPrefix(old.Key, sig.Key) })
		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, id, err)
		}
		if !slices.ContainsFunc(s.unread, func(u machine.Signal) bool { return strings.HasPrefix(u.Key, sig.Key) }) {
			sig.Key += strings.Repeat("+", len(before))
		} else {
			sig.Key = before[len(before)-1].Key
			op.blocked(ctx, ledger.ByVote, id.Saga)
		}
	}
	if _, err := op.post(ctx, id, sig); err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	if objection != nil {
		return fmt.Errorf("%s %s: %w", verb, id, objection)
	}
	return nil
}
