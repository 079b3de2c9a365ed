package coordinator

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/saga"
)

// Listener is told what happens. Nil fields are skipped. The functions are called from many goroutines, must
// not block and must not change what they are given.
type Listener struct {
	// Recorded: a record of a work is durable. This is every state change there is.
	Recorded func(id saga.ID, r *saga.Record)
	// Moved: a record moved a work from one status to another; from is empty for a start.
	Moved func(id saga.ID, from, to saga.Status)
	// Unkept: r says that a step is done and that its result could not be kept (r.Error: why, and its size). Later steps and
	// the step's undo cannot read it.
	Unkept func(id saga.ID, r *saga.Record)
	// Duplicate: a start was answered from the ledger.
	Duplicate func(id saga.ID, source string)
	// Conflict: a start of a known work came with another identity.
	Conflict func(id saga.ID, source string)
	// Claimed: a work was taken from the ledger: due, orphaned, or spoken to.
	Claimed func(id saga.ID)
	// Committed: one batch was answered by the ledger.
	Committed func(records int, took time.Duration)
	// SessionOpened and SessionLost frame the times in which this process may arm.
	SessionOpened func(t saga.Token)
	SessionLost   func(t saga.Token, why error)
}

// Tee returns a listener that tells all of ls, in order.
func Tee(ls ...*Listener) *Listener {
	return &Listener{
		Recorded: func(id saga.ID, r *saga.Record) {
			for _, l := range ls {
				l.recorded(id, r)
			}
		},
		Moved: func(id saga.ID, from, to saga.Status) {
			for _, l := range ls {
				l.moved(id, from, to)
			}
		},
		Duplicate: func(id saga.ID, source string) {
			for _, l := range ls {
				l.duplicate(id, source)
			}
		},
		Conflict: func(id saga.ID, source string) {
			for _, l := range ls {
				l.conflict(id, source)
			}
		},
		Claimed: func(id saga.ID) {
			for _, l := range ls {
				l.claimed(id)
			}
		},
		Committed: func(records int, took time.Duration) {
			for _, l := range ls {
				l.committed(records, took)
			}
		},
		SessionOpened: func(t saga.Token) {
			for _, l := range ls {
				l.sessionOpened(t)
			}
		},
		SessionLost: func(t saga.Token, why error) {
			for _, l := range ls {
				l.sessionLost(t, why)
			}
		},
	}
}

func (l *Listener) recorded(id saga.ID, r *saga.Record) {
	if l.Recorded != nil {
		l.Recorded(id, r)
	}
	if r.BodyDropped && l.Unkept != nil {
		l.Unkept(id, r)
	}
}

func (l *Listener) moved(id saga.ID, from, to saga.Status) {
	if from != to && l.Moved != nil {
		l.Moved(id, from, to)
	}
}

func (l *Listener) duplicate(id saga.ID, source string) {
	if l.Duplicate != nil {
		l.Duplicate(id, source)
	}
}

func (l *Listener) conflict(id saga.ID, source string) {
	if l.Conflict != nil {
		l.Conflict(id, source)
	}
}

func (l *Listener) claimed(id saga.ID) {
	if l.Claimed != nil {
		l.Claimed(id)
	}
}

func (l *Listener) committed(records int, took time.Duration) {
	if l.Committed != nil {
		l.Committed(records, took)
	}
}

func (l *Listener) sessionOpened(t saga.Token) {
	if l.SessionOpened != nil {
		l.SessionOpened(t)
	}
}

func (l *Listener) sessionLost(t saga.Token, why error) {
	if l.SessionLost != nil {
		l.SessionLost(t, why)
	}
}

// logTo returns the listener that writes one line per state change.
func logTo(log logrus.FieldLogger) *Listener {
	return &Listener{
		Recorded: func(id saga.ID, r *saga.Record) {
			level := levelOf(r)
			if !enabled(log, level) {
				return
			}
			log.WithFields(fields(id, r)).Log(level, message(r))
		},
		Unkept: func(id saga.ID, r *saga.Record) {
			log.WithFields(fields(id, r)).Warn("a result was not kept")
		},
		Duplicate: func(id saga.ID, source string) {
			log.WithFields(logrus.Fields{"saga": id.Saga, "work": id.Work, "source": source}).Info("duplicate start answered from the ledger")
		},
		Conflict: func(id saga.ID, source string) {
			log.WithFields(logrus.Fields{"saga": id.Saga, "work": id.Work, "source": source}).
				Warn("a start with another identity was refused; the work goes on with its first input")
		},
		SessionOpened: func(t saga.Token) { log.WithField("session", t.String()).Info("session opened") },
		SessionLost: func(t saga.Token, why error) {
			log.WithField("session", t.String()).WithError(why).Warn("session lost: nothing is armed until a new one is open")
		},
	}
}

// levelOf makes what needs a person an error, what went wrong and heals by itself a warning.
func levelOf(r *saga.Record) logrus.Level {
	switch {
	case r.Status == saga.Review:
		return logrus.ErrorLevel
	case r.Class != "" && r.Kind != saga.KindDone && r.Kind != saga.KindResolved:
		return logrus.WarnLevel
	default:
		return logrus.InfoLevel
	}
}

// enabled asks loggers that can tell, so that a switched-off level costs nothing per record.
func enabled(log logrus.FieldLogger, level logrus.Level) bool {
	switch l := log.(type) {
	case interface{ IsLevelEnabled(logrus.Level) bool }: // *logrus.Logger, and what [Slog] makes
		return l.IsLevelEnabled(level)
	case *logrus.Entry:
		return l.Logger.IsLevelEnabled(level)
	default:
		return true
	}
}

func fields(id saga.ID, r *saga.Record) logrus.Fields {
	f := logrus.Fields{"saga": id.Saga, "work": id.Work, "seq": r.Seq, "status": string(r.Status)}
	if r.Session != 0 { // a start whose process does not run has none
		f["session"] = r.Session.String()
	}
	if r.Step != "" {
		f["step"], f["direction"], f["attempt"] = r.Step, string(r.Direction), r.Attempt
	}
	if r.ExternalID != "" {
		f["external_id"] = r.ExternalID
	}
	if r.Reason != "" {
		f["reason"] = string(r.Reason)
	}
	if r.Error != "" {
		f["error"] = r.Error
	}
	if a := r.Arm; a != nil {
		f["dispatched"], f["key"] = a.Step, a.Key
		if a.Direction == saga.Undo {
			f["dispatched"] = "undo of " + a.Step
		}
	}
	if r.Wait > 0 {
		f["wait"] = r.Wait.String()
	}
	switch r.Status { //nolint:exhaustive // the others need no person
	case saga.Review, saga.Paused:
		f["next"] = fmt.Sprintf("amends show %s --saga %s", id.Work, id.Saga)
	case saga.Compensated:
		f["next"] = fmt.Sprintf("if its source still wants it: amends rerun %s --saga %s --reason WHY", id.Work, id.Saga)
	}
	return f
}

func message(r *saga.Record) string {
	switch {
	case r.Status == saga.Review:
		return "needs a person"
	case r.Status.Terminal():
		return string(r.Status)
	default:
		return string(r.Kind)
	}
}
