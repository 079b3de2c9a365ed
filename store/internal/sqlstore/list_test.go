package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/pgdb"
)

// fill makes a ledger of works that have ended, ten of every other status, a hundred that wait for
// a destination, and an external id that a thousand works share. The verb is a time, the second one
// a hash, of n.
const fill = `
	WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
	INSERT INTO amends_instances (ref, saga, work_id, version, status, unconfirmed, finished_at, created_at, updated_at)
	SELECT n, 'order-to-' || (n %% 3), 'shop:order:' || n, 1, CASE n %% 7 WHEN 0 THEN 'compensated' ELSE 'completed' END, n %% 5000 = 0, %[1]s, %[1]s, %[1]s FROM n;
	WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 60)
	INSERT INTO amends_instances (ref, saga, work_id, version, status, reason, step, due_at, created_at, updated_at)
	SELECT 200000 + n, 'order-to-0', 'live:' || n, 1, status, CASE status WHEN 'review' THEN 'poison' END,
		CASE status WHEN 'review' THEN 'mail' WHEN 'retrying' THEN 'mail' END, %[1]s, %[1]s, %[1]s
	FROM (SELECT n, CASE n %% 6 WHEN 0 THEN 'running' WHEN 1 THEN 'retrying' WHEN 2 THEN 'compensating' WHEN 3 THEN 'review' WHEN 4 THEN 'paused' ELSE 'adopting' END AS status FROM n) AS n;
	WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100)
	INSERT INTO amends_instances (ref, saga, work_id, version, status, due_at, waits_for, created_at, updated_at)
	SELECT 300000 + n, 'order-to-1', 'waits:' || n, 1, 'running', %[1]s, 'books', %[1]s, %[1]s FROM n;
	WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
	INSERT INTO amends_records (instance, seq, at, session, hash, doc, external_id)
	SELECT n, 1, %[1]s, 1, %[2]s, '{}', CASE n %% 100 WHEN 0 THEN 'shared' ELSE 'inv_' || n END FROM n;`

// looks are the filters of a listing, each with the index that it goes along on each database, and
// how many it finds on its first page of fifty.
var looks = []struct {
	name          string
	f             ledger.Filter
	index, sqlite string
	found         int
}{
	{"all", ledger.Filter{}, "amends_instances_pkey", "SCAN h", 50},
	{"the newest", ledger.Filter{Newest: true}, "amends_instances_pkey", "SCAN h", 50},
	{"retrying", ledger.Filter{Status: saga.Retrying}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 10},
	{"running", ledger.Filter{Status: saga.Running, Newest: true}, "amends_instances_held", "USING INDEX amends_instances_held", 50},
	{"review", ledger.Filter{Status: saga.Review}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 10},
	{"reason", ledger.Filter{Reason: saga.ReasonPoison}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 10},
	{"retrying of a saga", ledger.Filter{Status: saga.Retrying, Saga: "order-to-0"}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 10},
	{"paused lately", ledger.Filter{Status: saga.Paused, UpdatedSince: time.Unix(1, 0)}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 10},
	{"a step", ledger.Filter{Step: "mail"}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 20},
	{"a step in review", ledger.Filter{Step: "mail", Status: saga.Review}, "amends_instances_unfinished", "amends_instances_unfinished (status=?)", 10},
	{"compensated", ledger.Filter{Status: saga.Compensated}, "amends_instances_pkey", "SCAN h", 50},
	{"a saga", ledger.Filter{Saga: "order-to-2"}, "amends_instances_pkey", "SCAN h", 50},
	{"no such saga", ledger.Filter{Saga: "order-to-9"}, "amends_instances_pkey", "SCAN h", 0},
	{"lately", ledger.Filter{CreatedSince: time.Unix(1<<33, 0)}, "amends_instances_pkey", "SCAN h", 0},
	{"before", ledger.Filter{CreatedUntil: time.Unix(1, 0), Newest: true}, "amends_instances_pkey", "SCAN h", 0},
	{"a destination", ledger.Filter{WaitsFor: "books"}, "amends_instances_waiting", "amends_instances_waiting (waits_for=?)", 50},
	{"no such destination", ledger.Filter{WaitsFor: "nowhere"}, "amends_instances_waiting", "amends_instances_waiting (waits_for=?)", 0},
	{"a work", ledger.Filter{Work: "shop:order:77"}, "amends_instances_work", "amends_instances_work (work_id=?)", 1},
	{"a prefix", ledger.Filter{Prefix: "shop:order:777"}, "amends_instances_work", "amends_instances_work (work_id>? AND work_id<?)", 50},
	{"works of a saga", ledger.Filter{Saga: "order-to-2", ByWork: true, AfterWork: "shop:order:5"}, "amends_instances_work", "amends_instances_work (work_id>?)", 50},
	{"an external id", ledger.Filter{ExternalID: "inv_77777"}, "amends_records_external_id", "amends_records_external_id (external_id=?)", 1},
	{"a shared external id", ledger.Filter{ExternalID: "shared", Status: saga.Completed}, "amends_records_external_id", "amends_records_external_id (external_id=?)", 50},
	{"unconfirmed", ledger.Filter{Unconfirmed: true, Newest: true}, "amends_instances_unconfirmed", "amends_instances_unconfirmed", 20},
}

