package saga

// Status says where a work stands. The words are the same in Go, SQL, CLI and JSON.
type Status string

// Live: a session holds the work, or it has a due time.
const (
	Running      Status = "running"      // going forward → every other status
	Retrying     Status = "retrying"     // going forward, the current step waits for its next attempt or lookup → running, compensating, review
	Waiting      Status = "waiting"      // going forward, for a time that has not come → running, compensating, paused, review
	Compensating Status = "compensating" // turned: what may have happened is undone, newest first → compensated, review
)

// Parked: no process works on it until a person, or its source, says something.
const (
	Review Status = "review" // a person must decide; [Reason] says why → running, compensating
	Paused Status = "paused" // a person holds it where it is → running, retrying, compensating, review
	// Adopting: a rebuild is taking it over, and no process moves it until that is done → every
	// other status but retrying and paused.
	Adopting Status = "adopting"
)

// Terminal: the work has ended. Signals are noted behind its end; only a newer version of its
// source moves it again.
const (
	Completed   Status = "completed"   // every step is done
	Compensated Status = "compensated" // everything that may have happened is undone
)

// Live reports whether s is a status in which the work moves by itself.
func (s Status) Live() bool {
	return s == Running || s == Retrying || s == Waiting || s == Compensating
}

// Parked reports whether the work waits for a person.
func (s Status) Parked() bool { return s == Review || s == Paused || s == Adopting }

// Terminal reports whether the chain has ended.
func (s Status) Terminal() bool { return s == Completed || s == Compensated }

// Valid reports whether s is one of the statuses above.
func (s Status) Valid() bool { return s.Live() || s.Parked() || s.Terminal() }

// Reason says why a work is in [Review]. It is empty for every other status.
type Reason string

// The reasons for a review.
const (
	ReasonInDoubt    Reason = "in-doubt"    // it cannot be told whether the step happened
	ReasonUndoFailed Reason = "undo-failed" // a compensation was refused or gave up
	ReasonCannotUndo Reason = "cannot-undo" // a compensation said that what it should undo cannot be undone any more
	ReasonAfterPivot Reason = "after-pivot" // refused behind the point of no return
	ReasonExhausted  Reason = "exhausted"   // the retry policy is used up and the step asks for a person
	ReasonPoison     Reason = "poison"      // the step took its process down too often, or its definition is at fault
	ReasonDeadline   Reason = "deadline"    // its deadline has passed
	ReasonUnanswered Reason = "unanswered"  // the answer that it waited for has not come in time
	ReasonLate       Reason = "late-answer" // what it had given up, and may not have undone, was answered with a success
	ReasonHung       Reason = "hung"        // its action has not returned long behind its deadline
	ReasonConflict   Reason = "conflict"    // the source cancelled it, and a step that stands is not in this version of the definition
)
