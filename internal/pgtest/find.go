package pgtest

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrNotInstalled says that this machine has no PostgreSQL server binaries.
var ErrNotInstalled = errors.New("no PostgreSQL: set " + Env +
	" to the URL of one, or install the server (Debian: apt-get install postgresql)")

// usualPlaces are where distributions keep the server binaries, one folder per
// major version, most of them outside the PATH.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PGDG packages for Red Hat
	"/usr/libexec/postgresql*",           // Alpine
	"/opt/homebrew/opt/postgresql@*/bin", // macOS, arm64
	"/usr/local/opt/postgresql@*/bin",    // macOS, amd64
	"/Applications/Postgres.app/*/*/bin", // macOS, Postgres.app
	"/Library/PostgreSQL/*/bin",          // macOS, EDB installer
	"/usr/local/pgsql/bin", "/usr/bin",   // built from source; Arch, Fedora
}

// Find returns the folder that holds the server binaries a private cluster would
// use: the one on the PATH, else the newest version in the usual places.
func Find() (string, error) {
	if onPath, err := exec.LookPath("pg_ctl"); err == nil {
		// A symbolic link on the PATH leads to the folder with its siblings.
		if target, err := filepath.EvalSymlinks(onPath); err == nil && complete(filepath.Dir(target)) {
			return filepath.Dir(target), nil
		}
	}
	if found := newest(usualPlaces); found != "" {
		return found, nil
	}
	return "", ErrNotInstalled
}

// newest returns the complete folder with the highest version in its path.
func newest(patterns []string) string {
	var found []string
	for _, pattern := range patterns {
		folders, _ := filepath.Glob(pattern) // the only error is a malformed pattern
		found = append(found, slices.DeleteFunc(folders, func(f string) bool { return !complete(f) })...)
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// version reads the version out of a path such as /usr/lib/postgresql/15/bin: its
// last number. A path without one counts as the oldest.
func version(path string) float64 {
	numbers := number.FindAllString(path, -1)
	if len(numbers) == 0 {
		return 0
	}
	v, _ := strconv.ParseFloat(numbers[len(numbers)-1], 64) // the pattern is that of a number
	return v
}

// complete reports whether a folder holds all that a cluster needs.
func complete(folder string) bool {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}
