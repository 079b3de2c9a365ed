package webhook

import (
	"cmp"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/tee"
)

// hardStop is when the strictest sender still hears an answer: it waits for three seconds.
const hardStop = 2500 * time.Millisecond

// Options tunes a [Receiver]. The zero value of every field means its default.
type Options struct {
	// Prefix is the path that the names of sources are appended to. Default: /webhooks/.
	Prefix string
	// Log receives one line per source and reason a minute, never a header or a body. Default:
	// logrus' standard logger.
	Log logrus.FieldLogger
	// Listener is told what happens, for metrics and alarms. Default: none.
	Listener *Listener
	// Now is the clock that signed times are compared with. Default: time.Now.
	Now func() time.Time

	// Budget is the time for one delivery from its header to its answer, storing included. It can
	// be shortened, not prolonged beyond 2.5 s. Default: 2.3 s.
	Budget time.Duration
	// RetryAfter is when a sender is asked to come again after a 503. Default: 10 s.
	RetryAfter time.Duration
	// MaxHeader bounds the header in bytes. Default: 32 KiB.
	MaxHeader int
}

func (o *Options) withDefaults() Options {
	c := *cmp.Or(o, new(Options))
	c.Prefix = cmp.Or(c.Prefix, "/webhooks/")
	c.Budget = cmp.Or(c.Budget, 2300*time.Millisecond)
	c.RetryAfter = cmp.Or(c.RetryAfter, 10*time.Second)
	c.MaxHeader = cmp.Or(c.MaxHeader, 32<<10)
	if c.Log == nil {
		c.Log = logrus.StandardLogger()
	}
	c.Listener = tee.Of(c.Listener)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// validate reports everything that is wrong, in one error.
func (o *Options) validate() error {
	var f faults.List
	f.Whenf(!strings.HasPrefix(o.Prefix, "/") || !strings.HasSuffix(o.Prefix, "/"),
		"Prefix is %q; it must begin and end with a slash", o.Prefix)
	f.Whenf(o.Budget < 0 || o.Budget > hardStop,
		"Budget is %s; it must lie between 0 and %s, because a sender waits for 3 s", o.Budget, hardStop)
	f.Whenf(o.RetryAfter < time.Second, "RetryAfter is %s; senders read whole seconds, at least 1", o.RetryAfter)
	f.Whenf(o.MaxHeader < 0, "MaxHeader is %d; it must not be negative", o.MaxHeader)
	return f.Err()
}
