package amendsprom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/memory"
)

// Every database of this module is one that can be read.
var _ amendsprom.Database = store.DB(nil)

func gathered(t *testing.T, reg prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	fs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func lint(t *testing.T, reg prometheus.Gatherer) {
	t.Helper()
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

const said = `
# HELP amends_destination_state 1 for the state that a destination has.
# TYPE amends_destination_state gauge
amends_destination_state{destination="books",state="failing"} 0
amends_destination_state{destination="books",state="healthy"} 0
amends_destination_state{destination="books",state="limited"} 0
amends_destination_state{destination="books",state="paused"} 1
amends_destination_state{destination="order-to-invoice/mail",state="failing"} 0
amends_destination_state{destination="order-to-invoice/mail",state="healthy"} 1
amends_destination_state{destination="order-to-invoice/mail",state="limited"} 0
amends_destination_state{destination="order-to-invoice/mail",state="paused"} 0
# HELP amends_duplicates_blocked_total Duplicates that were blocked since the ledger was made, by what blocked them and whose they were.
# TYPE amends_duplicates_blocked_total counter
amends_duplicates_blocked_total{layer="answer",source=""} 0
amends_duplicates_blocked_total{layer="lookup",source=""} 0
amends_duplicates_blocked_total{layer="receiver",source=""} 0
amends_duplicates_blocked_total{layer="receiver",source="shop"} 2
amends_duplicates_blocked_total{layer="request",source=""} 0
amends_duplicates_blocked_total{layer="start",source=""} 0
amends_duplicates_blocked_total{layer="start",source="webhook"} 3
amends_duplicates_blocked_total{layer="version",source=""} 0
amends_duplicates_blocked_total{layer="version",source="shop"} 1
amends_duplicates_blocked_total{layer="vote",source=""} 0
# HELP amends_findings What does not move, as amends status finds it, by kind.
# TYPE amends_findings gauge
amends_findings{kind="ahead"} 0
amends_findings{kind="clock"} 0
amends_findings{kind="destination"} 1
amends_findings{kind="held"} 1
amends_findings{kind="nameless"} 0
amends_findings{kind="no-coordinator"} 1
amends_findings{kind="overdue"} 0
amends_findings{kind="paused"} 0
amends_findings{kind="reader"} 0
amends_findings{kind="shared"} 0
amends_findings{kind="slots"} 0
amends_findings{kind="still"} 0
amends_findings{kind="unknown-definition"} 1
amends_findings{kind="unreadable"} 0
amends_findings{kind="witness"} 0
# HELP amends_inbox_deliveries Deliveries that are kept, by what became of them.
# TYPE amends_inbox_deliveries gauge
amends_inbox_deliveries{disposition="applied",source="shop"} 1
amends_inbox_deliveries{disposition="stale",source="shop"} 1
amends_inbox_deliveries{disposition="unjudged",source="shop"} 1
# HELP amends_job_age_seconds Since the last success of a job, or since it was described when it has had none.
# TYPE amends_job_age_seconds gauge
amends_job_age_seconds{job="orders"} 90
# HELP amends_ledger_up 1 when the ledger could be read, 0 when it could not.
# TYPE amends_ledger_up gauge
amends_ledger_up 1
# HELP amends_oldest_due_seconds For how long the longest due instance has waited for a process; those that wait for a destination are left out.
# TYPE amends_oldest_due_seconds gauge
amends_oldest_due_seconds{saga="order-to-invoice"} 90
# HELP amends_reviews Instances that wait for a person, by why.
# TYPE amends_reviews gauge
amends_reviews{reason="in-doubt",saga="order-to-invoice"} 1
# HELP amends_sessions Processes that live.
# TYPE amends_sessions gauge
amends_sessions 0
# HELP amends_signal_lag_seconds For how long the oldest signal has waited for a process to read it.
# TYPE amends_signal_lag_seconds gauge
amends_signal_lag_seconds 90
# HELP amends_withdrawals_held Withdrawals beyond the bound of their source, which wait for a person.
# TYPE amends_withdrawals_held gauge
amends_withdrawals_held{source="shop"} 1
# HELP amends_works Instances by where they stand.
# TYPE amends_works gauge
amends_works{saga="order-to-invoice",status="completed"} 1
amends_works{saga="order-to-invoice",status="review"} 1
amends_works{saga="order-to-invoice",status="running"} 1
`

// What the ledger says is the same after a kill: another process, that has counted nothing, exports
// it from the same database.
func TestLedgerSurvivesAKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		counting := prometheus.NewPedanticRegistry()
		history(t, db, amendsprom.New(counting))
		for _, reg := range []*prometheus.Registry{ledgerOf(db), ledgerOf(db)} {
			// When it was read is all that differs from process to process.
			if err := testutil.GatherAndCompare(reg, strings.NewReader(said), names(t, said)...); err != nil {
				t.Error(err)
			}
			lint(t, reg)
		}
	})
}

