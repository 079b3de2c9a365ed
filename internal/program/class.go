package program

// Class is saga.Class: what an attempt's error tells about its effect. An attempt without error is
// [Succeeded].
type Class string

// The classes.
const (
	Succeeded   Class = "done"
	Unknown     Class = "unknown"
	Unsent      Class = "not-sent"
	Refused     Class = "refused"
	RefusedKey  Class = "key-refused"
	NotUndoable Class = "cannot-undo"
	Gone        Class = "gone"
	Fault       Class = "fault"
	Interrupted Class = "stopped" // the attempt ended because its process was told to stop; it does not count as a try
	Outage      Class = "outage"  // it failed while the destination served no other work; it does not count either
)

// Direction is saga.Direction: it tells a step's action from its compensation.
type Direction string

// The two directions of a step.
const (
	Forward Direction = "forward"
	Undo    Direction = "undo"
)
