package sqlite

import (
	"database/sql"
	"maps"
	"strings"

	"github.com/amends-dev/amends/store/internal/rows"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// heard are the statements of the inbox and the gate.
type heard struct {
	lastNumber, addDigest, countCopy, addDelivery, addBody, addEntry, setEntry *sql.Stmt

	gated map[string]**sql.Stmt // those that Postgres has as well, by their texts
}

// all returns the statements by their text.
func (s *heard) all() map[string]**sql.Stmt {
	all := map[string]**sql.Stmt{
		lastNumber: &s.lastNumber, addDigest: &s.addDigest, countCopy: &s.countCopy,
		addDelivery: &s.addDelivery, addBody: &s.addBody,
		addEntry: &s.addEntry, setEntry: &s.setEntry,
	}
	s.gated = make(map[string]**sql.Stmt)
	for _, text := range sqlstore.Gated(words) {
		s.gated[text] = new(*sql.Stmt)
	}
	maps.Copy(all, s.gated)
	return all
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
	addEntry = `INSERT INTO amends_objects (` + rows.Names("", sqlstore.EntryColumns) + `) VALUES (` + marks(len(sqlstore.EntryColumns)) + `)`

	setEntry = `UPDATE amends_objects SET (` + rows.Names("", rows.EntryColumns) + `) = (` + marks(len(rows.EntryColumns)) + `)
		WHERE source = ? AND tenant = ? AND type = ? AND id = ?`
)

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }
