package amendsprom

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
)

// metric is one that the ledger has a say in. The first of its labels is a name, of which there can
// be many.
type metric struct {
	desc   *prometheus.Desc
	labels int
	kind   prometheus.ValueType
	age    bool // it grows while it is not read again
}

func gauge(name, help string, labels ...string) *metric {
	return &metric{desc: prometheus.NewDesc(name, help, labels, nil), labels: len(labels), kind: prometheus.GaugeValue}
}

func total(name, help string, labels ...string) *metric {
	m := gauge(name, help, labels...)
	m.kind = prometheus.CounterValue
	return m
}

func age(name, help string, labels ...string) *metric {
	m := gauge(name, help, labels...)
	m.age = true
	return m
}

var (
	up     = prometheus.NewDesc("amends_ledger_up", "1 when the ledger could be read, 0 when it could not.", nil, nil)
	readAt = prometheus.NewDesc("amends_ledger_read_timestamp_seconds", "When the ledger was read, by the clock of the process that did.", nil, nil)

	works        = gauge("amends_works", "Instances by where they stand.", "saga", "status")
	reviews      = gauge("amends_reviews", "Instances that wait for a person, by why.", "saga", "reason")
	oldestDue    = age("amends_oldest_due_seconds", "For how long the longest due instance has waited for a process; those that wait for a destination are left out.", "saga")
	signalLag    = age("amends_signal_lag_seconds", "For how long the oldest signal has waited for a process to read it.")
	destinations = gauge("amends_destination_state", "1 for the state that a destination has.", "destination", "state")
	blocked      = total("amends_duplicates_blocked_total", "Duplicates that were blocked since the ledger was made, by what blocked them and whose they were.", "source", "layer")
	refused      = total("amends_webhooks_refused_total", "Webhooks that were refused since the ledger was made, by why.", "source", "reason")
	jobAge       = age("amends_job_age_seconds", "Since the last success of a job, or since it was described when it has had none.", "job")
	sessions     = gauge("amends_sessions", "Processes that live.")
	inbox        = gauge("amends_inbox_deliveries", "Deliveries that are kept, by what became of them.", "source", "disposition")
	held         = gauge("amends_withdrawals_held", "Withdrawals beyond the bound of their source, which wait for a person.", "source")

	trouble = gauge("amends_findings", "What does not move, as amends status finds it, by kind.", "kind")

	metrics = []*metric{works, reviews, oldestDue, signalLag, destinations, blocked, refused, jobAge, sessions, inbox, held, trouble}

	// states are those of a destination.
	states = []string{"healthy", "limited", "failing", "paused"}
)

// seen is what the ledger said.
type seen struct {
	at   time.Time // by this process's clock
	rows map[*metric]map[labels]float64
}

// set gives a metric a value. What has one already keeps the greater age, or gets the sum.
func (s *seen) set(m *metric, v float64, values ...string) {
	if s.rows[m] == nil {
		s.rows[m] = make(map[labels]float64)
	}
	var l labels
	for i, value := range values {
		l[i] = label(value)
	}
	s.rows[m][l] = m.join(s.rows[m], l, v)
}

func (m *metric) join(rows map[labels]float64, l labels, v float64) float64 {
	switch before, there := rows[l]; {
	case !there:
		return v
	case m.age:
		return max(before, v)
	default:
		return before + v
	}
}

// collect sends all values as they are some time after they were read.
func (s *seen) collect(ch chan<- prometheus.Metric, since time.Duration) {
	for _, m := range metrics {
		rows := m.few(s.rows[m])
		for l, v := range rows {
			if m.age {
				v = max(0, v+since.Seconds())
			}
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, l[:m.labels]...)
		}
	}
}

// few are rows with those under one name that are too many, the last in the order of their names.
func (m *metric) few(rows map[labels]float64) map[labels]float64 {
	if len(rows) <= kept {
		return rows
	}
	less := make(map[labels]float64, most)
	for i, l := range slices.SortedFunc(maps.Keys(rows), func(a, b labels) int { return slices.Compare(a[:], b[:]) }) {
		v := rows[l]
		if i >= kept {
			l = l.others(1)
		}
		less[l] = m.join(less, l, v)
	}
	return less
}

