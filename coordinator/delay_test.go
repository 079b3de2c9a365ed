package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

const day = 24 * time.Hour

// booking is the saga that the delays of these tests are in: a payment is authorized now, and captured after two
// weeks unless it is cancelled. seen is told of every request.
func booking(t testing.TB, seen func(step string, c saga.Call[order]) error, more ...saga.Step[order]) saga.Program {
	t.Helper()
	act := func(_ context.Context, c saga.Call[order]) (thing, error) {
		return thing{ID: c.Step + "-" + c.Work}, seen(c.Step, c)
	}
	release := func(_ context.Context, c saga.Call[order], _ *thing) error { return seen("release", c) }
	steps := append(slices.Clone(more),
		saga.Do("authorize", act).Keyed(90*day).EachRun().UndoMaybe(release).To("payments"),
		saga.Delay[order]("cooling-off", 14*day),
		saga.Do("capture", act).Keyed(90*day).EachRun().NoUndo("a refund is a saga of its own").To("payments").Pivot())
	d, err := saga.Define("booking", 1, steps...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// waitScene plays a story about delays in virtual time, on a ledger that outlives its processes.
type waitScene struct {
	*testing.T

	ledger ledger.Ledger
	log    diary
	more   []saga.Step[order]
	opts   coordinator.Options
	fail   func(step string) error
	begun  time.Time
}

func delays(t *testing.T, play func(*waitScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		play(&waitScene{T: t, ledger: memory.New(nil), begun: time.Now()})
	})
}

func (s *waitScene) boot() *process {
	return several(s, s.ledger, config{opts: s.opts}, booking(s, func(step string, c saga.Call[order]) error {
		s.log.note(step)
		s.log.note(step + " " + c.Work)
		if s.fail != nil {
			return s.fail(step)
		}
		return nil
	}, s.more...))
}

func (s *waitScene) start(p *process, work string, o *saga.StartOptions) {
	s.Helper()
	if _, err := p.Start(s.Context(), "booking", work, order{}, o); err != nil {
		s.Fatal(err)
	}
}

func (s *waitScene) want(p *process, work string, status saga.Status) saga.Summary {
	s.Helper()
	sum, err := p.Show(s.Context(), saga.ID{Saga: "booking", Work: work})
	if err != nil || sum.Status != status {
		s.Fatalf("%s is %s (%v), want %s: %s", work, sum.Status, err, status, sum.Next)
	}
	return sum
}

// once checks that a step was asked for once, and when.
func (s *waitScene) once(step string, after time.Duration) {
	s.Helper()
	at := s.log.of(step)
	if len(at) != 1 || at[0].Sub(s.begun) < after || at[0].Sub(s.begun) > after+time.Minute {
		s.Errorf("%s was asked for at %v, want once, %s after %s", step, at, after, s.begun)
	}
}

// machine/W1, W2: whoever is killed, before the time, at it and behind it: a delay is over once, and never early. What
// waits is in no process.
func TestADelayOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		p := s.boot()
		pass(time.Second)
		s.begun = time.Now()
		s.start(p, "b1", nil)
		pass(time.Second)
		s.want(p, "b1", saga.Waiting)
		p.kill()
		pass(14*day - time.Hour)
		p, other := s.boot(), s.boot()
		pass(time.Hour - 3*time.Second)
		if n := len(s.log.of("capture")); n != 0 {
			s.Error("it is captured before its time")
		}
		p.kill()
		pass(2 * time.Minute)
		s.once("capture", 14*day)
		s.want(other, "b1", saga.Completed)
		pass(time.Hour)
		s.once("capture", 14*day)
	})
}

// machine/W3, W4: while it waits a cancel undoes, a newer version begins and does not wait again, and a person ends the
// wait, on record.
func TestWhatHappensDuringADelay(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		p := s.boot()
		pass(time.Second)
		for _, work := range []string{"cancelled", "woken", "revised"} {
			s.start(p, work, &saga.StartOptions{Revision: "1"})
		}
		pass(time.Hour)
		if err := p.Cancel(s.Context(), saga.ID{Saga: "booking", Work: "cancelled"}, anna); err != nil {
			s.Fatal(err)
		}
		if err := p.Wake(s.Context(), saga.ID{Saga: "booking", Work: "woken"}, anna); err != nil {
			s.Fatal(err)
		}
		if _, err := p.Start(s.Context(), "booking", "revised", order{Total: 2}, &saga.StartOptions{Revision: "2"}); err != nil {
			s.Fatal(err)
		}
		pass(time.Minute)
		s.want(p, "cancelled", saga.Compensated)
		s.want(p, "woken", saga.Completed)
		if err := p.Wake(s.Context(), saga.ID{Saga: "booking", Work: "woken"}, anna); !errors.Is(err, coordinator.ErrNotWaiting) {
			s.Errorf("woken again: %v", err)
		}
		history, err := s.ledger.History(s.Context(), saga.ID{Saga: "booking", Work: "woken"})
		if !slices.ContainsFunc(history, func(r machine.Record) bool {
			return r.Kind == machine.KindOver && r.Actor == anna.Name && r.Why == anna.Reason
		}) {
			s.Errorf("who woke it is not on record (%v)", err)
		}
		if n := len(s.log.of("authorize revised")); n != 2 {
			s.Errorf("the newer version is authorized %d times", n-1)
		}
		s.want(p, "revised", saga.Waiting)
		p.kill()
		pass(14*day - 2*time.Hour)
		p = s.boot()
		pass(time.Hour)
		s.want(p, "revised", saga.Completed)
		s.once("capture revised", 14*day)
	})
}

