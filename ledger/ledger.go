package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/saga"
)

// Ledger is the write side: what a coordinator needs. It stores what the machine decided and never derives a
// status from an event. Every method is safe for concurrent use and for repeating after an error: a method
// that returns an error may or may not have taken effect, and calling it again with the same arguments
// settles which.
type Ledger interface {
	// OpenSession begins a lease of ttl for a new process under a fresh random token, and reads who the
	// database is. label names the process for people (host, pid).
	OpenSession(ctx context.Context, ttl time.Duration, label string) (Lease, error)

	// Renew extends the session's lease to ttl from now, by the database's clock. A session that is dead or
	// has expired is not revived: the error matches [ErrSessionDead]. A database that is no longer the one
	// the session was opened on answers [ErrDatabaseChanged].
	Renew(ctx context.Context, t saga.Token, ttl time.Duration) (Lease, error)

	// Bury marks session t dead, so that its works can be claimed at once. Burying a dead session is not an
	// error. A process calls it on its own session when it stops.
	Bury(ctx context.Context, t saga.Token) error

	// Append stores records, many works per call, at most one record per work, and answers each at its own
	// index. t is the session on whose lease records that arm something are judged. An error says that
	// nothing is known of any of them: append the very same entries again until there is an answer. Only
	// [ErrDatabaseChanged] is final: the session is void.
	Append(ctx context.Context, t saga.Token, entries []Entry) ([]Answer, error)

	// Load returns the chains of works, each from its latest snapshot on, with every signal posted to the work as long as
	// some of them are unconsumed. Works that do not exist are left out.
	Load(ctx context.Context, ids []saga.ID) ([]Chain, error)

	// Claim buries expired sessions, then gives session t up to Limit works that are due or whose holder is
	// dead, and returns them together with works t already holds that somebody has posted a signal to. A
	// session that is not live claims nothing: [ErrSessionDead].
	Claim(ctx context.Context, t saga.Token, c Claim) ([]Head, error)

	// Post inserts a signal, whoever holds the work, and makes the work due, also one that has ended. A signal whose Key the work has
	// already received changes nothing. An unknown work matches [ErrNotFound].
	Post(ctx context.Context, id saga.ID, s saga.Signal) error

	// Describe stores the structure of a definition, or compares it with what is stored under the same name
	// and version: [ErrDefinitionChanged] when they differ.
	Describe(ctx context.Context, spec *saga.Spec) error

	// Count adds blocked duplicates to their counters. It is the one method that is not idempotent: after an
	// error the counts may be in or not.
	Count(ctx context.Context, ds []Duplicate) error

	// Close releases connections and files. It does not bury sessions.
	Close() error
}

// Reader is the people's side. It reads from the primary and needs no session.
type Reader interface {
	// List returns heads in the order of their numbers, at most f.Limit of them, starting behind f.After; or in the order
	// of their works behind f.AfterWork, see [Filter].
	List(ctx context.Context, f Filter) ([]Head, error)

	// History returns the whole chain of a work from its first record, whatever snapshots it holds.
	// An unknown work matches [ErrNotFound].
	History(ctx context.Context, id saga.ID) ([]saga.Record, error)

	// Signals returns every signal posted to a work, oldest first.
	Signals(ctx context.Context, id saga.ID) ([]saga.Signal, error)

	// Duplicates returns the counters of blocked duplicates, the most recent first.
	Duplicates(ctx context.Context, f Filter) ([]Duplicate, error)

	// Definitions returns every definition the ledger has seen, by name and version.
	Definitions(ctx context.Context) ([]Definition, error)
}

// TxStarter is implemented by ledgers that live in a database the caller may share.
type TxStarter interface {
	// StartTx inserts head and start record within tx, unheld and due now. It arms nothing. The answer is
	// final only when tx commits. [Exists] is answered without aborting tx.
	StartTx(ctx context.Context, tx *sqlx.Tx, e Entry) (Answer, error)
}

// Lease is a session's right to arm.
type Lease struct {
	Token    saga.Token
	At       time.Time     // the database's clock when it answered
	TTL      time.Duration // granted from At on
	Database string        // the database's identity: system identifier and timeline, or the file's own id
	// Alone: opening proved every other session's process gone (a file lock), so attempts they had armed are
	// lost at once, without waiting for their deadlines.
	Alone bool
}

