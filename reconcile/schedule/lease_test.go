package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// What crashed is taken over when its lease is over, under a higher fence, with what it
// reported.
func TestCrashIsTakenOver(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		first := &severed{Store: s.DB}
		crashing := s.job("*/5 * * * *", "", 0)
		crashing.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			s.note(r)
			r.Report(schedule.Outcome{Seen: 17, After: "page 3"})
			_ = rest(ctx, 30*time.Second)
			first.cut.Store(true) // from here on nothing of this process reaches the database
			<-ctx.Done()
			return schedule.Outcome{}, context.Cause(ctx)
		}
		s.runOn(first, crashing)
		s.until("2026-06-15T10:05:40Z")
		s.run(s.job("*/5 * * * *", "", time.Second))
		s.until("2026-06-15T10:09:00Z")
		s.want("2026-06-15T10:05:00Z ok")
		c := s.called()
		if len(c) != 2 || c[1].Attempt != 2 || c[1].Fence <= c[0].Fence || c[1].Reported.After != "page 3" || c[1].Reported.Seen != 17 {
			t.Fatalf("the calls are %+v", c)
		}
		if wait := c[1].at.Sub(at(t, "2026-06-15T10:05:30Z")); wait < 30*time.Second || wait > time.Minute+time.Second {
			t.Errorf("it was taken over %s after the crash", wait)
		}
		if r := s.last(); r.Crashes != 1 || r.Attempt != 2 {
			t.Errorf("recorded are %d crashes in %d attempts", r.Crashes, r.Attempt)
		}
	})
}

// severed is a store that a process has lost the way to.
type severed struct {
	schedule.Store

	cut atomic.Bool
}

var errSevered = errors.New("there is no way to the database")

func (s *severed) Turn(ctx context.Context, job string, decide func(time.Time, *schedule.Agenda) error) error {
	if s.cut.Load() {
		return errSevered
	}
	return s.Store.Turn(ctx, job, decide)
}

// A process that comes back after another has taken its run over may do nothing, and what it
// writes matches nothing.
func TestZombieWritesNothing(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		first := &severed{Store: s.DB}
		var proceeded error
		var lost atomic.Int32
		zombie := s.job("*/5 * * * *", "", 0)
		zombie.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			first.cut.Store(true)
			_ = rest(context.WithoutCancel(ctx), 3*time.Minute) // it heeds nothing
			first.cut.Store(false)
			proceeded = r.Proceed(context.WithoutCancel(ctx))
			return schedule.Outcome{Result: schedule.OK, Note: "the zombie's"}, nil
		}
		r, err := schedule.New(first, []schedule.Job{zombie}, &schedule.Options{Listener: &schedule.Listener{
			Lost: func(*schedule.RunRow) { lost.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(s.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		s.until("2026-06-15T10:05:10Z")
		s.run(s.job("*/5 * * * *", "", time.Second))
		s.until("2026-06-15T10:09:00Z")
		stop()
		running.Wait()
		if !errors.Is(proceeded, schedule.ErrLost) || lost.Load() != 1 {
			t.Errorf("the zombie was told %v, and that it lost %d runs", proceeded, lost.Load())
		}
		if row := s.last(); row.Result != schedule.OK || row.Note != "" || row.Attempt != 2 {
			t.Errorf("the run is %+v", row)
		}
	})
}

// The process trusts its lease for less than the others wait, counted from before it asked:
// answers of the database that take long stretch nothing, and the context of the work ends in time.
func TestTrustEndsEarly(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		const slow = 20 * time.Second
		store := &slowly{Store: s.DB}
		store.answer.Store(int64(slow))
		var began, ended time.Time
		var cause error
		j := s.job("*/5 * * * *", "", 0)
		j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			began = s.now()
			store.answer.Store(int64(time.Hour)) // no renewal is answered
			<-ctx.Done()
			ended, cause = s.now(), r.Proceed(context.WithoutCancel(ctx))
			return schedule.Outcome{}, context.Cause(ctx)
		}
		s.runOn(store, j)
		s.until("2026-06-15T10:20:00Z")
		// The claim was asked for when the one before it was answered; its answer took that long,
		// too.
		if trusted := ended.Sub(began); trusted != time.Minute*4/5-slow {
			t.Errorf("a lease of a minute was trusted for %s behind an answer of %s", trusted, slow)
		}
		if !errors.Is(cause, schedule.ErrLost) {
			t.Errorf("the work was told %v", cause)
		}
	})
}

