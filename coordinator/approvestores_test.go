package coordinator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// The votes of section B on the databases: who has no vote, who votes twice, a vote against a vote and against the end, a newer
// version that changes what is shown or does not; processes are killed in between (machine/P1 to P6).
func TestApprovalsOnDatabases(t *testing.T) {
	t.Parallel()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := open(t)
			s := &deciding{t: t, l: l, w: &payments{}, within: time.Hour}
			s.p, s.q = s.boot(), s.boot()
			t.Run("who votes", s.whoVotes)
			t.Run("races", s.races)
			t.Run("newer versions", s.newer)
			t.Run("the end", s.end)
		})
	}
}

// deciding is one story of approvals on a database.
type deciding struct {
	t      *testing.T
	l      ledger.Ledger
	w      *payments
	within time.Duration
	p, q   *process
}

func (s *deciding) boot() *process {
	return several(s.t, s.l, config{opts: coordinator.Options{Poll: 20 * time.Millisecond}}, s.w.saga(s.t, s.within))
}

func (s *deciding) start(t *testing.T, work string, o order, revision string) {
	t.Helper()
	if _, err := s.p.Start(t.Context(), "payment", work, o, &saga.StartOptions{Starter: "sam", Revision: revision}); err != nil {
		t.Fatal(err)
	}
}

// is waits for a status.
func (s *deciding) is(t *testing.T, work string, wants ...saga.Status) saga.Status {
	t.Helper()
	var status saga.Status
	s.until(t, func() bool {
		sum, err := s.q.Show(t.Context(), paymentOf(work))
		status = sum.Status
		return err == nil && slices.Contains(wants, sum.Status)
	})
	return status
}

func (*deciding) until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it does not come true")
		}
	}
}

// asked waits until people are asked about so much.
func (s *deciding) asked(t *testing.T, work string, total int) (a coordinator.Approval) {
	t.Helper()
	s.until(t, func() bool {
		var err error
		a, err = s.q.Approval(t.Context(), paymentOf(work), "pay")
		return err == nil && a.Outcome == "" && strings.Contains(string(a.Shown), fmt.Sprintf(`"input":%d,`, total)) &&
			len(s.w.of(fmt.Sprintf("link %s %s %s", work, a.Path(), a.Digest))) > 0
	})
	return a
}

// begun waits until there is something to decide, also if that was decided meanwhile.
func (s *deciding) begun(t *testing.T, work string) (a coordinator.Approval) {
	t.Helper()
	s.until(t, func() (ok bool) {
		var err error
		a, err = s.q.Approval(t.Context(), paymentOf(work), "pay")
		return err == nil
	})
	return a
}

// noted waits until the history says so, and returns how often it does.
func (s *deciding) noted(t *testing.T, work, words string) (n int) {
	t.Helper()
	s.until(t, func() bool {
		rs, err := s.l.History(t.Context(), paymentOf(work))
		if err != nil {
			t.Fatal(err)
		}
		n = 0
		for i := range rs {
			if rs[i].Kind == machine.KindNoted && strings.Contains(rs[i].Said(), words) {
				n++
			}
		}
		return n > 0
	})
	return n
}

