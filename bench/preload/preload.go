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
// All works in it must be finished.
// progress is told the number of works from time to time.
func Fill(ctx context.Context, db *sqlx.DB, n int, progress func(works int)) error {
	ts, err := countTemplates(ctx, db)
	if err != nil {
		return err
	}
	templates := ts.works
	statements, err := copies(ctx, db, ts)
	if err != nil {
		return err
	}
	perChunk := max(1, chunk/templates)
	for done := 1; done*templates < n; {
		last := min(done+perChunk, (n+templates-1)/templates)
		if err := inTransaction(ctx, db, statements, done, last); err != nil {
			return fmt.Errorf("preload: %w", err)
		}
		done = last
		progress(done * templates)
	}
	return settle(ctx, db)
}

// templates are the works to copy from. A copy's reference is its template's and as
// many steps as it is the how-many-eth: on SQLite rows go on, on Postgres copies
// lie before their templates in time.
type templates struct {
	works         int
	first, latest int64 // references
	step          int64
}

func countTemplates(ctx context.Context, db *sqlx.DB) (templates, error) {
	var c struct {
		Works, Finished int
		First, Latest   int64
	}
	err := db.GetContext(ctx, &c, `SELECT count(*) AS works, count(finished_at) AS finished,
		coalesce(min(ref), 0) AS first, coalesce(max(ref), 0) AS latest FROM amends_instances`)
	t := templates{works: c.Works, first: c.First, latest: c.Latest, step: c.Latest - c.First + 1}
	switch {
	case err != nil:
		return t, fmt.Errorf("preload: %w", err)
	case c.Works == 0 || c.Works != c.Finished:
		return t, fmt.Errorf("preload: the ledger holds %d works, %d of them finished; it needs some, all finished", c.Works, c.Finished)
	}
	if db.DriverName() == "postgres" {
		t.step = -t.step
	}
	return t, nil
}

// copies returns the statements that copy instances and records. Parameters: $1 and
// $2 the copies to make, from and up to.
func copies(ctx context.Context, db *sqlx.DB, ts templates) ([]string, error) {
	series := fmt.Sprintf(`WITH RECURSIVE copies(k) AS (
		SELECT CAST($1 AS bigint) UNION ALL SELECT k + 1 FROM copies WHERE k + 1 < $2),
		templates AS (
			SELECT ref AS template, row_number() OVER (ORDER BY ref) AS n FROM amends_instances WHERE ref BETWEEN %d AND %d)
		`, ts.first, ts.latest)
	ref := func(column string) string { return fmt.Sprintf("t.%s + k * (%d)", column, ts.step) }
	number := func(from int) string { return fmt.Sprintf("CAST(%d + n + k * %d AS text)", from, ts.works) }
	instances, err := copyColumns(ctx, db, "amends_instances", map[string]string{
		"ref":     ref("ref"),
		"work_id": "'shop:order:' || " + number(workNumbers),
	})
	if err != nil {
		return nil, err
	}
	records, err := copyColumns(ctx, db, "amends_records", map[string]string{
		"instance":    ref("instance"),
		"external_id": "substr(t.external_id, 1, 7) || " + number(idNumbers),
	})
	if err != nil {
		return nil, err
	}
	return []string{
		series + instances + "FROM copies CROSS JOIN templates JOIN amends_instances AS t ON t.ref = template ORDER BY k, template",
		series + records + "FROM copies CROSS JOIN templates JOIN amends_records AS t ON t.instance = template ORDER BY k, template, t.seq",
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

// settle leaves the database as it is long after the works: nothing waits to be
// cleaned up, and Postgres has its statistics.
func settle(ctx context.Context, db *sqlx.DB) error {
	statements := []string{"PRAGMA wal_checkpoint(TRUNCATE)"}
	if db.DriverName() == "postgres" {
		statements = []string{
			"VACUUM (ANALYZE) amends_instances, amends_records",
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
