package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Whatever a plan holds, a statement about some of its keys looks up these keys. SQLite chose to go through the whole
// plan once per key before: a million findings were never done.
func TestByKeyOnSQLite(t *testing.T) {
	t.Parallel()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := migrations.Up(t.Context(), db.DB, migrations.SQLite); err != nil {
		t.Fatal(err)
	}
	const elements = `(SELECT value FROM json_each(?)) AS e`
	var one, page where
	one.is("job", "books")
	one.is("key", "shop:order:1")
	page.and("(first_at, job, key) > (?, ?, ?)")
	runs := &jobs{&Dialect{Moment: func(t time.Time) any { return t.UnixMicro() }}}
	last := &schedule.RunRow{Job: "books", Number: 7}
	ofAll, _ := runs.runsText(&schedule.Filter{Before: last})
	ofOne, _ := runs.runsText(&schedule.Filter{Job: "books", Before: last})
	for text, want := range map[string]string{
		ofAll:                "SEARCH amends_runs USING INDEX amends_runs_created_at",
		ofOne:                "SEARCH amends_runs USING PRIMARY KEY (job=? AND number<?)",
		driftsText(&one):     "SEARCH amends_drifts USING PRIMARY KEY (job=? AND key=?)",
		driftsText(&page):    "SEARCH amends_drifts USING INDEX amends_drifts_first_at",
		doneText(elements):   "SEARCH amends_findings USING PRIMARY KEY (job=? AND plan=? AND key=?)",
		inSyncText(elements): "SEARCH amends_findings USING PRIMARY KEY (job=? AND plan=? AND key=?)",
	} {
		var rows []struct {
			ID, Parent, NotUsed int
			Detail              string
		}
		if err := db.SelectContext(t.Context(), &rows, "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...); err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, r := range rows {
			steps = append(steps, r.Detail)
		}
		if got := strings.Join(steps, "\n"); !strings.Contains(got, want) || strings.Contains(got, "SCAN amends_") {
			t.Errorf("%s\nis done by\n%s", text, got)
		}
	}
}
