package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/internal/rows"
)

// heard makes an inbox of 100,000 deliveries, of which ten are to be judged. The verb is a hash of
// n.
const heard = `
	WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
	INSERT INTO amends_inbox (number, received_at, processed_at, digest, dedupe_key, source, tenant, type, id, disposition)
	SELECT n, %[1]s, CASE WHEN n %% 10000 <> 0 THEN %[1]s END, %[2]s, %[2]s, 'shop', '', 'order', n %% 1000, 'applied' FROM n`

// "No listing and no count scans the ledger". A count reads the deliveries that are to be
// judged and no others, and what was stopped of an object is found along the object.
func TestCountsReadNoInboxOnPostgres(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	s, err := pgdb.New(pgtest.URL(t), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	db := s.Pool(1, pgdb.ByIndex...)
	defer db.Close()
	if _, err := migrations.Up(t.Context(), db.DB, migrations.Postgres); err != nil {
		t.Fatal(err)
	}
	db.MustExecContext(t.Context(), fmt.Sprintf(heard, `now()`, `decode(md5(n::text), 'hex')`))
	db.MustExecContext(t.Context(), `VACUUM ANALYZE amends_inbox`)
	stopped, args := stoppedText(&intake.StoppedFilter{Object: intake.Object{Source: "shop", Type: "order", ID: "7"}})
	for name, c := range map[string]struct {
		text  string
		args  []any
		pages int
	}{
		"counts":               {countsText, nil, 500},                          // the inbox has thousands, and planning reads some
		"stopped of an object": {sqlx.Rebind(sqlx.DOLLAR, stopped), args, 1000}, // a hundred deliveries, each with its digest
	} {
		var plan []string
		if err := db.SelectContext(t.Context(), &plan, `EXPLAIN (ANALYZE, BUFFERS) `+c.text, c.args...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := strings.Join(plan, "\n")
		if n := pages(t, all); n > c.pages || strings.Contains(all, "Seq Scan on amends_inbox ") {
			t.Errorf("%s takes %d pages:\n%s", name, n, all)
		}
	}
	judged(t, db)
}

// The same on SQLite.
func TestCountsReadNoInboxOnSQLite(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	db := onSQLite(t)
	db.MustExecContext(t.Context(), fmt.Sprintf(heard, `1000000 + n`, `zeroblob(16)`))
	stopped, args := stoppedText(&intake.StoppedFilter{Object: intake.Object{Source: "shop", Type: "order", ID: "7"}})
	for want, c := range map[string]struct {
		text string
		args []any
	}{
		"SCAN amends_inbox USING INDEX amends_inbox_unprocessed": {countsText, nil},
		"amends_inbox_object (source=? AND type=? AND id=?)":     {stopped, args},
	} {
		plan := planOf(t, db, c.text, c.args...)
		if !strings.Contains(plan, want) || strings.Contains(plan, "SCAN amends_inbox\n") {
			t.Errorf("it should go along %s: %s", want, plan)
		}
	}
	judged(t, db)
}

// judged reads the counts of [heard], of which none was made by judging.
func judged(t *testing.T, db *sqlx.DB) {
	t.Helper()
	var found []intake.Count
	if err := rows.Select(t.Context(), db, rows.Into(&found, rows.CountFields), countsText); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Source != "shop" || found[0].Disposition != "" || found[0].Count != 10 || found[0].Last.IsZero() {
		t.Errorf("counted are %+v", found)
	}
}

// The counts that are written have one row for each source and disposition, in order: two that meet
// in a shard wait for each other and do not deadlock.
func TestSummed(t *testing.T) {
	t.Parallel()
	var all []intake.Count
	for i, of := range [][2]string{{"shop", "stale"}, {"books", "stale"}, {"shop", "applied"}, {"shop", "stale"}} {
		all = append(all, intake.Count{Source: of[0], Disposition: intake.Disposition(of[1]), Count: int64(1 + i), Last: time.Unix(int64(10-i), 0)})
	}
	var got []string
	for _, c := range summed(all) {
		got = append(got, fmt.Sprintf("%s/%s %d %d", c.Source, c.Disposition, c.Count, c.Last.Unix()))
	}
	if want := "[books/stale 2 9 shop/applied 3 8 shop/stale 5 10]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
