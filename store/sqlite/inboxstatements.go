package sqlite

import (
	"database/sql"
	"strings"

	"github.com/amends-dev/amends/store/internal/rows"
)

// heard are the statements of the inbox and the gate.
type heard struct {
	lastNumber, addDigest, countCopy, addDelivery, addBody *sql.Stmt
	unjudged, judge                                        *sql.Stmt
	entry, entries, addEntry, setEntry, due                *sql.Stmt
}

// all returns the statements by their text.
func (s *heard) all() map[string]**sql.Stmt {
	return map[string]**sql.Stmt{
		lastNumber: &s.lastNumber, addDigest: &s.addDigest, countCopy: &s.countCopy,
		addDelivery: &s.addDelivery, addBody: &s.addBody,
		unjudged: &s.unjudged, judge: &s.judge,
		entryOf: &s.entry, entriesOf: &s.entries, addEntry: &s.addEntry, setEntry: &s.setEntry, dueEntries: &s.due,
	}
}

// The inbox. Numbers are given by the writer: within a transaction that began as a writer no other
// gives any.
var (
	lastNumber = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'amends_inbox'`

	addDigest = `INSERT INTO amends_digests (key, content, delivery, copies, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
		ON CONFLICT (key) DO NOTHING`

	// countCopy counts deliveries of a known event that says the same.
	countCopy = `UPDATE amends_digests SET copies = copies + ?3, last_at = max(last_at, ?4) WHERE key = ?1 AND content = ?2`

	addDelivery = `INSERT INTO amends_inbox (number, digest, processed_at, disposition, reason, ` + rows.Names("", rows.InboxColumns) + `)
		VALUES (` + marks(5+len(rows.InboxColumns)) + `)`

	addBody = `INSERT INTO amends_payloads (delivery, stored_at, body) VALUES (?, ?, ?)`
)

// The gate.
var (
	unjudged = `SELECT ` + rows.DeliveryColumns + `
		FROM (SELECT * FROM amends_inbox WHERE processed_at IS NULL ORDER BY number LIMIT ?) AS d` + rows.BesideDelivery + `
		ORDER BY d.number`

	// judge takes all outcomes as one JSON list, for the same reason as entriesOf.
	judge = `UPDATE amends_inbox SET processed_at = ?2, disposition = u.disposition, reason = u.reason
		FROM (SELECT value ->> 0 AS number, value ->> 1 AS disposition, value ->> 2 AS reason FROM json_each(?1)) AS u
		WHERE amends_inbox.number = u.number`

	entryColumns = rows.Names("e.", rows.KeyColumns) + ", " + rows.Names("e.", rows.EntryColumns)

	entryOf = `SELECT ` + entryColumns + ` FROM amends_objects AS e
		WHERE e.source = ? AND e.tenant = ? AND e.type = ? AND e.id = ?`

	// entriesOf reads the entries of many objects, a JSON list of their keys. One statement for all
	// of them costs far less than one for each.
	entriesOf = `SELECT ` + entryColumns + ` FROM json_each(?) AS k CROSS JOIN amends_objects AS e
		WHERE e.source = k.value ->> 0 AND e.tenant = k.value ->> 1 AND e.type = k.value ->> 2 AND e.id = k.value ->> 3`

	addEntry = `INSERT INTO amends_objects (` + rows.Names("", rows.EntryColumns) + `, ` + rows.Names("", rows.KeyColumns) + `)
		VALUES (` + marks(len(rows.EntryColumns)+len(rows.KeyColumns)) + `)`

	setEntry = `UPDATE amends_objects SET (` + rows.Names("", rows.EntryColumns) + `) = (` + marks(len(rows.EntryColumns)) + `)
		WHERE source = ? AND tenant = ? AND type = ? AND id = ?`

	dueEntries = `SELECT ` + entryColumns + ` FROM amends_objects AS e
		WHERE e.due_at <= ?1 AND (e.leased_until IS NULL OR e.leased_until <= ?1)
		ORDER BY e.due_at LIMIT ?2`
)

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }
