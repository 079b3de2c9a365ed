package amendsprom

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/reconcile/schedule"
)

const (
	every     = 15 * time.Second // what the ledger says is read so often at most
	share     = 20               // and for one part in so many of the time
	firstWait = 5 * time.Second  // how long the first scrape waits for it
)

// Database is what is read of a store; every one of this module is one.
type Database interface {
	finding.Database
	schedule.Reader
}

// LedgerOptions tunes [Ledger]. The zero value is ready to use.
type LedgerOptions struct {
	// Timeout is how long one reading may take. Default: 30 seconds.
	Timeout time.Duration
	// Log is told when the ledger cannot be read, and when it can be again. Default: logrus's
	// standard logger.
	Log logrus.FieldLogger
}

// Ledger has reg export what the ledger in db says, whichever process asks:
//
//	amends_works{saga, status}           instances
//	amends_reviews{saga, reason}         those that wait for a person
//	amends_oldest_due_seconds{saga}      for how long the longest due one has waited for a process; 0: none waits
//	amends_signal_lag_seconds            the same of signals that no process has read
//	amends_destination_state{destination, state}   1 for the state that it has: healthy, limited, failing, paused
//	amends_duplicates_blocked_total{layer, source}   since the ledger was made: start, receiver, version, answer, vote, request, lookup
//	amends_webhooks_refused_total{source, reason}    since the ledger was made: wrong_signature and so on
//	amends_job_age_seconds{job}          since its last success, or since it was described when it has had none
//	amends_sessions                      processes that live
//	amends_inbox_deliveries{source, disposition}   deliveries that are kept; unjudged: not looked at yet
//	amends_withdrawals_held{source}      beyond the bound of their source: a person releases or drops them
//	amends_findings{kind}                what does not move, as amends status finds it
//	amends_ledger_read_timestamp_seconds when this was read
//	amends_ledger_up                     1; 0 when it could not be read, and then nothing of the above is there
//
// Nothing is read unless a scrape asks. It panics when reg has a ledger already, as
// [prometheus.Registerer.MustRegister] does.
func Ledger(reg prometheus.Registerer, db Database, o *LedgerOptions) {
	c := &collector{db: db, o: LedgerOptions{Timeout: 30 * time.Second, Log: logrus.StandardLogger()}}
	if o != nil && o.Timeout > 0 {
		c.o.Timeout = o.Timeout
	}
	if o != nil && o.Log != nil {
		c.o.Log = o.Log
	}
	reg.MustRegister(c)
}

// collector serves scrapes what was read last.
type collector struct {
	db Database
	o  LedgerOptions

	mu     sync.Mutex
	under  chan struct{} // closed when the reading that is under way ends; nil: none is
	next   time.Time     // when the next one may begin
	waited bool          // the first scrape did
	last   *seen         // nil: not read yet, or it could not be
	failed bool          // the last one did
}

// Describe names all metrics.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- up
	ch <- readAt
	for _, m := range metrics {
		ch <- m.desc
	}
}

// Collect answers a scrape.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.look()
	if s == nil {
		ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 0)
		return
	}
	ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, 1)
	ch <- prometheus.MustNewConstMetric(readAt, prometheus.GaugeValue, float64(s.at.UnixMilli())/1000)
	s.collect(ch, time.Since(s.at))
}

// look returns what was read last and begins to read when it is time.
func (c *collector) look() *seen {
	c.mu.Lock()
	if c.under == nil && !time.Now().Before(c.next) {
		c.under = make(chan struct{})
		go c.read(c.under)
	}
	under, wait := c.under, !c.waited
	c.mu.Unlock()
	if wait && under != nil {
		select {
		case <-under:
		case <-time.After(firstWait):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited = true
	return c.last
}

// read reads the ledger once.
func (c *collector) read(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Timeout)
	defer cancel()
	began := time.Now()
	s, err := read(ctx, c.db)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && !c.failed:
		c.o.Log.WithError(err).Warn("the ledger could not be read for metrics")
	case err == nil && c.failed:
		c.o.Log.Info("the ledger is read for metrics again")
	}
	if s != nil && c.last != nil {
		s.begin(c.last)
	}
	c.last, c.failed, c.under = s, err != nil, nil
	c.next = now.Add(max(every, share*now.Sub(began)))
}