// Entry is one record on its way into the ledger, sealed by [saga.Record.Seal].
type Entry struct {
	ID       saga.ID
	Head     int64     // the ledger's number of the work; 0 for a start
	Prev     saga.Hash // hash of the predecessor; zero for a start
	Record   saga.Record
	Schedule *Schedule // nil: neither status, holder nor due time change
}

// Schedule says what the work's head must show after the record, beyond what the record itself says
// (status, reason, wait, signals consumed, snapshot).
type Schedule struct {
	// Hold: the writer keeps the work in hand and wakes it by itself. Otherwise a live work is released and
	// due at the record's time plus its wait. No record leaves a parked or terminal work held.
	Hold bool
}

// Result is the ledger's answer to one entry.
type Result string

// The answers.
const (
	Appended Result = "appended" // stored now
	Mine     Result = "mine"     // this very record was there already: the answer to an ambiguous commit
	Stale    Result = "stale"    // another record is at this place; load the chain and decide again
	Missing  Result = "missing"  // the predecessor is gone: the database went back; the session is void
	NoLease  Result = "no-lease" // the record arms something and the session is not live; nothing was stored
	Exists   Result = "exists"   // start only: the work is known
	Invalid  Result = "invalid"  // the database refuses a value of this record; the others were stored
	Blocked  Result = "blocked"  // start only: a transaction that is still open starts the same work; ask again later
)

// Answer tells what became of one entry.
type Answer struct {
	Result Result
	At     time.Time // Appended, Mine: the record's ledger time
	Head   int64     // Appended, Mine: the ledger's number of the work
	Err    error     // Invalid: why
}

// Head is the row by which a work is scheduled and listed. It is a projection of the work's chain and can be
// rebuilt from it.
type Head struct {
	Number   int64 // the ledger's own, in order of starting
	ID       saga.ID
	Version  int    // of the definition; a revision may take a newer one
	Revision string // of the source object: the one the work was started with, or revised for
	Status   saga.Status
	Reason   saga.Reason
	Session  saga.Token // who holds it; 0 nobody
	Due      time.Time  // live and held by nobody: when it wants attention
	Base     int64      // seq of the latest record with a snapshot; 1 when there is none
	Posted   int64      // signals received
	Consumed int64      // signals consumed by records
	Created  time.Time
	Updated  time.Time
	Finished time.Time // terminal works only: when it ended first
}

// Chain is a work as a coordinator loads it.
type Chain struct {
	Head    Head
	Records []saga.Record // from Head.Base on
	Signals []saga.Signal // empty when Posted == Consumed
	At      time.Time     // the database's clock when it was read
	// Changed is when the database became another one (a fail-over, a restore), for a chain whose latest record was
	// written before: what was stored behind it may be forgotten. Zero for others. A ledger tells it once a session
	// was opened on it.
	Changed time.Time
}

// Claim says what a process can take.
type Claim struct {
	Limit int // at most this many works
	// Known are the definitions this process can run. Works of other definitions are claimed only once they
	// have been overdue for Grace, so that some process which knows them can take them first. A work that is
	// parked because nobody knew its definition is never given to another process that does not know it,
	// whatever is posted to it.
	Known []Version
	Grace time.Duration
	// All returns every work t holds, not only those somebody has posted a signal to. It is asked for after an
	// error: the lost answer may have given works to t that it does not know of.
	All bool
}

// Version names one version of a definition.
type Version struct {
	Saga    string
	Version int
}

// Filter narrows a listing. Zero fields do not narrow.
type Filter struct {
	Saga       string
	Work       string // exact
	Prefix     string // of the work id
	Status     saga.Status
	Reason     saga.Reason
	ExternalID string // works that recorded this external id
	// Unconfirmed: works whose ledger was lost, and that adopted a step as done because nobody could tell.
	Unconfirmed bool
	After       int64 // heads with a greater number only
	Limit       int   // 0: 100
	// ByWork lists the works of one Saga in the order of their ids, by bytes, behind AfterWork, instead of by number.
	// What compares a ledger with other listings reads it so.
	ByWork    bool
	AfterWork string
}

// Duplicate counts starts of a known work that were answered from the ledger.
type Duplicate struct {
	ID     saga.ID
	Source string // who sent them, as told at Start
	Count  int64
	First  time.Time
	Last   time.Time
}

// Definition is a definition's structure as it was registered.
type Definition struct {
	Spec      saga.Spec
	Structure string // hash over what must not change under one version number
	JSON      json.RawMessage
	First     time.Time // when the ledger first saw it
}
