package floor

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/bench/workload"
)

const postgresWriters = 2

const postgresSchema = `create table saga(
	id    bigint primary key,
	work  text not null unique,
	state smallint not null,
	step  smallint not null,
	seq   smallint not null,
	due   timestamptz,
	doc   text
) with (fillfactor = 60)`

// A finished saga leaves the partial index: it holds what a restart would ask for.
const postgresIndex = `create index saga_unfinished on saga(id) where state < 2`

const postgresInsert = `insert into saga(id, work, state, step, seq)
	select id, work, 0, 0, 0 from unnest($1::bigint[], $2::text[]) t(id, work)
	on conflict (work) do nothing
	returning id`

const postgresUpdate = `update saga s
	set state = u.state, step = u.seq, seq = u.seq, doc = u.doc
	from unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::text[]) u(id, state, seq, doc)
	where s.id = u.id and s.seq = u.seq - 1`

// Both at once: a statement is a commit, and most batches hold starts and ends.
const postgresBoth = `with started as (
	insert into saga(id, work, state, step, seq)
	select id, work, 0, 0, 0 from unnest($1::bigint[], $2::text[]) t(id, work)
	on conflict (work) do nothing
	returning id
), ended as (
	update saga s
	set state = u.state, step = u.seq, seq = u.seq, doc = u.doc
	from unnest($3::bigint[], $4::smallint[], $5::smallint[], $6::text[]) u(id, state, seq, doc)
	where s.id = u.id and s.seq = u.seq - 1
)
select id from started`

type postgresTable struct {
	db                   *sqlx.DB
	insert, update, both *sqlx.Stmt
}

// Postgres opens the floor on an empty database. The address is a postgres:// URL.
func Postgres(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error) {
	address, err := withPlannerSettings(address)
	if err != nil {
		return nil, err
	}
	db, err := sqlx.ConnectContext(ctx, "postgres", address)
	if err != nil {
		return nil, fmt.Errorf("open the floor on Postgres: %w", err)
	}
	db.SetMaxOpenConns(postgresWriters)
	db.SetMaxIdleConns(postgresWriters)
	t := &postgresTable{db: db}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the floor on Postgres: %w", err), db.Close())
	}
	return newEngine(t, steps, postgresWriters), nil
}

// withPlannerSettings adds what keeps the plan of a batch an index lookup per row.
func withPlannerSettings(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("address of Postgres: %w", err)
	}
	q := u.Query()
	for _, name := range []string{"enable_hashjoin", "enable_mergejoin", "enable_seqscan"} {
		q.Set(name, "off")
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

func (t *postgresTable) prepare(ctx context.Context) (err error) {
	for _, ddl := range []string{postgresSchema, postgresIndex} {
		if _, err := t.db.ExecContext(ctx, ddl); err != nil {
			return err
		}
	}
	if t.insert, err = t.db.PreparexContext(ctx, postgresInsert); err != nil {
		return err
	}
	if t.update, err = t.db.PreparexContext(ctx, postgresUpdate); err != nil {
		return err
	}
	t.both, err = t.db.PreparexContext(ctx, postgresBoth)
	return err
}

func (t *postgresTable) write(batch []*transition) error {
	var starts, ends columns
	for _, tr := range batch {
		if tr.seq == 0 {
			starts.add(tr)
		} else {
			ends.add(tr)
		}
	}
	switch {
	case len(starts.ids) == 0:
		_, err := t.update.Exec(ends.ids, ends.states, ends.seqs, ends.docs)
		return err
	case len(ends.ids) == 0:
		rows, err := t.insert.Queryx(starts.ids, starts.works)
		return markDuplicates(rows, err, batch, len(starts.ids))
	default:
		rows, err := t.both.Queryx(starts.ids, starts.works, ends.ids, ends.states, ends.seqs, ends.docs)
		return markDuplicates(rows, err, batch, len(starts.ids))
	}
}

// columns are the transitions of a batch as one array per column.
type columns struct {
	ids          pq.Int64Array
	works, docs  pq.StringArray
	states, seqs pq.Int32Array
}

func (c *columns) add(t *transition) {
	c.ids = append(c.ids, t.id)
	c.works = append(c.works, t.work)
	c.docs = append(c.docs, string(t.doc))
	c.states = append(c.states, int32(t.state))
	c.seqs = append(c.seqs, int32(t.seq))
}

// markDuplicates reads which starts were inserted and marks the others.
func markDuplicates(rows *sqlx.Rows, err error, batch []*transition, starts int) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	inserted := make(map[int64]bool, starts)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		inserted[id] = true
	}
	if err := rows.Err(); err != nil || len(inserted) == starts {
		return err
	}
	for _, t := range batch {
		t.duplicate = t.seq == 0 && !inserted[t.id]
	}
	return nil
}

func (t *postgresTable) close() error { return t.db.Close() }