// A claim that is answered when its lease can no longer be trusted begins nothing; the run is
// given back.
func TestLateClaimBeginsNothing(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		store := &slowly{Store: s.DB}
		s.runOn(store, s.job("0 * * * *", "", time.Second))
		s.until("2026-06-15T10:59:00Z")
		store.answer.Store(int64(50 * time.Second))
		s.until("2026-06-15T11:05:00Z")
		if c := s.called(); len(c) != 0 {
			t.Errorf("the work was called %+v", c)
		}
		store.answer.Store(0)
		s.until("2026-06-15T11:08:00Z")
		s.want("2026-06-15T11:00:00Z ok")
		if r := s.last(); r.Attempt < 2 {
			t.Errorf("nothing was claimed too late: %+v", r)
		}
	})
}

// slowly answers late: what it was asked is stored at once.
type slowly struct {
	schedule.Store

	answer atomic.Int64 // how long it takes
}

func (s *slowly) Turn(ctx context.Context, job string, decide func(time.Time, *schedule.Agenda) error) error {
	err := s.Store.Turn(ctx, job, decide)
	return errors.Join(err, rest(ctx, time.Duration(s.answer.Load())))
}

// A run over which five processes died has failed; it does not kill every process for ever.
func TestPoisonFails(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		for range 5 {
			store := &severed{Store: s.DB}
			j := s.job("0 * * * *", "", 0)
			j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
				s.note(r)
				store.cut.Store(true)
				<-ctx.Done()
				return schedule.Outcome{}, context.Cause(ctx)
			}
			s.runOn(store, j)
		}
		s.until("2026-06-15T11:30:00Z")
		s.run(s.job("0 * * * *", "", time.Second))
		s.until("2026-06-15T12:30:00Z")
		s.want("2026-06-15T11:00:00Z failed", "2026-06-15T12:00:00Z ok")
		rs, err := s.Runs(s.Context(), schedule.RunFilter{Result: schedule.Failed})
		if err != nil || rs[0].Attempt != 5 || !strings.Contains(rs[0].Error, "5 processes ended in the middle of it") {
			t.Errorf("it is %+v, %v", rs, err)
		}
	})
}

// A stop is no crash: the run is given back at once, and goes on where it was.
func TestStopGivesBack(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 2*time.Minute)
		work := j.Work
		j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			r.Report(schedule.Outcome{After: fmt.Sprint("page ", r.Attempt)})
			return work(ctx, r)
		}
		stop := s.run(j)
		s.until("2026-06-15T10:05:30Z")
		stop()
		s.want("2026-06-15T10:05:00Z waiting")
		s.run(j)
		s.until("2026-06-15T10:08:00Z")
		s.want("2026-06-15T10:05:00Z ok")
		if c := s.called(); len(c) != 2 || c[1].Attempt != 2 || c[1].Reported.After != "page 1" || c[1].at.After(at(t, "2026-06-15T10:05:31Z")) {
			t.Errorf("the calls are %+v", c)
		}
		if r := s.last(); r.Crashes != 0 {
			t.Errorf("a stop counts as a crash: %+v", r)
		}
	})
}

// A claim whose answer is lost begins nothing, and what it claimed is given back: at the next look,
// and when the process stops before that. So a stop leaves nothing that others have to wait for, at
// whatever moment it comes.
func TestALostClaimIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, stopped := range map[string]bool{"the process goes on": false, "the process stops": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
				s.poll = time.Second
				store := &losing{Store: s.DB, hangs: 5 * time.Second}
				stop := s.runOn(store, s.job("0 * * * *", "", time.Second))
				if s.until("2026-06-15T11:00:04Z"); !store.lost.Load() {
					t.Fatal("no claim was lost")
				}
				if s.want("2026-06-15T11:00:00Z running"); stopped {
					stop()
					s.want("2026-06-15T11:00:00Z waiting")
					s.run(s.job("0 * * * *", "", time.Second))
				}
				s.until("2026-06-15T11:00:30Z") // the lease of the lost claim is a minute
				s.want("2026-06-15T11:00:00Z ok")
				if r := s.last(); r.Crashes != 0 || r.Attempt != 2 {
					t.Errorf("it took %d attempts, and a lost answer counts as %d crashes", r.Attempt, r.Crashes)
				}
			})
		})
	}
}

