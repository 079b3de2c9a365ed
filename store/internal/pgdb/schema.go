package pgdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/migrations"
)

// Fit makes sure that the tables are there and are this program's, and returns the schema they are
// in. With migrate an older schema is brought up to date.
//
// Where the DSN does not say search_path, that of the role or the database counts: administrators say
// there where tables belong, and a fixed default would find another ledger than yesterday. Should it
// lead away from a ledger that is there, no second one is made.
func Fit(ctx context.Context, s *Server, db *sqlx.DB, migrate bool) (schema string, err error) {
	if schema, err = firstSchema(ctx, db); err != nil {
		return "", During("name its schema", err)
	}
	return schema, During("look at the ledger's tables", fit(ctx, s, db, schema, migrate))
}

func fit(ctx context.Context, s *Server, db *sqlx.DB, schema string, migrate bool) error {
	latest := migrations.Latest(migrations.Postgres)
	version, err := migrations.Version(ctx, db.DB, migrations.Postgres)
	if err == nil && version == 0 && !s.named {
		err = elsewhere(ctx, db, schema)
	}
	switch {
	case err != nil:
		return err
	case version > latest:
		return fmt.Errorf("%w: schema %q has version %d, this program knows %d. Use a newer program",
			ledger.ErrSchema, schema, version, latest)
	case version == latest:
		_, err := db.ExecContext(ctx, ahead)
		return During("set the next number of deliveries behind those that are stored", err)
	case migrate:
		_, err := migrations.Up(ctx, db.DB, migrations.Postgres)
		return During("migrate the schema", err)
	case version == 0:
		return fmt.Errorf("%w: schema %q holds no ledger yet. Run amends migrate, or set Options.Migrate",
			ledger.ErrSchema, schema)
	default:
		return fmt.Errorf("%w: schema %q has version %d, this program needs %d. Run amends migrate, or set Options.Migrate",
			ledger.ErrSchema, schema, version, latest)
	}
}

// ahead sets the sequence of the tables behind what they hold: logical replication copies rows and no sequences, and each number that is
// there already would be a delivery refused. A role that may not set it leaves it.
const ahead = `
	SELECT setval(n.sequence, n.newest) FROM (
		SELECT pg_get_serial_sequence('amends_inbox', 'number')::regclass AS sequence, max(number) AS newest FROM amends_inbox) AS n
	WHERE CASE WHEN n.newest IS NOT NULL AND has_sequence_privilege(n.sequence, 'UPDATE') AND has_sequence_privilege(n.sequence, 'SELECT, USAGE')
		THEN COALESCE(pg_sequence_last_value(n.sequence), 0) < n.newest ELSE false END`

// elsewhere refuses a schema without a ledger when this user has one in another schema.
func elsewhere(ctx context.Context, db *sqlx.DB, schema string) error {
	var others []string
	err := db.SelectContext(ctx, &others, `SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname <> $1 AND c.relname = '`+migrations.Table+`' AND c.relkind = 'r' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
		ORDER BY 1`, schema)
	if err != nil || len(others) == 0 {
		return err
	}
	return fmt.Errorf("%w: schema %q holds no ledger, and schema %q does. The search_path is of the role, the database or the server; "+
		"name the schema that is meant in the address: search_path=%s, or search_path=%s for a ledger of its own",
		ledger.ErrSchema, schema, others[0], others[0], schema)
}

// firstSchema returns the schema in which the tables must be. A first schema that does not exist is
// a mistake: the database would silently use the next.
func firstSchema(ctx context.Context, db *sqlx.DB) (string, error) {
	var path, user string
	var current *string
	err := db.QueryRowxContext(ctx, `SELECT current_setting('search_path'), current_user, current_schema()`).Scan(&path, &user, &current)
	if err != nil {
		return "", err
	}
	for name := range strings.SplitSeq(path, ",") {
		name = strings.Trim(strings.TrimSpace(name), `"`)
		if name == "$user" && (current == nil || *current != user) {
			continue // it need not exist
		}
		if current != nil && (*current == name || name == "$user") {
			return *current, nil
		}
		return "", fmt.Errorf("%w: the search_path is %q, but there is no schema %q (or this user may not use it). "+
			"Create the schema or correct the search_path", ledger.ErrSchema, path, name)
	}
	return "", fmt.Errorf("%w: the search_path %q names no schema that exists", ledger.ErrSchema, path)
}