func (s *deciding) whoVotes(t *testing.T) {
	s.start(t, "cheap", order{Total: 5}, "")
	s.is(t, "cheap", saga.Completed)
	if _, err := s.p.Start(t.Context(), "payment", "unsaid", order{Total: 50}, nil); !errors.Is(err, coordinator.ErrInvalid) {
		t.Errorf("a start that does not say who starts it: %v", err)
	}
	s.start(t, "w", order{Total: 50}, "")
	a := s.asked(t, "w", 50)
	s.until(t, func() bool { // also before the first vote: the last that happened was the question
		for a, err := range s.q.Approvals(t.Context()) {
			return err == nil && a.ID == paymentOf("w")
		}
		return false
	})
	for _, c := range []struct {
		who   coordinator.Voter
		shown string
		want  error
		notes string
	}{
		{votes("SAM", "finance"), a.Digest, coordinator.ErrNoVote, "another has to decide"},
		{votes("eve", "sales"), a.Digest, coordinator.ErrNoVote, "it takes one of the roles finance"},
		{votes("ann", "finance"), "other", coordinator.ErrOtherShown, "has changed since it was shown"},
	} {
		for range 3 {
			if err := s.p.Vote(t.Context(), a.ID, "pay", true, c.shown, c.who); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.who.Name, err, c.want)
			}
		}
		if n := s.noted(t, "w", c.notes); n != 1 {
			t.Errorf("%s: %d notes", c.who.Name, n)
		}
	}
	for range 2 {
		for _, p := range []*process{s.p, s.q} {
			if err := p.Vote(t.Context(), a.ID, "", true, a.Digest, votes("ann", "finance")); err != nil && !errors.Is(err, coordinator.ErrVoted) {
				t.Error(err)
			}
		}
		s.until(t, func() bool {
			now, err := s.q.Approval(t.Context(), a.ID, "pay")
			return err == nil && len(now.Votes) == 1
		})
	}
	signals, err := s.l.Signals(t.Context(), a.ID)
	said := 0
	for i := range signals {
		if signals[i].Actor == "ann" && signals[i].Vote.Shown == a.Digest {
			said++
		}
	}
	if said != 1 || err != nil {
		t.Errorf("one vote is %d signals (%v)", said, err)
	}
	listed := 0
	for other, err := range s.q.Approvals(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if listed++; other.ID != a.ID || len(other.Votes) != 1 || other.Needed != 2 {
			t.Errorf("listed: %+v", other)
		}
	}
	if s.is(t, "w", saga.Waiting); listed != 1 {
		t.Errorf("%d are listed", listed)
	}
	if err := s.q.Vote(t.Context(), a.ID, "", true, a.Digest, votes("root", saga.Admin)); err != nil {
		t.Error(err)
	}
	s.is(t, "w", saga.Completed)
	if err := s.q.Vote(t.Context(), a.ID, "pay", false, a.Digest, votes("bob", "finance")); !errors.Is(err, coordinator.ErrNotOpen) {
		t.Errorf("a vote behind the decision: %v", err)
	}
	if err := s.q.Vote(t.Context(), paymentOf("cheap"), "", true, "", votes("bob", "finance")); !errors.Is(err, coordinator.ErrNotOpen) {
		t.Errorf("a vote where none is needed: %v", err)
	}
}

