// Package workload is the one saga every engine of this benchmark runs.
//
// order-to-invoice has four forward steps: customer, invoice, mark-synced and receipt. The first three
// have a compensation, which this workload never needs. A step is a no-op inside the process that
// returns an external id of 20 bytes, so all that is measured is what an engine adds: it must make the
// end of each step durable before the next step runs.
//
// [Steps] counts every run of every step. An engine that skips a step, runs one twice or reports an
// end too early fails the run: a fast wrong engine has no figures.
package workload
