package saga

// Change says what an instance should be by the word of its source: the event to which [SignalRevise] and [SignalCancel]
// are the answers, in the words of a program.
type Change struct {
	ID       ID
	Revision string // version of the source object, if it has one; see [CompareRevisions]
	Want     Want
	// Input of the saga. What is withdrawn may have one as well: a reconciler compares what is left of it.
	Input any

	Actor  string // who says so: webhook, reconcile, a person
	Reason string // why it is withdrawn, for people
	Cause  string // what led to it: the name of a webhook, a plan
}

// Want is what is to become of an instance.
type Want string

// What a source can want.
const (
	WantRun       Want = ""          // it runs with the Input; a newer Revision is the same saga once more
	WantNothing   Want = "nothing"   // nothing is to be done for this state of the object, and nothing is undone
	WantWithdrawn Want = "withdrawn" // the object is cancelled or deleted: what was done is undone
)