// A source that has not been blocked before begins at 0, or its first duplicates would be no increase; the same of webhooks that are refused.
func TestACounterBeginsAtZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		reg := ledgerOf(db)
		counts := func(refused string) {
			t.Helper()
			if _, err := reg.Gather(); err != nil { // it begins to read
				t.Fatal(err)
			}
			synctest.Wait()
			want := "# HELP amends_webhooks_refused_total Webhooks that were refused since the ledger was made, by why.\n# TYPE amends_webhooks_refused_total counter\n" +
				`amends_webhooks_refused_total{reason="wrong_signature",source="shop"} ` + refused + "\n"
			if refused == "" {
				want = ""
			}
			if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "amends_webhooks_refused_total"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		}
		counts("")
		if err := db.Blocked(t.Context(), intake.ByRefusal("wrong_signature"), "shop", 7); err != nil {
			t.Fatal(err)
		}
		counts("0")
		counts("7")
	})
}

// names are those of the metrics in a text, so that one that it lacks is seen.
func names(t *testing.T, text string) (all []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			all = append(all, name)
		}
	}
	return all
}

// Ages grow from scrape to scrape, also while nothing is read.
func TestAgesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		history(t, db, nil)
		reg := ledgerOf(db)
		for _, want := range []float64{90, 100, 110} {
			if got := value(t, reg, "amends_job_age_seconds"); got != want {
				t.Errorf("the job is %v seconds old, want %v", got, want)
			}
			synctest.Wait()
			<-time.After(10 * time.Second)
		}
	})
}

// slow is a ledger whose totals take a time, or fail.
type slow struct {
	*memory.DB

	took  atomic.Int64 // a duration
	reads atomic.Int64
	fails atomic.Bool
	many  int
}

func (s *slow) Totals(ctx context.Context) ([]ledger.Total, error) {
	s.reads.Add(1)
	select {
	case <-time.After(time.Duration(s.took.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fails.Load() {
		return nil, errors.New("connection refused")
	}
	ts, err := s.DB.Totals(ctx)
	for i := range s.many {
		ts = append(ts, ledger.Total{Saga: fmt.Sprintf("saga%04d", i), Status: saga.Running, Works: 1, OldestDue: time.Now().Add(-time.Duration(i) * time.Second)})
	}
	return ts, err
}

func value(t *testing.T, reg prometheus.Gatherer, name string) float64 {
	t.Helper()
	for _, f := range gathered(t, reg) {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return -1
}

// A scrape never waits for the ledger but for the first one, which waits for five seconds; it is
// read every 15 seconds at most, and for a twentieth of the time.
func TestScrapesDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &slow{DB: memory.New(nil)}
		db.took.Store(int64(8 * time.Second))
		reg := ledgerOf(db)
		scrape := func(wait time.Duration, up float64, reads int64) {
			t.Helper()
			began := time.Now()
			got := value(t, reg, "amends_ledger_up")
			if took := time.Since(began); took != wait || got != up {
				t.Errorf("a scrape took %v and found the ledger %v, want %v and %v", took, got, wait, up)
			}
			synctest.Wait()
			if n := db.reads.Load(); n != reads {
				t.Errorf("the ledger was read %d times, want %d", n, reads)
			}
		}
		scrape(5*time.Second, 0, 1)
		scrape(0, 0, 1)
		<-time.After(4 * time.Second) // it has been read
		scrape(0, 1, 1)
		<-time.After(158 * time.Second) // not yet twenty times of what that took
		scrape(0, 1, 1)
		db.took.Store(int64(10 * time.Millisecond))
		<-time.After(2 * time.Second)
		scrape(0, 1, 2)
		<-time.After(14 * time.Second)
		scrape(0, 1, 2)
		db.took.Store(int64(time.Hour))
		<-time.After(2 * time.Second)
		scrape(0, 1, 3)
		<-time.After(time.Minute) // it has been given up
		scrape(0, 0, 3)
	})
}

// While the ledger cannot be read there is no number of it that may be old, and it is seen when it
// can be again.
func TestLedgerDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &slow{DB: memory.New(nil)}
		history(t, db.DB, nil)
		reg := ledgerOf(db)
		for i, fails := range []bool{false, true, true, false} {
			db.fails.Store(fails)
			<-time.After(time.Minute)
			gathered(t, reg) // asks for it
			synctest.Wait()
			fs := gathered(t, reg)
			if up := value(t, reg, "amends_ledger_up"); (up == 0) != fails || (len(fs) == 1) != fails {
				t.Errorf("scrape %d: the ledger is up: %v, with %d metrics", i, up, len(fs))
			}
		}
	})
}

// A ledger with more sagas than a metric may have label sets has the last of them under other:
// their works are added up, and the oldest is the oldest of them.
func TestFewSagas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := ledgerOf(&slow{DB: memory.New(nil), many: 1500})
		for _, f := range gathered(t, reg) {
			var sum, others float64
			for _, m := range f.GetMetric() {
				for _, p := range m.GetLabel() {
					if p.GetName() == "saga" && p.GetValue() == "other" {
						others = m.GetGauge().GetValue()
					}
				}
				sum += m.GetGauge().GetValue()
			}
			switch f.GetName() {
			case "amends_works":
				if len(f.GetMetric()) != 981 || sum != 1500 || others != 520 {
					t.Errorf("%d label sets with %v works, %v of them others", len(f.GetMetric()), sum, others)
				}
			case "amends_oldest_due_seconds":
				if len(f.GetMetric()) != 981 || others != 1499 {
					t.Errorf("%d label sets, the oldest of the others is %v seconds old", len(f.GetMetric()), others)
				}
			}
		}
	})
}
