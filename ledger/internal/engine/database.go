package engine

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jmoiron/sqlx"
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

	// Read is a consistent view for several statements, Write a transaction, Pulse the heartbeat's own
	// connection, on which each statement stands for itself.
	Read, Write, Pulse Lane

	// Identity asks the database who it is.
	Identity func(ctx context.Context, q Queries) (string, error)

	// Claim gives session t works. It runs on Write.
	Claim func(ctx context.Context, q Queries, c ClaimArgs) ([]HeadRow, error)

	// Explain gives an error of the driver its meaning: one of the ledger's sentinels where there is one, and
	// what a person can do. It leaves other errors alone. ctx is the caller's: a driver does not always say that
	// it was the reason.
	Explain func(ctx context.Context, err error) error
}

// ClaimArgs is [ledger.Claim] as statements take it.
type ClaimArgs struct {
	Token   int64
	Limit   int
	Known   string // JSON: [["saga", version], …]
	GraceMS int64
	Held    int  // at most this many works that are held
	All     bool // of those held, also the ones nobody has posted a signal to
}

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
