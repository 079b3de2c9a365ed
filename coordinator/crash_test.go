package coordinator_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
	"github.com/amends-dev/amends/store/sqlite"
)

// Every boundary, by count: the canonical saga is run with one thing going wrong at its n-th call
// of the ledger or its n-th request, for every n until a run passes untouched. After a crash a
// fresh process finishes. Whatever happened, the invariants hold, and a person was asked only about
// the mail.

// story is one course of the canonical saga.
type story struct {
	name string
	plan func(arrival) fault
	ends saga.Status
	tune tuning
}

var stories = []story{
	{name: "happy", ends: saga.Completed},
	{name: "refused at the pivot", plan: on("mark", saga.Forward, 99, fault{refuse: true}), ends: saga.Compensated},
	{name: "timeout after success", plan: on("invoice", saga.Forward, 1, fault{mute: true}), ends: saga.Completed},
	{name: "with a delay that is kept in hand", ends: saga.Completed, tune: tuning{delay: 2 * time.Second}},
	{name: "with a delay", ends: saga.Completed, tune: tuning{delay: 8 * time.Second}},
	{name: "late arrival, then refused at the pivot", plan: func(a arrival) fault {
		switch {
		case a.step == "invoice" && a.dir == saga.Forward && a.n == 1:
			return fault{late: 5 * time.Second} // its deadline is after 4 s, it has settled after 7 s
		case a.step == "mark" && a.dir == saga.Forward:
			return fault{refuse: true}
		case a.dir == saga.Undo && a.n == 1:
			return fault{cut: true}
		default:
			return fault{}
		}
	}, ends: saga.Compensated},
}

// blow is one thing that goes wrong: at the n-th call of the ledger, or the n-th request.
type blow struct {
	name string
	call func(n int, on ...ledgertest.Method) ledgertest.Fault
	send death
}

var blows = []blow{
	{name: "crash before a call", call: ledgertest.CrashBefore},
	{name: "crash between effect and answer of a call", call: ledgertest.CrashDuring},
	{name: "crash after a call", call: ledgertest.CrashAfter},
	{name: "error before a call", call: ledgertest.FailBefore},
	{name: "answer of a call lost", call: ledgertest.LoseAnswer},
	{name: "crash before a request leaves", send: diesBefore},
	{name: "crash between effect and answer of a request", send: diesBetween},
}

// strike makes the blow fall on the n-th occasion. hit tells whether it did.
func (b blow) strike(n int, cfg *config) (hit func(*process) bool) {
	if b.call != nil {
		cfg.faults = append(cfg.faults, b.call(n))
		return func(p *process) bool { return p.calls() >= n }
	}
	var sent atomic.Int64
	cfg.doom = func(arrival) death {
		if sent.Add(1) == int64(n) {
			return b.send
		}
		return lives
	}
	return func(*process) bool { return sent.Load() >= int64(n) }
}

// trial is one ledger that several processes use one after the other.
type trial struct {
	t     *testing.T
	w     *world
	again func() ledger.Ledger // what a fresh process opens
	gone  func(ledger.Ledger)  // what the end of a process does to it
}

// TestEveryBoundary on the ledger in memory.
func TestEveryBoundary(t *testing.T) {
	t.Parallel()
	everyBoundary(t, func(t *testing.T, w *world) *trial {
		t.Helper()
		l := memory.New(nil)
		return &trial{t: t, w: w, again: func() ledger.Ledger { return l }, gone: func(ledger.Ledger) {}}
	}, stories, blows)
}

// TestEveryBoundaryOnSQLite: each process opens the file anew, as it must. The courses and blows
// that show what a database adds, each for every n; all of them at night.
func TestEveryBoundaryOnSQLite(t *testing.T) {
	t.Parallel()
	empty := emptyFile(t)
	open := func(t *testing.T, w *world) *trial {
		t.Helper()
		return onFile(t, w, empty)
	}
	if pace.AtNight() {
		everyBoundary(t, open, stories, blows)
		return
	}
	everyBoundary(t, open, stories[:1], []blow{blows[1], blows[6]})
	everyBoundary(t, open, stories[4:5], []blow{blows[4]})
}

// emptyFile returns the content of a ledger in which nothing has happened, so that not every run
// migrates one.
func emptyFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlite.Open(t.Context(), path, nil)
	if err == nil {
		err = l.Close()
	}
	content, rerr := os.ReadFile(path)
	if err := errors.Join(err, rerr); err != nil {
		t.Fatal(err)
	}
	return content
}

