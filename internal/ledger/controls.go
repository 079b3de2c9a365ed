package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Controls is what every process of a ledger obeys: the states of destinations, the shares of their
// limits, pauses. The ledger keeps them, tells who is first of those that set the same one at once,
// and understands none. A process learns of a change from the next claim or renewal ([Claimed],
// [Lease]), and reads them all again: they are few.
type Controls interface {
	// Controls returns every control there is, by kind and name, and the newest version, 0 when
	// there is none.
	Controls(ctx context.Context) (all []Control, newest int64, err error)

	// SetControl stores c if the control still has version c.Version, 0 if there is none yet, and
	// returns it as it is stored: with its new version, time and session. Otherwise it matches
	// [ErrChanged]: read it again and decide again. t is the session that sets it, which must be
	// live at the moment it is stored ([ErrSessionDead]); 0 is a person, who is named in c.Actor.
	// What cannot be stored matches [ErrInvalid]. An error changed nothing, or nothing is known of
	// it.
	//
	// The same call again settles which: a control that has c.Nonce and session t, and is newer
	// than c.Version, is what an earlier call stored. It is returned as it is, also when the
	// session has died since. One that was set by others meanwhile matches ErrChanged, whether the
	// earlier call had stored it before or not.
	SetControl(ctx context.Context, t machine.Token, c Control) (Control, error)

	// Acts returns what was set with an Actor, of one control, the newest first, at most limit of
	// them (0: 100).
	Acts(ctx context.Context, kind ControlKind, name string, limit int) ([]Control, error)

	// Did puts on record what a person did that is no control and no signal: that they looked at what is otherwise hidden
	// ([DeedLooked]), had something go ([DeedRetention]) or erased it ([DeedErase]). It changes nothing that a process obeys.
	Did(ctx context.Context, kind ControlKind, what string, by saga.Actor) error

	// Deeds returns what people did before a time, the newest first, at most limit of them (0: 100):
	// signals that they posted, controls that they set, what they looked at and erased, and runs that they
	// asked for. A zero time is no bound.
	Deeds(ctx context.Context, before time.Time, limit int) ([]Deed, error)
}

// Deed is one thing that a person did.
type Deed struct {
	At   time.Time
	Kind string // a kind of signal or of control, [DeedLooked], [DeedErase], [DeedRun], [DeedRecover] or [DeedDecide]
	// ID is the instance that was spoken to; without one Name is the control, the job, or what was
	// looked at.
	ID            saga.ID
	Name          string
	Body          string // of a control: empty when it was lifted; of a run: what it was asked for
	Actor, Reason string
	// Resolution is what a resolve, a retry or a skip says of a step.
	Resolution saga.Resolution
}

// Decides reports whether a deed of this kind has a [Deed.Resolution].
func Decides(kind machine.SignalKind) bool {
	return kind == machine.SignalResolve || kind == machine.SignalRetry || kind == machine.SignalSkip
}

// What people do besides.
const (
	DeedLooked    = "look"
	DeedErase     = "erase"
	DeedRetention = "retention" // it was run
	DeedRun       = "run"
	DeedRecover   = "recover"
	DeedDecide    = "decide" // on a finding of a reconciliation
)

// ControlKind is what a control is about.
type ControlKind string

// The kinds.
const (
	ControlDestination ControlKind = "destination" // the state of a destination
	ControlShare       ControlKind = "share"       // who has which part of a limit
	ControlPause       ControlKind = "pause"       // what stands still because a person says so
	ControlRetention   ControlKind = "retention"   // how long what is kept, see [Kept]
	ControlHold        ControlKind = "hold"        // a work of which nothing goes, by [HoldName]
)

// Control is one of the things that every process of a ledger obeys.
type Control struct {
	Kind ControlKind `json:"act"`
	Name string      `json:"name"` // of what it controls, at most [MaxText] bytes

	// Version is drawn from one counter for all controls of a ledger. It ascends in the order in
	// which they are stored: who has read the newest one has read all. Only in a database that went
	// back does a number come twice; a process reads the controls when it opens a session.
	Version int64 `json:"version,string"`

	// Body is what is to be obeyed. Nil: that is over. The control stays, so that its versions go
	// on.
	Body json.RawMessage `json:"-"`

	// Actor and Reason are who wants it so and why, for what a person did. Both are empty when a
	// process set it by itself.
	Actor  string `json:"actor"`
	Reason string `json:"reason"`

	Session machine.Token `json:"session,string"` // who set it; 0: a person. SetControl is told it beside the control.
	Nonce   int64         `json:"nonce,string"`   // random, drawn for each set: by it the same set is known again
	At      time.Time     `json:"at"`             // the ledger's, when it was stored
}
