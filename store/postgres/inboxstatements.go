package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// heard are the prepared statements of the inbox.
type heard struct{ accept, acceptOne *sqlx.Stmt }

func (s *heard) ofInbox() []statement {
	return []statement{{&s.accept, acceptText(unnested(acceptColumns))}, {&s.acceptOne, acceptText(single(acceptColumns))}}
}

func ofGate() []statement {
	return asked(append(sqlstore.Gated(words), setEntries.many, setEntries.one, addEntries.many, addEntries.one))
}

// kind is the type of a column's parameter.
func kind(c rows.Column) string {
	if c.Kind == rows.Moment {
		return rows.Bigint
	}
	return c.Kind
}

// unnested is the rows of a batch, one parameter with an array per column. A column in which every
// row is NULL is a NULL parameter: unnest fills it up.
func unnested(columns []rows.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = fmt.Sprintf("$%d::%s[]", i+1, kind(c))
	}
	return "unnest(" + strings.Join(parts, ", ") + ") AS u (" + rows.Names("", columns) + ")"
}

// single is a single row, one parameter per column.
func single(columns []rows.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = fmt.Sprintf("$%d::%s AS %s", i+1, kind(c), c.Name)
	}
	return "(SELECT " + strings.Join(parts, ", ") + ") AS u"
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
// circle. It answers how many were copies, and adds them to the day as its last unless it is told
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
		SELECT coalesce(sum(u.copies - CASE WHEN k.delivery IS NULL THEN 0 ELSE 1 END), 0)::bigint AS copies
		FROM u LEFT JOIN k ON k.delivery = u.number),
	days AS (
		INSERT INTO amends_blocked_days AS b (day, layer, count)
		SELECT (c.now AT TIME ZONE 'UTC')::date, '` + ledger.ByReceiver + `', copies FROM copied CROSS JOIN c
		WHERE copies > 0 AND ` + fmt.Sprintf("$%d", len(acceptColumns)+2) + `::boolean
			AND (SELECT count(*) FROM judged) >= 0 AND (SELECT count(*) FROM p) >= 0 -- behind all else
		` + sqlstore.OnBlocked + `)
	SELECT copies FROM copied`
}

// forms are those of a statement for several rows and for one.
type forms struct{ many, one string }

func formsOf(text func(batch string) string) forms {
	return forms{text(unnested(sqlstore.EntryColumns)), text(single(sqlstore.EntryColumns))}
}

var (
	setEntries = formsOf(func(batch string) string {
		return `UPDATE amends_objects AS e SET (` + rows.Names("", rows.EntryColumns) + `) = ROW (` + from(rows.EntryColumns) + `)
		FROM ` + batch + `
		WHERE e.source = u.source AND e.tenant = u.tenant AND e.type = u.type AND e.id = u.id`
	})

	// addEntries leaves out entries that another transaction has inserted in the meantime.
	addEntries = formsOf(func(batch string) string {
		return `INSERT INTO amends_objects (` + rows.Names("", sqlstore.EntryColumns) + `)
		SELECT ` + from(sqlstore.EntryColumns) + ` FROM ` + batch + `
		ORDER BY u.source COLLATE "C", u.tenant COLLATE "C", u.type COLLATE "C", u.id COLLATE "C"
		ON CONFLICT DO NOTHING`
	})
)

// write runs a form of a statement and says how many rows it wrote.
func (f forms) write(ctx context.Context, q sqlstore.Queries, table [][]any) (int64, error) {
	text, args := chosen(f.many, f.one, table)
	r, err := q.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
