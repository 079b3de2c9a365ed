package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// While a reader stays the log beside the file grows, and the overview says how large it is.
func TestOverviewSaysHowLargeTheLogIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := opened(t, path)
	tx, err := l.readers.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var n int
	if err := tx.GetContext(t.Context(), &n, `SELECT count(*) FROM amends_instances`); err != nil {
		t.Fatal(err)
	}
	before := int64(-1)
	for range 3 {
		session(t, l)
		o, err := l.Overview(t.Context())
		i, errFile := os.Stat(path + "-wal")
		if err != nil || errFile != nil || o.Log != i.Size() || o.Log <= before {
			t.Errorf("the log has %d bytes, and had %d (%v, %v)", o.Log, before, err, errFile)
		}
		before = o.Log
	}
}

// Objects that wait for a time to come are looked for among those that are due some time.
func TestFutureObjectsUseTheIndex(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	plan := explained(t, l, `SELECT e.source, e.tenant, e.type, e.id, e.body FROM amends_objects AS e
		WHERE `+sqlstore.Future+` ORDER BY e.source, e.tenant, e.type, e.id LIMIT ?`, "x%", 1000, "x%", 1000)
	if strings.Count(plan, "amends_objects_due_at") != 2 || strings.Contains(plan, "autoindex") {
		t.Errorf("the plan reads all objects:\n%s", plan)
	}
}
