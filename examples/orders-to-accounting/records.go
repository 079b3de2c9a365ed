package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver by which a ledger on Postgres is dropped

	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/reconcile/inbox"
	"github.com/amends-dev/amends/reconcile/plan"
	"github.com/amends-dev/amends/reconcile/schedule"
	stores "github.com/amends-dev/amends/store"
)

// store is a ledger with both of its sides.
type store interface {
	ledger.Ledger
}

// journal is what was heard, swept, planned and run, with all of its sides.
type journal interface {
	inbox.Inbox
	inbox.Gate
	inbox.Reader
	scan.Store
	plan.Plans
	plan.Drifts
	schedule.Store
	schedule.Reader
}

// records is all that the sync remembers: the ledger, and the journal, which are one database.
type records struct {
	db      string
	ledger  store
	journal journal
}

// openRecords opens, and makes where there is none, what the sync remembers in db: a Postgres URL, or else a SQLite file.
func openRecords(ctx context.Context, db string) (*records, error) {
	opened, err := open(ctx, db)
	if err != nil {
		return nil, err
	}
	return &records{db: db, ledger: opened, journal: opened}, nil
}

func open(ctx context.Context, db string) (stores.DB, error) {
	return stores.Open(ctx, db, &stores.Options{Migrate: true})
}

func (r *records) close() error { return r.ledger.Close() }

// empty returns an error if the ledger holds works already: then an earlier run, or another
// program, has used it.
func (r *records) empty(ctx context.Context) error {
	there, err := ledger.Heads(ctx, r.ledger, ledger.Filter{Limit: 1})
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("the ledger %s holds works already, of an earlier run or of your own; give -db a new one", withoutPassword(r.db))
	}
	return err
}

// lose deletes the database with everything that the sync remembers, and opens an empty one in its
// place. Every other process must have closed the database before.
func (r *records) lose(ctx context.Context) error {
	if err := r.close(); err != nil {
		return err
	}
	drop := dropFile
	if isPostgres(r.db) {
		drop = dropTables
	}
	if err := drop(ctx, r.db); err != nil {
		return fmt.Errorf("delete the ledger: %w", err)
	}
	fresh, err := openRecords(ctx, r.db)
	if err != nil {
		return err
	}
	*r = *fresh
	return nil
}

// dropFile deletes a SQLite database.
func dropFile(_ context.Context, file string) error {
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + part); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// dropTables drops the tables of amends, which it knows by their prefix, and leaves all others.
func dropTables(ctx context.Context, url string) (err error) {
	db, err := sqlx.ConnectContext(ctx, "postgres", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var tables []string
	if err := db.SelectContext(ctx, &tables, `SELECT quote_ident(tablename) FROM pg_tables
		WHERE schemaname = current_schema() AND tablename LIKE 'amends\_%'`); err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table+" CASCADE"); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until what was sent has happened, visibly, or never will.
func settle(ctx context.Context, p place) error { return pause(ctx, p.Answer+p.Settle) }

// sweptSince reports whether a sweep of what changed in the shop began after a time, and went well.
func sweptSince(ctx context.Context, runs schedule.Reader, since time.Time) (bool, error) {
	rows, err := runs.Runs(ctx, schedule.Filter{Job: jobChanges, Verdict: schedule.OK, Limit: 1})
	return err == nil && len(rows) > 0 && rows[0].Began.After(since), err
}
