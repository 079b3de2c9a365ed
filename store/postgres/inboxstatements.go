package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// forms are those of a statement for several rows and for one, which are in a table u.
type forms struct {
	many, one string
	kinds     []string // of the columns
}

// formsOf makes both of what they have in common. A batch has one parameter with an array per column;
// one in which every row is NULL is a NULL parameter: unnest fills it up. A single row has one
// parameter per column.
func formsOf(columns []rows.Column, text func(batch string) string) forms {
	var many, one, kinds []string
	for i, c := range columns {
		kind := c.Kind
		if kind == rows.Moment {
			kind = rows.Bigint
		}
		kinds = append(kinds, kind)
		many = append(many, fmt.Sprintf("$%d::%s[]", i+1, kind))
		one = append(one, fmt.Sprintf("$%d::%s AS %s", i+1, kind, c.Name))
	}
	return forms{
		many: text("unnest(" + strings.Join(many, ", ") + ") AS u (" + rows.Names("", columns) + ")"),
		one:  text("(SELECT " + strings.Join(one, ", ") + ") AS u"),

		kinds: kinds,
	}
}

// of is the form for a table, with its parameters. more are parameters behind the columns.
func (f forms) of(table [][]any, more ...any) (text string, args []any) {
	if len(table) == 1 {
		return f.one, append(table[0], more...)
	}
	for n, kind := range f.kinds {
		args = append(args, pgdb.Array(kind, len(table), func(i int) any { return table[i][n] }))
	}
	return f.many, append(args, more...)
}

// write runs the form for a table and says how many rows it wrote.
func (f forms) write(ctx context.Context, q sqlstore.Queries, table [][]any) (int64, error) {
	text, args := f.of(table)
	r, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// from lists columns of u as their table holds them.
func from(columns []rows.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = "u." + c.Name
		if c.Kind == rows.Moment {
			parts[i] = "'epoch'::timestamptz + u." + c.Name + " * interval '1 microsecond'"
		}
	}
	return strings.Join(parts, ", ")
}

// acceptColumns are those of a batch of deliveries. known says that there is a disposition without
// the gate.
var acceptColumns = slices.Concat(
	[]rows.Column{{Name: "key", Kind: rows.Bytes}, {Name: "twin", Kind: rows.Bytes}, {Name: "content", Kind: rows.Bytes}},
	[]rows.Column{{Name: "copies", Kind: rows.Bigint}, {Name: "known", Kind: rows.Flag}},
	rows.InboxColumns,
	[]rows.Column{{Name: "body", Kind: rows.Words}},
)

