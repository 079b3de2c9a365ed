package saga

import "github.com/amends-dev/amends/internal/program"

// Program is a definition with its input type taken off, so that one coordinator can run many:
// every *[Definition] is one, and nothing else is: its methods (Spec, Accept, Act, Look, When, Keys, Read and
// Shown) are for package coordinator.
type Program = program.Program

// Class says what an attempt's error tells about its effect: see [Classify]. It is the only thing
// an action decides about retrying: when to try again is the step's [Retry], and whether a resend
// is safe is the step's own word ([Action.Idempotent], [Action.Keyed], [Action.Find],
// [Action.AtMostOnce]). It is a string: [Unknown], [Unsent], [Refused], [RefusedKey], [NotUndoable], [Gone] or [Fault].
type Class = program.Class

// The classes of errors.
const (
	// Unknown: the effect may or may not have happened: a timeout, a cut connection, a 5xx. Every
	// error an action returns is Unknown unless it says otherwise, because unknown is not failed.
	Unknown = program.Unknown
	// Unsent: this attempt provably had no effect, and another may be made: a refused connection, a
	// 429 whose contract says "not executed", an error before the send gate.
	Unsent = program.Unsent
	// Refused: the destination said no for good to this attempt. It proves nothing about earlier
	// ones.
	Refused = program.Refused
	// RefusedKey: the destination said no for good to the key, and so to every attempt under it: see [KeyRefused]. Of a step
	// that is not Keyed it is Refused.
	RefusedKey = program.RefusedKey
	// NotUndoable: what the undo should undo cannot be undone any more: see [CannotUndo]. Of an action it is Refused.
	NotUndoable = program.NotUndoable
	// Gone: what an earlier revision left, and the action was to change, is not there any more: see
	// [PreviousGone]. Where an earlier revision left nothing, it is Refused.
	Gone = program.Gone
	// Fault: the definition or the action is wrong (it asked for a step that is not done, it
	// panicked before anything was sent). The attempt is not retried: the instance goes to review.
	Fault = program.Fault
)

// Direction tells a step's action from its compensation: [Forward] or [Undo]. It is a string.
type Direction = program.Direction

// The two directions of a step.
const (
	Forward = program.Forward
	Undo    = program.Undo
)
