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
	"fmt"
	"regexp"
	"strings"

	"github.com/lib/pq"
)

// Address is a database.
type Address struct {
	File     string     // the path of a SQLite file; "" for Postgres
	Mode     Mode       // of the file
	Postgres *pq.Config // nil for a file

	shown  string
	secret bool
}

// Mode is how a file is opened.
type Mode int

// The modes. The zero value creates the file where there is none.
const (
	Create Mode = iota
	Existing
	ReadOnly
)

// String names the database without a password. The name of a file leads to it again.
func (a *Address) String() string { return a.shown }

// URI is the address of a file as file:PATH, with its mode.
func (a *Address) URI() string {
	return "file:" + encoded(a.File) + map[Mode]string{Existing: "?mode=rw", ReadOnly: "?mode=ro"}[a.Mode]
}

// Secret reports whether the address itself holds a password.
func (a *Address) Secret() bool { return a.secret }

// schemed is an address that begins with a scheme. One letter is a drive of Windows.
var schemed = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):`)

// OfFile is the address of a file by its path, whatever that has in it.
func OfFile(path string) *Address { return &Address{File: path, shown: shown(path)} }

// Parse reads an address.
func Parse(text string) (*Address, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("the address of the database is empty; " + instead)
	}
	m := schemed.FindStringSubmatch(text)
	if m == nil {
		if pairs.MatchString(text) {
			return readPairs(text)
		}
		return plain(text)
	}
	rest := text[len(m[0]):]
	switch scheme := strings.ToLower(m[1]); scheme {
	case "postgres", "postgresql":
		return readURL(scheme, rest)
	case "file", "sqlite":
		return readFile(scheme, rest)
	default:
		return nil, fmt.Errorf("there is no database for addresses that begin with %s:; %s", m[1], instead)
	}
}

// instead is what an address may be.
const instead = "write postgres://…, host=… dbname=…, or the name of a file, such as ./ledger.db"