// read asks the ledger for everything.
func read(ctx context.Context, db Database) (*seen, error) {
	s := &seen{rows: make(map[*metric]map[labels]float64)}
	f, err := finding.Read(ctx, db)
	if err != nil {
		return nil, err
	}
	s.at = time.Now()
	s.set(sessions, float64(len(f.Sessions)))
	s.set(signalLag, ageOf(f.OldestSignal, f.At))
	s.standing(f.Standing.Destinations)
	s.deliveries(f)
	s.findings(f)
	for _, look := range []func() error{
		func() error { return s.blockedDays(ctx, db) },
		func() error { return s.jobs(ctx, db) },
		func() error { return s.totals(ctx, db, f.At) },
	} {
		if err := look(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// begin has a counter that was not in the reading before begin at 0: what begins with a value has no rate.
func (s *seen) begin(before *seen) {
	for _, m := range metrics {
		for l := range s.rows[m] {
			if _, there := before.rows[m][l]; !there && m.kind == prometheus.CounterValue {
				s.rows[m][l] = 0
			}
		}
	}
}

// findings counts them. The kinds of which there is none are there, too: an alert ends with a 0.
func (s *seen) findings(f *finding.Facts) {
	for _, kind := range finding.Kinds {
		s.set(trouble, 0, kind)
	}
	for _, is := range f.All(finding.Still) {
		s.set(trouble, 1, is.Kind)
	}
}

// ageOf is for how long something has been since then, below zero when it is not yet; without it
// there is none to grow.
func ageOf(since, now time.Time) float64 {
	if since.IsZero() {
		return math.Inf(-1)
	}
	return now.Sub(since).Seconds()
}

func (s *seen) totals(ctx context.Context, db ledger.Ledger, now time.Time) error {
	ts, err := db.Totals(ctx)
	if err != nil {
		return fmt.Errorf("count the works: %w", err)
	}
	for i := range ts {
		t := &ts[i]
		s.set(works, float64(t.Works), t.Saga, string(t.Status))
		s.set(oldestDue, ageOf(t.OldestDue, now), t.Saga)
		if t.Status == saga.Review {
			s.set(reviews, float64(t.Works), t.Saga, string(t.Reason))
		}
	}
	return nil
}

func (s *seen) standing(all []coordinator.DestinationStatus) {
	for i := range all {
		for _, state := range states {
			v := 0.
			if all[i].State == state {
				v = 1
			}
			s.set(destinations, v, all[i].Name, state)
		}
	}
}

// blockedDays sums up the days, of duplicates and of refused webhooks. The layers that blocked nothing are there, too.
func (s *seen) blockedDays(ctx context.Context, db ledger.Ledger) error {
	days, err := db.BlockedDays(ctx, time.Time{})
	if err != nil {
		return fmt.Errorf("read the days of blocked duplicates: %w", err)
	}
	for _, by := range ledger.Layers {
		s.set(blocked, 0, "", by)
	}
	for _, d := range days {
		if why := intake.Refusal(d.By); why != "" {
			s.set(refused, float64(d.Count), d.Source, why)
		} else {
			s.set(blocked, float64(d.Count), d.Source, d.By)
		}
	}
	return nil
}

func (s *seen) jobs(ctx context.Context, db Database) error {
	b, err := db.Jobs(ctx)
	if err != nil {
		return fmt.Errorf("read the jobs: %w", err)
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		since := j.Good.Ended
		if since.IsZero() {
			since = j.First
		}
		if !since.IsZero() { // else a person has named it, and no process
			s.set(jobAge, ageOf(since, b.Now), j.Name)
		}
	}
	return nil
}

func (s *seen) deliveries(f *finding.Facts) {
	for _, c := range f.Counts {
		s.set(inbox, float64(c.Count), c.Source, cmp.Or(string(c.Disposition), "unjudged"))
		s.set(held, 0, c.Source)
	}
	for _, h := range f.Holdings {
		s.set(held, float64(h.Count), h.Source)
	}
}
