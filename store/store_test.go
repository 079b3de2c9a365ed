package store

import (
	"bytes"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/address/addresstest"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// What an address may be is told in internal/address. What is none opens nothing, makes no file, and
// is in no error with its password.
func TestAddressesKeepTheirPassword(t *testing.T) {
	t.Chdir(t.TempDir())
	var logged bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&logged)
	for _, address := range addresstest.Secrets {
		for name, open := range map[string]func() (io.Closer, error){
			"store":    func() (io.Closer, error) { return Open(t.Context(), address, &Options{Migrate: true}) },
			"postgres": func() (io.Closer, error) { return postgres.Open(t.Context(), address, nil) },
			"sqlite":   func() (io.Closer, error) { return sqlite.Open(t.Context(), address, nil) },
		} {
			if _, err := open(); err == nil || strings.Contains(err.Error(), addresstest.Canary) {
				t.Errorf("%s opens %q: %v", name, address, err)
			}
		}
	}
	if strings.Contains(logged.String(), addresstest.Canary) {
		t.Errorf("the standard log has the password: %s", &logged)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("there are files now: %v, %v", left, err)
	}
	for _, o := range []struct {
		address string
		open    func(string) error
	}{
		{"postgres://h/db", func(a string) error { _, err := sqlite.Open(t.Context(), a, nil); return err }},
		{"ledger.db", func(a string) error { _, err := postgres.Open(t.Context(), a, nil); return err }},
		{"mysql://db/shop", func(a string) error { _, err := Open(t.Context(), a, nil); return err }},
	} {
		if err := o.open(o.address); err == nil || !strings.Contains(err.Error(), "package store") && !strings.Contains(err.Error(), "mysql:") {
			t.Errorf("%s: %v", o.address, err)
		}
	}
}

// A file is created where the address does not say otherwise, and nothing is written where it says
// so. A path that a program gives to package sqlite may have anything in it.
func TestModes(t *testing.T) {
	t.Chdir(t.TempDir())
	open := func(address string) error {
		db, err := Open(t.Context(), address, nil)
		if err == nil {
			err = db.Close()
		}
		return err
	}
	for _, address := range []string{"sqlite:x.db?mode=rw", "file:x.db?mode=ro", "sqlite:x.db?mode=memory"} {
		if err := open(address); err == nil {
			t.Errorf("%s was opened, and there is none", address)
		}
	}
	for _, address := range []string{"sqlite://x.db", "file:x.db?mode=rw", "x.db", "file:x.db?mode=ro", "file:x%2Edb?mode=rwc"} {
		if err := open(address); err != nil {
			t.Error(err)
		}
	}
	db, err := Open(t.Context(), "file:x.db?mode=ro", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.First(t.Context(), db, ledger.Filter{}); err != nil {
		t.Error(err)
	}
	if _, err := db.OpenSession(t.Context(), time.Minute, "test", nil); !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("a session in a file of mode=ro: %v", err)
	}
	if err := db.Describe(t.Context(), &program.Spec{Saga: "s", Version: 1}); !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("a definition in a file of mode=ro: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob("*db"); err != nil || !slices.Equal(left, []string{"x.db"}) {
		t.Errorf("there are the files %v, %v", left, err)
	}
}

// What is opened is the database of the address, or nothing.
func TestOpen(t *testing.T) {
	t.Parallel()
	path, url := filepath.Join(t.TempDir(), "ledger.db"), pgtest.URL(t)
	for address, is := range map[string]func(DB) bool{
		"file:" + path: func(db DB) bool { _, ok := db.(*sqlite.DB); return ok },
		url:            func(db DB) bool { _, ok := db.(*postgres.DB); return ok },
	} {
		db, err := Open(t.Context(), address, &Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		if heads, err := ledger.First(t.Context(), db, ledger.Filter{}); err != nil || len(heads) > 0 || !is(db) {
			t.Errorf("%s is a %T with %v, %v", address, db, heads, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{"", t.TempDir(), "postgres://127.0.0.1:1/none?connect_timeout=1&sslmode=disable"} {
		if db, err := Open(t.Context(), address, nil); err == nil || db != nil {
			t.Errorf("%q was opened: %v, %v", address, db, err)
		}
	}
}
