package preload

import (
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
)

// ledgers are both databases with the real schema and two finished works of two
// records each.
func ledgers(t *testing.T) map[string]*sqlx.DB {
	t.Helper()
	dbs := map[string]*sqlx.DB{
		"sqlite":   sqlx.MustConnect("sqlite", filepath.Join(t.TempDir(), "ledger.db")),
		"postgres": sqlx.MustConnect("postgres", pgtest.URL(t)),
	}
	times := map[string]string{"sqlite": "1000000", "postgres": "now()"}
	for name, db := range dbs {
		t.Cleanup(func() { _ = db.Close() })
		if _, err := migrations.Up(t.Context(), db.DB, migrations.Dialect(name)); err != nil {
			t.Fatal(err)
		}
		at := times[name]
		for i, work := range []string{"shop:order:0000000000", "shop:order:0000000001"} {
			ref := 1_000_000 + 7*int64(i)
			if name == "sqlite" {
				ref = int64(i) + 1
			}
			db.MustExec(`INSERT INTO amends_instances (ref, created_at, updated_at, finished_at, version, saga, work_id, status)
				VALUES ($1, `+at+`, `+at+`, `+at+`, 1, 'order-to-invoice', $2, 'completed')`, ref, work)
			db.MustExec(`INSERT INTO amends_records (instance, at, session, seq, hash, doc, body)
				VALUES ($1, `+at+`, 7, 1, $2, '{"k":"started","ver":1}', '{"order":1}')`, ref, make([]byte, 16))
			db.MustExec(`INSERT INTO amends_records (instance, at, session, seq, hash, doc, external_id)
				VALUES ($1, `+at+`, 7, 2, $2, '{"k":"done","st":"completed","s":"customer"}', 'ext_00_0000000000001')`, ref, make([]byte, 16))
		}
	}
	return dbs
}

// counts is what a filled ledger is asked.
type counts struct{ Works, Names, IDs, Records, Longest, Shortest int }

// A filled ledger holds copies of all rows, each work under a name and external
// ids of its own that are as long as the real ones.
func TestFill(t *testing.T) {
	for name, db := range ledgers(t) {
		t.Run(name, func(t *testing.T) {
			reached := 0
			if err := Fill(t.Context(), db, 100_001, func(n int) { reached = n }); err != nil {
				t.Fatal(err)
			}
			var c counts
			err := db.Get(&c, `SELECT count(*) AS works, count(DISTINCT work_id) AS names,
				max(length(work_id)) AS longest, min(length(work_id)) AS shortest,
				(SELECT count(*) FROM amends_records r JOIN amends_instances h ON h.ref = r.instance) AS records,
				(SELECT count(DISTINCT external_id) FROM amends_records WHERE length(external_id) = 20) AS ids
				FROM amends_instances WHERE status = 'completed' AND finished_at IS NOT NULL`)
			if err != nil {
				t.Fatal(err)
			}
			// The two templates share one external id; every copy has its own.
			if want := (counts{100_002, 100_002, 100_001, 200_004, 21, 21}); c != want {
				t.Errorf("got  %+v\nwant %+v", c, want)
			}
			if reached != 100_002 {
				t.Errorf("progress ended at %d works", reached)
			}
		})
	}
}

// Works that are not finished are not copied: a coordinator would take them up.
func TestFillRefusesUnfinishedWorks(t *testing.T) {
	for name, db := range ledgers(t) {
		t.Run(name, func(t *testing.T) {
			db.MustExec(`UPDATE amends_instances SET status = 'running', finished_at = NULL, due_at = created_at WHERE work_id LIKE '%1'`)
			if err := Fill(t.Context(), db, 10, func(int) {}); err == nil {
				t.Error("a ledger with a running work was filled")
			}
		})
	}
}
