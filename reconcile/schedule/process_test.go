package schedule_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// Runs are planned once, taken over and caught up with, by real processes that are killed at random moments.
func TestKilledOnSQLite(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	address := filepath.Join(t.TempDir(), "ledger.db")
	s, err := sqlite.Open(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	killed(t, address, s)
}

// The same on Postgres.
func TestKilledOnPostgres(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	address := pgtest.URL(t)
	s, err := postgres.Open(t.Context(), address, &postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	killed(t, address, s)
}

// killed runs two processes, kills each many times, lets them come to rest, and judges what they
// wrote.
func killed(t *testing.T, address string, s database) {
	t.Helper()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	chance, kills := chance(t), 6
	if pace.AtNight() {
		kills = 150
	}
	log := filepath.Join(t.TempDir(), "log")
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var shells sync.WaitGroup
	for range 2 {
		lives := rand.New(rand.NewPCG(chance.Uint64(), 1))
		shells.Go(func() {
			for range kills {
				run(t, address, log, time.After(time.Duration(200+lives.IntN(1500))*time.Millisecond), syscall.SIGKILL, file)
			}
			run(t, address, log, time.After(3*childLease), syscall.SIGTERM, file)
		})
	}
	shells.Wait()
	if left := held(t, s); len(left) > 0 {
		run(t, address, log, takenOver(t, s, left), syscall.SIGTERM, file)
	}
	j := &judge{T: t, current: map[string]*execution{}, fences: map[string]int64{}, over: map[string]bool{}, finished: map[string]bool{}}
	j.read(log)
	j.rows(s)
	t.Logf("%d kills; %d attempts, %d steps, %d takeovers", 2*kills, j.begins, j.steps, j.takeovers)
	if j.takeovers == 0 || j.begins < 10 {
		t.Error("nothing was taken over: the test saw too little")
	}
}

// takenOver says when nothing is held any more that was left: the last processes may not have lived
// for long enough to take over what a killed one left, on a machine that is busy.
func takenOver(t *testing.T, s database, left map[string]int64) <-chan time.Time {
	t.Helper()
	over := make(chan time.Time)
	go func() {
		defer close(over)
		for len(left) > 0 && rest(t.Context(), 100*time.Millisecond) == nil {
			now := held(t, s)
			maps.DeleteFunc(left, func(run string, fence int64) bool { return now[run] != fence })
		}
	}()
	return over
}

// held are the runs that a process holds, or held when it was killed, each under its fence.
func held(t *testing.T, s database) map[string]int64 {
	t.Helper()
	held := map[string]int64{}
	for _, job := range []string{"quick", "slow", "long"} {
		rs, err := s.Runs(t.Context(), schedule.RunFilter{Job: job, Limit: 100_000})
		if err != nil {
			t.Error(err)
		}
		for i := range rs {
			if rs[i].Running() {
				held[job+" "+rs[i].Instant] = rs[i].Fence
			}
		}
	}
	return held
}

func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("AMENDS_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("AMENDS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// run runs one process until it is to end, ends it by a signal, and writes down that it is dead.
func run(t *testing.T, address, log string, over <-chan time.Time, end syscall.Signal, file *os.File) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), childStore+"="+address, childLog+"="+log)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	watchdog := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	go func() { <-over; _ = cmd.Process.Signal(end) }()
	err = cmd.Wait()
	watchdog.Stop()
	if end == syscall.SIGTERM && err != nil {
		t.Errorf("a process that was told to stop ended with: %v", err)
	}
	if _, err := fmt.Fprintf(file, "dead - 0 %d -\n", cmd.ProcessState.Pid()); err != nil {
		t.Error(err)
	}
}

// execution is an attempt, as the lines tell of it.
type execution struct {
	fence   int64
	pid     int
	instant string
	dead    bool
}

// judge reads what the processes wrote, in the order in which they wrote it.
type judge struct {
	*testing.T

	current  map[string]*execution // of each job: the attempt with the highest fence
	fences   map[string]int64
	over     map[string]bool // job and instant: its end was recorded
	finished map[string]bool // job, instant and fence: the work was done

	begins, steps, takeovers int
}

func (j *judge) read(log string) {
	j.Helper()
	file, err := os.Open(log)
	if err != nil {
		j.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var what, job, instant string
		var e execution
		if _, err := fmt.Sscanf(lines.Text(), "%s %s %d %d %s", &what, &job, &e.fence, &e.pid, &instant); err != nil {
			j.Fatalf("the line %q: %v", lines.Text(), err)
		}
		e.instant = instant
		j.line(what, job, &e)
	}
}

func (j *judge) line(what, job string, e *execution) {
	j.Helper()
	key := job + " " + e.instant
	c := j.current[job]
	switch what {
	case "dead":
		for _, c := range j.current {
			c.dead = c.dead || c.pid == e.pid
		}
	case "begin":
		j.begins++
		if j.over[key] {
			j.Errorf("%s began after its end was recorded", key)
		}
		if e.fence <= j.fences[job] {
			j.Errorf("%s began under the fence %d, after %d", key, e.fence, j.fences[job])
		}
		if c != nil && c.instant == e.instant {
			j.takeovers++
		}
		j.fences[job], j.current[job] = e.fence, e
	case "step", "end":
		j.steps++
		if c == nil || c.fence != e.fence || c.pid != e.pid {
			j.Errorf("%s: a %s under the fence %d while %+v is at work: two at once", key, what, e.fence, c)
		}
		if j.over[key] {
			j.Errorf("%s: a %s after its end was recorded", key, what)
		}
		if what == "end" {
			j.finished[fmt.Sprint(key, " ", e.fence)] = true
		}
	case "ended":
		j.over[key] = true
	}
}

// rows judges what is recorded: every instant has a row, or is among those of one, and what is ok
// was done.
func (j *judge) rows(s database) {
	j.Helper()
	for job := range j.fences {
		rs, err := s.Runs(j.Context(), schedule.RunFilter{Job: job, Limit: 100_000})
		if err != nil {
			j.Fatal(err)
		}
		for i := range rs {
			r := &rs[i]
			if r.Running() {
				j.Errorf("%s %s is held by a process that is gone", job, r.Instant)
			}
			if r.Result == schedule.OK && !j.finished[fmt.Sprint(job, " ", r.Instant, " ", r.Fence)] {
				j.Errorf("%s %s is ok, and nobody did it under the fence %d", job, r.Instant, r.Fence)
			}
			if r.Result == schedule.Failed && r.Crashes < 5 {
				j.Errorf("%s %s failed: %s", job, r.Instant, r.Error)
			}
			if n := int64(r.At.Sub(r.From)/time.Second) + 1; n != r.Instants {
				j.Errorf("%s %s stands for %d instants from %s", job, r.Instant, r.Instants, r.From)
			}
			if i > 0 && !rs[i-1].From.Equal(r.At.Add(time.Second)) {
				j.Errorf("%s: behind %s comes %s", job, r.Instant, rs[i-1].From)
			}
		}
	}
}
