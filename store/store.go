package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// DB is an open database with every role. A process opens one for each database.
type DB interface {
	ledger.Ledger
	ledger.TxStarter
	intake.Inbox
	intake.Gate
	intake.Reader
	plan.Plans
	plan.Drifts
	scan.Store
	schedule.Store
	schedule.Reader
}

// Options tunes a database, whichever it is. The zero value is ready to use. What is particular to
// one is in its package.
type Options struct {
	// Migrate brings an older schema up to date when the database is opened. Without it Postgres is
	// refused then; a file is always brought up to date.
	Migrate bool
}

// Open opens the database at an address: postgres://…, postgresql://… or key=value pairs as lib/pq
// takes them (host=db dbname=shop) are Postgres; file:PATH and any other path are a SQLite file.
func Open(ctx context.Context, address string, o *Options) (DB, error) {
	path, isFile, err := file(address)
	switch {
	case err != nil:
		return nil, err
	case isFile:
		return opened(sqlite.Open(ctx, path, nil))
	}
	return opened(postgres.Open(ctx, address, &postgres.Options{Migrate: o != nil && o.Migrate}))
}

// opened is db without the trap of an interface that holds a nil pointer.
func opened[T DB](db T, err error) (DB, error) {
	if err != nil {
		return nil, err
	}
	return db, nil
}

// file returns the path that an address names, if it is one.
func file(address string) (path string, isFile bool, err error) {
	if path, ok := strings.CutPrefix(address, "file:"); ok {
		return strings.TrimPrefix(path, "//"), true, nil
	}
	if scheme, _, ok := strings.Cut(address, "://"); ok && !strings.Contains(scheme, "/") {
		if scheme == "postgres" || scheme == "postgresql" {
			return "", false, nil
		}
		return "", false, fmt.Errorf("open the database: there is none for %s://; give postgres://…, or the path of a file", scheme)
	}
	key, _, ok := strings.Cut(address, "=")
	return address, !ok || !slices.Contains(keys, strings.TrimSpace(key)), nil
}

// keys are the words of lib/pq with which a list of key=value pairs may begin.
var keys = []string{
	"host", "hostaddr", "port", "dbname", "database", "user", "password", "passfile", "service", "sslmode", "sslcert", "sslkey",
	"sslrootcert", "connect_timeout", "application_name", "search_path", "target_session_attrs", "options",
}
