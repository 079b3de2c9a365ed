package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
)

// postgresSettings are those of the published figures; fsync and
// synchronous_commit are what the comparison is about.
var postgresSettings = pgtest.Settings{
	"fsync":              "on",
	"synchronous_commit": "on",
	"shared_buffers":     "512MB",
	"max_connections":    "200",
	"max_wal_size":       "8GB",
}

// A stage is where cells run: a folder for SQLite files and, when an engine
// needs it, a Postgres that serves nothing else.
type stage struct {
	dir        string
	cluster    *pgtest.Cluster
	admin      *sqlx.DB
	postmaster int
	files      int
}

// openStage makes a stage below dir, which is on the disk to be measured.
func openStage(ctx context.Context, dir string, withPostgres bool) (_ *stage, err error) {
	s := &stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp(dir, "amends-bench-"); err != nil {
		return nil, err
	}
	if !withPostgres {
		return s, nil
	}
	// Not below our own folder, which another user may not enter.
	if s.cluster, err = pgtest.Start(ctx, dir, postgresSettings); err != nil {
		return nil, err
	}
	if s.postmaster, err = s.cluster.PID(); err != nil {
		return nil, err
	}
	if s.admin, err = sqlx.ConnectContext(ctx, "postgres", s.cluster.URL()); err != nil {
		return nil, err
	}
	return s, nil
}

// fresh returns the address of an empty ledger and what removes it again.
func (s *stage) fresh(ctx context.Context, ledger string) (address string, remove func(context.Context) error, err error) {
	if ledger == onPostgres {
		return pgtest.Database(ctx, s.cluster.URL())
	}
	s.files++
	path := filepath.Join(s.dir, fmt.Sprintf("ledger-%d.db", s.files))
	return path, func(context.Context) error { return removeSQLite(path) }, nil
}

// copy returns the address of a copy of a database without connections, and what removes it again.
func (s *stage) copy(ctx context.Context, database string) (address string, remove func(context.Context) error, err error) {
	from, err := url.Parse(database)
	if err != nil {
		return "", nil, err
	}
	s.files++
	name := fmt.Sprintf("copy_%d", s.files)
	if _, err := s.admin.ExecContext(ctx, "CREATE DATABASE "+name+" TEMPLATE "+strings.TrimPrefix(from.Path, "/")); err != nil {
		return "", nil, fmt.Errorf("copy a database: %w", err)
	}
	from.Path = "/" + name
	return from.String(), func(ctx context.Context) error {
		_, err := s.admin.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		return err
	}, nil
}

// settle leaves nothing of one cell for the next to write.
func (s *stage) settle(ctx context.Context) error {
	if s.admin == nil {
		return nil
	}
	if _, err := s.admin.ExecContext(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("checkpoint between two runs: %w", err)
	}
	return nil
}

func removeSQLite(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// version names the database server, for the heading.
func (s *stage) version(ctx context.Context) (string, error) {
	if s.admin == nil {
		return "no Postgres", nil
	}
	var v string
	err := s.admin.GetContext(ctx, &v, "show server_version")
	return "Postgres " + v, err
}

func (s *stage) close() error {
	var errs []error
	if s.admin != nil {
		errs = append(errs, s.admin.Close())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
