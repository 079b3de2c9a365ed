package machine

// Phase says where one direction of one step stands.
type Phase string

// The phases. Forward a step is ready, started, in doubt, done, refused or skipped; its undo is
// ready, started, in doubt, done, failed or skipped.
const (
	Ready   Phase = "ready"    // not armed; every earlier attempt is provably without effect
	Started Phase = "started"  // armed: the attempt may be on its way
	InDoubt Phase = "in-doubt" // an attempt's outcome is unknown
	Waiting Phase = "waiting"  // forward, of a step that sends nothing: its time has not come
	Done    Phase = "done"     // the effect is there and recorded
	Refused Phase = "refused"  // the destination said no
	Skipped Phase = "skipped"  // forward: a person says that it did not happen and will not; undo: there is nothing to undo
)