// machine/W5: a deadline that compensates does so while the destination is away, whatever waits in line for it.
func TestADeadlineHoldsInAnOutage(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.more = []saga.Step[order]{saga.Deadline[order](time.Hour, saga.Compensate)}
		s.fail = func(step string) error {
			if step == "authorize" {
				return saga.NotSent(errors.New("connection refused"))
			}
			return nil
		}
		p := s.boot()
		pass(time.Second)
		for i := range 200 {
			s.start(p, fmt.Sprintf("b%d", i), nil)
		}
		pass(time.Hour + 30*time.Second)
		if n := in(s, s.ledger, "booking"); n[saga.Compensated] != 200 {
			s.Errorf("an hour later they are %v", n)
		}
	})
}

// machine/W6: what a person holds is not undone at its deadline, nor when it goes on.
func TestADeadlineLeavesWhatAPersonHolds(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.more = []saga.Step[order]{saga.Deadline[order](15*day, saga.Compensate)}
		p := s.boot()
		pass(time.Second)
		s.start(p, "b1", nil)
		pass(time.Second)
		id := saga.ID{Saga: "booking", Work: "b1"}
		if err := p.Pause(s.Context(), id, anna); err != nil {
			s.Fatal(err)
		}
		p.kill()
		pass(16 * day)
		p = s.boot()
		pass(time.Minute)
		if sum := s.want(p, "b1", saga.Paused); sum.Deadline.IsZero() || sum.Deadline.After(time.Now()) {
			s.Errorf("its deadline is shown as %s", sum.Deadline)
		}
		if err := p.Resume(s.Context(), id, anna); err != nil {
			s.Fatal(err)
		}
		pass(time.Minute)
		s.want(p, "b1", saga.Completed)
	})
}

// machine/W6: nor is what waits for a destination while its saga is paused.
func TestADeadlineLeavesAPausedSaga(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.more = []saga.Step[order]{saga.Deadline[order](time.Hour, saga.Compensate)}
		p := s.boot()
		pass(time.Second)
		if err := p.PauseScope(s.Context(), coordinator.OfSaga("booking"), anna); err != nil {
			s.Fatal(err)
		}
		pass(time.Second)
		s.start(p, "b1", nil)
		pass(time.Hour + time.Minute)
		if err := p.ResumeScope(s.Context(), coordinator.OfSaga("booking"), anna); err != nil {
			s.Fatal(err)
		}
		pass(time.Minute)
		if sum := s.want(p, "b1", saga.Waiting); !sum.DeadlinePassed {
			s.Error("it is not on record that its deadline was missed")
		}
	})
}

// machine/W6: nor is one whose deadline passed while its saga was paused and no process lived.
func TestADeadlineLeavesAPausedSagaThatNoProcessRuns(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.more = []saga.Step[order]{saga.Deadline[order](day, saga.Compensate)}
		p := s.boot()
		pass(time.Second)
		s.start(p, "b1", nil)
		pass(time.Second)
		if err := p.PauseScope(s.Context(), coordinator.Everything(), anna); err != nil {
			s.Fatal(err)
		}
		p.kill()
		pass(2 * day)
		if err := coordinator.NewOperator(s.ledger).ResumeScope(s.Context(), coordinator.Everything(), anna); err != nil {
			s.Fatal(err)
		}
		p = s.boot()
		pass(time.Minute)
		if sum := s.want(p, "b1", saga.Waiting); !sum.DeadlinePassed {
			s.Error("it is not on record that its deadline was missed")
		}
	})
}

