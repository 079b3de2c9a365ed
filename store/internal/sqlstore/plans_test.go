package sqlstore

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/reconcile/schedule"
)

// Whatever a plan holds, a statement about some of its keys looks up these keys. SQLite chose to go
// through the whole plan once per key before: a million findings were never done.
func TestByKeyOnSQLite(t *testing.T) {
	t.Parallel()
	db := onSQLite(t)
	const elements = `(SELECT value FROM json_each(?)) AS e`
	var one, page where
	one.is("job", "books")
	one.is("key", "shop:order:1")
	page.and("(first_at, job, key) > (?, ?, ?)")
	runs := &jobs{&Dialect{Moment: func(t time.Time) any { return t.UnixMicro() }}}
	last := &schedule.RunRow{Job: "books", Number: 7}
	ofAll, _ := runs.runsText(&schedule.RunFilter{Before: last})
	ofOne, _ := runs.runsText(&schedule.RunFilter{Job: "books", Before: last})
	for text, want := range map[string]string{
		ofAll:                "SEARCH amends_runs USING INDEX amends_runs_created_at",
		ofOne:                "SEARCH amends_runs USING PRIMARY KEY (job=? AND number<?)",
		driftsText(&one):     "SEARCH amends_drifts USING PRIMARY KEY (job=? AND key=?)",
		driftsText(&page):    "SEARCH amends_drifts USING INDEX amends_drifts_first_at",
		doneText(elements):   "SEARCH amends_findings USING PRIMARY KEY (job=? AND plan=? AND key=?)",
		inSyncText(elements): "SEARCH amends_findings USING PRIMARY KEY (job=? AND plan=? AND key=?)",
	} {
		got := planOf(t, db, text, make([]any, strings.Count(text, "?"))...)
		if !strings.Contains(got, want) || strings.Contains(got, "SCAN amends_") {
			t.Errorf("%s\nis done by\n%s", text, got)
		}
	}
}