// memoryDir is a folder in memory where there is one: the processes of these tests die, the machine
// does not, so waiting for a disk shows nothing.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "amends-test-") //nolint:usetesting // not where t.TempDir is
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// openFile opens the ledger at path for the length of the test.
func openFile(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	l, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func onFile(t *testing.T, w *world, empty []byte) *trial {
	t.Helper()
	path := filepath.Join(memoryDir(t), "ledger.db")
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	return &trial{t: t, w: w,
		again: func() ledger.Ledger {
			l, err := sqlite.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
		// What the kernel does to a dead process: its locks and files are gone, its open
		// transaction is undone.
		gone: func(l ledger.Ledger) {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		},
	}
}

func everyBoundary(t *testing.T, open func(*testing.T, *world) *trial, stories []story, blows []blow) {
	t.Helper()
	for _, s := range stories {
		for _, b := range blows {
			t.Run(s.name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				n := 1
				for hit := true; hit; n++ {
					synctest.Test(t, func(t *testing.T) {
						hit = open(t, &world{plan: s.plan}).run(s, []blow{b}, []int{n})
					})
					if t.Failed() {
						t.Fatalf("at number %d", n)
					}
				}
				t.Logf("%d boundaries", n-2)
			})
		}
	}
}

// Two blows in one run: the second falls on the process that took over, or on the same one. A
// sample, with its seed printed; AMENDS_SEED repeats it.
func TestPairsOfBoundaries(t *testing.T) {
	t.Parallel()
	runs := 150
	if pace.AtNight() {
		runs = 20_000
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("AMENDS_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("AMENDS_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range runs {
		s := stories[r.IntN(len(stories))]
		b := []blow{blows[r.IntN(len(blows))], blows[r.IntN(len(blows))]}
		n := []int{1 + r.IntN(25), 1 + r.IntN(25)}
		synctest.Test(t, func(t *testing.T) {
			l := memory.New(nil)
			tr := &trial{t: t, w: &world{plan: s.plan}, again: func() ledger.Ledger { return l }, gone: func(ledger.Ledger) {}}
			tr.run(s, b, n)
		})
		if t.Failed() {
			t.Fatalf("%s, %q at %d, then %q at %d", s.name, b[0].name, n[0], b[1].name, n[1])
		}
	}
}

// run tells the story once, with the blows at their numbers, and checks everything at its end. It
// reports whether the first blow fell.
func (tr *trial) run(s story, bs []blow, ns []int) bool {
	const work = "o1"
	hit := false
	for i := 0; ; i++ {
		cfg := config{tune: s.tune}
		struck := func(*process) bool { return false }
		if i < len(bs) {
			struck = bs[i].strike(ns[i], &cfg)
		}
		l := tr.again()
		tr.w.watch(l)
		p := boot(tr.t, l, tr.w, cfg)
		tr.start(p, work)
		tr.settle(p, work)
		finished := !p.isDead()
		if finished {
			tr.audit(l, s, work)
		}
		if err := p.halt(); err != nil && !struck(p) {
			tr.t.Error(err)
		}
		hit = hit || i == 0 && struck(p)
		if finished {
			verify(tr.t, l, tr.w, work)
		}
		tr.gone(l)
		if finished {
			return hit
		}
	}
}

// start starts the work until it is known to be stored, as a caller does, unless the process dies
// over it.
func (tr *trial) start(p *process, work string) {
	for !p.isDead() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := p.Start(ctx, orderSaga, work, order{Customer: "c-" + work}, nil)
		cancel()
		if err == nil {
			return
		}
	}
}

// settle waits until the work is at rest or the process is dead. A work in review about the mail is
// resolved by a person who opens the mailbox.
func (tr *trial) settle(p *process, work string) {
	until := time.Now().Add(10 * time.Minute)
	for !p.isDead() {
		if time.Now().After(until) {
			tr.t.Fatalf("%s did not come to rest", work)
		}
		st := maybe(p.store, work)
		switch {
		case st == nil:
		case st.Status.Terminal():
			return
		case st.Status == saga.Review:
			tr.person(p, st)
		}
		<-time.After(249 * time.Millisecond)
	}
}

// person resolves a review. Only the step that can happen at most once may ask for one. An answer
// that came late may have been faster than the person.
func (tr *trial) person(p *process, st *machine.State) {
	if st.Status != saga.Review {
		return
	}
	if st.Reason != saga.ReasonInDoubt || st.Steps[len(st.Steps)-1].Name != "receipt" {
		rs, err := p.store.History(tr.t.Context(), st.ID)
		if err != nil {
			tr.t.Error(err)
		}
		tr.t.Fatalf("a review that nobody should be asked for: %s, %s\n%+v\n%s", st.Reason, st.Note, st.Steps,
			timing(tr.t, p.store, rs, tr.w.made("invoice", st.ID.Work)))
	}
	resolution := coordinator.DidNotHappen()
	if made := tr.w.made("receipt", st.ID.Work); len(made) > 0 {
		resolution = coordinator.Happened(made[0].id)
	}
	by := saga.Actor{Name: "a person", Reason: "looked into the mailbox"}
	err := coordinator.NewOperator(p.store).Resolve(context.Background(), st.ID, "receipt", resolution, by)
	if err != nil && !errors.Is(err, coordinator.ErrNotInReview) {
		tr.t.Fatal(err)
	}
}

// audit checks how the story ended.
func (tr *trial) audit(l ledger.Ledger, s story, work string) {
	st := stateOf(tr.t, l, work)
	if st.Status != s.ends {
		tr.t.Errorf("%s: %s ends %s, want %s", s.name, work, st.Status, s.ends)
	}
	want := map[string]int{"customer": 1, "invoice": 1, "mark": 1, "receipt": 1}
	if s.ends == saga.Compensated {
		want["mark"], want["receipt"] = 0, 0
	}
	for step, n := range want {
		ref := work
		if step == "customer" {
			ref = "c-" + work
		}
		never := step == "invoice" && s.ends == saga.Compensated // it need not have come that far
		if made := tr.w.made(step, ref); len(made) != n && (len(made) != 0 || !never) {
			tr.t.Errorf("%s: %d of %s were made, want %d", s.name, len(made), step, n)
		}
	}
	if s.ends == saga.Compensated && tr.w.count(work, "receipt", saga.Forward) > 0 {
		tr.t.Errorf("%s: a receipt left for an order that was taken back", s.name)
	}
}
