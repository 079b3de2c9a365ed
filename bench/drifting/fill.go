package drifting

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// chunk is how many rows one transaction writes.
const chunk = 500_000

// dialect is in what the databases differ.
type dialect struct {
	numbers  string // rows n(i) from $1 up to below $2
	text     string // i with eight digits
	digest   string // 16 bytes that tell a content
	customer string
	at       string // a time in microseconds
	before   []string
	after    []string
}

var dialects = map[string]dialect{
	SQLite: {
		numbers:  `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)`,
		text:     `printf('%08d', %s)`,
		digest:   `CAST(printf('%016d', %s) AS BLOB)`,
		customer: `printf('%04d', i % 10000)`,
		at:       `%d`,
		before:   []string{`PRAGMA synchronous = off`},
		after:    []string{`PRAGMA wal_checkpoint(truncate)`, `ANALYZE`},
	},
	Postgres: {
		numbers:  `WITH n(i) AS (SELECT generate_series($1::bigint, $2::bigint - 1))`,
		text:     `lpad((%s)::text, 8, '0')`,
		digest:   `convert_to(lpad((%s)::text, 16, '0'), 'UTF8')`,
		customer: `lpad((i % 10000)::text, 4, '0')`,
		at:       `(timestamptz 'epoch' + %d * interval '1 microsecond')`,
		before:   []string{`SET synchronous_commit = off`},
		after:    []string{`VACUUM ANALYZE amends_observations`, `VACUUM ANALYZE amends_instances`},
	},
}

// statements write the listings of both sides and the heads of completed works.
func (d *dialect) statements() []string {
	put := func(format, value string) string { return strings.ReplaceAll(format, "%s", value) }
	fresh := fmt.Sprintf(`(CASE WHEN i %% %[1]d = 0 AND i / %[1]d %% 3 = %[2]d THEN 1 ELSE 0 END)`, each, stale-missing)
	fields := func(newer string) string {
		return `'{"currency":"EUR","customer":"customer-' || ` + d.customer + ` || '","lines":"3","total":"' || ` + put(d.text, "i + "+newer) + ` || '"}'`
	}
	at := fmt.Sprintf(d.at, then.UnixMicro())
	sightings := d.numbers + ` INSERT INTO amends_observations (name, side, key, id, scan, flags, created_at, partition, revision, fingerprint, fields)
		SELECT '` + job + `', '%side', '` + prefix + `' || ` + put(d.text, "i") + `, '%id' || ` + put(d.text, "i") + `, 1, %flags, ` + at + `, 'all', %revision, %digest, %fields FROM n WHERE %where`
	fill := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(sightings) }
	source := fill("%side", "source", "%id", "", "%flags", "1", "%where", "i >= 0",
		"%revision", `CASE `+fresh+` WHEN 1 THEN '`+revision(now)+`' ELSE '`+revision(then)+`' END`,
		"%digest", put(d.digest, "i + 1000000000 * "+fresh), "%fields", fields(fresh))
	destination := fill("%side", "destination", "%id", "inv_", "%flags", "0", "%revision", `'`+revision(then)+`'`,
		"%digest", put(d.digest, "i"), "%fields", fields("0"),
		"%where", fmt.Sprintf(`NOT (i %% %[1]d = 0 AND i / %[1]d %% 3 = 0)`, each))
	heads := d.numbers + ` INSERT INTO amends_instances (ref, created_at, updated_at, finished_at, version, saga, work_id, revision, status)
		SELECT i + 1000000000, ` + at + `, ` + at + `, ` + at + `, 1, '` + sagaName + `', '` + prefix + `' || ` + put(d.text, "i") + `, '` + revision(then) + `', 'completed'
		FROM n WHERE i % ` + fmt.Sprint(each) + ` <> 0`
	return []string{source, destination, heads}
}

// fill writes n objects, their documents and their works, by SQL.
func fill(ctx context.Context, db *sqlx.DB, database string, n int64, progress func(string)) error {
	d := dialects[database]
	for _, s := range d.before {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	for i, s := range d.statements() {
		progress(fmt.Sprintf("writing %s", []string{"objects", "documents", "works"}[i]))
		for from := int64(0); from < n; from += chunk {
			if _, err := db.ExecContext(ctx, s, from, min(from+chunk, n)); err != nil {
				return fmt.Errorf("write rows from %d on: %w", from, err)
			}
		}
	}
	for _, s := range d.after {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