// "Four listings scan the whole ledger". No listing reads more pages than its row limit takes,
// however many works have ended, and each is led by its index, whatever the server knows of the
// table, and over however many buckets works are spread: rows that one of 64 has side by side lie
// in as many pages.
func TestListingsOnPostgres(t *testing.T) {
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
	at := `now() - interval '1 hour' + n * interval '1 us'`
	db.MustExecContext(t.Context(), fmt.Sprintf(fill, at, `decode(md5(n::text), 'hex')`))
	moment := func(t time.Time) any { return t }
	for _, c := range []struct {
		knows, before string
		buckets, most int
	}{
		{"nothing", `SELECT 1`, 1, 5000},
		{"what is there", `ANALYZE`, 1, 5000},
		{"what is there, in 64 buckets", spread, 64, 12_000},
	} {
		for statement := range strings.SplitSeq(c.before, ";") {
			db.MustExecContext(t.Context(), statement)
		}
		for _, look := range looks {
			l := (&chains{db: &Dialect{Moment: moment, Buckets: c.buckets}}).walk(&look.f, ledger.Position{}, false)
			for what, text := range map[string]string{"page": l.page(50), "end": l.end()} {
				args := l.args
				if what == "end" {
					args = l.args[:l.bounds]
				}
				var plan []string
				if err := db.SelectContext(t.Context(), &plan, `EXPLAIN (ANALYZE, BUFFERS) `+text, args...); err != nil {
					t.Fatalf("%s: %v\n%s", look.name, err, text)
				}
				all := strings.Join(plan, "\n")
				if n := pages(t, all); n > c.most || !strings.Contains(all, look.index) || strings.Contains(all, "Seq Scan") {
					t.Errorf("%s: the %s takes %d pages, along %s it should be, and the server knows %s:\n%s", look.name, what, n, look.index, c.knows, all)
				}
			}
			var found []HeadRow
			if err := db.SelectContext(t.Context(), &found, l.page(50), l.args...); err != nil || len(found) != look.found {
				t.Errorf("%s: found %d, %v, want %d", look.name, len(found), err, look.found)
			}
		}
		walks(t, db, moment, c.buckets)
	}
	crowded(t, db, moment, `now()`, 64)
}

// spread puts the works of fill into 64 buckets.
const spread = `UPDATE amends_instances SET ref = ref % 64 << 57 | ref; UPDATE amends_records SET instance = instance % 64 << 57 | instance;
	VACUUM FULL amends_instances; VACUUM FULL amends_records; ANALYZE`

// "Finished ones are walked under a row limit, and the page says how far it looked". What
// matches is found however many pages have nothing.
func walks(t *testing.T, db *sqlx.DB, moment func(time.Time) any, buckets int) {
	t.Helper()
	s := lister(db, moment, buckets)
	for _, look := range []struct {
		f             ledger.Filter
		found, silent int // works, and pages without any
	}{
		{ledger.Filter{Saga: "order-to-9"}, 0, 11},
		{ledger.Filter{CreatedSince: time.Unix(1<<33, 0), Newest: true}, 0, 11},
		{ledger.Filter{Status: saga.Compensated, Newest: true, Limit: 10_000}, 14_285, 0},
		{ledger.Filter{Status: saga.Compensated, Limit: 999}, 14_285, 0},
		{ledger.Filter{Status: saga.Retrying}, 10, 0},
		{ledger.Filter{Status: saga.Running, Limit: 30}, 110, 0},
		{ledger.Filter{Saga: "order-to-0", Reason: saga.ReasonPoison, Newest: true}, 10, 0},
		{ledger.Filter{Saga: "order-to-0", Prefix: "live:"}, 60, 0},
		{ledger.Filter{Saga: "order-to-1", ByWork: true, WaitsFor: "books", Limit: 1000}, 100, 10},
	} {
		var found, silent int
		for f := look.f; ; {
			page, err := s.List(t.Context(), f)
			if err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
			if !f.InOrderOfWork() && !slices.IsSortedFunc(page.Instances, func(a, b ledger.Instance) int {
				if f.Newest {
					a, b = b, a
				}
				return cmp.Compare(Started(a.Number), Started(b.Number))
			}) {
				t.Errorf("%+v is not in the order of starting", f)
			}
			if found += len(page.Instances); len(page.Instances) == 0 {
				silent++
			}
			if last := page.Next == ""; last && !page.Looked.IsZero() || !last && len(page.Instances) < f.PageSize() && page.Looked.IsZero() {
				t.Errorf("%+v: a page of %d goes on %t and says it looked up to %v", look.f, len(page.Instances), !last, page.Looked)
			}
			if f.After = page.Next; f.After == "" || found > look.found || silent > look.silent {
				break
			}
		}
		if found != look.found || silent != look.silent {
			t.Errorf("%+v: %d works, and %d pages without any; want %d and %d", look.f, found, silent, look.found, look.silent)
		}
	}
}

