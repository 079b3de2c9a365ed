package play

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/outside"
)

// silent is an address at which no server answers.
const silent = "http://127.0.0.1:1"

// supervised is a supervisor of one role over servers that do not answer, so that its processes try
// for ever.
func supervised(t *testing.T, role string) *supervisor {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), role+".log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := &supervisor{role: role, log: log, place: Place{Shop: silent, Books: silent, Mail: silent, Answer: time.Second}}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// A process that is killed is started again, and both are counted. Stopping ends it, and it stays
// ended.
func TestKilledProcessIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := supervised(t, "naive")
	if err := s.start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 3; n++ {
		eventually(t, "there is a process to kill", func() bool { return s.kill(r) })
		eventually(t, "it is started again", func() bool { _, _, restarts := s.counts(); return restarts == n })
	}
	if ended, err := s.done(); ended || err != nil {
		t.Errorf("killed, but done: %t, %v", ended, err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if kills, _, restarts := s.counts(); kills != 3 || restarts != 3 || s.kill(r) {
		t.Errorf("%d kills, %d restarts, and after the end something was left to kill", kills, restarts)
	}
}

// A process that gives up by itself is not started again; the error says why, in the words of its
// log.
func TestProcessThatGivesUp(t *testing.T) {
	t.Parallel()
	s := supervised(t, "no-such-role")
	if err := s.start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var err error
	eventually(t, "it gives up", func() bool { _, err = s.done(); return err != nil })
	for _, want := range []string{"a no-such-role process ended: exit status 1", s.log.Name(), `no role "no-such-role"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, _, restarts := s.counts(); restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}

// The run fails with what the process said: a ledger that cannot be opened ends it, not a wait for
// ever.
func TestStageEndsWithItsProcesses(t *testing.T) {
	t.Parallel()
	s := &stage{procs: supervised(t, "sync"), random: rand.New(rand.NewPCG(1, 1))}
	s.procs.place.Ledger = filepath.Join(t.TempDir(), "nowhere", "ledger.db")
	if err := s.procs.start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	err := s.watch(t.Context(), func() (int, bool, error) { return 0, false, nil })
	if err == nil || !strings.Contains(err.Error(), "open the database") {
		t.Errorf("the stage ends with %v", err)
	}
}

// A process whose job has an end, and that ends before the job is done, is an error as well.
func TestStageNoticesAnUnfinishedJob(t *testing.T) {
	t.Parallel()
	w := outside.Start(outside.Config{Orders: 1})
	t.Cleanup(w.Close)
	s := &stage{procs: supervised(t, "naive"), random: rand.New(rand.NewPCG(1, 1))}
	s.procs.once = true
	s.procs.place = Place{Shop: w.ShopURL, Books: w.BooksURL, Mail: w.MailURL, Answer: time.Second}
	if err := s.procs.start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.watch(t.Context(), func() (int, bool, error) { return 1, false, nil }); err == nil || !strings.Contains(err.Error(), "before its work did") {
		t.Errorf("the stage ends with %v", err)
	}
}

// Every kill is placed, whatever there is to do: when the work is done before, the rest follow
// then.
func TestEveryKillFindsItsVictim(t *testing.T) {
	t.Parallel()
	s := &stage{procs: supervised(t, "naive"), random: rand.New(rand.NewPCG(1, 1)), killAt: []int{0, 0, 1, 50}}
	if err := s.procs.start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.watch(t.Context(), func() (int, bool, error) { return 1, true, nil }); err != nil {
		t.Error(err)
	}
	if kills, _, _ := s.procs.counts(); kills != 4 {
		t.Errorf("%d kills, want 4", kills)
	}
}

// Kills are spread over the work, in order, and equal for equal seeds: both syncs die at the same
// points.
func TestKillPoints(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, kills, orders int) []int {
		return killPoints(rand.New(rand.NewPCG(seed, 1)), kills, orders)
	}
	at := draw(7, 50, 2000)
	if len(at) != 50 || !slices.IsSorted(at) || at[0] > 500 || at[49] < 1300 || at[49] >= 1800 {
		t.Errorf("50 kills in 2000 orders: %v", at)
	}
	if !slices.Equal(at, draw(7, 50, 2000)) || slices.Equal(at, draw(8, 50, 2000)) {
		t.Error("the points do not depend on the seed, or not on it alone")
	}
	if at := draw(7, 3, 1); !slices.Equal(at, []int{0, 0, 0}) {
		t.Errorf("3 kills in one order: %v", at)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(time.Minute); !holds(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
