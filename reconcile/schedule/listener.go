package schedule

import (
	"time"

	"github.com/sirupsen/logrus"
)

// Listener is told what a [Runner] does. Nil fields are skipped. The functions are called from many
// goroutines, must not block and must not change what they are given.
type Listener struct {
	// Planned: a run was recorded, and will begin when it may.
	Planned func(r *RunRow)
	// Began: this process is at an attempt.
	Began func(r *RunRow)
	// Ended: a run has its result, durably. Those that were skipped are among them.
	Ended func(r *RunRow)
	// Released: the work was cut short, and the run is free for the next process.
	Released func(r *RunRow)
	// Lost: another process holds the run by now, and what this attempt brought was thrown away; or
	// the answer of the database to its end was lost.
	Lost func(r *RunRow)
	// Stale: a person should look at a job; why is what [Stale] says. "" says that all is well
	// again.
	Stale func(job, why string)
	// Panicked: the work panicked.
	Panicked func(r *RunRow, what, stack string)
}

// logTo returns the listener that writes what a person may want to read.
func logTo(log logrus.FieldLogger) *Listener {
	of := func(r *RunRow) logrus.FieldLogger {
		return log.WithFields(logrus.Fields{"job": r.Job, "run": r.Instant})
	}
	return &Listener{
		Planned: func(r *RunRow) { of(r).Debug("planned") },
		Began: func(r *RunRow) {
			log := of(r).WithFields(logrus.Fields{"attempt": r.Attempt, "fence": r.Fence})
			if r.Crashes > 0 {
				log.WithField("crashes", r.Crashes).Warn("taken over from a process that ended without a word")
			} else {
				log.Debug("began")
			}
		},
		Ended: func(r *RunRow) { logEnd(of(r), r) },
		Released: func(r *RunRow) {
			of(r).Info("cut short; the next process goes on with it")
		},
		Lost: func(r *RunRow) {
			of(r).Warn("another process holds the run; what this attempt brought is not recorded")
		},
		Stale: func(job, why string) {
			if log := log.WithField("job", job); why != "" {
				log.WithField("why", why).Error("needs a person: the job does not do what it is there for")
			} else {
				log.Info("the job does again what it is there for")
			}
		},
		Panicked: func(r *RunRow, what, stack string) {
			of(r).WithFields(logrus.Fields{"panic": what, "stack": stack}).Error("the work panicked")
		},
	}
}

func logEnd(log logrus.FieldLogger, r *RunRow) {
	log = log.WithField("result", string(r.Result))
	switch r.Result {
	case Skipped:
		log.WithFields(logrus.Fields{"instants": r.Instants, "why": r.Note}).Info("not run")
	case OK:
		log.WithField("took", r.Ended.Sub(r.Began).Round(time.Millisecond).String()).Info("done")
	default:
		log.WithFields(logrus.Fields{"why": r.Error, "note": r.Note}).Warn("it did not end well")
	}
}
