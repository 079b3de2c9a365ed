package sqlstore_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
	"github.com/amends-dev/amends/store/sqlite"
)

// damages are changes behind everybody's back that no CHECK refuses, and what a check says of them.
var damages = []struct{ change, says string }{
	{`UPDATE amends_records SET doc = '{"k":"guessed"}' WHERE seq = 2`, `kind "guessed" is none of the kinds`},
	{`UPDATE amends_records SET doc = '{"k":"noted","st":"asleep"}' WHERE seq = 2`, `status "asleep" is none of the statuses`},
	{`UPDATE amends_records SET doc = '{"k":"noted","st":"review"}' WHERE seq = 2`, `a review has a reason, and nothing else has`},
	{`UPDATE amends_records SET doc = '{"k":"noted","st":"review","r":"bored"}' WHERE seq = 2`, `reason "bored" is none of the reasons`},
	{`UPDATE amends_records SET doc = '{"k":"done","s":"x","d":"sideways"}' WHERE seq = 2`, `direction "sideways" is none of the directions`},
	{`UPDATE amends_records SET doc = '{"k":"done","s":"x","c":"odd"}' WHERE seq = 2`, `class "odd" is none of the classes`},
	{`UPDATE amends_records SET doc = '{"k":"noted","w":-1}' WHERE seq = 2`, `wait -1ms is negative`},
	{`UPDATE amends_records SET doc = '{"k":"noted","a":{"s":"x","b":-1}}' WHERE seq = 2`, `budget -1ms is negative`},
	{`UPDATE amends_records SET doc = '{"k":"noted","a":{"s":"x","n":0}}' WHERE seq = 2`, `armed attempt 0 is less than 1`},
	{`UPDATE amends_records SET doc = '{"k":"noted"' WHERE seq = 2`, `It cannot be read: history of s w: record 2 of s w`},
	{`UPDATE amends_records SET doc = '{"k":"noted","z":1}' WHERE seq = 2`, `It cannot be read`},
	{`UPDATE amends_records SET seq = 0 WHERE seq = 1`, `its number in the chain is 0`},
	{`UPDATE amends_records SET body = '{}' WHERE seq = 1`, `it was edited`},
	{`UPDATE amends_records SET hash = 'short' WHERE seq = 2`, `its hash has 5 bytes`},
	{`UPDATE amends_instances SET status = 'asleep'`, `status "asleep", the chain says "retrying"`},
	{`UPDATE amends_instances SET reason = 'poison'`, `a review has a reason, and nothing else has`},
	{`UPDATE amends_instances SET class = 9`, `It is in class 9 of the order of claims`},
	{`UPDATE amends_instances SET version = 0`, `definition version "0", the chain says "1"`},
	{`UPDATE amends_instances SET consumed = 5`, `It counts 5 consumed signals, and 1 were posted`},
	{`UPDATE amends_instances SET snapshot_seq = 0`, `base "0", the chain says "1"`},
	{`UPDATE amends_instances SET step = 'another'`, `step at issue "another", the chain says "invoice"`},
	{`UPDATE amends_instances SET unconfirmed = NOT unconfirmed`, `unconfirmed "true", the chain says "false"`},
	{`UPDATE amends_instances SET due_at = NULL`, `it would wait for ever`},
	{`UPDATE amends_instances SET session = 7`, `is held by session 0000000000000007 and also due`},
	{`UPDATE amends_instances SET waits_for = 'books'`, `It waits for destination "books" with 1 unread signals`},
	{`UPDATE amends_instances SET finished_at = created_at`, `is retrying and yet says it finished`},
	{`UPDATE amends_instances SET work_id = ''`, `its work id "" is empty`},
	{`UPDATE amends_signals SET doc = '['`, `Its signals cannot be read`},
}

