package drifting

import (
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/pgtest"
)

// What is measured is right, or the figure is none: every object is compared, and what differs is
// planned.
func TestJob(t *testing.T) {
	for database, address := range map[string]string{SQLite: filepath.Join(t.TempDir(), "ledger.db"), Postgres: pgtest.URL(t)} {
		t.Run(database, func(t *testing.T) {
			const objects = 4_000
			j, err := Open(t.Context(), database, address, objects)
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			db := sqlx.MustConnect(database, address)
			defer db.Close()
			if err := j.Fill(t.Context(), db, database, func(string) {}); err != nil {
				t.Fatal(err)
			}
			for name, measured := range map[string]func() error{
				"bare":    func() error { return j.Compare(t.Context(), true) },
				"compare": func() error { return j.Compare(t.Context(), false) },
				"plan":    func() error { return j.Plan(t.Context()) },
			} {
				if err := measured(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			// A row less is noticed: the counts of the plan are checked against the world.
			db.MustExec(`DELETE FROM amends_observations WHERE side = 'destination' AND key = '` + key(17) + `'`)
			if err := j.Compare(t.Context(), true); err == nil {
				t.Error("a document is missing, and the comparison says nothing")
			}
		})
	}
}

// The merge over rows that are made on the way counts as the one over stored ones.
func TestMerge(t *testing.T) {
	if err := Merge(t.Context(), 4_000); err != nil {
		t.Error(err)
	}
}
