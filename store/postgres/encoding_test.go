package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/migrations"
	"github.com/amends-dev/amends/store/postgres"
)

// A database that cannot hold every text is refused at open and by a migration, before anything is
// created in it; the error names what it has, what it needs, and how to make it (issue 45, item 8).
func TestEncodings(t *testing.T) {
	t.Parallel()
	server := pgtest.URL(t)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII", "LATIN9", "WIN1252", "EUC_JP", "UTF8"} {
		address := encoded(t, server, encoding)
		db := connect(t, address)
		opened, err := postgres.Open(t.Context(), address, &postgres.Options{Migrate: true})
		if encoding == "UTF8" {
			if err != nil {
				t.Fatal(err)
			}
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		_, up := migrations.Up(t.Context(), db.DB, migrations.Postgres)
		if !errors.Is(err, ledger.ErrUnsupported) {
			t.Errorf("opening it in %s: %v", encoding, err)
		}
		for _, err := range []error{err, up} {
			for _, said := range []string{"encoding " + encoding, "needs UTF8", "CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8'"} {
				if err == nil || !strings.Contains(err.Error(), said) {
					t.Errorf("in %s: %v, want an error that says %q", encoding, err, said)
				}
			}
		}
		var made int
		if err := db.GetContext(t.Context(), &made, `SELECT count(*) FROM pg_class WHERE oid >= 16384`); err != nil || made > 0 {
			t.Errorf("in %s there are %d new tables, indexes and sequences, %v", encoding, made, err)
		}
	}
}

// encoded is a new database with an encoding, for the length of the test.
func encoded(t *testing.T, server, encoding string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	admin := connect(t, server)
	name := strings.TrimPrefix(u.Path, "/") + "_" + strings.ToLower(encoding)
	if _, err := admin.ExecContext(t.Context(),
		fmt.Sprintf(`CREATE DATABASE %s TEMPLATE template0 ENCODING '%s' LOCALE 'C'`, name, encoding)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}