// ledgers open a ledger of each kind, and its tables beside it.
var ledgers = map[string]func(t *testing.T) (ledger.Ledger, *sqlx.DB){
	"sqlite": func(t *testing.T) (ledger.Ledger, *sqlx.DB) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "ledger.db")
		l, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l, sqlx.MustConnect("sqlite", path)
	},
	"postgres": func(t *testing.T) (ledger.Ledger, *sqlx.DB) {
		t.Helper()
		url := pgtest.URL(t)
		l, err := postgres.Open(t.Context(), url, &postgres.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		return l, sqlx.MustConnect("postgres", url)
	},
}

// onEach runs a test on a new ledger of each kind, and on its database by SQL.
func onEach(t *testing.T, fn func(t *testing.T, l ledger.Ledger, db *sqlx.DB)) {
	t.Helper()
	for name, open := range ledgers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, db := open(t)
			t.Cleanup(func() { _, _ = db.Close(), l.Close() })
			fn(t, l, db)
		})
	}
}

// What the schema does not refuse, a check names: a record or an instance that was changed by SQL.
func TestCheckNamesWhatSQLDamaged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l ledger.Ledger, db *sqlx.DB) {
		writeOne(t, l)
		if found := findings(t, l); found != "" {
			t.Fatalf("before any damage: %s", found)
		}
		db.SetMaxOpenConns(1)
		for _, d := range damages {
			tables := []string{"amends_records", "amends_instances", "amends_signals"}
			for _, table := range tables {
				db.MustExec(`CREATE TABLE kept_` + table + ` AS SELECT * FROM ` + table)
			}
			change := d.change
			if db.DriverName() == "postgres" {
				change = strings.Replace(change, `'short'`, `'\x0102030405'`, 1)
			} else {
				change = strings.Replace(change, `'short'`, `x'0102030405'`, 1)
			}
			db.MustExec(change)
			if found := findings(t, l); !strings.Contains(found, d.says) {
				t.Errorf("%s: found %q, want %q", d.change, found, d.says)
			}
			for _, table := range tables {
				db.MustExec(`DELETE FROM ` + table)
				db.MustExec(`INSERT INTO ` + table + ` SELECT * FROM kept_` + table)
				db.MustExec(`DROP TABLE kept_` + table)
			}
		}
		if found := findings(t, l); found != "" {
			t.Errorf("behind all damage: %s", found)
		}
	})
}

func findings(t *testing.T, l ledger.Ledger) string {
	t.Helper()
	report, err := ledger.Check(t.Context(), l, &ledger.CheckOptions{ChainsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range report.Findings {
		all = append(all, f.String())
	}
	return strings.Join(all, "\n")
}

// writeOne writes an instance of two records that retries, released, with an unread signal.
func writeOne(t *testing.T, l ledger.Ledger) {
	t.Helper()
	lease, err := l.OpenSession(t.Context(), time.Hour, "damage", nil)
	if err != nil {
		t.Fatal(err)
	}
	e := ledger.Entry{ID: saga.ID{Saga: "s", Work: "w"}, Schedule: &ledger.Schedule{Hold: true}}
	e.Record = machine.Record{Kind: machine.KindStarted, Version: 1, Status: saga.Running, Body: []byte(`{"order":1}`)}
	e.Record.Seal(e.ID, machine.Salt{}, 0, machine.Hash{}, lease.Token)
	for range 2 {
		as, err := l.Append(t.Context(), lease.Token, []ledger.Entry{e})
		if err != nil || as[0].Result != ledger.Appended {
			t.Fatalf("append: %+v, %v", as, err)
		}
		prev := e.Record.Hash
		e.Number, e.Prev, e.Schedule = as[0].Number, prev, &ledger.Schedule{}
		e.Record = machine.Record{Kind: machine.KindNotSent, Step: "invoice", Direction: saga.Forward, Attempt: 1, Status: saga.Retrying, Wait: time.Hour}
		e.Record.Seal(e.ID, machine.Salt{}, 1, prev, lease.Token)
	}
	if _, err := l.Post(t.Context(), e.ID, machine.Signal{Kind: machine.SignalCancel, Key: "k", Actor: "anna"}); err != nil {
		t.Fatal(err)
	}
}
