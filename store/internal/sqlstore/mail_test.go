package sqlstore

import (
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/internal/pgdb"
)

// A message costs as much beside a hundred thousand that are kept as beside none: nothing about it reads the whole table.
func TestMailUsesItsIndexes(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	s, err := pgdb.New(pgtest.URL(t), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	db := s.Pool(1)
	defer db.Close()
	if _, err := migrations.Up(t.Context(), db.DB, migrations.Postgres); err != nil {
		t.Fatal(err)
	}
	db.MustExecContext(t.Context(), `
		INSERT INTO amends_messages SELECT 'paid', n::text, 'k' || n, '\x00', NULL, now(), now() + (n % 30 - 1) * interval '1 day'
		FROM generate_series(1, 100000) AS n`)
	db.MustExecContext(t.Context(), `ANALYZE amends_messages`)
	now := strings.NewReplacer("{now}", "clock_timestamp()", "{ms}", "interval '1 millisecond'", "$2", "'paid'", "$3", "'7'", "$4", "'s'")
	texts := map[string]string{
		"forget one": forgetMessage, "forget a few": forgetMessages,
		"find": strings.ReplaceAll(findMessages, "m.key = $3", "m.key = 'k7'"),
	}
	for name, text := range texts {
		var plan []string
		if err := db.SelectContext(t.Context(), &plan, `EXPLAIN `+now.Replace(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if all := strings.Join(plan, "\n"); strings.Contains(all, "Seq Scan") {
			t.Errorf("%s reads the whole table:\n%s", name, all)
		}
	}
	lite := onSQLite(t)
	for name, text := range texts {
		plan := planOf(t, lite, strings.NewReplacer("{now}", "5", "$2", "'paid'", "$3", "'7'", "$4", "'s'").Replace(text))
		if strings.Contains(plan, "SCAN m") || strings.Contains(plan, "SCAN amends_messages") {
			t.Errorf("%s reads the whole table: %s", name, plan)
		}
	}
}
