package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Inbox is what a receiver needs of a store.
type Inbox interface {
	// Accept stores events, all or none, and has them on disk when it returns. Of two with the same
	// source and dedupe digest the first is kept; the other raises its count of copies, or, when it
	// says something else, is kept beside it with the disposition [Conflict], to be judged as a
	// hint. What an event says is its fingerprint, or its body when it has none: what changes by
	// itself is no conflict. It may be repeated.
	Accept(ctx context.Context, events []Event) error

	// Blocked counts n deliveries of a source that were refused, by [ByRefusal], on the day that it is. It counts again when it is repeated.
	Blocked(ctx context.Context, by, source string, n int64) error
}

const refused = "refused:"

// ByRefusal stands for a reason to refuse deliveries among what blocks duplicates.
func ByRefusal(reason string) string { return refused + reason }

// Refusal is that reason; "": it stands for none.
func Refusal(by string) string {
	if reason, is := strings.CutPrefix(by, refused); is {
		return reason
	}
	return ""
}

// Store is what a [inbox.Processor] needs of a store. Every store of ours has it.
type Store interface {
	Inbox
	Gate
}

// Gate is what hearing needs of a store. Each method is one transaction in which what was handed to
// the callback is locked against every other process. now is the database's clock. A callback may
// be called again when the transaction has to be repeated, so it does nothing but change what it
// was given. Its error is returned as it is, and nothing is stored.
type Gate interface {
	// Judge hands up to limit deliveries that were not judged yet, the oldest first, with the
	// entries of their objects (new ones are empty but for Object and First). The callback sets
	// their outcomes and changes the entries; the store sets when they were judged. It returns how
	// many there were.
	Judge(ctx context.Context, limit int, decide func(now time.Time, ds []Delivery, es map[Object]*Entry) error) (int, error)

	// Lease hands up to limit entries that are due and whose lease, if any, is over. Those are
	// returned that the callback leaves with a Holder and a lease in the future.
	Lease(ctx context.Context, limit int, decide func(now time.Time, e *Entry) error) ([]Entry, error)

	// Holder names the session of this process as who leases entries, "" without one. What was leased under
	// the name of a session whose process is proven to have ended is due as soon as another session is
	// opened there.
	Holder() string

	// Update hands one entry, an empty one when there is none.
	Update(ctx context.Context, o Object, decide func(now time.Time, e *Entry) error) error

	// Weigh hands one entry as Update does, with what was withdrawn of its source lately. Calls about
	// one source that have a count exclude each other until they are stored. id is the instance that
	// would be withdrawn: what was never started, or has been undone, undoes nothing.
	Weigh(ctx context.Context, o Object, id saga.ID, b Bound, decide func(now time.Time, e *Entry, t Tally) error) error

	// Found returns what comparisons left to people about the work of that name.
	Found(ctx context.Context, work string) (Found, error)
}

// Found is what comparisons left to people about a work.
type Found struct {
	// Open is a difference that the latest comparison of a job found, on which nothing is decided yet, or not carried out. nil: there is
	// none, or the job found too many of them.
	Open *Undecided
	// Accepted is the newest version of the object with which a person has taken what stands as right, and Until the end of that; zero:
	// there is none.
	Accepted string
	Until    time.Time
}

// Accept takes in that a person has taken what stands as right at a version, until a time; zero: for good. What has no version passes none over.
func (f *Found) Accept(revision string, until time.Time) {
	order := saga.CompareRevisions(revision, f.Accepted)
	if revision == "" {
		return
	}
	if f.Accepted == "" || order > 0 || order == 0 && !f.Until.IsZero() && (until.IsZero() || until.After(f.Until)) {
		f.Accepted, f.Until = revision, until
	}
}

// Leave takes in that a difference is left to a person. Of several it is that of the first job by name.
func (f *Found) Leave(u Undecided) {
	if f.Open == nil || u.Job < f.Open.Job {
		f.Open = &u
	}
}

// Undecided is a difference that a comparison left to a person.
type Undecided struct {
	Job   string
	Class string
}

// Error says what waits for it, and what a person does.
func (u *Undecided) Error() string {
	return fmt.Sprintf("it waits for a person's decision on what the job %s found (%s): amends drift list --job %s", u.Job, u.Class, u.Job)
}

