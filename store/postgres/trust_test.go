package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
)

// A database that cannot be trusted with a ledger is refused when it is opened, with the reason and
// what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare []string // statements on an empty database, after a migration if migrate is set
		migrate bool
		query   string // added to the URL
		is      error
		says    string
	}{
		{name: "no schema yet", is: ledger.ErrSchema, says: "amends migrate"},
		{name: "an older schema", migrate: true, prepare: []string{`UPDATE amends_schema SET version_id = 0`},
			is: ledger.ErrSchema, says: "Run amends migrate"},
		{name: "a newer schema", migrate: true, prepare: []string{`INSERT INTO amends_schema (version_id, is_applied) VALUES (99, true)`},
			is: ledger.ErrSchema, says: fmt.Sprintf("version 99, this program knows %d. Use a newer program", migrations.Latest(migrations.Postgres))},
		{name: "another schema's tables", migrate: true, prepare: []string{`CREATE SCHEMA tenant`},
			query: "search_path=tenant,public", is: ledger.ErrSchema, says: `schema "tenant" holds no ledger`},
		{name: "a schema that does not exist", migrate: true,
			query: "search_path=tenant,public", is: ledger.ErrSchema, says: `no schema "tenant"`},
		{name: "fenced", migrate: true, query: "default_transaction_read_only=on",
			is: ledger.ErrReadOnly, says: "default_transaction_read_only is on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.URL(t)
			if c.migrate {
				if err := open(t, address).Close(); err != nil {
					t.Fatal(err)
				}
			}
			db := connect(t, address)
			for _, statement := range c.prepare {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			l, err := postgres.Open(t.Context(), with(t, address, c.query), nil)
			if err == nil {
				_ = l.Close()
				t.Fatal("it was opened")
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v; want it to match %v and to say %q", err, c.is, c.says)
			}
		})
	}
}

func with(t *testing.T, address, query string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	for part := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(part, "="); ok {
			values.Set(name, value)
		}
	}
	u.RawQuery = values.Encode()
	return u.String()
}

// A ledger lives in the first schema of the search_path, and two in one database do not see each
// other. A start in a transaction of the caller's goes to the ledger's schema, whatever the
// caller's search_path is.
func TestSchemas(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	db := connect(t, address)
	if _, err := db.ExecContext(t.Context(), `CREATE SCHEMA "Tenant 1"`); err != nil {
		t.Fatal(err)
	}
	public, tenant := open(t, address), open(t, with(t, address, `search_path="Tenant 1",public`))
	defer closed(t, public, tenant)
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := start(0, "w")
	if a, err := tenant.StartTx(t.Context(), tx, e); err != nil || a.Result != ledger.Appended {
		t.Fatalf("start: %+v, %v", a, err)
	}
	if a, err := tenant.StartTx(t.Context(), tx, e); err != nil || a.Result != ledger.Mine {
		t.Fatalf("the same start again: %+v, %v", a, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for l, want := range map[*store]int{public: 0, tenant: 1} {
		if heads, err := ledger.First(t.Context(), l, ledger.Filter{}); err != nil || len(heads) != want {
			t.Errorf("got works %v, %v, want %d", heads, err, want)
		}
	}
}

// What was answered is durable even where the database's default is not to wait, and plans do not
// depend on the size of the tables.
func TestSettings(t *testing.T) {
	t.Parallel()
	l := open(t, with(t, migrated.URL(t), "synchronous_commit=off"))
	defer closed(t, l)
	for pool, want := range map[string]map[string]string{
		"work": {"synchronous_commit": "on", "plan_cache_mode": "force_generic_plan", "lock_timeout": "10s", "jit": "off",
			"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"},
		"batch": {"synchronous_commit": "on", "plan_cache_mode": "force_generic_plan", "lock_timeout": "10s", "enable_nestloop": "off"},
		"load":  {"synchronous_commit": "on", "plan_cache_mode": "force_generic_plan", "lock_timeout": "10s", "enable_seqscan": "off", "enable_hashjoin": "off"},
		"read":  {"synchronous_commit": "on", "lock_timeout": "10s", "enable_seqscan": "off"},
	} {
		for setting, value := range want {
			var got string
			if err := postgres.Pool(l.DB, pool).GetContext(t.Context(), &got, "SHOW "+setting); err != nil || got != value {
				t.Errorf("%s: %s is %q (%v), want %q", pool, setting, got, err, value)
			}
		}
	}
}

// A status of a newer program comes with a newer schema. A claim that meets one gives it like any
// other, so that it holds up none; to load it is an error that names it, until the next renewal,
// which says that the schema is newer.
func TestAStatusOfANewerProgram(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	db := connect(t, l.url)
	backlog(t, db, "s", 1, 1)
	db.MustExecContext(t.Context(), `UPDATE amends_instances SET status = 'asleep'`)
	token := session(t, l)
	claim := ledger.Claim{Limit: 1, Known: []ledger.Version{{Saga: "s", Version: 1}}}
	got, err := l.Claim(t.Context(), token, claim)
	if err != nil || len(got.Instances) != 1 || got.Instances[0].Status != "asleep" {
		t.Fatalf("claimed %+v, %v, want the one that is asleep", got, err)
	}
	if _, err := l.Load(t.Context(), []saga.ID{got.Instances[0].ID}); err == nil || !strings.Contains(err.Error(), `"asleep"`) {
		t.Errorf("load: %v, want an error that names the status", err)
	}
	db.MustExecContext(t.Context(), `INSERT INTO amends_schema (version_id, is_applied) VALUES (99, true)`)
	if _, err := l.Renew(t.Context(), token, ledger.Renewal{TTL: time.Hour}); !errors.Is(err, ledger.ErrSchema) {
		t.Errorf("renew: %v, want ErrSchema", err)
	}
}
