package pgdb

import "strings"

// Provider tells which database answers, and what it may have lost when another one does. It is
// asked once on every connection and with every heartbeat.
type Provider interface {
	// Query is a statement that answers who the database is, in one text: a copy, and what a
	// fail-over or a restore left, is another one. A standby has none: "".
	Query() string

	// FailedOver: the second is what became of a standby of the first, by what Query answered of each.
	FailedOver(from, to string) bool

	// Forgets: a fail-over may forget what was acknowledged.
	Forgets() bool
}

// Timeline is Postgres's own: a copy has another system identifier, a promoted standby or a
// restored backup another timeline, and what a dump was restored into has another database or
// another table. A base backup that is put back as it was is not told from what it was before.
// Whether its standbys receive everything in time is up to who runs them, so a fail-over may forget.
type Timeline struct{}

// Query implements [Provider].
func (Timeline) Query() string {
	return `SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE
		(SELECT system_identifier::text FROM pg_control_system()) || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
		|| '/' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || COALESCE(to_regclass('amends_meta')::oid::text, '') END`
}

// FailedOver implements [Provider]: only the timeline is another one.
func (Timeline) FailedOver(from, to string) bool {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	return len(a) == 4 && len(b) == 4 && a[1] != b[1] && a[0] == b[0] && a[2] == b[2] && a[3] == b[3]
}

// Forgets implements [Provider].
func (Timeline) Forgets() bool { return true }
