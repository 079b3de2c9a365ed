package store

import (
	"context"
	"fmt"

	addresses "github.com/amends-dev/amends/internal/address"
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

// Open opens the database at an address. Postgres is postgres://…, postgresql://… or the pairs of
// lib/pq (host=db dbname=shop); SQLite is the name of a file, file:PATH or sqlite:PATH, see
// [sqlite.Open]. What is not plainly one of these is refused: a mistyped address would become the
// name of an empty file.
func Open(ctx context.Context, address string, o *Options) (DB, error) {
	a, err := addresses.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open the database: %w", err)
	case a.Postgres == nil:
		return opened(sqlite.Open(ctx, a.URI(), nil))
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
