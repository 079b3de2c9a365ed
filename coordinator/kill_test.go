package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
)

// arena is a world in this process, and workers around it that are real processes.
type arena struct {
	t      *testing.T
	w      *world
	r      *rand.Rand
	server *httptest.Server
	ledger string        // its address
	look   ledger.Ledger // the test's own view
	output *lines
	paused int // works that were, in the end
}

// worker is one running process.
type worker struct {
	*exec.Cmd
	gone chan struct{}
}

func newArena(t *testing.T, address string, works int) *arena {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a := &arena{t: t, w: &world{}, r: rand.New(rand.NewPCG(seed, 0)), ledger: address, output: &lines{}}
	look, err := openLedger(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	a.look = look
	for i := range works {
		a.w.orders = append(a.w.orders, fmt.Sprintf("o%d", i))
	}
	a.w.watch(look)
	a.w.plan = a.faults(rand.New(rand.NewPCG(seed, 1)))
	a.server = httptest.NewServer(a.w.serve())
	t.Cleanup(func() {
		a.server.Close()
		if err := look.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("what the workers said:\n%s", a.output.String())
		}
	})
	return a
}

// faults makes requests lie at their destination for a moment, so that kills find them under way;
// every third order is cancelled meanwhile, and now and then a connection breaks behind the effect.
func (a *arena) faults(r *rand.Rand) func(arrival) fault {
	var mu sync.Mutex
	return func(b arrival) fault {
		mu.Lock()
		defer mu.Unlock()
		f := fault{think: time.Duration(r.IntN(20)) * time.Millisecond, slow: time.Duration(1+r.IntN(20)) * time.Millisecond}
		f.cut = b.step != "receipt" && r.IntN(20) == 0
		f.refuse = b.step == "mark" && b.dir == saga.Forward && refuses(b.work)
		return f
	}
}

func refuses(work string) bool { return work[len(work)-1]%3 == 0 }

// launch starts a worker.
func (a *arena) launch() *worker { a.t.Helper(); return a.spawn(workerEnv) }

// spawn starts this binary as what the variable makes it.
func (a *arena) spawn(as string) *worker {
	a.t.Helper()
	self, err := os.Executable()
	if err != nil {
		a.t.Fatal(err)
	}
	w := &worker{Cmd: exec.CommandContext(a.t.Context(), self), gone: make(chan struct{})}
	w.Env = append(os.Environ(), as+"="+a.server.URL, workerLedger+"="+a.ledger)
	w.Stdout, w.Stderr = a.output, a.output
	if err := w.Start(); err != nil {
		a.t.Fatal(err)
	}
	go func() { defer close(w.gone); _ = w.Wait() }() // how it ends is what the test is about
	a.t.Cleanup(func() { w.end(syscall.SIGKILL) })
	return w
}

func (w *worker) signal(s syscall.Signal) { _ = w.Process.Signal(s) } // it may be gone

// end signals the worker and waits until it is gone.
func (w *worker) end(s syscall.Signal) {
	w.signal(s)
	<-w.gone
}

// after waits until n more requests have arrived, or everything is at rest.
func (a *arena) after(n int) {
	a.t.Helper()
	until := a.arrivals() + n
	a.poll(func() bool { return a.arrivals() >= until || a.atRest() })
}

func (a *arena) arrivals() int {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return len(a.w.arrivals)
}

func (a *arena) atRest() bool {
	heads, err := ledger.First(context.Background(), a.look, ledger.Filter{Limit: 10_000})
	if err != nil {
		a.t.Fatal(err)
	}
	live := slices.ContainsFunc(heads, func(h ledger.Instance) bool { return h.Status.Live() })
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return !live && len(heads) == len(a.w.orders)
}

// poll waits for a condition.
func (a *arena) poll(ok func() bool) {
	a.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			a.t.Fatalf("it did not come true within two minutes; the workers said:\n%s", a.output.String())
		}
	}
}

