package play

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver by which a ledger on Postgres is dropped

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store"
)

// records is all that the job remembers: one database with every role.
type records struct {
	store.DB

	address string // a Postgres URL, or else a SQLite file
}

// openRecords opens a database, and makes it where there is none.
func openRecords(ctx context.Context, address string) (*records, error) {
	db, err := store.Open(ctx, address, &store.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	return &records{db, address}, nil
}

func isPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// withoutPassword is an address as it may be printed.
func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil && isPostgres(address) {
		return u.Redacted()
	}
	return address
}

// empty returns an error if the ledger holds works already: then an earlier run, or another program, has
// used it.
func (r *records) empty(ctx context.Context) error {
	there, err := ledger.First(ctx, r, ledger.Filter{Limit: 1})
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("the ledger %s holds works already, of an earlier run or of your own; give -db a new one", withoutPassword(r.address))
	}
	return err
}

// lose deletes the database with everything in it, and opens an empty one in its place. Every other
// process must have closed the database before.
func (r *records) lose(ctx context.Context) error {
	if err := r.Close(); err != nil {
		return err
	}
	if isPostgres(r.address) {
		if err := dropTables(ctx, r.address); err != nil {
			return fmt.Errorf("delete the ledger: %w", err)
		}
	} else {
		for _, part := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(r.address + part); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("delete the ledger: %w", err)
			}
		}
	}
	fresh, err := openRecords(ctx, r.address)
	if err != nil {
		return err
	}
	*r = *fresh
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
	err = db.SelectContext(ctx, &tables, `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'amends\_%'`)
	if err == nil && len(tables) > 0 {
		_, err = db.ExecContext(ctx, "DROP TABLE IF EXISTS "+strings.Join(tables, ", ")+" CASCADE")
	}
	return err
}
