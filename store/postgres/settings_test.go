package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/internal/storetest"
	"github.com/amends-dev/amends/store/postgres"
)

// turned are settings that a role or a database may have, other than a ledger needs: those of issue
// 45, item 6, and their kin.
var turned = map[string]string{
	"array_nulls": "off", "bytea_output": "escape", "standard_conforming_strings": "off", "DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard",
	"TimeZone": "Asia/Kolkata", "client_encoding": "LATIN1", "extra_float_digits": "-15", "quote_all_identifiers": "on", "transform_null_equals": "on",
	"lc_messages": "POSIX", "search_path": "elsewhere",

	"xmlbinary": "hex", "backslash_quote": "on", "synchronous_commit": "off", "lock_timeout": "1", "idle_in_transaction_session_timeout": "1",
	"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on", "row_security": "off",
	"jit": "on", "jit_above_cost": "0", "plan_cache_mode": "force_custom_plan", "client_min_messages": "log", "check_function_bodies": "off",
}

// role makes a role with settings, for the length of the test, and returns an address with it.
func role(t storetest.T, address, kind string, settings map[string]string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%v", err)
	}
	admin := connect(t, address)
	name := "amends_" + strings.ToLower(rand.Text())
	statements := []string{fmt.Sprintf(`CREATE ROLE %s LOGIN %s`, name, kind)}
	for setting, value := range settings {
		if setting != "search_path" {
			value = pq.QuoteLiteral(value)
		}
		statements = append(statements, fmt.Sprintf(`ALTER ROLE %s SET %s = %s`, name, setting, value))
	}
	for _, statement := range statements {
		admin.MustExecContext(t.Context(), statement)
	}
	tb, ok := t.(pgtest.TB)
	if !ok {
		t.Fatalf("the test is a %T", t)
	}
	tb.Cleanup(func() {
		db, err := sqlx.Connect("postgres", address) //nolint:noctx // behind the test's
		if err == nil {
			_, err = db.Exec(fmt.Sprintf(`DROP OWNED BY %s; DROP ROLE %s`, name, name)) //nolint:noctx // behind the test's
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			t.Errorf("drop the role: %v", err)
		}
	})
	u.User = url.User(name)
	return u.String()
}

// The suite passes whatever a role has set: a connection's greeting sets what changes how values are
// read and written, and the search_path is the address's (issue 45, item 6).
func TestSettingsOfARoleChangeNothing(t *testing.T) {
	t.Parallel()
	h := variants[0].harness()
	in, err := url.Parse(role(t, pgtest.URL(t), "SUPERUSER", turned))
	if err != nil {
		t.Fatal(err)
	}
	as := func(t storetest.T, address string) storetest.Store {
		t.Helper()
		u, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%v", err)
		}
		u.User = in.User
		q := u.Query()
		q.Set("search_path", "public")
		u.RawQuery = q.Encode()
		s := variants[0].open(t, u.String())
		s.url = address // beside it the suite looks as another role
		return s
	}
	h.Open = func(t storetest.T) storetest.Store {
		t.Helper()
		tb, ok := t.(pgtest.TB)
		if !ok {
			t.Fatalf("the suite runs in a %T", t)
		}
		return as(t, migrated.URL(tb))
	}
	h.Again = func(t storetest.T, s storetest.Store) storetest.Store { t.Helper(); return as(t, where(t, s)) }
	storetest.Run(t, h)
}

