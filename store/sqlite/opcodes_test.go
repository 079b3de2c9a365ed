package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// No statement of the write path opens a table of its own: that would cost as much as the row
// (perf.md §1). And no table has a trigger: SQLite would keep, at each insert, what the pages were before.
func TestWritePathOpensNoTables(t *testing.T) {
	t.Parallel()
	l := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	writing := []string{postSignal, countSignal}
	for text := range l.all() {
		writing = append(writing, text)
	}
	opens := func(text string) (tables []string) {
		t.Helper()
		err := l.writer.plain(t.Context(), func(q sqlstore.Queries) error {
			rows, err := q.QueryxContext(t.Context(), "EXPLAIN "+text, make([]any, parameters(text))...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				row := make(map[string]any)
				if err := rows.MapScan(row); err != nil {
					return err
				}
				op, _ := row["opcode"].(string)
				if strings.Contains(op, "Ephemeral") || strings.HasPrefix(op, "OpenAutoindex") || strings.HasPrefix(op, "Sorter") {
					tables = append(tables, op)
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return tables
	}
	for _, text := range writing {
		if tables := opens(text); len(tables) > 0 {
			t.Errorf("%v by %s", tables, text)
		}
	}
	if len(writing) < 10 || !slices.Contains(writing, projectRecord) {
		t.Errorf("only %d statements were looked at", len(writing))
	}
	var triggers []string
	err := l.writer.plain(t.Context(), func(q sqlstore.Queries) error {
		return sqlx.SelectContext(t.Context(), q, &triggers, `SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	})
	if err != nil || len(triggers) > 0 {
		t.Errorf("triggers %q, %v", triggers, err)
	}
	if tables := opens(`INSERT INTO amends_records SELECT * FROM amends_records`); len(tables) == 0 {
		t.Error("what copies a table into itself opens none: the test sees nothing")
	}
}

// parameters is how many a statement takes.
func parameters(text string) (n int) {
	for i := range text {
		if text[i] != '?' && text[i] != '$' {
			continue
		}
		digits := strings.TrimLeft(text[i+1:], "0123456789")
		if number := text[i+1 : len(text)-len(digits)]; number == "" {
			n++
		} else {
			of := 0
			for _, d := range number {
				of = 10*of + int(d-'0')
			}
			n = max(n, of)
		}
	}
	return n
}
