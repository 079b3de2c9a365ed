package postgres_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/sqlstore"
	"github.com/amends-dev/amends/store/postgres"
)

// backlog puts n due works of a definition into the ledger, the first one due for longest.
func backlog(t *testing.T, db *sqlx.DB, name string, version, n int) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), `
		INSERT INTO amends_instances (ref, saga, work_id, version, status, class, due_at, created_at, updated_at)
		SELECT (SELECT count(*) FROM amends_instances) + n, $1::text, concat($1::text, $2::integer, '-', n), $2::integer, 'running', 1, now() - interval '1 hour' + n * interval '1 ms', now(), now()
		FROM generate_series(1, $3::integer) AS n`, name, version, n)
	if err != nil {
		t.Fatal(err)
	}
}

// claiming are the statements of a claim: what asks whether there is anything, and what takes it.
var claiming = map[string]string{"ask": postgres.RestText, "take": postgres.ClaimText}

// buffers runs a statement of a claim as the ledger does and returns its plan, and how many pages
// it looked at.
func buffers(t *testing.T, l *store, what, known string, token machine.Token, rooms string) (plan string, pages int) {
	t.Helper()
	args := []any{nil, known, 100, int64(token), false, rooms}
	if what == "take" {
		args = append(args, 10)
	}
	var rows []string
	if err := postgres.Pool(l.DB, "work").SelectContext(t.Context(), &rows, "EXPLAIN (ANALYZE, BUFFERS) "+claiming[what], args...); err != nil {
		t.Fatal(err)
	}
	plan, _, _ = strings.Cut(strings.Join(rows, "\n"), "\nPlanning:")
	for _, m := range regexp.MustCompile(`(?:hit|read)=(\d+)`).FindAllStringSubmatch(plan, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		pages = max(pages, n) // of the node that has all others below it
	}
	return plan, pages
}

// Works of sagas and versions that a process does not know cost its claims nothing, however many
// are due; and a look with fifty sagas in two versions is one statement that finds each
// by the index.
func TestClaimPassesUnknownBacklogs(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	var known [][2]any
	for i := range 50 {
		known = append(known, [2]any{fmt.Sprint("saga", i), 1}, [2]any{fmt.Sprint("saga", i), 2})
	}
	list, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	backlog(t, db, "other", 1, 20000)
	backlog(t, db, "saga7", 3, 20000)
	for what := range claiming {
		plan, pages := buffers(t, l, what, string(list), token, "[]")
		if pages > 300 { // one leap for each saga
			t.Errorf("an empty look of %d known versions takes %d pages beside 40,000 unknown works:\n%s", len(known), pages, plan)
		}
		for _, want := range []string{"amends_instances_due", "amends_instances_ended_unread", "amends_instances_held_unread", "amends_instances_held"} {
			if !strings.Contains(plan, want) {
				t.Errorf("the plan does not use %s:\n%s", want, plan)
			}
		}
		if strings.Contains(plan, "Seq Scan on amends_instances") {
			t.Errorf("the plan reads all of amends_instances:\n%s", plan)
		}
	}
}

// A backlog of what is known costs a claim what it takes, not what there is.
func TestClaimTakesFromALongBacklog(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	backlog(t, db, "s", 1, 20000)
	plan, pages := buffers(t, l, "take", `[["s", 1]]`, token, "[]")
	if pages > 3000 { // a hundred works are looked at, locked, and written with all their indexes
		t.Errorf("a claim of a hundred works of 20,000 takes %d pages:\n%s", pages, plan)
	}
	if plan, pages = buffers(t, l, "ask", `[["s", 1]]`, token, "[]"); pages > 100 {
		t.Errorf("to ask whether there is anything takes %d pages beside 20,000 works:\n%s", pages, plan)
	}
}

