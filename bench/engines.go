package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/bench/amends"
	"github.com/amends-dev/amends/bench/floor"
	"github.com/amends-dev/amends/bench/report"
	"github.com/amends-dev/amends/bench/workload"
)

// Names of the ledgers.
const (
	onSQLite   = "sqlite"
	onPostgres = "postgres"
)

// An entry is an engine that takes part in the comparison. Its address is the
// path of a new SQLite file or the URL of an empty Postgres database.
type entry struct {
	name   string
	ledger string
	role   report.Role
	open   func(ctx context.Context, address string, steps *workload.Steps) (workload.Engine, error)
}

// entries run in this order within a round.
var entries = []entry{
	{"floor sqlite-c", onSQLite, report.Floor, floor.SQLite},
	{"amends", onSQLite, report.Subject, amends.SQLite},
	{"amends without group commit", onSQLite, report.Single, amends.SQLiteSingle},
	{"amends, one slow destination", onSQLite, report.Slow, amends.SQLiteSlow},
	{"floor c-row", onPostgres, report.Floor, floor.Postgres},
	{"amends", onPostgres, report.Subject, amends.Postgres},
	{"amends without group commit", onPostgres, report.Single, amends.PostgresSingle},
	{"amends, one slow destination", onPostgres, report.Slow, amends.PostgresSlow},
}

// find returns the engine of that name on a ledger.
func find(ledger, name string) (entry, error) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.ledger == ledger && e.name == name })
	if i < 0 {
		return entry{}, fmt.Errorf("no engine on %s is called %q", ledger, name)
	}
	return entries[i], nil
}

// subject returns the engine that is measured on a ledger.
func subject(ledger string) (entry, error) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.ledger == ledger && e.role == report.Subject })
	if i < 0 {
		return entry{}, fmt.Errorf("nothing is measured on %s", ledger)
	}
	return entries[i], nil
}
