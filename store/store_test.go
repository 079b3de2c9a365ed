package store

import (
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// An address says by itself which database it is of.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{ // the path of a file, or nothing
		"postgres://shop:secret@db/shop": "", "postgresql:///shop?host=/run/postgresql": "",
		"host=db dbname=shop": "", " user = shop": "",
		"ledger.db": "ledger.db", "/var/lib/shop/ledger.db": "/var/lib/shop/ledger.db", "./host=db": "./host=db",
		"file:ledger.db": "ledger.db", "file:///var/ledger.db": "/var/ledger.db", "file:postgres://x": "postgres://x",
		"a/b://c": "a/b://c", "year=2026.db": "year=2026.db", "": "",
	} {
		path, isFile, err := file(address)
		if err != nil || path != want && isFile || isFile != (want != "" || address == "") {
			t.Errorf("%q is a file %t, %q (%v), want %q", address, isFile, path, err, want)
		}
	}
	if db, err := Open(t.Context(), "mysql://db/shop", nil); err == nil || db != nil {
		t.Errorf("mysql is %v, %v", db, err)
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
