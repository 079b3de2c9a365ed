package cost

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"
)

type postgres struct {
	db         *sqlx.DB
	postmaster int
}

// OpenPostgres returns the meter of a cluster that serves one engine only.
// The postmaster's process id may be 0 when it is not known or not on this
// machine; processor time of the database then reads as zero.
func OpenPostgres(ctx context.Context, url string, postmaster int) (Meter, error) {
	db, err := sqlx.ConnectContext(ctx, "postgres", url)
	if err != nil {
		return nil, fmt.Errorf("open the meter's connection: %w", err)
	}
	db.SetMaxOpenConns(1)
	return &postgres{db: db, postmaster: postmaster}, nil
}

func (p *postgres) Read(ctx context.Context) (r Reading, err error) {
	if r.EngineCPU, err = selfCPU(); err != nil {
		return r, err
	}
	if p.postmaster > 0 {
		if r.DatabaseCPU, err = familyCPU(p.postmaster); err != nil {
			return r, fmt.Errorf("processor time of Postgres: %w", err)
		}
	}
	row := p.db.QueryRowContext(ctx, `
		select pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
		       (pg_current_wal_insert_lsn() - '0/0')::bigint`)
	if err := row.Scan(&r.Commits, &r.LogBytes); err != nil {
		return r, fmt.Errorf("read the counters of Postgres: %w", err)
	}
	return r, nil
}

func (p *postgres) Close() error { return p.db.Close() }
