package engine

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/saga"
)

// Queries runs statements: a connection, a pool or a transaction.
type Queries interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// Lane runs fn on a connection of one kind. What fn does is in or not in as a whole when the lane is a
// transaction; with an error it is not.
type Lane func(ctx context.Context, fn func(Queries) error) error

// Database is what one SQL database does differently from the other.
type Database struct {
	// Words replace the names in braces of the shared statements. A $ followed by a question mark in a word
	// stands for the parameter named in the brace.
	Words map[string]string

	// Clock is the first parameter of statements with {now}: nil for the server's own clock, microseconds
	// since 1970 otherwise.
	Clock func() any

	// Read is a consistent view for several statements. On Plain and Pulse each statement stands for itself; Pulse
	// is the heartbeat's own connection.
	Read, Plain, Pulse Lane

	// Identity asks the database who it is.
	Identity func(ctx context.Context, q Queries) (string, error)

	// Schema is the version of the schema that this program knows.
	Schema int64

	// Claim buries expired sessions, releases what dead ones held and gives a session works.
	Claim func(ctx context.Context, c ClaimArgs) (ClaimAnswer, error)

	// GiveBack releases works that a session holds, and makes released ones due earlier.
	GiveBack func(ctx context.Context, token int64, works string) error

	// Post stores a signal. It reports whether there is such a work.
	Post func(ctx context.Context, p PostArgs) (found bool, err error)

	// SetControl stores a control if it still has the version it was decided on and its session is live, and draws its new
	// version. It reports whether that was so.
	SetControl func(ctx context.Context, c ControlArgs) (version int64, at Moment, stored bool, err error)

	// Explain gives an error of the driver its meaning: one of the ledger's sentinels where there is one, and
	// what a person can do. It leaves other errors alone. ctx is the caller's: a driver does not always say that
	// it was the reason.
	Explain func(ctx context.Context, err error) error
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

// ControlArgs is a control as statements take it.
type ControlArgs struct {
	Token               int64 // 0: a person
	Kind, Name          string
	Version             int64 // the one it was decided on
	Nonce               int64
	Body, Actor, Reason any // texts, or nil
}

// PostArgs is a signal as statements take it.
type PostArgs struct {
	ID                       saga.ID
	Kind, Key, Actor, Reason string
	Verdict                  any // JSON, or nil
}

// MaxRelease is how many works of dead sessions one claim releases.
const MaxRelease = 1000

var word = regexp.MustCompile(`\{(\w+)(?::(\d+))?\}`)

// Text puts the database's words into a statement.
func (d *Database) Text(statement string) string {
	return word.ReplaceAllStringFunc(statement, func(brace string) string {
		m := word.FindStringSubmatch(brace)
		text, ok := d.Words[m[1]]
		if !ok { // a mistake in a constant of this module
			panic(fmt.Sprintf("engine: the database has no word for %s in %q", brace, statement))
		}
		return parameter.ReplaceAllString(text, "$$"+m[2])
	})
}

var parameter = regexp.MustCompile(`\$\?`)