// line puts n due works of a definition into the ledger, which wait for a destination.
func line(t *testing.T, db *sqlx.DB, destination, name string, n int) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), `
		INSERT INTO amends_instances (ref, saga, work_id, version, status, class, created_at, due_at, updated_at, waits_for)
		SELECT (SELECT count(*) FROM amends_instances) + n, $1::text, concat($1::text, '-', $2::text, '-', n), 1, 'running', 1, t, t - interval '1 hour', t, $2::text
		FROM generate_series(1, $3::integer) AS n CROSS JOIN now() AS t`, name, destination, n)
	if err != nil {
		t.Fatal(err)
	}
}

// However many wait for a destination that is closed here, they cost a claim nothing, nor do those
// of a saga that is not known cost one where there is room. Room at ten destinations for which
// nothing waits is one look at each.
func TestClaimPassesWhatWaits(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	var places [][2]any
	for i := range 10 {
		places = append(places, [2]any{fmt.Sprint("destination", i), 100})
	}
	rooms, err := json.Marshal(places)
	if err != nil {
		t.Fatal(err)
	}
	look := func(what, rooms string) (plan string, pages int) {
		return buffers(t, l, what, `[["s", 1], ["s", 2]]`, token, rooms)
	}
	before := map[string]int{}
	for what := range claiming {
		_, before[what] = look(what, "[]")
	}
	line(t, db, "closed", "s", 20000)
	line(t, db, "destination7", "other", 20000)
	for what := range claiming {
		plan, after := look(what, "[]")
		if after > before[what]+10 { // an index has grown by a level or two
			t.Errorf("an empty look takes %d pages beside 40,000 that wait, %d without:\n%s", after, before[what], plan)
		}
		plan, after = look(what, string(rooms))
		if after > before[what]+10+3*len(places)+2*3 { // each destination, and both versions at the one for which something waits
			t.Errorf("an empty look with ten rooms takes %d pages beside 40,000 that wait, %d without both:\n%s", after, before[what], plan)
		}
		if !strings.Contains(plan, "amends_instances_waiting") || strings.Contains(plan, "Seq Scan on amends_instances") {
			t.Errorf("the plan does not find what waits by its index:\n%s", plan)
		}
	}
}

// A long line costs a claim what it takes of it, not what stands there.
func TestClaimTakesFromALongLine(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	line(t, db, "books", "s", 20000)
	backlog(t, db, "s", 1, 20000)
	plan, pages := buffers(t, l, "take", `[["s", 1]]`, token, `[["books", 50]]`)
	if pages > 3000 { // a hundred works are looked at, locked, and written with all their indexes
		t.Errorf("a claim of a hundred works of 40,000 takes %d pages:\n%s", pages, plan)
	}
	got, err := l.Claim(t.Context(), token, ledger.Claim{Limit: 10, Known: []ledger.Version{{Saga: "s", Version: 1}}, Rooms: map[string]int{"books": 3}})
	if err != nil || len(got.Instances) != 10 || got.Instances[0].Number > got.Instances[2].Number {
		t.Fatalf("claimed %d works, %v", len(got.Instances), err)
	}
	if n := len(slices.DeleteFunc(got.Instances, func(h ledger.Instance) bool { return h.Number > 20000 })); n != 3 {
		t.Errorf("%d of the claimed works stood in line, want 3", n)
	}
}

