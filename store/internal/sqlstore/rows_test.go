package sqlstore

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/store/internal/rows"
)

// Rows are read by the names of their columns, in any order, some of them or all, and what stands beside
// them; a row has nothing of the one before it, nor the list of the query before it.
func TestRowsAreReadByName(t *testing.T) {
	t.Parallel()
	db := onSQLite(t)
	at := time.UnixMicro(5).UTC()
	var now int
	beside := func(c *intake.Count) []rows.Field {
		return append(rows.CountFields(c), rows.Field{Name: "now", At: &now})
	}
	found := []intake.Count{{Source: "before"}}
	err := rows.Select(t.Context(), db, rows.Into(&found, beside, func(c *intake.Count) { c.Count++ }),
		`SELECT 5 AS last_at, 9 AS now, 'stale' AS disposition, 'shop' AS source UNION ALL SELECT NULL, 10, NULL, 'books'`)
	want := []intake.Count{{Source: "shop", Disposition: intake.Stale, Count: 1, Last: at}, {Source: "books", Count: 1}}
	if err != nil || !reflect.DeepEqual(found, want) || now != 10 {
		t.Errorf("found %+v beside %d (%v), want %+v", found, now, err, want)
	}
	if err = rows.Select(t.Context(), db, rows.Into(&found, beside), `SELECT 1 AS count WHERE false`); err != nil || found == nil || len(found) != 0 {
		t.Errorf("of no row: %+v (%v)", found, err)
	}
	for text, want := range map[string]string{
		`SELECT 'shop' AS source, 1 AS other`:                              "no place for column other",
		`SELECT 1 AS count UNION ALL SELECT 'many'`:                        "an integer column holds a string",
		`SELECT 1 AS count FROM there`:                                     "no such table",
		`SELECT 1 AS count UNION ALL SELECT abs(-9223372036854775807 - 1)`: "integer overflow",
	} {
		if err := rows.Select(t.Context(), db, rows.Into(&found, beside), text); err == nil || !strings.Contains(err.Error(), want) || found != nil {
			t.Errorf("%s: %+v (%v), want %s", text, found, err, want)
		}
	}
}
