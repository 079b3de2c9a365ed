package floor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/amends-dev/amends/bench/workload"
)

// A batch takes a single writer: SQLite has one write lock.
const sqliteWriters = 1

var sqliteSetup = []string{
	`pragma journal_mode = wal`,
	`pragma synchronous = full`,
	`pragma wal_autocheckpoint = 1000`,
	`pragma cache_size = -65536`,
	`create table saga(
		id    integer primary key,
		work  text not null unique,
		state int not null,
		step  int not null,
		seq   int not null,
		doc   text
	)`,
	`create index saga_unfinished on saga(id) where state < 2`,
}

type sqliteTable struct {
	db                            *sqlx.DB
	conn                          *sqlx.Conn
	begin, commit, insert, update *sqlx.Stmt
}

// SQLite opens the floor on a database file that does not exist yet.
func SQLite(ctx context.Context, path string, steps *workload.Steps) (workload.Engine, error) {
	db, err := sqlx.Open("sqlite", path)
	if err != nil {
		return nil, fmt.Errorf("open the floor on SQLite: %w", err)
	}
	t := &sqliteTable{db: db}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the floor on SQLite: %w", err), db.Close())
	}
	return newEngine(t, steps, sqliteWriters), nil
}

func (t *sqliteTable) prepare(ctx context.Context) (err error) {
	if t.conn, err = t.db.Connx(ctx); err != nil {
		return err
	}
	for _, statement := range sqliteSetup {
		if _, err := t.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		to   **sqlx.Stmt
		text string
	}{
		{&t.begin, `begin immediate`},
		{&t.commit, `commit`},
		{&t.insert, `insert into saga(id, work, state, step, seq) values (?, ?, 0, 0, 0) on conflict (work) do nothing`},
		{&t.update, `update saga set state = ?, step = ?, seq = ?, doc = ? where id = ?`},
	} {
		if *s.to, err = t.conn.PreparexContext(ctx, s.text); err != nil { //nolint:sqlclosecheck // closed with its connection
			return err
		}
	}
	return nil
}

// write puts a batch into one transaction; a batch of one commits by itself.
func (t *sqliteTable) write(batch []*transition) error {
	if len(batch) == 1 {
		return t.writeOne(batch[0])
	}
	if _, err := t.begin.Exec(); err != nil {
		return err
	}
	for _, tr := range batch {
		if err := t.writeOne(tr); err != nil {
			_, rollback := t.conn.ExecContext(context.Background(), `rollback`)
			return errors.Join(err, rollback)
		}
	}
	_, err := t.commit.Exec()
	return err
}

func (t *sqliteTable) writeOne(tr *transition) error {
	if tr.seq == 0 {
		r, err := t.insert.Exec(tr.id, tr.work)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		tr.duplicate = n == 0
		return err
	}
	_, err := t.update.Exec(tr.state, tr.seq, tr.seq, string(tr.doc), tr.id)
	return err
}

func (t *sqliteTable) close() error {
	return errors.Join(t.conn.Close(), t.db.Close())
}
