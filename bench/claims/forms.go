package claims

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"
)

// A Form is one way to claim from a bare table, without sagas, classes, destinations or sessions.
type Form struct {
	Skip    bool // past what others have locked, or by comparing and setting
	Buckets int
}

// Forms are the four that a claim can have.
var Forms = []Form{{true, 1}, {true, 64}, {false, 1}, {false, 64}}

func (f Form) String() string {
	name := "compare-and-set"
	if f.Skip {
		name = "SKIP LOCKED"
	}
	return fmt.Sprintf("%s, %d buckets", name, f.Buckets)
}

const table = `CREATE TABLE instances (
	bucket int NOT NULL, number bigint NOT NULL, session bigint, due timestamptz, status text NOT NULL, PRIMARY KEY (bucket, number))`

// Fill makes a table of n due instances.
func (f Form) Fill(ctx context.Context, db *sqlx.DB, n int) error {
	fill := fmt.Sprintf(`INSERT INTO instances SELECT i %% %d, i, NULL, now() - interval '1 hour' + i * interval '1 ms', 'retrying'
		FROM generate_series(1, %d) AS i`, f.Buckets, n)
	for _, statement := range []string{table, fill, `CREATE INDEX ON instances (bucket, session, due)`, `ANALYZE instances`, `CHECKPOINT`} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("fill the bare table: %w", err)
		}
	}
	return nil
}

// statement claims from one bucket. Both forms look for what is due in its order; they differ in
// what they do about others that look there.
func (f Form) statement() string {
	lock, same := "", " AND h.session IS NULL AND h.due = ripe.due"
	if f.Skip {
		lock, same = " FOR NO KEY UPDATE SKIP LOCKED", ""
	}
	return fmt.Sprintf(`WITH ripe AS MATERIALIZED (
			SELECT bucket, number, due FROM instances WHERE bucket = $2 AND session IS NULL AND due <= now()
			ORDER BY bucket, session, due LIMIT %d%s)
		UPDATE instances AS h SET session = $1, due = NULL FROM ripe
		WHERE h.bucket = ripe.bucket AND h.number = ripe.number%s RETURNING h.number`, Limit, lock, same)
}

// On returns the form on a database that it has filled.
func (f Form) On(db *sqlx.DB) Source { return &bare{Form: f, db: db} }

type bare struct {
	Form

	db      *sqlx.DB
	stopped bool
}

// Claimer implements [Source].
//
// Each begins at some bucket. Where another stands still they begin at its own: they would come
// there sooner or later.
func (b *bare) Claimer(ctx context.Context) (Claimer, error) {
	conn, err := b.db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	c := &bareClaimer{conn: conn, buckets: b.Buckets, session: rand.Int64()}
	if !b.stopped {
		c.bucket = rand.IntN(b.Buckets)
	}
	if _, err = conn.ExecContext(ctx, byIndex); err == nil {
		c.stmt, err = conn.PreparexContext(ctx, b.statement())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// byIndex are the settings of amends' own connections.
const byIndex = `SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan`

// Stop implements [Source]: it has claimed and has not committed.
func (b *bare) Stop(ctx context.Context) (func() error, error) {
	b.stopped = true
	tx, err := b.db.BeginTxx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, b.statement(), rand.Int64(), 0); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx.Rollback, nil
}

type bareClaimer struct {
	conn            *sqlx.Conn
	stmt            *sqlx.Stmt
	bucket, buckets int
	session         int64
}

// Claim implements [Claimer]. It stays with a bucket until that is empty.
func (c *bareClaimer) Claim(ctx context.Context) (numbers []int64, err error) {
	if err := c.stmt.SelectContext(ctx, &numbers, c.session, c.bucket); err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		c.bucket = (c.bucket + 1) % c.buckets
	}
	return numbers, nil
}

// Close implements [Claimer].
func (c *bareClaimer) Close() error { return errors.Join(c.stmt.Close(), c.conn.Close()) }
