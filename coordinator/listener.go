package coordinator

import (
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/tee"
	"github.com/amends-dev/amends/saga"
)

// Listener is told what happens, for metrics and tracing; [Counters] is one. Nil fields are
// skipped. The functions are called from many goroutines, and must not block. [Tee] is for several.
type Listener struct {
	// Recorded: something of an instance is durable. This is every state change there is.
	Recorded func(r Record)
	// Duplicate: a start was answered from the ledger.
	Duplicate func(id saga.ID, source string)
	// Conflict: a start of a known instance came with another identity.
	Conflict func(id saga.ID, source string)
	// Claimed: an instance was taken from the ledger: due, orphaned, or spoken to.
	Claimed func(id saga.ID)
	// Committed: one batch was answered by the ledger.
	Committed func(records int, took time.Duration)
	// SessionOpened and SessionLost frame the times in which this process may dispatch.
	SessionOpened func(session string)
	SessionLost   func(session string, why error)
}

// Tee returns a [Listener] that tells each of ls, in order. Nil ones are skipped.
func Tee(ls ...*Listener) *Listener { return tee.Of(ls...) }

// Record is one line of the history of an instance, as a [Listener] is told of it: what was learned
// or decided, and what was thereby set in motion.
type Record struct {
	ID         saga.ID
	Revision   string    // of the source object, that is worked on after it
	At         time.Time // by the ledger's clock
	Kind       string    // started, done, refused, unknown, not-sent, lost, found, …
	From, To   saga.Status
	Reason     saga.Reason    // To is review
	Step       string         // that was learned about
	Direction  saga.Direction // of that step
	Attempt    int            // of that step in that direction, from 1
	ExternalID string
	Dropped    bool   // the step is done, and its result could not be kept
	Error      string // of the attempt
	Note       string // what the coordinator has to say that is no error
	Actor, Why string // who said what the record follows, and why
	Dispatched string // the step whose attempt was set in motion; empty: none was
	Key        string // of that attempt
	// DispatchedDirection and DispatchedAttempt are of that attempt, too: what the record of its outcome
	// has as Direction and Attempt.
	DispatchedDirection saga.Direction
	DispatchedAttempt   int
}

// recordOf is r, after which the instance stands at st, as a listener is told of it.
func recordOf(st *machine.State, from saga.Status, r *machine.Record) Record {
	told := Record{
		ID: st.ID, Revision: st.Revision, At: r.At, Kind: string(r.Kind), From: from, To: r.Status, Reason: r.Reason, Step: r.Step, Direction: r.Direction,
		Attempt: r.Attempt, ExternalID: r.ExternalID, Dropped: r.BodyDropped, Error: r.Error, Note: r.Note, Actor: r.Actor, Why: r.Why,
	}
	if r.Dispatch != nil {
		told.Dispatched, told.Key = r.Dispatch.Step, r.Dispatch.Key
		told.DispatchedDirection, told.DispatchedAttempt = r.Dispatch.Direction, r.Dispatch.Attempt
	}
	return told
}
