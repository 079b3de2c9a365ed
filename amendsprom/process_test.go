package amendsprom_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// What a process does is counted: how attempts ended and how long they took, starts, conflicts.
func TestProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		history(t, memory.New(nil), amendsprom.New(reg))
		want := `
# HELP amends_conflicts_total Starts of a known instance that came with another identity.
# TYPE amends_conflicts_total counter
amends_conflicts_total{saga="order-to-invoice"} 1
# HELP amends_sessions_lost_total Leases of this process that ended otherwise than by a stop.
# TYPE amends_sessions_lost_total counter
amends_sessions_lost_total 0
# HELP amends_starts_total Instances that this process started.
# TYPE amends_starts_total counter
amends_starts_total{saga="order-to-invoice"} 2
# HELP amends_step_attempts_total Attempts of steps that have ended, by how they ended.
# TYPE amends_step_attempts_total counter
amends_step_attempts_total{direction="forward",outcome="done",saga="order-to-invoice",step="invoice"} 2
amends_step_attempts_total{direction="forward",outcome="done",saga="order-to-invoice",step="mail"} 1
amends_step_attempts_total{direction="forward",outcome="unknown",saga="order-to-invoice",step="mail"} 1
`
		err := testutil.GatherAndCompare(reg, strings.NewReader(want),
			"amends_conflicts_total", "amends_sessions_lost_total", "amends_starts_total", "amends_step_attempts_total")
		if err != nil {
			t.Error(err)
		}
		sums := map[string]float64{}
		for _, f := range gathered(t, reg) {
			for _, m := range f.GetMetric() {
				if h := m.GetHistogram(); h != nil {
					sums[m.GetLabel()[2].GetValue()] += h.GetSampleSum()
				}
				if c := m.GetCounter(); c != nil {
					sums[f.GetName()] += c.GetValue()
				}
			}
		}
		if sums["invoice"] != 4 || sums["mail"] != 0 {
			t.Errorf("the steps took %v seconds, want 4 for two invoices", sums)
		}
		if sums["amends_records_total"] < 6 || sums["amends_commits_total"] == 0 || sums["amends_commits_total"] > sums["amends_records_total"] {
			t.Errorf("the ledger took %v records in %v commits", sums["amends_records_total"], sums["amends_commits_total"])
		}
		lint(t, reg)
	})
}

// The time of an attempt is that between its own two records. One whose begin was another process's
// has none, nor has one whose session was lost meanwhile, or that other records say was never begun.
func TestProcessTimesItsOwnAttempts(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	l := amendsprom.New(reg)
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	tell := func(work, kind, step, dispatched string, after time.Duration) {
		r := coordinator.Record{ID: saga.ID{Saga: "s", Work: work}, At: at.Add(after), Kind: kind, From: saga.Running, To: saga.Running, Dispatched: dispatched}
		if step != "" {
			r.Step, r.Direction, r.Attempt = step, saga.Forward, 1
		}
		l.Recorded(r)
	}
	tell("a", "dispatched", "", "one", 0)
	tell("a", "noted", "", "", time.Second) // a signal meanwhile
	tell("a", "done", "one", "two", 2*time.Second)
	tell("a", "done", "two", "", 5*time.Second)
	tell("another's", "lost", "one", "one", 0)
	tell("another's", "found", "one", "", time.Hour) // a lookup is no attempt
	l.Claimed(saga.ID{Saga: "s", Work: "another's"})
	tell("another's", "done", "one", "", 2*time.Hour)
	tell("lost", "dispatched", "", "one", 0)
	l.SessionLost("s", fmt.Errorf("expired"))
	tell("lost", "unknown", "one", "", time.Hour)
	tell("back", "dispatched", "", "back", time.Hour)
	tell("back", "done", "back", "", 0) // the ledger's clock went back
	sums, counts := map[string]float64{}, map[string]uint64{}
	for _, f := range gathered(t, reg) {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				sums[m.GetLabel()[2].GetValue()] += h.GetSampleSum()
				counts[m.GetLabel()[2].GetValue()] += h.GetSampleCount()
			}
		}
	}
	if sums["one"] != 2 || sums["two"] != 3 || sums["back"] != 0 || counts["one"] != 1 || counts["two"] != 1 || counts["back"] != 1 {
		t.Errorf("timed %v of %v attempts, want two and three seconds", sums, counts)
	}
}

// A second coordinator in the process counts in the same metrics; what is in the registry under one
// of the names and is something else is a mistake that is seen at once.
func TestProcessTwice(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	for range 2 {
		amendsprom.New(reg).Committed(3, time.Second)
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader("# HELP amends_records_total Records that the ledger took from this process.\n"+
		"# TYPE amends_records_total counter\namends_records_total 6\n"), "amends_records_total"); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("another metric of the name was taken for ours")
		}
	}()
	reg = prometheus.NewPedanticRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "amends_records_total", Help: "of someone else"}))
	amendsprom.New(reg)
}

// However many sagas and steps there are, a metric has a thousand label sets at most, and what is
// beyond them is under other.
func TestFewLabelSets(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	l := amendsprom.New(reg)
	for i := range 2000 {
		for _, kind := range []string{"done", "refused", "unknown", "not-sent", "lost", "fault"} {
			l.Recorded(coordinator.Record{
				ID: saga.ID{Saga: fmt.Sprint("saga", i), Work: "w"}, Kind: kind, To: saga.Running, Step: "\xff", Direction: saga.Undo, Attempt: 1,
			})
		}
	}
	for _, f := range gathered(t, reg) {
		var sum, others float64
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
			for _, p := range m.GetLabel() {
				if p.GetName() == "saga" && p.GetValue() == "other" {
					others += m.GetCounter().GetValue()
				}
			}
		}
		if n := len(f.GetMetric()); n > 1000 || n > 10 && (n < 900 || others == 0 || sum != 12000) {
			t.Errorf("%s has %d label sets with %v counted, %v of them others", f.GetName(), n, sum, others)
		}
	}
}

// The listeners of one registry have a thousand label sets between them, not each.
func TestFewLabelSetsOfTwo(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	for n, l := range []*coordinator.Listener{amendsprom.New(reg), amendsprom.New(reg)} {
		for i := range 900 {
			l.Recorded(coordinator.Record{ID: saga.ID{Saga: fmt.Sprint("saga", n, "-", i), Work: "w"}, To: saga.Running})
		}
	}
	for _, f := range gathered(t, reg) {
		if n := len(f.GetMetric()); n > 1000 {
			t.Errorf("%s has %d label sets", f.GetName(), n)
		}
	}
}
