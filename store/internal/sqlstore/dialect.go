package sqlstore

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/witness"
)

// Queries runs statements: a connection, a pool or a transaction.
type Queries interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// Lane runs fn where one kind of call is made, so that no other kind can hold it up. Unless the
// lane says otherwise each statement in fn stands for itself. The context is the lane's, which may
// bound what is done there. It may run fn again, from its beginning: what fn read in an attempt
// that failed, at its last moment too, does not count. So fn is one transaction, or one statement
// that writes, or it can be done twice.
type Lane func(ctx context.Context, fn func(context.Context, Queries) error) error

type repeatableKey struct{}

// Again returns a context for a verb that leaves the same behind, and answers the same, when it is
// done twice: a database may do it again when the answer was lost.
func Again(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

// Repeatable reports whether ctx is of a verb that may be done again when its answer was lost.
func Repeatable(ctx context.Context) bool { return ctx.Value(repeatableKey{}) != nil }

// Dialect is what one SQL database does differently from the other.
type Dialect struct {
	// Words replace the names in braces of the ledger's statements. A $ followed by a question mark
	// in a word stands for the parameter named in the brace.
	Words map[string]string
	said  sync.Map // the statements that were said already, in them

	// Clock is the first parameter of statements with {now}: nil for the server's own clock,
	// microseconds since 1970 otherwise.
	Clock func() any

	// The ledger's. Load and View are a consistent view for several statements, View for people, and Ask is where coordinators load for
	// one. Plain is for statements that write, Whole for those that are stored together, Pulse is the heartbeat's own.
	Load, View, Ask, Plain, Whole, Pulse Lane

	// The reconciler's. Read is for statements that only read, Write is a transaction, which is in
	// or not in as a whole.
	Read, Write Lane

	// Accept has events on disk when it returns. It explains its errors.
	Accept func(ctx context.Context, ins []*rows.Incoming) error
	// Page runs fn in a transaction and stores events in the same one, unless fn answers that
	// nothing is to be stored. It may run fn again when the transaction has to be repeated.
	Page func(ctx context.Context, ins []*rows.Incoming, fn func(context.Context, Queries) (store bool, err error)) error

	// Gate is the transaction in which deliveries and entries are locked, Change that for one entry, which what others change may share.
	// Calendar is the clock of their statements, as Clock is of the ledger's.
	Gate, Change Lane
	Calendar     func() any
	// SetEntries writes rows of [EntryColumns], and AddEntries those that no other transaction has inserted. They answer how many.
	SetEntries, AddEntries func(ctx context.Context, q Queries, table [][]any) (int64, error)

	// Alive names the file that this process keeps locked while it lives, "" when there is none. It may be
	// nil.
	Alive func() string
	// Witness is told how far the ledger has come.
	Witness *witness.Keeper
	// Identity asks the database who it is.
	Identity func(ctx context.Context, q Queries) (string, error)
	// FailedOver: the database of the second identity was a standby of that of the first. It may be nil.
	FailedOver func(from, to string) bool

	// Buckets is over how many works are spread; 0 and 1 are one.
	Buckets int

	// Secret is the ledger's, under which names are hashed that were erased.
	Secret []byte

	// Keys seal the bodies of a ledger that is sealed. Without them none is stored there.
	Keys   ledger.Keys
	sealed atomic.Bool         // as it was when it was opened, or a session was
	box    atomic.Pointer[box] // the last one

	// Open selects names of the transactions that are open now in the database, of whomever. It is empty where one that
	// writes is alone.
	Open string

	// Schema is the version of the schema that this program knows.
	Schema int64

	latest atomic.Int64 // the session that was opened last

	// Claim buries expired sessions, releases what dead ones held and gives a session works.
	Claim func(ctx context.Context, c ClaimArgs) (ClaimAnswer, error)

	// GiveBack releases works that a session holds, and makes released ones due earlier.
	GiveBack func(ctx context.Context, token int64, works string) error

	// Post stores a signal, with a Number only under it.
	Post func(ctx context.Context, p PostArgs) (PostAnswer, error)

	// Count stores the totals of a counter, adds to the day what they add, and folds counters that are silent. $1 is the clock, $2
	// the counter, $3 its totals, a JSON list of [saga, work, source, count, what is left of the work], $4 how long a counter is silent
	// that is folded, $5 how many are folded.
	Count []string

	// SetControl stores a control if it still has the version it was decided on and its session, if any, is live, and
	// answers its new version and time, or no row. $1 is the clock, $2 the session, $3 kind, $4 name, $5 the version it was decided
	// on, $6 body, $7 actor, $8 reason, $9 nonce. What is behind that statement counts the version that it gave.
	SetControl []string

	// Reading selects since when the oldest transaction has been open that keeps the database from cleaning up.
	// It may be empty.
	Reading string
	// Log is how many bytes the log beside the database has. It may be nil.
	Log func() int64
	// Shrink gives back some of what the database has no use for, in the transaction that deleted. It may be nil.
	Shrink func(context.Context, Queries) error

	// Shard is this handle's of [Shards], where several handles write at the same time.
	Shard int64

	// Bind turns the question marks of a reconciler's statements into the database's own
	// parameters.
	Bind func(string) string

	// Now reads the clock by which a reconciler lives; Today is the same as an expression.
	Now   func(context.Context, Queries) (time.Time, error)
	Today string

	// Moment writes a time as a parameter. MomentOf and BytesOf make a column's value of an
	// expression that is a number of microseconds, or a text in hex.
	Moment            func(time.Time) any
	MomentOf, BytesOf func(expression string) string

	// Numbers is the set of the numbers in a JSON list that is a parameter; Elements is the table
	// e, with the one column value, of the elements of one.
	Numbers, Elements string

	// Share and Lock, behind a SELECT, keep its rows from being changed, or locked as well, until
	// the transaction ends.
	Share, Lock string

	// Explain gives an error of the driver its meaning: one of the ledger's sentinels where there
	// is one, and what a person can do. It leaves other errors alone. ctx is the caller's: a driver
	// does not always say that it was the reason.
	Explain func(ctx context.Context, err error) error
}

// shrink is for transactions of retention.
func (d *Dialect) shrink(ctx context.Context, q Queries) error {
	if d.Shrink == nil {
		return nil
	}
	return d.Shrink(ctx, q)
}

// read runs fn where statements only read.
func (d *Dialect) read(ctx context.Context, fn func(context.Context, Queries) error) error {
	return d.Explain(ctx, d.Read(ctx, fn))
}

// get reads all rows of a query into dest.
func (d *Dialect) get(ctx context.Context, dest any, query string, args ...any) error {
	return d.read(ctx, func(ctx context.Context, q Queries) error { return d.choose(ctx, q, dest, query, args...) })
}

// choose reads all rows of a query into dest, see [rows.Select], within what q is.
func (d *Dialect) choose(ctx context.Context, q Queries, dest any, query string, args ...any) error {
	return rows.Select(ctx, q, dest, d.Bind(query), args...)
}

// write runs fn in a transaction.
func (d *Dialect) write(ctx context.Context, fn func(context.Context, Queries) error) error {
	return d.Explain(ctx, d.Write(ctx, fn))
}

// now reads the clock by which a reconciler lives.
func (d *Dialect) now(ctx context.Context) (now time.Time, err error) {
	err = d.read(ctx, func(ctx context.Context, q Queries) error {
		now, err = d.Now(ctx, q)
		return err
	})
	return now, err
}

// ClaimArgs is [ledger.Claim] as statements take it.
type ClaimArgs struct {
	Token        int64
	Limit, Fresh int
	Known        string // JSON: [["saga", version], …]
	Rooms        string // JSON: [["destination", places], …]
}

// ClaimAnswer is what a claim has to say.
type ClaimAnswer struct {
	Rows     []HeadRow
	Live     bool  // the session is
	Controls int64 // the newest version of all controls
}

// PostArgs is a signal as statements take it.
type PostArgs struct {
	ID                       saga.ID
	Kind, Key, Actor, Reason string
	Doc                      any // JSON, or nil
	ByHand                   bool
	Number                   int64 // 0: the next one
}

// PostAnswer is whether there is such a work, whether the signal is there, and what it got if it was stored now.
type PostAnswer struct {
	Found, There bool
	Number       Number
	At           Moment
}

// MaxRelease is how many works of dead sessions one claim releases.
const MaxRelease = 1000

var word = regexp.MustCompile(`\{(\w+)(?::(\d+))?\}`)

// Text puts the database's words into a statement, once.
func (d *Dialect) Text(statement string) string {
	if text, ok := d.said.Load(statement); ok {
		return text.(string) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	text := word.ReplaceAllStringFunc(statement, func(brace string) string {
		m := word.FindStringSubmatch(brace)
		text, ok := d.Words[m[1]]
		if !ok { // a mistake in a constant of this module
			panic(fmt.Sprintf("sqlstore: the database has no word for %s in %q", brace, statement))
		}
		return parameter.ReplaceAllString(text, "$$"+m[2])
	})
	d.said.Store(statement, text)
	return text
}

var parameter = regexp.MustCompile(`\$\?`)