// "A work that is being claimed is passed over", and so is one that another transaction has locked,
// however many those are: a writer that stands still there delays no claim.
func TestClaimPassesLockedWorks(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token, db := session(t, l), connect(t, l.url)
	backlog(t, db, "s", 1, 100)
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `SELECT FROM amends_instances WHERE ref <= 70 FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ limit, want int }{{10, 10}, {20, 20}, {20, 0}} {
		got, err := l.Claim(t.Context(), token, ledger.Claim{Limit: c.limit, Known: []ledger.Version{{Saga: "s", Version: 1}}})
		heads := got.Instances
		if err != nil || len(heads) != c.want {
			t.Fatalf("claimed %d works, %v, want %d of those that are not locked", len(heads), err, c.want)
		}
		if i := slices.IndexFunc(heads, func(h ledger.Instance) bool { return h.Number <= 70 }); i >= 0 {
			t.Errorf("claimed %d, which is locked", heads[i].Number)
		}
	}
}

// So it is with what a dead session held, and with the session itself: a transaction that stands
// still there delays no claim, and what it has not locked is taken over.
func TestClaimPassesLockedOrphans(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	db := connect(t, l.url)
	dead, err := l.OpenSession(t.Context(), time.Microsecond, "dies", nil)
	if err != nil {
		t.Fatal(err)
	}
	token := session(t, l)
	backlog(t, db, "s", 1, 100)
	db.MustExecContext(t.Context(), `UPDATE amends_instances SET session = $1, due_at = NULL`, int64(dead.Token))
	for _, c := range []struct {
		lock string
		want int
	}{
		{fmt.Sprint(`SELECT FROM amends_sessions WHERE token = `, int64(dead.Token), ` FOR UPDATE`), 0},
		{`SELECT FROM amends_instances WHERE ref <= 70 FOR UPDATE`, 30},
		{`SELECT`, 70},
	} {
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(t.Context(), c.lock)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Claim(t.Context(), token, ledger.Claim{Limit: 100, Known: []ledger.Version{{Saga: "s", Version: 1}}})
		if heads := got.Instances; err != nil || len(heads) != c.want {
			t.Errorf("beside %s: claimed %d works, %v, want %d", c.lock, len(heads), err, c.want)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// A claimer that stands still inside its transaction delays no other. One has buried a
// session, taken over what it held, and claimed; it does not commit. Another claims beside it what
// is left, and does not wait: a wait would not end.
func TestAClaimerThatStandsStillDelaysNoOther(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	db := connect(t, l.url)
	stopped, other := session(t, l), session(t, l)
	dead, err := l.OpenSession(t.Context(), time.Microsecond, "dies", nil)
	if err != nil {
		t.Fatal(err)
	}
	backlog(t, db, "s", 1, 300)
	line(t, db, "books", "s", 100)
	db.MustExecContext(t.Context(), `UPDATE amends_instances SET session = $1, due_at = NULL WHERE ref <= 100`, int64(dead.Token))
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{postgres.ClaimText, postgres.ReleaseText, postgres.ClaimText} {
		args := []any{nil, `[["s", 1]]`, 60, int64(stopped), statement == postgres.ClaimText, `[["books", 30]]`, 0}
		if statement == postgres.ReleaseText {
			args = []any{nil, 50}
		}
		if _, err := tx.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	var taken int // by the one that stands still, of what no session had held
	if err := tx.GetContext(t.Context(), &taken, `SELECT count(*) FROM amends_instances WHERE session = $1 AND ref > 100`, int64(stopped)); err != nil || taken == 0 {
		t.Fatalf("it has claimed %d works, %v", taken, err)
	}
	total := 0
	for {
		got, err := l.Claim(t.Context(), other, ledger.Claim{Limit: 100, Known: []ledger.Version{{Saga: "s", Version: 1}}, Rooms: map[string]int{"books": 40}})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Instances) == 0 {
			break
		}
		total += len(got.Instances)
	}
	if total+taken != 300 {
		t.Errorf("claimed %d works beside a claimer that stands still with %d of 300", total, taken)
	}
}

// The oldest signal that is not read is looked for among those, not among all there were.
func TestOldestSignalUsesItsIndex(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	db := connect(t, l.url)
	for _, statement := range []string{
		`INSERT INTO amends_signals (instance, number, consumed_by, at, kind, key, actor, reason)
			SELECT n, 1, CASE WHEN n % 1000 = 0 THEN NULL ELSE 2 END, now(), 'wake', 'k', 'suite', 'because' FROM generate_series(1, 20000) AS n`,
		`ANALYZE amends_signals`,
	} {
		db.MustExecContext(t.Context(), statement)
	}
	var rows []string
	if err := db.SelectContext(t.Context(), &rows, "EXPLAIN "+sqlstore.OldestSignal); err != nil {
		t.Fatal(err)
	}
	if plan := strings.Join(rows, "\n"); !strings.Contains(plan, "amends_signals_unread") {
		t.Errorf("the plan reads all signals:\n%s", plan)
	}
}
