package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/memory"
)

// stage is a store on a clock of its own and the processes that run jobs on it, in a bubble of
// virtual time.
type stage struct {
	*testing.T
	*memory.DB

	began time.Time // of the bubble
	from  time.Time // what the store's clock said then

	poll time.Duration // of processes; 0: as users have it

	mu    sync.Mutex
	calls []call
	stale []string
}

// call is one call of the work.
type call struct {
	schedule.Run
	at time.Time
}

// bubble runs f on a stage whose store's clock begins at a time. The clock of the processes is
// another one.
func bubble(t *testing.T, from string, f func(s *stage)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, began: time.Now(), from: at(t, from)}
		s.DB = memory.New(&memory.Options{Now: s.now})
		f(s)
	})
}

// now is the store's clock.
func (s *stage) now() time.Time { return s.from.Add(time.Since(s.began)) }

// pass lets time pass, and everything happen that happens meanwhile.
func (s *stage) pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}

// until lets time pass until the store's clock says so.
func (s *stage) until(when string) {
	s.Helper()
	s.pass(at(s.T, when).Sub(s.now()))
}

// run starts a process with jobs and returns what stops it.
func (s *stage) run(jobs ...schedule.Job) (stop func()) {
	s.Helper()
	return s.runOn(s.DB, jobs...)
}

func (s *stage) runOn(store schedule.Store, jobs ...schedule.Job) (stop func()) {
	s.Helper()
	r, err := schedule.New(store, jobs, &schedule.Options{Poll: s.poll, Listener: &schedule.Listener{
		Stale: func(job, why string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stale = append(s.stale, job+": "+why)
		},
	}})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			s.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.Cleanup(stop)
	synctest.Wait()
	return stop
}

// job is a job whose calls are noted, and whose work ends well after a time.
func (s *stage) job(text, zone string, takes time.Duration) schedule.Job {
	return schedule.Job{
		Name: "sweep", Schedule: text, Zone: zone, Approved: true,
		Work: func(ctx context.Context, r *schedule.Run) (schedule.Outcome, error) {
			s.note(r)
			if err := rest(ctx, takes); err != nil {
				return schedule.Outcome{}, err
			}
			return schedule.Outcome{Result: schedule.OK}, r.Proceed(ctx)
		},
	}
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *stage) note(r *schedule.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{schedule.Run{
		Job: r.Job, Instant: r.Instant, At: r.At, From: r.From, Ask: r.Ask, By: r.By, Why: r.Why, Attempt: r.Attempt,
		Fence: r.Fence, Approved: r.Approved, Reported: r.Reported, Watermark: r.Watermark,
	}, s.now()})
}

// locked runs f while nothing else that asks for it does: what a test and its work share is touched
// there.
func (s *stage) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// told returns what was said about stale jobs so far.
func (s *stage) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.stale...)
}

// called returns the calls of the work so far.
func (s *stage) called() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*call
	for i := range s.calls {
		all = append(all, &s.calls[i])
	}
	return all
}

// history lists the runs, the oldest first, one line each: what, and what became of it.
func (s *stage) history() string {
	s.Helper()
	rs, err := s.Runs(s.Context(), schedule.RunFilter{Limit: 10_000})
	if err != nil {
		s.Fatal(err)
	}
	var lines []string
	for i := len(rs) - 1; i >= 0; i-- {
		line := rs[i].Instant + " " + rs[i].Status()
		if rs[i].Instants > 1 {
			line += fmt.Sprintf(" for %d", rs[i].Instants)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// want compares the history.
func (s *stage) want(lines ...string) {
	s.Helper()
	if got, want := s.history(), strings.Join(lines, "\n"); got != want {
		s.Errorf("the runs are\n%s\nwant\n%s", got, want)
	}
}

// last is the newest run.
func (s *stage) last() schedule.RunRow {
	s.Helper()
	rs, err := s.Runs(s.Context(), schedule.RunFilter{Limit: 1})
	if err != nil || len(rs) != 1 {
		s.Fatalf("%d runs, %v", len(rs), err)
	}
	return rs[0]
}

// board is what is known of the one job.
func (s *stage) board() schedule.JobState {
	s.Helper()
	b, err := s.Jobs(s.Context())
	if err != nil || len(b.Jobs) != 1 {
		s.Fatalf("%d jobs, %v", len(b.Jobs), err)
	}
	return b.Jobs[0]
}
