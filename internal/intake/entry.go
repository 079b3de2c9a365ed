package intake

import (
	"encoding/json"
	"strconv"
	"time"
)

// Entry is what is known of one object: the gate's row. It is changed by the pure functions of this
// package and stored as they leave it; a store derives nothing.
type Entry struct {
	Object Object

	// The accepted state.
	Version     Version
	Origin      int    // how it was learned: 0 pushed by an event, 1 fetched
	FetchSeq    int64  // fetched: what FetchRequested was before the source was asked; pushed: 0
	Fingerprint Digest //
	Deleted     bool   // a tombstone: the source has the object no more
	Body        json.RawMessage

	// What is owed to the source: a fetch, while FetchRequested > FetchCompleted.
	FetchRequested int64     // counts the reasons to fetch
	FetchCompleted int64     // the ticket of the latest fetch that was good enough
	Newest         Version   // the newest version that was heard of; a fetch that finds less is behind
	Behind         time.Time // since when every fetch has found less; zero: the latest did not
	Missing        time.Time // when a fetch first found nothing; a second look confirms it
	Reread         time.Time // the same state is to be read once more, after the resolution of its version is over

	// What is owed to the saga: a delivery, while Accepted > Delivered.
	Accepted  int64 // counts accepted states
	Delivered int64

	// What its withdrawals count, see [Bound].
	Held      int64     // the accepted state whose withdrawal a person has to release; 0: none
	Let       int64     // the last one whose withdrawal was let through
	Withdrawn time.Time // when that was
	Changed   time.Time // when a state that is no withdrawal was last handed over; zero once it is withdrawn

	// Events that came before their turn, in order of version. Bounded by the policy.
	Parked []Event

	Cause int64 // the number of the delivery that was the last reason to ask or to accept; 0: none was

	// The work on it.
	Due       time.Time // when to look at it; zero: never
	Holder    string    // the process that works on it
	Until     time.Time // when its lease ends, or when the last work on the entry has ended
	Fence     int64     // raised by every lease; a write with an older one is refused
	Attempts  int       // failed in a row
	LastError string
	Blocked   string // waits for a person: why. News or an operator's replay clear it; with a Due it is still tried

	First   time.Time // when the object was first heard of
	Updated time.Time
}

// Owing reports whether a fetch or a delivery is owed.
func (e *Entry) Owing() bool { return e.FetchRequested > e.FetchCompleted || e.Accepted > e.Delivered }

// Delivery is an event as it lies in the inbox.
type Delivery struct {
	Number int64
	Event
	Copies  int // deliveries of the same event
	Last    time.Time
	Judged  time.Time // zero: not yet
	Outcome Disposition
	Because string
}

// Name is how a work names the delivery as its cause: shop/17, the source and the number.
func (d *Delivery) Name() string { return deliveryName(d.Object.Source, d.Number) }

func deliveryName(source string, number int64) string {
	if number == 0 {
		return ""
	}
	return source + "/" + strconv.FormatInt(number, 10)
}

// Disposition says what the gate made of an event.
type Disposition string

// The dispositions.
const (
	Applied    Disposition = "applied"      // newer than what was known: accepted as it is
	Stale      Disposition = "stale"        // older than what is known
	Duplicate  Disposition = "duplicate"    // the same version with the same content
	Tie        Disposition = "tie"          // the same version with another content: the source is asked
	Hint       Disposition = "hint"         // says that something changed, not to what: the source is asked
	Parked     Disposition = "out-of-order" // a change whose predecessor has not come yet
	Tombstoned Disposition = "tombstoned"   // the object is gone
	Conflict   Disposition = "id-conflict"  // the id of an earlier event with another body: the source is asked
	Echo       Disposition = "echo"         // our own doing
	Malformed  Disposition = "malformed"    // verified, and unreadable
	Unknown    Disposition = "unknown"      // of a tenant or type that is not configured
	Ignored    Disposition = "ignored"      // handshakes, sources switched off, and what happened before the source's Begin
)
