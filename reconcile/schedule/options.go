package schedule

import (
	"cmp"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
)

// Options sets up a [Runner]. Zero fields take the default named at each.
type Options struct {
	// Holder names this process for people, in the rows of its runs: a host, a container. A part
	// that no other process has is added.
	Holder string
	// Poll is how long the process waits at most before it looks what is due. It looks sooner when
	// an instant comes. 15 seconds.
	Poll time.Duration
	// Keep is how long runs that ended are kept. 400 days; negative: for ever.
	Keep time.Duration
	// Log gets one line for what a person may want to know. Default: logrus' standard logger.
	Log logrus.FieldLogger
	// Listener is told everything.
	Listener *Listener
}

func (o *Options) withDefaults() Options {
	out := *cmp.Or(o, new(Options))
	out.Poll = cmp.Or(out.Poll, 15*time.Second)
	out.Keep = cmp.Or(out.Keep, 400*day)
	if out.Log == nil {
		out.Log = logrus.StandardLogger()
	}
	return out
}

func (o *Options) validate() error {
	if o.Poll < 0 {
		return errors.New("the Poll is negative")
	}
	return nil
}
