package scan

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// ErrExpired is matched by the error of a listing whose cursor the provider does not know any more.
var ErrExpired = errors.New("the cursor has expired")

// Source is the source of truth as a sweep reads it. Changed or All may be nil: then there is no
// incremental, or no full sweep. Whatever a function cannot answer is an error, never an empty
// page: an empty page says that there is nothing. See [saga.RetryAfter] for an answer of "too many
// requests", [asking.Permanent] for one that will not change, and [ErrExpired].
type Source struct {
	// Object names the source, tenant and type of the objects; its ID is empty.
	Object intake.Object
	// Quota bounds the calls; the source's Processor shares it. Nil: one of its own with the
	// default limits.
	Quota *asking.Quota
	// Changed lists objects that changed at or after q.Since, in the order of (Changed, ID). The
	// lower bound is inclusive. It lists deleted objects only if the provider does. A provider that
	// pages by time alone gives the time of the last object as Next. Next must not be a place in
	// the list (an offset, a page number): objects that move while the list is read would be
	// skipped.
	Changed func(ctx context.Context, q Query) (Page, error)
	// Partitions names the parts in which the source is listed whole, with what each holds if the
	// provider counts: ranges of creation time, for example. An object never leaves its part. Nil:
	// one part, without a count.
	Partitions func(ctx context.Context) ([]Partition, error)
	// All lists every object of a part, in an order that changes do not move (by creation or id),
	// and by a cursor that is no place in the list.
	All func(ctx context.Context, q Query) (Page, error)
	// Get asks for one object. nil: the source answered, and has none.
	Get func(ctx context.Context, id string) (*Listed, error)
	// Want says what an object's document should say. It is pure. An error says that the object
	// cannot be read; it is listed for a person, and its document is left alone.
	Want func(o *Listed) (plan.Truth, error)
	// Visible says whether a listing would show the object of a work or document, if it existed:
	// providers hide what is archived, older than some age or of another account. Nil: everything.
	// Silence about the others proves nothing.
	Visible func(key string) bool
	// Volatile are the fields of a body that make no state another one.
	Volatile []string
	// ID is the source's id of the object with a natural key. Nil: what is behind the last colon.
	ID func(key string) string
}

// Destination is where documents are made.
type Destination struct {
	// Limits bound how often this process asks it.
	Limits inbox.Limits
	// Marked lists everything that carries our mark, void and posted ones too.
	Marked func(ctx context.Context, q Query) (Documents, error)
	// Partitions are as those of a Source.
	Partitions func(ctx context.Context) ([]Partition, error)
	// Find asks for everything under one natural key. It asks by list or by id where a search index
	// may be behind.
	Find func(ctx context.Context, key string) ([]plan.Document, error)
	// Settle is how long the destination may take until everybody who asks is told of what was
	// made. 2 seconds.
	Settle time.Duration

	quota *asking.Quota
}

// Quota is what bounds the calls to the destination of a sweep.
func (d *Destination) Quota() *asking.Quota { return d.quota }

// Query asks for one page.
type Query struct {
	Partition string
	Since     time.Time // changed at or after; Changed only
	Until     time.Time // what changed after it may be left out; Changed only
	Cursor    string    // Next of the page before; empty for the first
	Limit     int       // how many we would like; the provider may give fewer
}

// Listed is one object of the source as a listing or a look tells it.
type Listed struct {
	ID      string
	Version intake.Version // as webhooks tell it; zero when the object has none
	Created time.Time
	Changed time.Time // by the source's clock
	Deleted bool
	Body    json.RawMessage // whole, as a fetch would give it
}

// Page is one page of objects.
type Page struct {
	Objects []Listed
	Next    string // the next page's cursor; empty: this is the last
}

// Documents is one page of documents.
type Documents struct {
	Documents []plan.Document
	Next      string
}

// Partition is one part of a whole listing.
type Partition struct {
	Name  string
	Count int64 // what it holds by the provider's word; -1: it does not say
}

// Side says whose listing it is.
type Side string

// The sides that are listed. The third side, the ledger, is at hand.
const (
	SourceSide      Side = "source"
	DestinationSide Side = "destination"
)

// Sighting is one row of a listing, kept until the next generation is complete.
type Sighting struct {
	Key         string // natural key; the listing is read in its order
	ID          string // source: the object's id; destination: the document's
	Partition   string
	Generation  int64
	Revision    string        // source: of the object; destination: which it says it shows, if it says so
	Fingerprint intake.Digest // of Fields and the mapping's version; see [Fingerprint]
	Flags       Flags
	Created     time.Time // destination: of the document; source: when it changed
	Fields      plan.Fields
}

// Flags are what a sighting is beside its fields.
type Flags uint8

// The flags.
const (
	Wanted     Flags = 1 << iota // source: the object is to have a document
	Void                         // destination: it does not count any more
	Locked                       // destination: posted, paid or in a closed period
	Foreign                      // destination: fields that are not ours differ
	Unreadable                   // source: the object could not be read
)
