// Package file reads the address of a database that is a file: that part of package address which needs no driver of Postgres.
package file

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Address is the address of a file.
type Address struct {
	File string // its path
	Mode Mode
}

// Mode is how a file is opened.
type Mode int

// The modes. The zero value creates the file where there is none.
const (
	Create Mode = iota
	Existing
	ReadOnly
)

// String names the file so that it leads to it again: by its name, or %-encoded where that would be read otherwise.
func (a Address) String() string {
	if name := a.File; name == strings.TrimSpace(name) && !strings.Contains(name, "?") &&
		!schemed.MatchString(name) && !Pairs.MatchString(name) && plainly(name) == nil {
		return name
	}
	return "file:" + encoded(a.File)
}

// URI is the address of a file as file:PATH, with its mode.
func (a Address) URI() string {
	return "file:" + encoded(a.File) + map[Mode]string{Existing: "?mode=rw", ReadOnly: "?mode=ro"}[a.Mode]
}

// schemed is an address that begins with a scheme. One letter is a drive of Windows.
var schemed = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):`)

// Pairs is how the pairs of Postgres begin, whatever the first key is.
var Pairs = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*\s*=`)

// ErrPostgres is all that is said here of an address of Postgres.
var ErrPostgres = errors.New("this is an address of Postgres; open it by package store, or store/postgres; write ./NAME for a file with an = sign in its name")

// Parse reads the address of a file.
func Parse(text string) (Address, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Address{}, errors.New("the address of the database is empty; " + instead)
	}
	m := schemed.FindStringSubmatch(text)
	switch {
	case m == nil && Pairs.MatchString(text):
		return Address{}, ErrPostgres
	case m == nil:
		return plain(text)
	}
	switch scheme := strings.ToLower(m[1]); scheme {
	case "postgres", "postgresql":
		return Address{}, ErrPostgres
	case "file", "sqlite":
		return readFile(scheme, text[len(m[0]):])
	default:
		return Address{}, fmt.Errorf("there is no database for addresses that begin with %s:; %s", m[1], instead)
	}
}

// instead is what an address may be.
const instead = "write postgres://…, host=… dbname=…, or the name of a file, such as ./ledger.db"

// plain reads the name of a file. A file is created for what is plainly one: a mistyped address
// would become an empty ledger, with the password in the name of its file.
func plain(name string) (Address, error) {
	if strings.Contains(name, "?") {
		return Address{}, errors.New("a ? in the name of a file may begin its parameters; " +
			"write file:NAME?mode=…, or file:NAME with %3F for a ? that belongs to the name")
	}
	if err := plainly(name); err != nil {
		return Address{}, err
	}
	return file(name, Create)
}

// control is what a name may have and a person does not see.
func control(r rune) bool { return r < ' ' || r == 0x7f }

// signs are what other kinds of addresses have, and names of files seldom. An = sign in a folder
// such as data/year=2026 is no pair.
var signs = []struct {
	in   *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`://`), ":// in it"},
	{regexp.MustCompile(`(?i)(password|passwd|pwd|secret)\s*=`), "a password in it"},
	{regexp.MustCompile(`^[^./\\][^/\\]*=`), "an = sign in it"},
	{regexp.MustCompile(`^[^./\\][^/\\]*;`), "a semicolon in it"},
	{regexp.MustCompile(`..:.*@|^.:[^/\\].*@`), "a user and a password before an @"}, // not C:\a@b.db
}

// plainly says why a text is not plainly the name of a file.
func plainly(name string) error {
	if strings.ContainsFunc(name, control) {
		return errors.New("the name of the file holds a control character, such as the end of a line; write it without, or %-encoded behind file:")
	}
	for _, s := range signs {
		if s.in.MatchString(name) {
			return fmt.Errorf("an address with %s is not plainly the name of a file, nor an address of Postgres; "+
				"write postgres://USER:PASSWORD@HOST/DATABASE or host=… dbname=…, and a file of such a name %%-encoded: file:a%%3Db.db", s.what)
		}
	}
	return nil
}

// Parameter is what the name of one looks like. Anything else may be a piece of a password.
var Parameter = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// readFile reads what stands behind file: and sqlite:.
func readFile(scheme, rest string) (Address, error) {
	path, query, _ := strings.Cut(rest, "?")
	if slashes, ok := strings.CutPrefix(path, "//"); ok {
		path = slashes
		if local, ok := strings.CutPrefix(path, "localhost/"); ok { // the host of a URL that is for this one
			path = "/" + local
		}
	}
	if strings.Contains(rest, "#") {
		return Address{}, fmt.Errorf("a # cannot stand in an address that begins with %s:; write %%23 for one in the name of the file", scheme)
	}
	if err := plainly(path); err != nil {
		return Address{}, err
	}
	name, err := url.PathUnescape(path)
	if err != nil || strings.ContainsRune(name, 0) {
		return Address{}, fmt.Errorf("a %% in an address that begins with %s: stands before two hexadecimal digits, and not before 00; "+
			"write %%25 for a %% in the name of the file", scheme)
	}
	if name == "" {
		return Address{}, fmt.Errorf("%s: names no file; write %s:ledger.db", scheme, scheme)
	}
	mode, err := readMode(query)
	if err != nil {
		return Address{}, err
	}
	return file(name, mode)
}

// readMode reads the parameters of a file. All that is not understood is refused: a database in
// memory that becomes a file, or the other way round, is found out too late.
func readMode(query string) (Mode, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return 0, errors.New("the parameters of the file cannot be read; write file:PATH?mode=ro, with %-encoded values")
	}
	modes := map[string]Mode{"rwc": Create, "rw": Existing, "ro": ReadOnly}
	mode := Create
	for key, values := range q {
		var known bool
		switch {
		case key == "mode" && len(values) > 1:
			return 0, errors.New("the file has more than one mode; write one of them")
		case key == "mode" && values[0] == "memory":
			return 0, errMemory
		case key != "mode" && Parameter.MatchString(key):
			return 0, fmt.Errorf("amends knows no parameter %q of a file, and sets what a ledger needs by itself; write file:PATH without it", key)
		case key == "mode":
			mode, known = modes[values[0]]
		}
		if !known {
			return 0, errors.New("a parameter of the file is none; write mode=ro, mode=rw or mode=rwc")
		}
	}
	return mode, nil
}

var errMemory = errors.New("a ledger must outlive its process, and one in memory does not; " +
	"write the name of a file, or use package store/memory for one that forgets")

func file(name string, mode Mode) (Address, error) {
	if name == ":memory:" {
		return Address{}, errMemory
	}
	return Address{name, mode}, nil
}

// encoded is a path as it stands behind file:. A slash that begins it is not one of two.
func encoded(path string) string {
	path = strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(path))
	if strings.HasPrefix(path, "//") {
		path = "//" + path
	}
	return path
}