// Reader is the people's side of a store: what was heard and what became of it.
type Reader interface {
	// Deliveries returns deliveries, the newest first.
	Deliveries(ctx context.Context, f DeliveryFilter) ([]Delivery, error)
	// Delivery returns one; an unknown number matches ErrNotFound.
	Delivery(ctx context.Context, number int64) (Delivery, error)
	// Entry returns what is known of an object; nil when nothing is.
	Entry(ctx context.Context, o Object) (*Entry, error)
	// Entries returns entries in the order of their objects.
	Entries(ctx context.Context, f EntryFilter) ([]Entry, error)
	// Counts returns how many deliveries of each source met which disposition.
	Counts(ctx context.Context) ([]Count, error)
	// Stopped lists objects with deliveries that changed nothing because they were copies or told
	// nothing new, the latest first. It is about the newest [StoppedWithin]
	// deliveries of the object, or of all.
	Stopped(ctx context.Context, f StoppedFilter) ([]Stopped, error)
	// Holdings returns of which sources withdrawals are held, by their names.
	Holdings(ctx context.Context) ([]Holding, error)
	// EndHold does [ActRelease] or [ActDrop] to the withdrawals of a source that are held. What is
	// counted begins again, and who did it is put on record. It answers how many were held; where
	// none was, nothing is done.
	EndHold(ctx context.Context, source, act string, by saga.Actor) (int64, error)
	// Replay makes the deliveries that f selects unjudged again: they go through the gate once
	// more. Their outcomes stay until then, which is how the gate knows a replay. why says who
	// wants it and why; it becomes the Because of those that were judged, and is kept behind the
	// next one. It answers how many f selects.
	Replay(ctx context.Context, f DeliveryFilter, why string) (int, error)
	Purger
}

// Purger is the side of a store by which what is old is forgotten. A [inbox.Processor] uses it.
type Purger interface {
	// Purge erases what is older than the retention allows, at most limit rows of each kind, and
	// never what is still owed. It answers how many rows it touched; ask again until it is 0.
	Purge(ctx context.Context, r Retention, limit int) (int, error)
	// Forget erases what is known of an object, and its deliveries, but for the digests by which copies are known. It reports
	// whether it did: it does nothing while a delivery is not judged, the object is owed something, or it waits for a person.
	Forget(ctx context.Context, o Object) (bool, error)
}

// DeliveryFilter selects deliveries. Zero fields do not narrow.
type DeliveryFilter struct {
	Numbers     []int64
	Source      string
	Object      Object // its non-empty fields
	Disposition Disposition
	Unjudged    bool
	From, Until time.Time // when they were received
	Before      int64     // numbers below this one: the next page
	Limit       int       // 0: 100 for lists, all for a replay
}

// EntryFilter selects entries. Zero fields do not narrow.
type EntryFilter struct {
	Object  Object // its non-empty fields
	Owing   bool   // a fetch or a delivery is owed
	Blocked bool
	Held    bool   // a withdrawal is held
	Future  bool   // its source says that it is of a time that has not come, or had not when it was asked
	After   Object // the next page
	Limit   int    // 0: 100
}

// StoppedWithin is how many deliveries Stopped looks at, so that it does not read the whole inbox.
const StoppedWithin = 100_000

// StoppedFilter selects objects. Zero fields do not narrow.
type StoppedFilter struct {
	Object Object // its non-empty fields
	Prefix string // names of objects that begin with this, as [Object.String] writes them
	Limit  int    // 0: 100
}

// Stopped counts the deliveries about one object that could have been work done twice.
type Stopped struct {
	Object Object
	Copies int64 // of events that had come before: the inbox has recognised them
	Known  int64 // events of a version that was known or older: the version gate has turned them away
	First  time.Time
	Last   time.Time
}

// Count is how many deliveries met one disposition; an empty disposition counts the unjudged.
type Count struct {
	Source      string
	Disposition Disposition
	Count       int64
	Last        time.Time // when the newest of them was received, which may have been purged since
}

// Retention says how long what was heard is kept after its last copy; zero is for ever. Entries are
// kept for as long as the object may be spoken of.
type Retention struct {
	Bodies  time.Duration // of deliveries; they may hold personal data
	Rows    time.Duration // the rows themselves, without bodies
	Digests time.Duration // what recognises a duplicate, without the row
}

const day = 24 * time.Hour

// WithDefaults fills in what is kept by default, and says for ever as stores do.
func (r Retention) WithDefaults() Retention {
	kept := func(d, usual time.Duration) time.Duration { return max(cmp.Or(d, usual), 0) }
	return Retention{Bodies: kept(r.Bodies, 30*day), Rows: kept(r.Rows, 90*day), Digests: kept(r.Digests, 400*day)}
}

// Fetched is inbox.Fetched: what the source of truth says about an object now.
type Fetched struct {
	Version     Version
	Body        json.RawMessage
	Fingerprint Digest // of the Body; zero: it is computed, without what is volatile by the Policy
	Gone        bool   // the source answered, and has no such object
}

// Snapshot is inbox.Snapshot: an accepted state of an object.
type Snapshot struct {
	Object
	Version  Version
	Revision string // Version as sagas name it; objects without version are numbered by accepted state
	Deleted  bool
	Body     json.RawMessage
	Cause    string // the delivery that led to it, see [Delivery.Name]; empty when none did
}
