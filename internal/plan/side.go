package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Fields are what a document says, field by field, in a normal form: money as whole minor units,
// times in UTC, lists sorted, texts trimmed. Only what is ours is in them.
type Fields = map[string]string

// Truth is what the source says about one object.
type Truth struct {
	Key      string // natural key and work id: shop:order:10492
	Revision string // the object's version, as sagas name it
	// Wanted: the object is to have a document. A cancelled or deleted one is not wanted.
	Wanted bool
	// Proven: that the object is not there has been proven (a complete listing, a look by its id, a
	// time of grace). It matters for objects that are gone without a trace; one that says that it
	// is cancelled proves it. Of such an object without a version it is true as well.
	Proven bool
	// Held: the source is not done with it: nothing is begun or changed for it yet. What stands of it is adopted all the same.
	Held bool
	// Unreadable: why the object does not tell what its document should be. Empty: it can be read.
	Unreadable string
	Fields     Fields    // what its document should say
	Changed    time.Time // at the source
}

// Document is something at the destination.
type Document struct {
	ID      string // the destination's name for it
	Key     string // our mark on it; empty: it is not ours
	Fields  Fields // what it says where the fields are ours
	Void    bool   // it does not count any more
	Locked  bool   // posted, paid, or in a closed period: it cannot be changed
	Foreign bool   // fields that are not ours differ from what we wrote
	Created time.Time

	// Revision of the object which the document shows, by its own mark. Empty: the mark does not
	// say.
	Revision string
	// Intact: it says what was written for Revision, word for word, and was not changed since. Only
	// an adapter that has seen that revision, or a digest in the mark, can tell.
	Intact bool
	// Body is the document as the destination tells it, for those who read more from it. Listings
	// do not keep it.
	Body json.RawMessage
}

// Known is what the ledger knows of the work with that key.
type Known struct {
	Works    int // with this key in the sagas of the job; more than one cannot be
	Status   saga.Status
	Reason   saga.Reason
	Revision string // which was applied, or is being worked on
	// Fields are what the document should say by the input that was applied, if the ledger can
	// tell. A newer version with the same ones is no news: a source counts our own mark as a
	// change, too.
	Fields  Fields
	Made    string // the external id of the document, "" when none is recorded
	Held    bool   // it is paused by its source's word
	InDoubt bool   // a step was armed and its outcome is unknown
	Overdue bool   // it moves by itself, and has not for longer than it should
}

// Head is a work as a listing of the ledger tells it.
type Head struct {
	Key   string
	Known Known
}

// Item is one natural key with its three sides. A side that is nil has nothing.
type Item struct {
	Key       string
	Truth     *Truth
	Documents []Document // all that carry the mark, void ones too
	Unnamed   int        // live documents beyond Documents, when a listing has too many to name
	Looked    int        // how often the destination was asked and had none
	Known     *Known
}

// live returns the documents that count, the oldest first.
func (i *Item) live() []Document {
	var live []Document
	for _, d := range i.Documents {
		if !d.Void {
			live = append(live, d)
		}
	}
	slices.SortStableFunc(live, func(a, b Document) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return live
}

// Change is one field that is not what it should be.
type Change struct {
	Field   string `json:"field"`
	Actual  string `json:"actual"`
	Desired string `json:"desired"`
}

// diff returns what differs, by the names of the fields. A field that want does not have is not
// ours.
func diff(is, want Fields) []Change {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if is[name] != want[name] {
			changes = append(changes, Change{name, is[name], want[name]})
		}
	}
	return changes
}
