package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// What is claimed is found by index, place by place: works that are not known cost nothing.
func TestClaimUsesItsIndexes(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	for text, want := range map[string][]string{
		claimable: {
			"SEARCH n USING INDEX amends_instances_due (saga=? AND version=? AND class=? AND due_at<?)",
			"SEARCH n USING INDEX amends_instances_ended_unread (saga=? AND due_at<?)",
			"SEARCH n USING COVERING INDEX amends_instances_waiting (waits_for=? AND saga=? AND version=?)",
			"COVERING INDEX amends_instances_waiting (waits_for=?)",
			"SEARCH h USING INTEGER PRIMARY KEY (rowid=?)",
		},
		release:   {"INDEX amends_instances_held (session=?)"},
		giveBack:  {"SEARCH h USING INTEGER PRIMARY KEY (rowid=?)"},
		signalled: {"INDEX amends_instances_held_unread (session=?)"},
	} {
		plan := explained(t, l, text, 1, "[]", 1, 1, "[]")
		for _, w := range want {
			if !strings.Contains(plan, w) {
				t.Errorf("the plan lacks %q:\n%s", w, plan)
			}
		}
		if strings.Contains(plan, "SCAN h\n") || strings.Contains(plan, "SCAN amends_instances\n") {
			t.Errorf("the plan reads all heads:\n%s", plan)
		}
	}
}

// What is asked for many instances at once is found by index, however much else there is: of an inner join SQLite may read the larger side
// to its end.
func TestAskingReadsNoTable(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	for _, text := range sqlstore.Asked(words)[1:] {
		plan := explained(t, l, text, 1, "[]")
		for _, table := range []string{"r", "s", "a", "i"} { // as they are called
			if strings.Contains(plan, "SCAN "+table+" ") || strings.Contains(plan, "SCAN "+table+"\n") {
				t.Errorf("the plan reads all of %s:\n%s", table, plan)
			}
		}
		if strings.Contains(text, "amends_instances AS h") && !strings.Contains(plan, "SEARCH h USING INDEX amends_instances_work") {
			t.Errorf("the plan reads all instances:\n%s", plan)
		}
	}
}

// The oldest signal that is not read is looked for among those, not among all there were.
func TestOldestSignalUsesItsIndex(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	if plan := explained(t, l, sqlstore.OldestSignal); !strings.Contains(plan, "USING INDEX amends_signals_unread") {
		t.Errorf("the plan reads all signals:\n%s", plan)
	}
}

// explained is the plan of a statement.
func explained(t *testing.T, l *DB, text string, args ...any) string {
	t.Helper()
	var plan strings.Builder
	err := l.writer.plain(t.Context(), func(q sqlstore.Queries) error {
		rows, err := q.QueryxContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			plan.WriteString(detail + "\n")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
