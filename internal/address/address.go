// Package address reads the address of a database, as a program or a person names it. The library
// and the command read it by the same rules.
//
// Postgres is postgres://USER:PASSWORD@HOST:PORT/DATABASE?SETTING=VALUE, also with postgresql://, or
// the pairs of lib/pq in any order: host=HOST dbname=DATABASE. SQLite is the name of a file, or
// file:PATH or sqlite:PATH, in which a % and two hexadecimal digits are a byte, as in a URL. Two
// slashes may stand before the path. Behind it ?mode=rwc creates the file where there is none, which
// is what happens without it, too; mode=rw does not, and with mode=ro nothing is written.
//
// An address often holds a password. An error says what is wrong and what to write instead, and
// repeats nothing of the address but the name of a scheme or of a parameter.
package address

import (
	"errors"
	"strings"

	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/address/file"
)

// Address is a database.
type Address struct {
	file.Address // empty for Postgres

	Postgres *pq.Config // nil for a file

	shown  string
	secret bool
}

// String names the database without a password. The name of a file leads to it again.
func (a *Address) String() string {
	if a.Postgres == nil {
		return a.Address.String()
	}
	return a.shown
}

// Secret reports whether the address itself holds a password.
func (a *Address) Secret() bool { return a.secret }

// Parse reads an address.
func Parse(text string) (*Address, error) {
	f, err := file.Parse(text)
	switch text = strings.TrimSpace(text); {
	case err == nil:
		return &Address{Address: f}, nil
	case !errors.Is(err, file.ErrPostgres):
		return nil, err
	case file.Pairs.MatchString(text):
		return readPairs(text)
	}
	scheme, rest, _ := strings.Cut(text, ":")
	return readURL(strings.ToLower(scheme), rest)
}