// crowded makes many works run. What runs is gathered and sorted while a page can hold it all; more
// is met along the numbers.
func crowded(t *testing.T, db *sqlx.DB, moment func(time.Time) any, at string, buckets int) {
	t.Helper()
	is := func(want bool) {
		var many bool
		if err := db.GetContext(t.Context(), &many, crowd); err != nil || many != want {
			t.Errorf("a crowd: %t, %v, want %t", many, err, want)
		}
	}
	is(false)
	defer is(true)
	db.MustExecContext(t.Context(), fmt.Sprintf(`
		WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 15000)
		INSERT INTO amends_instances (ref, saga, work_id, version, status, due_at, created_at, updated_at)
		SELECT 400000 + n, 'order-to-0', 'crowd:' || n, 1, 'running', %[1]s, %[1]s, %[1]s FROM n`, at))
	f := ledger.Filter{Status: saga.Running, Newest: true, Limit: 1000}
	if l := lister(db, moment, buckets).walk(&f, ledger.Position{}, true); l.from != "amends_instances" || l.few {
		t.Errorf("a crowd is gathered from %s", l.from)
	}
	if n := along(t, db, moment, buckets, f); n != 15_110 {
		t.Errorf("listed %d works that run, want 15,110", n)
	}
}

// along counts what all pages of a listing have.
func along(t *testing.T, db *sqlx.DB, moment func(time.Time) any, buckets int, f ledger.Filter) (n int) {
	t.Helper()
	s := lister(db, moment, buckets)
	for {
		page, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Instances)
		if f.After = page.Next; f.After == "" {
			return n
		}
	}
}

func lister(db *sqlx.DB, moment func(time.Time) any, buckets int) *chains {
	return &chains{db: &Dialect{
		Moment:  moment,
		Buckets: buckets,
		View:    func(ctx context.Context, fn func(context.Context, Queries) error) error { return fn(ctx, db) },
		Explain: func(_ context.Context, err error) error { return err },
	}}
}

// pages are those of the node that has all others below it.
func pages(t *testing.T, plan string) (pages int) {
	t.Helper()
	for _, m := range regexp.MustCompile(`shared (?:hit=(\d+))?(?: ?read=(\d+))?`).FindAllStringSubmatch(plan, -1) {
		n := 0
		for _, text := range m[1:] {
			if text == "" {
				continue
			}
			k, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		pages = max(pages, n)
	}
	return pages
}

// The same on SQLite, which does not tell how much it reads: a listing goes along its index, and
// one that has none along the numbers, within the row limit.
func TestListingsOnSQLite(t *testing.T) {
	pace.Night(t)
	t.Parallel()
	db := onSQLite(t)
	db.MustExecContext(t.Context(), fmt.Sprintf(fill, `1000000 + n`, `zeroblob(16)`))
	moment := func(t time.Time) any { return t.UnixMicro() }
	for _, look := range looks {
		l := (&chains{db: &Dialect{Moment: moment}}).walk(&look.f, ledger.Position{}, false)
		for what, text := range map[string]string{"page": l.page(50), "end": l.end()} {
			args := l.args
			if what == "end" {
				args = l.args[:l.bounds]
			}
			plan := planOf(t, db, text, args...)
			scans := strings.Count(plan, "SCAN h\n") - strings.Count(plan, "CO-ROUTINE h\n") // of what was walked
			if !strings.Contains(plan, look.sqlite) || (scans > 0) != (look.sqlite == "SCAN h") {
				t.Errorf("%s: the %s should go along %s:\n%s", look.name, what, look.sqlite, plan)
			}
		}
		var found []HeadRow
		if err := db.SelectContext(t.Context(), &found, l.page(50), l.args...); err != nil || len(found) != look.found {
			t.Errorf("%s: found %d, %v, want %d", look.name, len(found), err, look.found)
		}
	}
	walks(t, db, moment, 1)
	crowded(t, db, moment, `1000000`, 1)
}
