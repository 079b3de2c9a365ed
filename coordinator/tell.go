package coordinator

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// teller logs what happens, and tells the listener.
type teller struct {
	log  logrus.FieldLogger
	to   *Listener
	hook *hook // nil but in tests
}

// hook is told, in tests, what a listener is not.
type hook struct {
	recorded func(id saga.ID, r *machine.Record)
	opened   func(t machine.Token)
	lost     func(t machine.Token, why error)
}

// recorded: a record of an instance that stood at from is durable, and folded into st.
func (t *teller) recorded(st *machine.State, from saga.Status, r *machine.Record) {
	id := st.ID
	if level := levelOf(r); enabled(t.log, level) {
		t.log.WithFields(fields(id, r)).Log(level, message(r))
	}
	if r.BodyDropped {
		t.log.WithFields(fields(id, r)).Warn("a result was not kept")
	}
	if t.to.Recorded != nil {
		t.to.Recorded(recordOf(st, from, r))
	}
	if t.hook != nil && t.hook.recorded != nil {
		t.hook.recorded(id, r)
	}
}

func (t *teller) duplicate(id saga.ID, source string) {
	t.log.WithFields(logrus.Fields{"saga": id.Saga, "work": id.Work, "source": source}).Debug("duplicate start answered from the ledger")
	if t.to.Duplicate != nil {
		t.to.Duplicate(id, source)
	}
}

func (t *teller) conflict(id saga.ID, source string) {
	t.log.WithFields(logrus.Fields{"saga": id.Saga, "work": id.Work, "source": source}).
		Warn("a start with another identity was refused; the instance goes on with its first input")
	if t.to.Conflict != nil {
		t.to.Conflict(id, source)
	}
}

func (t *teller) claimed(id saga.ID) {
	if t.to.Claimed != nil {
		t.to.Claimed(id)
	}
}

func (t *teller) committed(records int, took time.Duration) {
	if t.to.Committed != nil {
		t.to.Committed(records, took)
	}
}

func (t *teller) sessionOpened(l *ledger.Lease) {
	token, log := l.Token, t.log.WithField("session", l.Token.String())
	if l.Unlocked != nil {
		log = log.WithField("no_lock", l.Unlocked.Error())
	} else if l.Lock != "" {
		log = log.WithField("lock", l.Lock)
	}
	switch l.Witness {
	case ledger.WitnessKept, ledger.WitnessTemp, "":
	case ledger.WitnessNew:
		log = log.WithField("witness", "knew nothing of this ledger: whether it was restored it cannot tell")
	default:
		log = log.WithField("no_witness", l.Witness)
	}
	log.Info("session opened")
	if t.to.SessionOpened != nil {
		t.to.SessionOpened(token.String())
	}
	if t.hook != nil && t.hook.opened != nil {
		t.hook.opened(token)
	}
}

func (t *teller) sessionLost(token machine.Token, why error) {
	t.log.WithField("session", token.String()).WithError(why).Warn("session lost: nothing is dispatched until a new one is open")
	if t.to.SessionLost != nil {
		t.to.SessionLost(token.String(), why)
	}
	if t.hook != nil && t.hook.lost != nil {
		t.hook.lost(token, why)
	}
}

// levelOf makes what needs a person an error, and what went wrong and heals by itself a warning. Of what goes well it tells the end, and
// what was said to it: a line for each step would cost more than the step.
func levelOf(r *machine.Record) logrus.Level {
	switch {
	case r.Status == saga.Review:
		return logrus.ErrorLevel
	case r.ErrorClass != "" && r.Kind != machine.KindDone && r.Kind != machine.KindResolved:
		return logrus.WarnLevel
	case r.Status.Terminal(), r.Actor != "", r.Status == saga.Paused:
		return logrus.InfoLevel
	default:
		return logrus.DebugLevel
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

func fields(id saga.ID, r *machine.Record) logrus.Fields {
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
	for name, text := range map[string]string{"error": r.Error, "note": r.Note, "actor": r.Actor, "why": r.Why, "cause": r.Cause} {
		if text != "" {
			f[name] = text
		}
	}
	if a := r.Dispatch; a != nil {
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
		f["next"] = program.Command("show", id.Work, " --saga "+id.Saga)
	case saga.Compensated:
		f["next"] = "nothing, unless its source still wants it: " + program.Command("rerun", id.Work, " --saga "+id.Saga+" --reason WHY")
	}
	return f
}

func message(r *machine.Record) string {
	switch {
	case r.Status == saga.Review:
		return "needs a person"
	case r.Status.Terminal() && r.Kind != machine.KindNoted:
		return string(r.Status)
	default:
		return string(r.Kind)
	}
}
