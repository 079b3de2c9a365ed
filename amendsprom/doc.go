// Package amendsprom is metrics for Prometheus: what this process does, and what the ledger says.
//
//	reg := prometheus.NewRegistry()
//	c, err := coordinator.New(db, &coordinator.Options{Listener: amendsprom.New(reg)})
//	if err != nil {
//		return err
//	}
//	amendsprom.Ledger(reg, db, nil)
//	http.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
//
// [New] counts as things happen, from the begin of the process on: attempts and their durations,
// starts, commits. [Ledger] reads what is stored: how many instances stand where, what waits for a
// person, how late the oldest is, which destination fails, how many duplicates were blocked. A kill
// or a deploy changes nothing about that, and every process that asks gets the same answer.
//
// # What a scrape costs
//
// A scrape never waits for the database. What the ledger says is read in the background once a
// scrape has asked for it, every 15 seconds at most and for a twentieth of the time at most: where
// counting the instances takes two seconds, it is done every forty. A scrape is served what was
// read last; only the first one waits, for five seconds at most. While the ledger cannot be read
// there is amends_ledger_up with the value 0, and nothing else of it.
//
// There are at most 1000 label sets for each metric; what is beyond that comes under the name
// other. No label is the id of an instance, nor an id of the destination's.
//
// # What alerts and looks at it
//
// rules.yml in this folder has alert rules, each with the command that shows more; dashboard.json
// is a dashboard for Grafana. Both want [Ledger] more than [New].
//
// # Mistakes people make
//
//   - To sum what [Ledger] exports over the processes of one ledger. Each of them says the same of
//     all: take max by (saga), or let one process export it. What [New] exports is summed.
//   - To compute how many instances were lost in a kill from amends_starts_total: it counts starts
//     that this process stored, and ends with it. amends_works is what there is.
//   - To alert on amends_reviews > 0 for a minute. A review is a question to a person: alert when it
//     has had no answer for as long as a person may take.
//   - To register the ledger twice in one registry. Two ledgers in one process need a label that
//     tells them apart: prometheus.WrapRegistererWith(prometheus.Labels{"ledger": "a"}, reg).
//   - To set Options.Listener to one of two listeners. [coordinator.Tee] makes one of them.
//   - To look for the label job of amends_job_age_seconds under this name: Prometheus has a label job of
//     its own, that of the scrape, and calls ours exported_job unless honor_labels is set.
//   - To leave out scrape_timeout: it has to be longer than the five seconds of the first scrape.
package amendsprom
