package main

import (
	"context"
	"fmt"
	"slices"

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
	{"floor c-row", onPostgres, report.Floor, floor.Postgres},
}

// named returns the entry with that name.
func named(name string) (entry, error) {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, fmt.Errorf("no engine is called %q", name)
	}
	return entries[i], nil
}