// acceptText stores deliveries whose keys differ. The statement draws a number for each delivery
// before it knows whether the delivery is new: a digest that comes back with that number is new.
// The inserts are ordered, so that two writers of the same keys do not wait for each other in a
// circle. It answers how many of each source were copies, and adds them to the day as its last unless it is told
// that more follows in the transaction.
func acceptText(batch string) string {
	beforeDisposition := rows.InboxColumns[:rows.Disposition]
	return `WITH c AS MATERIALIZED (SELECT clock_timestamp() AS now),
	u AS MATERIALIZED (SELECT nextval('amends_inbox_number_seq') AS number, u.* FROM ` + batch + `),
	g AS (
		INSERT INTO amends_digests AS g (key, content, delivery, copies, first_at, last_at)
		SELECT u.key, u.content, u.number, u.copies, c.now, c.now FROM u CROSS JOIN c
		ORDER BY u.key
		ON CONFLICT (key) DO UPDATE SET
			copies = g.copies + CASE WHEN g.content = excluded.content THEN excluded.copies ELSE 0 END,
			last_at = CASE WHEN g.content = excluded.content THEN greatest(g.last_at, excluded.last_at) ELSE g.last_at END
		RETURNING g.key, g.content, g.delivery),
	t AS (
		INSERT INTO amends_digests AS g (key, content, delivery, copies, first_at, last_at)
		SELECT u.twin, u.content, u.number, u.copies, c.now, c.now
		FROM u JOIN g ON g.key = u.key CROSS JOIN c
		WHERE g.content <> u.content
		ORDER BY u.twin
		ON CONFLICT (key) DO UPDATE SET copies = g.copies + excluded.copies, last_at = greatest(g.last_at, excluded.last_at)
		RETURNING g.key, g.delivery),
	k AS MATERIALIZED (
		SELECT delivery, key, false AS twin FROM g UNION ALL SELECT delivery, key, true FROM t),
	i AS (
		INSERT INTO amends_inbox (number, digest, processed_at, disposition, reason, receiver_disposition, receiver_reason, ` + rows.Names("", beforeDisposition) + `)
		SELECT u.number, k.key,
			CASE WHEN u.known AND NOT k.twin THEN c.now END,
			CASE WHEN u.known AND NOT k.twin THEN u.receiver_disposition END,
			CASE WHEN u.known AND NOT k.twin THEN u.receiver_reason END,
			CASE WHEN k.twin THEN 'id-conflict' ELSE u.receiver_disposition END, u.receiver_reason, ` + from(beforeDisposition) + `
		FROM u JOIN k ON k.delivery = u.number CROSS JOIN c
		ORDER BY u.number),
	judged AS (
		INSERT INTO amends_inbox_counts AS c (source, disposition, shard, count, last_at)
		SELECT u.source, coalesce(u.receiver_disposition, ''), ` + fmt.Sprintf("$%d", len(acceptColumns)+1) + `::bigint, count(*), max(` + from(rows.InboxColumns[:1]) + `)
		FROM u JOIN k ON k.delivery = u.number
		WHERE u.known AND NOT k.twin
		GROUP BY 1, 2 ORDER BY 1, 2
		` + sqlstore.OnCounted + `
		RETURNING 1),
	p AS (
		INSERT INTO amends_payloads (delivery, stored_at, body)
		SELECT u.number, c.now, u.body FROM u JOIN k ON k.delivery = u.number CROSS JOIN c
		WHERE u.body IS NOT NULL
		RETURNING 1),
	copied AS MATERIALIZED (
		SELECT u.source, sum(u.copies - CASE WHEN k.delivery IS NULL THEN 0 ELSE 1 END)::bigint AS copies
		FROM u LEFT JOIN k ON k.delivery = u.number
		GROUP BY u.source),
	days AS (
		INSERT INTO amends_blocked_days AS b (day, layer, source, count)
		SELECT (c.now AT TIME ZONE 'UTC')::date, '` + ledger.ByReceiver + `', source, copies FROM copied CROSS JOIN c
		WHERE copies > 0 AND ` + fmt.Sprintf("$%d", len(acceptColumns)+2) + `::boolean
			AND (SELECT count(*) FROM judged) >= 0 AND (SELECT count(*) FROM p) >= 0 -- behind all else
		ORDER BY source COLLATE "C"
		` + sqlstore.OnBlocked + `)
	SELECT source, copies FROM copied WHERE copies > 0`
}

var (
	receive = formsOf(acceptColumns, acceptText)

	setEntries = formsOf(sqlstore.EntryColumns, func(batch string) string {
		return `UPDATE amends_objects AS e SET (` + rows.Names("", rows.EntryColumns) + `) = ROW (` + from(rows.EntryColumns) + `)
		FROM ` + batch + `
		WHERE e.source = u.source AND e.tenant = u.tenant AND e.type = u.type AND e.id = u.id`
	})

	// addEntries leaves out entries that another transaction has inserted in the meantime.
	addEntries = formsOf(sqlstore.EntryColumns, func(batch string) string {
		return `INSERT INTO amends_objects (` + rows.Names("", sqlstore.EntryColumns) + `)
		SELECT ` + from(sqlstore.EntryColumns) + ` FROM ` + batch + `
		ORDER BY u.source COLLATE "C", u.tenant COLLATE "C", u.type COLLATE "C", u.id COLLATE "C"
		ON CONFLICT DO NOTHING`
	})
)
