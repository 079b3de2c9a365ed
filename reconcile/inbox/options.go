package inbox

import (
	"cmp"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/faults"
)

// Options sets up a [Processor]. Zero fields take the default named at each.
type Options struct {
	// Workers is how many objects this process works on at once. 16.
	Workers int
	// Batch is how many deliveries are judged in one transaction. 500.
	Batch int
	// Lease is how long an object belongs to the process that works on it. A fetch and a delivery
	// together may take two thirds of it. 1 minute.
	Lease time.Duration
	// Poll is how long the process waits before it looks for work that it was not told of. 1
	// second.
	Poll time.Duration
	// Retention is how long what was received is kept after its last copy.
	Retention Retention
	// Log gets one line for what a person may want to know. Default: logrus' standard logger.
	Log logrus.FieldLogger
	// Listener is told everything.
	Listener *Listener
}

// Retention says how long what was received is kept; [Forever] keeps a kind permanently. What is
// known of an object is kept for as long as it may be spoken of.
type Retention struct {
	Bodies  time.Duration // of webhooks; they may hold personal data: 30 days
	Rows    time.Duration // without bodies: 90 days
	Digests time.Duration // what recognizes a duplicate, without the row: 400 days
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, 16)
	o.Batch = cmp.Or(o.Batch, 500)
	o.Lease = cmp.Or(o.Lease, time.Minute)
	o.Poll = cmp.Or(o.Poll, time.Second)
	if o.Log == nil {
		o.Log = logrus.StandardLogger()
	}
	return o
}

func (o *Options) validate() error {
	var wrong faults.List
	wrong.Whenf(min(o.Workers, o.Batch) < 0 || min(o.Lease, o.Poll) < 0, "the number of Workers, the Batch, the Lease or the Poll is negative")
	wrong.Whenf(o.Lease > 0 && o.Lease < time.Second, "the Lease is under a second: no source answers in time")
	return wrong.Err()
}