// A thousand delays that end while no process lives go on at the destination's limit, oldest first, none twice.
func TestDelaysThatEndTogether(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.opts.Destinations = map[string]coordinator.Limit{"payments": {PerSecond: 20, Burst: 1}}
		p := s.boot()
		pass(time.Second)
		const many = 1000
		for i := range many {
			s.start(p, fmt.Sprintf("b%04d", i), nil)
		}
		pass(2 * time.Minute)
		p.kill()
		pass(20 * day)
		s.boot()
		begun := time.Now()
		pass(2 * time.Minute)
		at := s.log.of("capture")
		if took := at[len(at)-1].Sub(at[0]); len(at) != many || took < (many-1)*time.Second/20-time.Second {
			s.Errorf("%d captured within %s, begun %s after the process", len(at), took, at[0].Sub(begun))
		}
		late := 0
		for i := range many - 100 { // some are claimed together
			if s.log.of(fmt.Sprintf("capture b%04d", i+100))[0].Before(s.log.of(fmt.Sprintf("capture b%04d", i))[0]) {
				late++
			}
		}
		if late > 0 {
			s.Errorf("%d of them went before one that is a hundred places older", late)
		}
	})
}

// machine/W9, W10: an Until is asked once, in local time, whatever becomes of the clocks; a start for later begins then.
func TestUntilAndNotBefore(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		vienna, err := time.LoadLocation("Europe/Vienna")
		if err != nil {
			s.Skip(err)
		}
		asked := 0
		spring := time.Date(2000, 3, 26, 9, 0, 0, 0, vienna) // the day on which the clocks are put forward
		s.more = []saga.Step[order]{saga.Until("ship-day", func(saga.Call[order]) time.Time { asked++; return spring })}
		p := s.boot()
		pass(time.Second)
		s.start(p, "b1", &saga.StartOptions{NotBefore: s.begun.Add(30 * day)})
		p.kill()
		pass(29 * day)
		p = s.boot()
		pass(time.Minute)
		if sum := s.want(p, "b1", saga.Waiting); asked != 0 || len(sum.Steps) != 4 {
			s.Errorf("asked %d times before its time: %+v", asked, sum.Steps)
		}
		p.kill()
		pass(2 * day)
		p = s.boot()
		pass(time.Minute)
		if sum := s.want(p, "b1", saga.Waiting); !sum.Steps["ship-day"].Until.Equal(spring) {
			s.Errorf("it waits until %s", sum.Steps["ship-day"].Until)
		}
		p.kill()
		pass(time.Until(spring) - time.Hour)
		s.boot()
		pass(time.Hour + 30*time.Second)
		if at := s.log.of("authorize"); len(at) != 1 || at[0].Before(spring) || at[0].After(spring.Add(time.Minute)) || asked != 1 {
			s.Errorf("authorized at %v, asked %d times", at, asked)
		}
	})
}

// A process that only starts, and has not heard of the ledger's clock, starts for later, too.
func TestNotBeforeWithoutASession(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.more = []saga.Step[order]{saga.Deadline[order](20*day, saga.Compensate)}
		p := several(s, s.ledger, config{idle: true}, booking(s, func(string, saga.Call[order]) error { return nil }, s.more...))
		s.start(p, "b1", &saga.StartOptions{NotBefore: s.begun.Add(30 * day)})
		s.start(p, "b2", nil)
		if sum := s.want(p, "b1", saga.Waiting); !sum.Due.Equal(s.begun.Add(30*day)) || !sum.Deadline.Equal(s.begun.Add(50*day)) {
			s.Errorf("it begins at %s, and has to be at its end at %s", sum.Due, sum.Deadline)
		}
		if sum := s.want(p, "b2", saga.Running); !sum.Deadline.Equal(s.begun.Add(20 * day)) {
			s.Errorf("it has to be at its end at %s", sum.Deadline)
		}
	})
}

// A definition says what is wrong with its waits, and what fails to say until when is a review.
func TestFaultsOfWaits(t *testing.T) {
	t.Parallel()
	delays(t, func(s *waitScene) {
		s.more = []saga.Step[order]{saga.Until("ship-day", func(saga.Call[order]) time.Time { panic("no such day") })}
		p := s.boot()
		pass(time.Second)
		s.start(p, "b1", nil)
		pass(time.Second)
		s.want(p, "b1", saga.Review)
		s.more = nil
	})
	_, err := saga.Define("wrong", 1, saga.Delay[order]("a", 0), saga.Until[order]("b", nil), saga.Deadline[order](-1, "perhaps"))
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, says := range []string{`step "a": it lasts 0s`, `step "b": Until needs a function`, "the deadline lasts", `"perhaps": say Compensate or AskPerson`} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v\ndoes not say %s", err, says)
		}
	}
}