// An attempt whose end cannot be recorded is no lost claim: its lease runs out, and it counts as a
// crash, so that what can never be recorded is not worked on for ever.
func TestWhatCannotBeRecordedFailsAtLast(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		s.poll = time.Second
		s.runOn(&refusing{s.DB}, s.job("0 * * * *", "", time.Second))
		s.until("2026-06-15T11:30:00Z")
		s.want("2026-06-15T11:00:00Z failed")
		if r := s.last(); r.Crashes != 5 || r.Attempt != 5 {
			t.Errorf("it failed after %d crashes in %d attempts", r.Crashes, r.Attempt)
		}
	})
}

// refusing is a store that records no good end.
type refusing struct{ schedule.Store }

func (r *refusing) Turn(ctx context.Context, job string, decide func(time.Time, *schedule.Agenda) error) error {
	return r.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		err := decide(now, a)
		for i := range a.Open {
			if a.Open[i].Result == schedule.OK {
				return errSevered
			}
		}
		return err
	})
}

// losing stores the first claim, and its answer is lost.
type losing struct {
	schedule.Store

	hangs time.Duration
	lost  atomic.Bool
}

func (l *losing) Turn(ctx context.Context, job string, decide func(time.Time, *schedule.Agenda) error) error {
	claimed := false
	err := l.Store.Turn(ctx, job, func(now time.Time, a *schedule.Agenda) error {
		err := decide(now, a)
		for i := range a.Open {
			claimed = claimed || a.Open[i].Running()
		}
		return err
	})
	if claimed && err == nil && !l.lost.Swap(true) {
		return errors.Join(errSevered, rest(ctx, l.hangs))
	}
	return err
}

// What an attempt reported is there for every later one, until one reports something else.
func TestReportsOutliveAttempts(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("0 * * * *", "", 10*time.Minute)
		work := j.Work
		j.Work = func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			if r.Attempt == 1 {
				r.Report(schedule.Outcome{After: "page 1"})
			}
			return work(ctx, r)
		}
		for _, until := range []string{"2026-06-15T11:02:00Z", "2026-06-15T11:04:00Z", "2026-06-15T11:20:00Z"} {
			stop := s.run(j)
			s.until(until)
			stop()
		}
		for i, c := range s.called() {
			if want := map[bool]string{true: "page 1"}[i > 0]; c.Attempt != i+1 || c.Reported.After != want {
				t.Errorf("attempt %d begins at %q, want %q", c.Attempt, c.Reported.After, want)
			}
		}
		s.want("2026-06-15T11:00:00Z ok")
	})
}

// A process that waits for another's run asks the database no more often than it must.
func TestWaitingIsQuiet(t *testing.T) {
	bubble(t, "2026-06-15T10:04:00Z", func(s *stage) {
		j := s.job("*/5 * * * *", "", 50*time.Minute)
		j.Overlap = schedule.BufferOne // so that a run waits, and is due
		s.run(j)
		s.until("2026-06-15T10:11:00Z")
		idle := &counted{Store: s.DB}
		s.runOn(idle, j)
		s.until("2026-06-15T10:41:00Z")
		if n := idle.turns.Load(); n < 30*4 || n > 30*4+10 {
			t.Errorf("%d turns in half an hour, one every 15 seconds is enough", n)
		}
	})
}

type counted struct {
	schedule.Store

	turns atomic.Int64
}

func (c *counted) Turn(ctx context.Context, job string, decide func(time.Time, *schedule.Agenda) error) error {
	c.turns.Add(1)
	return c.Store.Turn(ctx, job, decide)
}
