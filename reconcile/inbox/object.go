package inbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
)

// Object names one object of a source of truth:
//
//	type Object struct {
//		Source string // shop: as the program names it
//		Tenant string // the account within the source; empty when there is only one
//		Type   string // order
//		ID     string // 10492: as the source calls it
//	}
//
//	func (o Object) String() string // as work ids are written: shop:order:10492, or shop:eu:order:10492 with a tenant
type Object = intake.Object

// ParseObject reads what [Object].String wrote. It reports false for what names no object.
func ParseObject(name string) (Object, bool) { return intake.ParseObject(name) }

// Version is what a source says about how new an object is. Make one with [Counter], [At] or
// [ParseTime]; the zero Version says nothing. It orders the versions of one object of one source,
// and nothing else.
//
//	type Version struct {
//		Epoch int64         // raised by the operator when the source begins to count again; a lower one is always older
//		Clock inbox.Clock   // which kind it is
//		N     int64         // the counter, or nanoseconds since 1970 UTC
//		Step  time.Duration // times: the resolution in which the source told it; times are equal within the coarser one
//	}
//
//	func (v Version) Compare(o Version) int // negative: v is older; 0: they cannot be told apart; positive: v is newer
//	func (v Version) Time() time.Time       // of a version that is a time
//	func (v Version) Revision() string      // as sagas name it
type Version = intake.Version

// Counter is the version of a source that counts. A negative number is none.
func Counter(n int64) Version { return intake.Counter(n) }

// At is the version of a source that tells the time of an object's last change, in steps of that
// length.
func At(t time.Time, step time.Duration) Version { return intake.At(t, step) }

// ParseTime reads the time of an object's last change as sources write it: RFC 3339 with any number
// of digits behind the second and any zone, the same without a zone (UTC, as providers mean it), or
// seconds or milliseconds since 1970, which may be written as 1764000000.0. How precisely it was
// written is its resolution.
func ParseTime(text string) (Version, error) { return intake.ParseTime(text) }

// Clock is the kind of version a source gives its objects: [NoClock], [CounterClock], [ObjectClock] or
// [EventClock]. It is a string.
type Clock = intake.Clock

// The clocks.
const (
	NoClock      = intake.NoClock      // the event does not tell, or the object has no version
	CounterClock = intake.CounterClock // a whole number that grows with every change
	ObjectClock  = intake.ObjectClock  // the object's own time of change, of some resolution
	EventClock   = intake.EventClock   // the time of the event; the object itself has none, so it never proves what is newer
)

// Fetched is what the source of truth says about an object now.
type Fetched struct {
	Version Version
	Body    json.RawMessage
	Gone    bool // the source answered, and has no such object
}

// Snapshot is an accepted state of an object, of which Decide says what follows.
type Snapshot struct {
	Object
	Version  Version
	Revision string // Version as sagas name it; objects without version are numbered by accepted state
	Deleted  bool
	Body     json.RawMessage // see Decode
	Cause    string          // the delivery that led to it (shop/4711); empty when none did
}

// Decode reads Body into what into points to, as sagahttp reads an answer: what is read is as the
// source meant it, or it is an error, which quotes no value of it; what is not read changes nothing.
func (s *Snapshot) Decode(into any) error {
	if err := reading.Into(s.Body, into); err != nil {
		return fmt.Errorf("the body of %s: %w", s.Object, err)
	}
	return nil
}

// Policy says what may be believed of one source. The zero value is a good one; each field names
// what zero stands for.
type Policy struct {
	// Skew is how far the source's clock may be ahead of ours. A version further in the future is
	// not believed. 10 minutes.
	Skew time.Duration
	// Settle is how long the source may take until everybody who asks is told of a change. What is
	// not to be found is looked for once more after it. 2 seconds.
	Settle time.Duration
	// AlwaysFetch takes every event for a hint, whatever it carries.
	AlwaysFetch bool
	// Dense says that the counter of an object grows by exactly one with every change.
	Dense bool
	// Merge applies an event that carries only a change (a delta) to the state before it. Without
	// it a delta is a hint. It must be pure: it is called while the object is locked, and perhaps
	// more than once.
	Merge func(body, delta json.RawMessage) (json.RawMessage, error)
	// Park is how long a delta waits for the one before it until the source is asked, and ParkMost
	// how many may wait for one object. 30 seconds, 100.
	Park     time.Duration
	ParkMost int
	// Volatile are the fields that change by themselves, like a time of reading, or our own mark:
	// they make no state another one, whether a webhook, a listing or an answer tells it.
	Volatile []string
	// Echo recognises our own doing, by what we wrote: a mark, an id of ours. What it recognises
	// becomes the accepted state, and no saga follows from it. It must be pure, as Merge.
	Echo func(o Object, body json.RawMessage) bool
	// Initial and Max bound the wait after a failure: exponential, with full jitter. 1 second, 1
	// hour.
	Initial, Max time.Duration
}
