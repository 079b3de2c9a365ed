package store

import (
	"context"
	"fmt"

	addresses "github.com/amends-dev/amends/internal/address"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/witness"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// DB is an open database: both its halves. A process opens one for each database.
type DB interface {
	Ledger
	Reconciler
}

// Options tunes a database, whichever it is. The zero value is ready to use. What is particular to
// one is in its package.
type Options struct {
	// Migrate brings an older schema up to date when the database is opened. Without it Postgres is
	// refused then; a file is always brought up to date.
	Migrate bool

	// Witness keeps outside the database how far the ledger was seen to have come, so that one that is put
	// back from a backup does not go on as if nothing had happened since. It has to outlive a restart of the
	// process and a restore of the database. Default: [WitnessIn] the folder that systemd gives
	// (StateDirectory=), else amends in $XDG_STATE_HOME, else ~/.local/state/amends; a ledger in a file in
	// [os.TempDir] has none.
	Witness Witness

	// Keys seal the bodies that are stored from now on: what instances are given and give back, documents that people are shown, messages,
	// and what webhooks brought. A ledger that was once opened with keys takes nothing of a process that is opened without: no session, no start.
	// Default: none, and bodies are stored as they are.
	Keys Keys
}

// Keys are those under which bodies are sealed (AES-256-GCM). They are asked for each body that is read or written, and answer from memory:
//
//	type Keys interface {
//		Sealing(subject string) (id string, err error) // which key seals now; subject: see saga.Subject, "" for what belongs to none
//		Key(id string) ([]byte, error)                 // its 32 bytes; nil: it was destroyed, and what it sealed counts as erased
//	}
type Keys = ledger.Keys

// KeySize is how many bytes a key has.
const KeySize = ledger.KeySize

// Witness keeps one text under a kilobyte for each ledger:
//
//	type Witness interface {
//		Read(ctx context.Context, ledger string) (mark []byte, err error) // what was written last; nil: nothing was
//		Write(ctx context.Context, ledger string, mark []byte) error      // in place of what was there
//	}
//
// It is written at the beginning and the end of a session, and once a second between.
type Witness = ledger.Witness

// WitnessIn returns a witness that has a file for each ledger in a folder, which is made when it is not there.
func WitnessIn(folder string) Witness { return witness.Folder(folder) }

// Open opens the database at an address. Postgres is postgres://…, postgresql://… or the pairs of
// lib/pq (host=db dbname=shop); SQLite is the name of a file, file:PATH or sqlite:PATH, see
// [sqlite.Open]. What is not plainly one of these is refused: a mistyped address would become the
// name of an empty file.
func Open(ctx context.Context, address string, o *Options) (DB, error) {
	a, err := addresses.Parse(address)
	if o == nil {
		o = new(Options)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("open the database: %w", err)
	case a.Postgres == nil:
		return opened(sqlite.Open(ctx, a.URI(), &sqlite.Options{Witness: o.Witness, Keys: o.Keys}))
	}
	return opened(postgres.Open(ctx, address, &postgres.Options{Migrate: o.Migrate, Witness: o.Witness, Keys: o.Keys}))
}

// opened is db without the trap of an interface that holds a nil pointer.
func opened[T DB](db T, err error) (DB, error) {
	if err != nil {
		return nil, err
	}
	return db, nil
}