// Every setting that changes how a value is read or written is what the greeting makes it, on each
// pool and for a role that is no superuser, too.
func TestGreeting(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"SUPERUSER", "NOSUPERUSER"} {
		address := pgtest.URL(t)
		in := role(t, address, kind, turned)
		admin := connect(t, address)
		user := strings.TrimPrefix(in, "postgres://")
		user, _, _ = strings.Cut(user, "@")
		admin.MustExecContext(t.Context(), `CREATE SCHEMA AUTHORIZATION `+user)
		l, err := postgres.Open(t.Context(), with(t, in, `search_path="$user"&TimeZone=Europe/Paris`), &postgres.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.OpenSession(t.Context(), time.Minute, "test", nil); err != nil {
			t.Error(err)
		}
		want := map[string]string{
			"array_nulls": "on", "bytea_output": "hex", "standard_conforming_strings": "on", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres",
			"TimeZone": "UTC", "client_encoding": "UTF8", "extra_float_digits": "1", "quote_all_identifiers": "off", "transform_null_equals": "off",
			"search_path": `"$user"`, "synchronous_commit": "on", "lc_messages": map[string]string{"SUPERUSER": "C", "NOSUPERUSER": "POSIX"}[kind],
			"default_transaction_isolation": "read committed",
		}
		for _, pool := range []string{"work", "batch", "load", "read"} {
			for name, value := range want {
				var is string
				if err := postgres.Pool(l, pool).GetContext(t.Context(), &is, `SELECT current_setting($1)`, name); err != nil || is != value {
					t.Errorf("%s of a %s in pool %s is %q, %v, want %q", name, kind, pool, is, err, value)
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Where the address says no search_path, that of the role counts. It leads to no second ledger beside
// the first.
func TestNoSecondLedger(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	admin := connect(t, address)
	admin.MustExecContext(t.Context(), `CREATE SCHEMA elsewhere`)
	in := role(t, address, "SUPERUSER", map[string]string{"search_path": "elsewhere"})
	opens := func(address string) error {
		l, err := postgres.Open(t.Context(), address, &postgres.Options{Migrate: true})
		if err == nil {
			err = l.Close()
		}
		return err
	}
	tables := func(schema string) (n int) {
		if err := admin.GetContext(t.Context(), &n, `SELECT count(*) FROM pg_tables WHERE schemaname = $1`, schema); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := opens(address); err != nil {
		t.Fatal(err)
	}
	err := opens(in)
	if !errors.Is(err, ledger.ErrSchema) || !strings.Contains(err.Error(), "search_path=public, or search_path=elsewhere") || tables("elsewhere") > 0 {
		t.Errorf("a role with another search_path: %v, and %d tables", err, tables("elsewhere"))
	}
	if err := opens(with(t, in, "search_path=public")); err != nil || tables("elsewhere") > 0 {
		t.Errorf("the search_path of the address: %v, and %d tables", err, tables("elsewhere"))
	}
	if err := opens(with(t, in, "search_path=elsewhere")); err != nil || tables("elsewhere") == 0 {
		t.Errorf("a ledger of its own: %v, and %d tables", err, tables("elsewhere"))
	}
	if err := opens(in); err != nil {
		t.Errorf("the role's search_path leads to a ledger: %v", err)
	}
}

// A fence against writing is reported for what it is, and never overridden, whoever put it up.
func TestAFenceIsReported(t *testing.T) {
	t.Parallel()
	address := migrated.URL(t)
	in := role(t, address, "SUPERUSER", map[string]string{"default_transaction_read_only": "on"})
	l, err := postgres.Open(t.Context(), in, &postgres.Options{Migrate: true})
	if err == nil {
		_ = l.Close()
	}
	if !errors.Is(err, ledger.ErrReadOnly) || !strings.Contains(err.Error(), "default_transaction_read_only is on") {
		t.Errorf("a fenced role: %v", err)
	}
}

// A database that changes what is written, without an error, gets no session: the trial finds it, and
// leaves nothing behind.
func TestTrial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, says string }{
		"nothing":        {"", ""},
		"NULL is a text": {`NEW.external_id := coalesce(NEW.external_id, 'NULL')`, "another ExternalID"},
		"a text":         {`NEW.doc := replace(NEW.doc, 'ü', '?')`, "another Revision"},
		"no text":        {`NEW.external_id := NULL`, "another ExternalID"},
		"a body":         {`NEW.body := NEW.body::jsonb::text`, "another Body"},
		"a snapshot":     {`NEW.snapshot := NULL`, "another Snapshot"},
		"a time":         {`NEW.at := NEW.at + interval '330 minutes'`, "another At"},
		"a number":       {`NEW.session := 7`, "another Session"},
		"a hash":         {`NEW.hash := decode(md5('x'), 'hex')`, ""}, // the next record finds no predecessor
		"a record":       {`IF NEW.seq = 2 THEN RETURN NULL; END IF`, "another number of records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.URL(t)
			l := open(t, address)
			defer closed(t, l)
			db := connect(t, address)
			if c.change != "" {
				db.MustExecContext(t.Context(), `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+c.change+`; RETURN NEW; END $$`)
				db.MustExecContext(t.Context(), `CREATE TRIGGER change BEFORE INSERT ON amends_records FOR EACH ROW EXECUTE FUNCTION change()`)
			}
			_, err := l.OpenSession(t.Context(), time.Minute, "test", nil)
			if c.change == "" && err != nil || c.change != "" && (!errors.Is(err, ledger.ErrUnsupported) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("a session: %v, want an error that says %q", err, c.says)
			}
			var left int
			if err := db.GetContext(context.WithoutCancel(t.Context()), &left,
				`SELECT (SELECT count(*) FROM amends_instances) + (SELECT count(*) FROM amends_records)`); err != nil || left > 0 {
				t.Errorf("%d rows of the trial are left, %v", left, err)
			}
		})
	}
}
