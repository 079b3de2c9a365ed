package ledger

import (
	"cmp"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Session is one running process, or one that died with works in hand.
type Session struct {
	Token   machine.Token
	Label   string // host and pid, for people
	Opened  time.Time
	Renewed time.Time
	Expires time.Time // the end of its lease
	Dead    bool      // buried, or its lease has ended
	Knows   []Version // the definitions it can run, as of its last renewal
	Holds   int64     // works on record
	Witness string    // [WitnessKept], [WitnessNew] or [WitnessTemp]; else why it has none
}

// Overview is what a ledger shows of itself as a whole.
type Overview struct {
	At       time.Time // the ledger's clock
	Sessions []Session // the live ones
	Unknown  []Backlog // by saga and version
	Waiting  []Waiting // by destination
	// Oldest are the live works whose latest record is oldest, of those that are held or overdue
	// and wait for no destination; at most [MaxOldest]. Their Updated is the time of that record.
	Oldest []Instance
	Ahead  Ahead
	// OldestSignal is when the oldest signal was posted that no record has consumed; zero when there is
	// none.
	OldestSignal time.Time

	Sealed bool // bodies are stored under keys

	Log     int64     // bytes of the log beside a SQLite file, which grows while a reader stays
	Reading time.Time // since when the oldest transaction on Postgres has been open that keeps it from cleaning up; zero: none is, or is seen
}

// Total counts the works of one saga that have one status, for one reason.
type Total struct {
	Saga   string
	Status saga.Status
	Reason saga.Reason
	Works  int64
	// OldestDue is the earliest due time of those that no session holds and that wait for no
	// destination, which may lie ahead; zero when there is none.
	OldestDue time.Time
}

// Compare orders totals by saga, status and reason.
func (t *Total) Compare(o *Total) int {
	return cmp.Or(strings.Compare(t.Saga, o.Saga), cmp.Compare(t.Status, o.Status), cmp.Compare(t.Reason, o.Reason))
}

// Backlog is what waits for a process that knows its definition, while no live session does.
type Backlog struct {
	Saga    string
	Version int
	Ended   bool      // they have ended and have an unread signal: a process that knows a newer version reads it, too
	Works   int64     // at most [MaxBacklog] are counted
	Oldest  time.Time // when the first of them was, or is, due
}

// Waiting is what waits for a destination, whether or not a live session knows its definition.
type Waiting struct {
	Destination string
	Works       int64     // at most [MaxBacklog] are counted, those in front
	Oldest      time.Time // when the longest due of those in front was, or is, due
}

// Compare orders backlogs by saga and version, what goes on before what has ended.
func (b Backlog) Compare(o Backlog) int {
	ended := func(b Backlog) int {
		if b.Ended {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(b.Saga, o.Saga), cmp.Compare(b.Version, o.Version), cmp.Compare(ended(b), ended(o)))
}

// Ahead is what the clock cannot explain: it was further once. Chains never go back in time, so
// what was written then waits until the clock has come there again. [Ledger.CatchUp] makes an end
// of that.
type Ahead struct {
	Works    []Instance // released works whose head was written, and that are due, later than now; at most [MaxAhead]
	Sessions []Session  // renewed later than now and not dead
}

// How much an [Overview] holds.
const (
	MaxOldest  = 10
	MaxBacklog = 1000
	MaxAhead   = 100
)
