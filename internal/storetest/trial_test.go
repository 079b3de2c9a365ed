package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/store/memory"
)

type clocked struct {
	*memory.DB
	at time.Time
}

func trialHarness() Harness {
	return Harness{
		Open: func(T) Store {
			s := &clocked{}
			s.DB = memory.New(&memory.Options{Now: func() time.Time { return s.at }})
			return s
		},
		Change:  func(_ T, s Store) { db := s.(*clocked).DB; db.FailOver(db.Backup()) },
		SetTime: func(_ T, s Store, at time.Time) { s.(*clocked).at = at },
	}
}

func trialHistory(seed uint64) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	h := make([]uint32, historyLength)
	for i := range h {
		h[i] = r.Uint32() >> (r.IntN(32))
	}
	return h
}

func trial(t *testing.T, seed uint64, broken func(Store) Store, met coverage) (where string) {
	defer func() {
		if e := recover(); e != nil && broken != nil {
			where = fmt.Sprint("panic: ", e)
		} else if e != nil {
			panic(e)
		}
	}()
	return play(t, trialHarness(), broken, trialHistory(seed), met, func(string, ...any) {})
}

func TestTrialSame(t *testing.T) {
	met := coverage{}
	began := time.Now()
	for seed := range uint64(100) {
		if w := trial(t, seed, nil, met); w != "" {
			t.Fatalf("seed %d: %s", seed, w)
		}
	}
	t.Logf("%s", time.Since(began))
	met.report(t)
}

func TestTrialSwitches(t *testing.T) {
	out, err := os.Create(os.Getenv("TRIAL_OUT"))
	if err != nil {
		t.Skip(err)
	}
	defer out.Close()
	all := switches()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	missed := 0
	for _, name := range names {
		found, seeds := "", 0
		began := time.Now()
		for seed := uint64(0); found == "" && time.Since(began) < 10*time.Second; seed++ {
			found = trial(t, seed, all[name].how, nil)
			seeds++
		}
		took := time.Since(began).Round(time.Millisecond)
		if found == "" {
			missed++
			fmt.Fprintf(out, "%-24s MISSED after %d histories, %s\n", name, seeds, took)
			continue
		}
		if len(found) > 60 {
			found = found[:60]
		}
		fmt.Fprintf(out, "%-24s history %d, %s: %q\n", name, seeds, took, found)
	}
	fmt.Fprintf(out, "%d of %d caught\n", len(names)-missed, len(names))
}
