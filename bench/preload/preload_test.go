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
		for _, work := range []string{"shop:order:0000000000", "shop:order:0000000001"} {
			var number int64
			err := db.Get(&number, `INSERT INTO amends_heads (created, updated, finished, version, saga, work, status)
				VALUES (`+at+`, `+at+`, `+at+`, 1, 'order-to-invoice', $1, 'completed') RETURNING number`, work)
			if err != nil {
				t.Fatal(err)
			}
			db.MustExec(`INSERT INTO amends_records (head, at, session, seq, hash, kind, status, body)
				VALUES ($1, `+at+`, 7, 1, $2, 'started', 'running', '{"order":1}')`, number, make([]byte, 16))
			db.MustExec(`INSERT INTO amends_records (head, at, session, seq, hash, kind, status, step, external_id)
				VALUES ($1, `+at+`, 7, 2, $2, 'done', 'completed', 'customer', 'ext_00_0000000000001')`, number, make([]byte, 16))
		}
	}
	return dbs
}

// counts is what a filled ledger is asked.
type counts struct{ Works, Names, IDs, Records, Longest, Shortest, Highest int }

// A filled ledger holds copies of all rows, each work under a name and external
// ids of its own that are as long as the real ones, numbered without a gap.
func TestFill(t *testing.T) {
	for name, db := range ledgers(t) {
		t.Run(name, func(t *testing.T) {
			reached := 0
			if err := Fill(t.Context(), db, 100_001, func(n int) { reached = n }); err != nil {
				t.Fatal(err)
			}
			var c counts
			err := db.Get(&c, `SELECT count(*) AS works, count(DISTINCT work) AS names, max(number) AS highest,
				max(length(work)) AS longest, min(length(work)) AS shortest,
				(SELECT count(*) FROM amends_records r JOIN amends_heads h ON h.number = r.head) AS records,
				(SELECT count(DISTINCT external_id) FROM amends_records WHERE length(external_id) = 20) AS ids
				FROM amends_heads WHERE status = 'completed' AND finished IS NOT NULL`)
			if err != nil {
				t.Fatal(err)
			}
			// The two templates share one external id; every copy has its own.
			if want := (counts{100_002, 100_002, 100_001, 200_004, 21, 21, 100_002}); c != want {
				t.Errorf("got  %+v\nwant %+v", c, want)
			}
			if reached != 100_002 {
				t.Errorf("progress ended at %d works", reached)
			}
		})
	}
}

// The ledger goes on behind the copies: the next work gets the next number.
func TestFillLeavesNextNumber(t *testing.T) {
	for name, db := range ledgers(t) {
		t.Run(name, func(t *testing.T) {
			if err := Fill(t.Context(), db, 10, func(int) {}); err != nil {
				t.Fatal(err)
			}
			var next int
			err := db.Get(&next, `INSERT INTO amends_heads (created, updated, finished, version, saga, work, status)
				SELECT created, updated, finished, 1, saga, 'next', status FROM amends_heads WHERE number = 1 RETURNING number`)
			if err != nil || next != 11 {
				t.Errorf("the next work got number %d, want 11 (%v)", next, err)
			}
		})
	}
}

// Works that are not finished are not copied: a coordinator would take them up.
func TestFillRefusesUnfinishedWorks(t *testing.T) {
	for name, db := range ledgers(t) {
		t.Run(name, func(t *testing.T) {
			db.MustExec(`UPDATE amends_heads SET status = 'running', finished = NULL, due = created WHERE number = 2`)
			if err := Fill(t.Context(), db, 10, func(int) {}); err == nil {
				t.Error("a ledger with a running work was filled")
			}
		})
	}
}
