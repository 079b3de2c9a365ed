package hear

import (
	"context"
	"errors"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/intake"
)

// bare inserts the rows of deliveries into one table with one unique key, batch by batch, and does
// nothing else: no counting of copies, no comparison, nothing for a gate to find. It is the least
// that a durable answer costs.
type bare struct {
	db      *sqlx.DB
	insert  func([]*row) error
	queue   chan *row
	writers sync.WaitGroup
}

type row struct {
	intake.Event

	done chan error
}

// most is how many rows share a commit, as in the stores.
const most = 512

func newBare(db *sqlx.DB, writers int, insert func([]*row) error) *bare {
	b := &bare{db: db, insert: insert, queue: make(chan *row, 4096)}
	for range writers {
		b.writers.Go(b.write)
	}
	return b
}

// Accept implements [Acceptor].
func (b *bare) Accept(_ context.Context, events []intake.Event) error {
	rows := make([]*row, len(events))
	for i, e := range events {
		rows[i] = &row{Event: e, done: make(chan error, 1)}
		b.queue <- rows[i]
	}
	var errs []error
	for _, r := range rows {
		errs = append(errs, <-r.done)
	}
	return errors.Join(errs...)
}

func (b *bare) write() {
	for first := range b.queue {
		batch := []*row{first}
		for more := true; more && len(batch) < most; {
			select {
			case r, ok := <-b.queue:
				if more = ok; ok {
					batch = append(batch, r)
				}
			default:
				more = false
			}
		}
		err := b.insert(batch)
		for _, r := range batch {
			r.done <- err
		}
	}
}

// Close implements [Acceptor].
func (b *bare) Close() error {
	close(b.queue)
	b.writers.Wait()
	return b.db.Close()
}

// BareSQLite opens a bare table in a file that does not exist yet.
func BareSQLite(ctx context.Context, path string) (Acceptor, error) {
	db, err := sqlx.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-65536)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `CREATE TABLE bare (number INTEGER PRIMARY KEY, dedupe BLOB NOT NULL UNIQUE, received INTEGER,
		source TEXT, tenant TEXT, type TEXT, id TEXT, topic TEXT, body TEXT)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO bare (dedupe, received, source, tenant, type, id, topic, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newBare(db, 1, func(batch []*row) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // without effect after a commit
		in := tx.Stmt(insert)
		for _, r := range batch {
			_, err := in.Exec(r.Dedupe[:], r.Received.UnixMicro(), r.Object.Source, r.Object.Tenant, r.Object.Type, r.Object.ID, r.Topic, string(r.Body))
			if err != nil {
				return err
			}
		}
		return tx.Commit()
	}), nil
}

// BarePostgres opens a bare table in an empty database.
func BarePostgres(ctx context.Context, url string) (Acceptor, error) {
	const writers = 2
	db, err := sqlx.ConnectContext(ctx, "postgres", url)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(writers)
	db.SetMaxIdleConns(writers)
	_, err = db.ExecContext(ctx, `CREATE TABLE bare (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, dedupe bytea NOT NULL UNIQUE,
		received timestamptz, source text, tenant text, type text, id text, topic text, body text)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO bare (dedupe, received, source, tenant, type, id, topic, body)
		SELECT dedupe, 'epoch'::timestamptz + received * interval '1 microsecond', source, tenant, type, id, topic, body
		FROM unnest($1::bytea[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
			AS u (dedupe, received, source, tenant, type, id, topic, body)
		ORDER BY dedupe ON CONFLICT DO NOTHING`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newBare(db, writers, func(batch []*row) error {
		var dedupe pq.ByteaArray
		var received pq.Int64Array
		var texts [6]pq.StringArray
		for _, r := range batch {
			dedupe, received = append(dedupe, r.Dedupe[:]), append(received, r.Received.UnixMicro())
			for i, t := range []string{r.Object.Source, r.Object.Tenant, r.Object.Type, r.Object.ID, r.Topic, string(r.Body)} {
				texts[i] = append(texts[i], t)
			}
		}
		_, err := insert.Exec(dedupe, received, texts[0], texts[1], texts[2], texts[3], texts[4], texts[5])
		return err
	}), nil
}