// races lets votes race each other, from two processes.
func (s *deciding) races(t *testing.T) {
	ends := map[saga.Status]int{}
	for n := range 6 {
		work := fmt.Sprint("race-", n)
		s.start(t, work, order{Total: 50}, "")
		a := s.asked(t, work, 50)
		var all sync.WaitGroup
		for i, p := range []*process{s.p, s.q, s.p} {
			all.Go(func() {
				err := p.Vote(t.Context(), a.ID, "pay", i < 2, a.Digest, votes([]string{"ann", "bob", "eve"}[i], "finance"))
				if err != nil && !errors.Is(err, coordinator.ErrNotOpen) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		ends[s.is(t, work, saga.Completed, saga.Compensated)]++
		if charged, undone := len(s.w.of("charge "+work+" 50")), len(s.w.of("undo book "+work)); charged+undone != 1 {
			t.Errorf("%s was charged %d times, and undone %d times", work, charged, undone)
		}
	}
	t.Log(ends)
}

// newer lets newer versions come while people decide, and processes die.
func (s *deciding) newer(t *testing.T) {
	s.start(t, "w2", order{Total: 50}, "1")
	a := s.asked(t, "w2", 50)
	if err := s.p.Vote(t.Context(), a.ID, "pay", true, a.Digest, votes("ann", "finance")); err != nil {
		t.Fatal(err)
	}
	s.start(t, "w2", order{Total: 50, Memo: "another"}, "2") // what is decided about is the same
	s.noted(t, "w2", "a newer version that says the same")
	s.p.kill()
	s.p = s.boot()
	s.start(t, "w2", order{Total: 60}, "3")
	b := s.asked(t, "w2", 60)
	if b.Digest == a.Digest || len(b.Votes) != 0 {
		t.Errorf("something else is shown, and %+v", b)
	}
	for _, p := range []*process{s.p, s.q} {
		if err := p.Vote(t.Context(), a.ID, "pay", true, a.Digest, votes("bob", "finance")); !errors.Is(err, coordinator.ErrOtherShown) {
			t.Errorf("a vote on what was shown before: %v", err)
		}
	}
	if mails := s.w.mails("w2"); len(mails) != 2 {
		t.Errorf("asked by %q", mails)
	}
	for _, name := range []string{"ann", "bob"} {
		if err := s.p.Vote(t.Context(), b.ID, "pay", true, b.Digest, votes(name, "finance")); err != nil {
			t.Error(err)
		}
	}
	s.is(t, "w2", saga.Completed)
	if len(s.w.of("charge w2 60")) != 1 || len(s.w.of("charge w2 50")) != 0 {
		t.Error("it was charged for what was not approved")
	}

	for n := range 4 { // the second vote races a version that changes the amount
		work := fmt.Sprint("changed-", n)
		s.start(t, work, order{Total: 50}, "1")
		a := s.asked(t, work, 50)
		if err := s.p.Vote(t.Context(), a.ID, "pay", true, a.Digest, votes("ann", "finance")); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			err := s.q.Vote(t.Context(), a.ID, "pay", true, a.Digest, votes("bob", "finance"))
			if err != nil && !errors.Is(err, coordinator.ErrNotOpen) && !errors.Is(err, coordinator.ErrOtherShown) {
				t.Error(err)
			}
		})
		all.Go(func() { s.start(t, work, order{Total: 70}, "2") })
		all.Wait()
		if b := s.asked(t, work, 70); len(b.Votes) != 0 || len(s.w.of("charge "+work+" 70")) != 0 {
			t.Errorf("%s: the newer version was decided by votes on the older: %+v", work, b)
		}
	}
}

// end lets votes race the end, and processes die around the reminder and the escalation.
func (s *deciding) end(t *testing.T) {
	s.p.kill()
	s.q.kill()
	l, _ := databases[strings.Split(s.t.Name(), "/")[1]](s.t)
	s.l, s.within = l, 2*time.Second
	s.p, s.q = s.boot(), s.boot()
	s.start(t, "silent", order{Total: 50}, "")
	a := s.begun(t, "silent")
	for _, at := range []time.Duration{s.within / 4, s.within / 2} {
		<-time.After(time.Until(a.Since.Add(at)))
		s.p.kill()
		s.p, s.q = s.q, s.boot()
	}
	s.is(t, "silent", saga.Compensated)
	mails := s.w.mails("silent")
	if slices.Sort(mails); len(slices.Compact(slices.Clone(mails))) != len(mails) {
		t.Errorf("asked twice: %q", mails)
	}
	s.start(t, "late", order{Total: 50}, "")
	a = s.begun(t, "late")
	if err := s.p.Vote(t.Context(), a.ID, "pay", true, a.Digest, votes("ann", "finance")); err != nil && !errors.Is(err, coordinator.ErrNotOpen) {
		t.Fatal(err)
	}
	<-time.After(time.Until(a.Until))
	if err := s.q.Vote(t.Context(), a.ID, "pay", true, a.Digest, votes("bob", "finance")); err != nil && !errors.Is(err, coordinator.ErrNotOpen) {
		t.Error(err)
	}
	end := s.is(t, "late", saga.Completed, saga.Compensated)
	if charged := len(s.w.of("charge late 50")); charged == 1 != (end == saga.Completed) || charged > 1 {
		t.Errorf("it is %s, and was charged %d times", end, charged)
	}
}