// pause holds a work that is under way, if there is one: whoever dies next may die over it. It is
// let go on when all is at rest.
func (a *arena) pause() {
	a.t.Helper()
	for _, i := range a.r.Perm(len(a.w.orders)) {
		st := maybe(a.look, a.w.orders[i])
		if st == nil || !st.Status.Live() {
			continue
		}
		if err := coordinator.NewOperator(a.look).Pause(context.Background(), st.ID, anna); err != nil && !overtaken(err) {
			a.t.Fatal(err)
		}
		return
	}
}

// resume lets a paused work go on.
func (a *arena) resume(op *coordinator.Operator, st *machine.State) {
	a.t.Helper()
	if err := op.Resume(context.Background(), st.ID, anna); err != nil && !overtaken(err) {
		a.t.Fatal(err)
	}
	a.poll(func() bool { return stateOf(a.t, a.look, st.ID.Work).Status != saga.Paused })
}

// finish lets the workers bring everything to rest, plays the person, and checks all. A person is
// asked about mails in doubt, and about steps that were in flight too often when their process
// died.
func (a *arena) finish() (reviews int) {
	a.t.Helper()
	op := coordinator.NewOperator(a.look)
	for done := false; !done; {
		a.poll(a.atRest)
		done = true
		for _, work := range a.w.orders {
			st := stateOf(a.t, a.look, work)
			if st.Status == saga.Paused {
				done = false
				a.paused++
				a.resume(op, st)
			}
			if st.Status != saga.Review {
				continue
			}
			done = false
			reviews++
			if st.Reason == saga.ReasonPoison {
				a.antidote(op, st)
			} else {
				(&trial{t: a.t, w: a.w}).person(&process{store: a.look}, st)
			}
			a.poll(func() bool { return stateOf(a.t, a.look, work).Status != saga.Review })
		}
	}
	for _, work := range a.w.orders {
		s, err := op.Show(context.Background(), idOf(work))
		want := saga.Completed
		if refuses(work) {
			want = saga.Compensated
		}
		if err != nil || s.Status != want {
			a.t.Errorf("%s is %s (%v), want %s", work, s.Status, err, want)
		}
		if n := len(a.w.made("receipt", work)); s.Status == saga.Completed && n != 1 || s.Status == saga.Compensated && n != 0 {
			a.t.Errorf("%d mails for %s, which is %s", n, work, s.Status)
		}
	}
	verify(a.t, a.look, a.w, a.w.orders...)
	return reviews
}

// antidote resolves a review about a poisoned step: a person who has waited until nothing is on its
// way any more looks at the destination.
func (a *arena) antidote(op *coordinator.Operator, st *machine.State) {
	a.t.Helper()
	a.poll(func() bool { return time.Since(st.Updated) > brisk().tune.timeout+brisk().tune.settle })
	ss, dir := st.Issue(orders(&process{t: a.t}, brisk().tune).Spec())
	ref := st.ID.Work
	if ss.Name == "customer" {
		ref = "c-" + ref
	}
	resolution := coordinator.DidNotHappen()
	for _, e := range a.w.made(ss.Name, ref) {
		switch {
		case dir == saga.Forward && !e.undone:
			resolution = coordinator.Happened(e.id)
		case dir == saga.Undo && e.undone:
			resolution = coordinator.Happened("")
		}
	}
	by := saga.Actor{Name: "a person", Reason: "looked at the destination"}
	if err := op.Resolve(a.t.Context(), st.ID, ss.Name, resolution, by); err != nil && !errors.Is(err, coordinator.ErrNotInReview) {
		a.t.Fatal(err)
	}
}

// kills is how many workers die in one test, and orders how many works they share.
func kills() (kills, orders int) {
	if pace.AtNight() {
		return 150, 300
	}
	return 6, 24
}

