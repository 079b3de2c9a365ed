package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// The people around a simulated fleet: operators who cancel, and one who settles reviews with true
// words.

// patience is how long a review lies before a person looks at it: everything that was on its way
// has arrived by then, and a late answer may have settled it.
const patience = 40 * time.Second

// person settles reviews until done is closed.
func (s *simulation) person(done <-chan struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	seen := map[saga.ID]int64{} // the record that a review was judged at
	for {
		select {
		case <-tick.C:
		case <-done:
			return
		}
		for id, still := range s.tap.reviews() {
			st := s.stand(id)
			if st == nil || st.Status != saga.Review || still < patience || seen[id] == st.Seq {
				continue
			}
			seen[st.ID] = st.Seq
			s.review(st)
		}
	}
}

// stand reads a work as people do.
func (s *simulation) stand(id saga.ID) *machine.State {
	rs, err := s.tap.History(context.Background(), id)
	if err != nil {
		return nil
	}
	st, err := machine.Fold(id, rs)
	if err != nil {
		return nil
	}
	return st
}

// review judges why a person is asked at all, and answers truly.
func (s *simulation) review(st *machine.State) {
	s.mu.Lock()
	s.reviews[st.Reason]++
	s.mu.Unlock()
	spec := s.spec(versionOf(st))
	ss, dir := st.Issue(spec)
	if why := s.explain(st, ss, dir); why != "" {
		s.faultf("review: %s is in review (%s: %s), and %s", st.ID, st.Reason, st.Note, why)
	}
	if ss == nil {
		return
	}
	op := coordinator.NewOperator(s.tap)
	by := saga.Actor{Name: "a person", Reason: "looked at the destination"}
	var err error
	switch {
	case st.Reason == saga.ReasonConflict:
		err = op.Keep(context.Background(), st.ID, by)
	case dir == saga.Undo:
		s.sites.repair(st.ID, ss.Name, 0)
		err = op.Resolve(context.Background(), st.ID, ss.Name, coordinator.Happened(""), by)
	default:
		resolution := coordinator.DidNotHappen()
		if left := s.sites.repair(st.ID, ss.Name, 1); left != "" {
			resolution = coordinator.Happened(left)
		}
		err = op.Resolve(context.Background(), st.ID, ss.Name, resolution, by)
	}
	if err != nil && !errors.Is(err, coordinator.ErrNotInReview) && !errors.Is(err, coordinator.ErrOtherStep) {
		s.faultf("a person's resolution on %s of %s was refused: %v", ss.Name, st.ID, err)
	}
}

// explain says why no person should have been asked, or "" when a destination gave cause to. A
// deploy, a backlog and a clock are none.
func (s *simulation) explain(st *machine.State, ss *machine.StepState, dir saga.Direction) string {
	if ss == nil {
		return "it is about no step"
	}
	spec := s.spec(versionOf(st))
	i := slices.IndexFunc(spec.Steps, func(sp program.StepSpec) bool { return sp.Name == ss.Name })
	if i < 0 {
		return fmt.Sprintf("it is about step %s, which its definition does not have", ss.Name)
	}
	sent := s.sites.sent(st.ID, ss.Name)
	told := func(r request) bool { return !r.told.IsZero() }
	switch st.Reason {
	case saga.ReasonInDoubt:
		if spec.Steps[i].Repeat != program.RepeatAtMostOnce && s.sites.taintOf(st.ID, spec.Steps[i].Repeat) == "" {
			return fmt.Sprintf("step %s can be repeated or asked about, and its destination kept its times", ss.Name)
		}
		if len(sent) > 0 && !slices.ContainsFunc(sent, func(r request) bool { return !told(r) || r.from.troubled(r.at) }) && s.sites.taintOf(st.ID, spec.Steps[i].Repeat) == "" {
			return fmt.Sprintf("each of its %d requests was answered in time to a process that lived on and was well", len(sent))
		}
		return ""
	case saga.ReasonAfterPivot, saga.ReasonUndoFailed:
		if dir == saga.Undo || slices.ContainsFunc(sent, func(r request) bool { return r.fate == "refused" }) {
			return ""
		}
		return "nothing was refused"
	case saga.ReasonExhausted:
		return "no destination was away for long enough to use a policy of 500 tries up"
	case saga.ReasonConflict:
		return ""
	default:
		return "no destination gave cause to"
	}
}

// troubled reports whether the process was disturbed at some time since an attempt: it died, slept,
// or its way to the ledger was out of order.
func (m *member) troubled(since time.Time) bool {
	m.mu.Lock()
	bad := m.dead || m.asleep != nil || m.well.After(since)
	m.mu.Unlock()
	dark, last := m.link.disturbed()
	return bad || dark || last.After(since)
}

// cancel asks for a live work to be undone, as an operator at a terminal of his own.
func (s *simulation) cancel() {
	var live []saga.ID
	s.tap.mu.Lock()
	for _, w := range s.tap.order {
		if w.st.Status.Live() || w.st.Status == saga.Review {
			live = append(live, w.st.ID)
		}
	}
	s.tap.mu.Unlock()
	if len(live) == 0 {
		return
	}
	a := &asked{id: live[s.r.IntN(len(live))], reason: fmt.Sprintf("cancel %d", len(s.cancels)+1)}
	err := coordinator.NewOperator(s.tap).Cancel(context.Background(), a.id, saga.Actor{Name: "an operator", Reason: a.reason})
	switch {
	case err == nil:
		s.cancels = append(s.cancels, a)
	case !errors.Is(err, coordinator.ErrFinished) && !errors.Is(err, coordinator.ErrChangesNothing):
		s.faultf("cancel of %s: %v", a.id, err)
	}
}
