package inbox

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/tee"
)

// Listener is told what a [Processor] does. Nil fields are skipped. The functions are called from
// many goroutines, must not block and must not change what they are given.
type Listener struct {
	// Judged: an event met its disposition, durably.
	Judged func(d Delivery)
	// Fetched: the source was asked, on behalf of so many hints. What it said is in one line; err
	// says why it has to be asked again.
	Fetched func(o Object, hints int64, took time.Duration, what string, err error)
	// Delivered: the user's function was called.
	Delivered func(c *Snapshot, took time.Duration, err error)
	// Deferred: a fetch waits for its turn within the source's rate.
	Deferred func(o Object, wait time.Duration)
	// Blocked: an object waits for something new, or for an operator.
	Blocked func(o Object, why string)
	// Lost: the work on an object took longer than its lease, and what it brought was thrown away.
	Lost func(o Object)
	// Panicked: a function of the user's panicked. The stack is given once for each place.
	Panicked func(o Object, what string, stack string)
}

// Delivery is a webhook, or what a listing told, as a [Listener] is told of it.
type Delivery struct {
	Name        string // shop/4711: the source, and its number
	Object      Object
	Topic       string
	Disposition string // applied, stale, duplicate, hint, …
	Why         string
}

// Tee returns a listener that tells all of ls, in order.
func Tee(ls ...*Listener) *Listener { return tee.Of(ls...) }

// logTo returns the listener that writes what a person may want to read, and never a body.
func logTo(log logrus.FieldLogger) *Listener {
	at := func(o Object) logrus.FieldLogger { return log.WithField("object", o.String()) }
	return &Listener{
		Judged: func(d Delivery) {
			log := at(d.Object).WithFields(logrus.Fields{"delivery": d.Name, "topic": d.Topic, "disposition": d.Disposition, "why": d.Why})
			if d.Disposition == string(intake.Conflict) || d.Disposition == string(intake.Unknown) {
				log.Warn("an event that needs a look")
			} else {
				log.Debug("judged")
			}
		},
		Fetched: func(o Object, hints int64, took time.Duration, what string, err error) {
			log := at(o).WithFields(logrus.Fields{"hints": hints, "took": took.String(), "what": what})
			if err != nil {
				log.WithError(err).Warn("the source must be asked again")
			} else {
				log.Debug("asked the source")
			}
		},
		Delivered: func(c *Snapshot, took time.Duration, err error) {
			log := at(c.Object).WithFields(logrus.Fields{"revision": c.Revision, "deleted": c.Deleted, "took": took.String()})
			if err != nil {
				log.WithError(err).Warn("the change could not be turned into work; trying again")
			} else {
				log.Debug("turned into work")
			}
		},
		Blocked: func(o Object, why string) {
			at(o).WithField("why", why).Error("needs a person: replay it when the reason is gone")
		},
		Lost: func(o Object) { at(o).Warn("the work took longer than its lease; another process has the object") },
		Panicked: func(o Object, what, stack string) {
			at(o).WithFields(logrus.Fields{"panic": what, "stack": stack}).Error("a function panicked")
		},
	}
}
