package machine

import (
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/saga"
)

// SignalKind is the kind of a [Signal]. It names what an actor other than the holder says to a
// work.
type SignalKind string

// The kinds of signals.
const (
	SignalCancel   SignalKind = "cancel"      // undo what was done; with a revision it is the source that cancelled
	SignalResolve  SignalKind = "resolve"     // a person's resolution on a step in review
	SignalConflict SignalKind = "conflict"    // the same work was started again with a different identity
	SignalLate     SignalKind = "late-answer" // an attempt's answer came after the attempt was closed
	SignalWake     SignalKind = "wake"        // a person or a program says that the work should have moved
	SignalEndWait  SignalKind = "end-wait"    // a person has the work go on before the time that it waits for
	SignalRevise   SignalKind = "revise"      // the source has a newer version of the object
	SignalKeep     SignalKind = "keep"        // a person leaves a work as it stands that the source cancelled
	SignalPause    SignalKind = "pause"       // a person holds the work where it is; with a revision it is the source that does
	SignalResume   SignalKind = "resume"      // a person lets a paused work go on; with a revision its source lets go what it held
	SignalRetry    SignalKind = "retry"       // a person has the step at issue tried again, under its key
	SignalAnswer   SignalKind = "answer"      // what may be the answer that a step waits for
	SignalExtend   SignalKind = "extend"      // a person has a step wait longer for its answer
	SignalVote     SignalKind = "vote"        // a person's at a step where people decide
	SignalSkip     SignalKind = "skip"        // a person says that the step at issue did not happen and will not
)

// Signal is what anyone but the holder of a work has to say to it. Signals are only ever inserted;
// the holder consumes each by a record that names it.
type Signal struct {
	ID     int64     // given by the ledger, ascending within a work; posted with one it is stored only under that number
	At     time.Time // ledger time
	Kind   SignalKind
	Key    string // posting the same key to the same work again changes nothing
	Actor  string // who: a person, or the part of the system that speaks
	Reason string // why, in that actor's words
	ByHand bool   // a person said it, and no program on behalf of a source
	saga.Resolution
	News
	Said
}

// Said is what an answer, or its extension, says. Zero for other kinds. Of a callback StepKey is the key of the request that
// carried its token.
type Said struct {
	Message    string    `json:"message,omitempty"` // its name; empty: a callback, or by hand
	MessageKey string    `json:"messageKey,omitempty"`
	MessageID  string    `json:"messageId,omitempty"`
	Body       []byte    `json:"body,omitempty"`
	Failed     string    `json:"failed,omitempty"` // what is waited for has failed, and why
	Until      time.Time `json:"until,omitzero"`   // extend
	// Declined is why the definition declined it where it came in; empty: it did not, or was not asked.
	Declined string `json:"declined,omitempty"`
	Vote     *Cast  `json:"vote,omitempty"` // vote
}

// News is what a revise, or a cancel, a pause or a resume by the source, says about the source object. Zero for other
// kinds.
type News struct {
	Revision string          `json:"revision,omitempty"`
	Version  int             `json:"version,omitempty"` // of the definition that takes the input
	Input    json.RawMessage `json:"input,omitempty"`
	Identity string          `json:"identity,omitempty"` // as in [Start]
}
