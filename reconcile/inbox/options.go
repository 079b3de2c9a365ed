package inbox

import (
	"cmp"
	"errors"
	"io"
	"time"

	"github.com/sirupsen/logrus"
)

// Options sets up a [Processor]. Zero fields take the default named at each.
type Options struct {
	// Workers is how many objects this process works on at once. 16.
	Workers int
	// Batch is how many deliveries are judged in one transaction. 500.
	Batch int
	// Lease is how long an object belongs to the process that works on it. A fetch and a delivery together may
	// take two thirds of it. 1 minute.
	Lease time.Duration
	// Poll is how long the process waits before it looks for work that it was not told of. 1 second.
	Poll time.Duration
	// Retention is how long what was heard is kept after its last copy, where the Gate is a [Purger] too: bodies 30
	// days, verdicts 90, what recognises a copy 400. [Forever] keeps a kind for ever.
	Retention Retention
	// Log gets one line for what a person may want to know. Discarded.
	Log logrus.FieldLogger
	// Listener is told everything.
	Listener *Listener
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, 16)
	o.Batch = cmp.Or(o.Batch, 500)
	o.Lease = cmp.Or(o.Lease, time.Minute)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.Retention = o.Retention.withDefaults()
	if o.Log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		o.Log = silent
	}
	return o
}

func (o *Options) validate() error {
	var faults []error
	if min(o.Workers, o.Batch) < 0 || min(o.Lease, o.Poll) < 0 {
		faults = append(faults, errors.New("the number of Workers, the Batch, the Lease or the Poll is negative"))
	}
	if o.Lease > 0 && o.Lease < time.Second {
		faults = append(faults, errors.New("the Lease is under a second: no source answers in time"))
	}
	return errors.Join(faults...)
}