// kill -9 at random moments on SQLite: the next process takes over at once, because the lock is
// free.
func TestKilledOnSQLite(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	n, works := kills()
	a := newArena(t, filepath.Join(t.TempDir(), "ledger.db"), works)
	for range n {
		w := a.launch()
		a.after(1 + a.r.IntN(2*4*works/n))
		a.pause()
		w.end(syscall.SIGKILL)
	}
	last := a.launch()
	reviews := a.finish()
	last.end(syscall.SIGTERM)
	if code := last.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the last worker ended with %d", code)
	}
	t.Logf("%d works, %d kills, %d pauses, %d requests, %d reviews", works, n, a.paused, a.arrivals(), reviews)
}

// The same on Postgres, where two workers run at a time and only one of them dies.
func TestKilledOnPostgres(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	n, works := kills()
	a := newArena(t, pgtest.URL(t), works)
	stays := a.launch()
	for range n {
		w := a.launch()
		a.after(1 + a.r.IntN(2*4*works/n))
		a.pause()
		if a.r.IntN(2) == 0 {
			w, stays = stays, w
		}
		w.end(syscall.SIGKILL)
	}
	reviews := a.finish()
	stays.end(syscall.SIGTERM)
	t.Logf("%d works, %d kills, %d pauses, %d requests, %d reviews", works, n, a.paused, a.arrivals(), reviews)
}

// The database itself is restarted while requests are under way: what was learned meanwhile is kept, and every chain goes on from
// its tail.
func TestADatabaseRestartLosesNothing(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	cluster := pgtest.Own(t, nil)
	_, works := kills()
	a := newArena(t, cluster.URL(), works)
	a.w.judge = nil // it could not ask
	w := a.launch()
	restarts := 1
	if pace.AtNight() {
		restarts = 20
	}
	for range restarts {
		a.after(2 * works / restarts)
		if err := errors.Join(cluster.Down(t.Context()), cluster.Up(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d works, %d restarts, %d reviews", works, restarts, a.finish())
	w.end(syscall.SIGTERM)
}

// "Stalled process wakes after takeover: its appends are stale; its sends are past their deadline."
// A worker is stopped for longer than its lease, another one finishes everything, and the first one
// wakes up again.
func TestZombies(t *testing.T) { //nolint:tparallel // each sleeper has the machine to itself
	pace.Night(t)
	t.Parallel()
	rounds := 1
	if pace.AtNight() {
		rounds = 50
	}
	for i := range rounds {
		t.Run(fmt.Sprintf("round %d", i+1), asleep) // one after the other, each with a database of its own
	}
}

func asleep(t *testing.T) {
	a := newArena(t, pgtest.URL(t), 16)
	zombie := a.launch()
	a.after(5 + a.r.IntN(20))
	zombie.signal(syscall.SIGSTOP)
	stopped := time.Now()
	b := a.launch()
	a.poll(func() bool { return a.atRest() && time.Since(stopped) > 2*fast().Lease })
	before := a.arrivals()
	zombie.signal(syscall.SIGCONT)
	// It is awake and well when it has a new session and serves again.
	a.w.mu.Lock()
	a.w.orders = append(a.w.orders, "later1", "later2")
	a.w.mu.Unlock()
	b.end(syscall.SIGTERM)
	reviews := a.finish()
	for _, late := range a.w.arrivals[before:] {
		if maybe(a.look, late.work).Started.Before(stopped) && licencesOf(a, late.work) == 0 {
			t.Errorf("%s was sent by a process that slept through its lease", late)
		}
	}
	zombie.end(syscall.SIGTERM)
	if code := zombie.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the sleeper ended with %d", code)
	}
	t.Logf("asleep for %s, %d reviews", time.Since(stopped).Round(time.Millisecond), reviews)
}

func licencesOf(a *arena, work string) int {
	rs, err := a.look.History(context.Background(), idOf(work))
	if err != nil {
		a.t.Error(err)
	}
	return licences(rs, "receipt")
}
