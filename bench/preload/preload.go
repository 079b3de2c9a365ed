package preload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// Numbers of copied works, as they appear in work ids and external ids. They
// have as many digits as those of real works and never meet them.
const (
	workNumbers = 9_000_000_000
	idNumbers   = 9_000_000_000_000
)

// chunk is how many works are copied in one transaction.
const chunk = 100_000

// Fill copies the finished works of a ledger until it holds at least n works.
// All works in it must be finished, and their numbers must have no gap.
// progress is told the number of works from time to time.
func Fill(ctx context.Context, db *sqlx.DB, n int, progress func(works int)) error {
	templates, err := countTemplates(ctx, db)
	if err != nil {
		return err
	}
	statements, err := copies(ctx, db)
	if err != nil {
		return err
	}
	perChunk := max(1, chunk/templates)
	for done := 1; done*templates < n; {
		last := min(done+perChunk, (n+templates-1)/templates)
		if err := inTransaction(ctx, db, statements, templates, done, last); err != nil {
			return fmt.Errorf("preload: %w", err)
		}
		done = last
		progress(done * templates)
	}
	return settle(ctx, db)
}

// countTemplates returns the number of works to copy from.
func countTemplates(ctx context.Context, db *sqlx.DB) (int, error) {
	var c struct{ Works, Finished, Highest int }
	err := db.GetContext(ctx, &c, `SELECT count(*) AS works, count(finished) AS finished,
		coalesce(max(number), 0) AS highest FROM amends_heads`)
	switch {
	case err != nil:
		return 0, fmt.Errorf("preload: %w", err)
	case c.Works == 0 || c.Works != c.Finished || c.Works != c.Highest:
		return 0, fmt.Errorf("preload: the ledger holds %d works up to number %d, %d of them finished; it needs some, all finished, without a gap",
			c.Works, c.Highest, c.Finished)
	}
	return c.Works, nil
}

// copies returns the statements that copy heads and records. Parameters: $1 the
// number of templates, $2 and $3 the copies to make, from and up to.
func copies(ctx context.Context, db *sqlx.DB) ([]string, error) {
	const series = `WITH RECURSIVE copies(k) AS (
		SELECT CAST($2 AS bigint) UNION ALL SELECT k + 1 FROM copies WHERE k + 1 < $3)
		`
	number := func(column string) string { return fmt.Sprintf("t.%s + k * CAST($1 AS bigint)", column) }
	heads, err := copyColumns(ctx, db, "amends_heads", map[string]string{
		"number": number("number"),
		"work":   fmt.Sprintf("'shop:order:' || CAST(%d + %s AS text)", workNumbers, number("number")),
	})
	if err != nil {
		return nil, err
	}
	records, err := copyColumns(ctx, db, "amends_records", map[string]string{
		"head": number("head"),
		"external_id": fmt.Sprintf("substr(t.external_id, 1, 7) || CAST(%d + %s AS text)",
			idNumbers, number("head")),
	})
	if err != nil {
		return nil, err
	}
	return []string{
		series + heads + "FROM copies CROSS JOIN amends_heads AS t WHERE t.number <= $1 ORDER BY k, t.number",
		series + records + "FROM copies CROSS JOIN amends_records AS t WHERE t.head <= $1 ORDER BY k, t.head, t.seq",
	}, nil
}

// copyColumns returns "INSERT … SELECT …" over every column of a table, as it is
// or as told.
func copyColumns(ctx context.Context, db *sqlx.DB, table string, changed map[string]string) (string, error) {
	names, err := columns(ctx, db, table)
	if err != nil {
		return "", err
	}
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = "t." + name
		if v, ok := changed[name]; ok {
			values[i] = v
			delete(changed, name)
		}
	}
	if len(changed) > 0 {
		return "", fmt.Errorf("preload: the table %s has no column for %v; the schema has moved on", table, changed)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s ", table, strings.Join(names, ", "), strings.Join(values, ", ")), nil
}

// columns are the names of a table's columns, in any order.
func columns(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+table+" WHERE false")
	if err != nil {
		return nil, fmt.Errorf("preload: %w", err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	return names, errors.Join(err, rows.Err())
}

func inTransaction(ctx context.Context, db *sqlx.DB, statements []string, args ...any) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s, args...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// settle leaves the database as it is long after the works: numbers go on behind
// the last one, nothing waits to be cleaned up, and Postgres has its statistics.
func settle(ctx context.Context, db *sqlx.DB) error {
	statements := []string{"PRAGMA wal_checkpoint(TRUNCATE)"}
	if db.DriverName() == "postgres" {
		statements = []string{
			`SELECT setval(pg_get_serial_sequence('amends_heads', 'number'), (SELECT max(number) FROM amends_heads))`,
			"VACUUM (ANALYZE) amends_heads, amends_records",
			"CHECKPOINT",
		}
	}
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("preload: %w", err)
		}
	}
	return nil
}
