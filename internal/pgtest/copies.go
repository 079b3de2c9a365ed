package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// copies are the databases made from a template. The server keeps who has which: its name says
// whether a copy is free, and who renames it has it. So several processes can share them.
type copies struct {
	server   string
	template string
	db       *sql.DB // the server's own database

	empty string // the statements that empty a copy
	look  string // the query for what it is like then, see [stateText]
	state string // what it must be like
	size  int64

	dropTemplate func(context.Context) error // nil when the template is another process's
}

// Names of copies are that of the template and one of these.
const (
	free     = "_free_"
	used     = "_used_"
	returned = "_back_"
)

// tolerance is how many bytes a copy may have grown: pages without rows are read, too.
const tolerance = 1 << 20

// copiesOf reads what a template holds.
func copiesOf(ctx context.Context, server, template string) (_ *copies, err error) {
	c := &copies{server: server, template: template}
	at, err := c.open(template)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	if err := c.read(ctx, at); err != nil {
		return nil, fmt.Errorf("read what is in database %s: %w", template, err)
	}
	c.db, err = sql.Open("postgres", server)
	return c, err
}

func (c *copies) read(ctx context.Context, db *sql.DB) error {
	ts, err := tables(ctx, db)
	if err != nil {
		return err
	}
	if c.empty, err = emptyText(ctx, db, ts); err != nil {
		return err
	}
	c.look = stateText(ts)
	return db.QueryRowContext(ctx, c.look).Scan(&c.state, &c.size)
}

// close drops the copies with their template, unless they are another process's.
func (c *copies) close(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, c.db.Close()) }()
	if c.dropTemplate == nil {
		return nil
	}
	for {
		name, err := c.one(ctx, "_")
		if err != nil {
			return err
		}
		if name == "" {
			return c.dropTemplate(ctx)
		}
		if err := c.drop(ctx, name); err != nil {
			return err
		}
	}
}

// one is the name of any copy that is of a kind, "" when there is none.
func (c *copies) one(ctx context.Context, kind string) (name string, err error) {
	err = c.db.QueryRowContext(ctx, `SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY random() LIMIT 1`,
		c.template+kind).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}

// take returns the URL of a copy that no other test has.
func (c *copies) take(ctx context.Context) (address string, err error) {
	name := c.template + used + unique()
	for {
		next, err := c.one(ctx, free)
		if err != nil {
			return "", err
		}
		if next == "" {
			break
		}
		if c.rename(ctx, next, name) == nil { // else another one has it
			return at(c.server, name)
		}
	}
	if _, err := c.db.ExecContext(ctx, "CREATE DATABASE "+name+" TEMPLATE "+c.template); err != nil {
		return "", fmt.Errorf("copy database %s: %w", c.template, err)
	}
	return at(c.server, name)
}

// giveBack empties a copy for the next who takes one. When it is not as new then, it is dropped.
func (c *copies) giveBack(ctx context.Context, address string) error {
	name, err := databaseOf(address)
	if err != nil {
		return err
	}
	// What was left connected is not any more, and does not find it under the new name.
	_, err = c.db.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name)
	if back := c.template + returned + unique(); err == nil && c.rename(ctx, name, back) == nil {
		name = back
		if c.renewed(ctx, name) && c.rename(ctx, name, c.template+free+unique()) == nil {
			return nil
		}
	}
	return c.drop(ctx, name)
}

// renewed empties a copy and reports whether it is as new.
func (c *copies) renewed(ctx context.Context, name string) bool {
	db, err := c.open(name)
	if err != nil {
		return false
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, c.empty); err != nil {
		return false // a superuser is needed
	}
	var state string
	var size int64
	err = db.QueryRowContext(ctx, c.look).Scan(&state, &size)
	return err == nil && state == c.state && size <= c.size+tolerance
}

// rename waits for a moment for connections that are being closed. So does the server, but it looks
// every 100 ms.
func (c *copies) rename(ctx context.Context, from, to string) error {
	for range 200 {
		var connected bool
		if err := c.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1)`, from).Scan(&connected); err != nil {
			return err
		}
		if !connected {
			break
		}
		if _, err := c.db.ExecContext(ctx, `SELECT pg_sleep(0.003)`); err != nil {
			return err
		}
	}
	_, err := c.db.ExecContext(ctx, "ALTER DATABASE "+from+" RENAME TO "+to)
	return err
}

func (c *copies) drop(ctx context.Context, name string) error {
	if _, err := c.db.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// open opens one connection to a database of the server.
func (c *copies) open(name string) (*sql.DB, error) {
	address, err := at(c.server, name)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("postgres", address)
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// at is the URL of a database of a server.
func at(server, name string) (string, error) {
	u, err := parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// databaseOf is the name of the database to which a URL leads.
func databaseOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(u.Path, "/"), nil
}

func unique() string { return strings.ToLower(rand.Text()[:10]) }

// tables are those that are not the server's own, one a line.
func tables(ctx context.Context, db *sql.DB) ([]string, error) {
	var all string
	err := db.QueryRowContext(ctx, `SELECT coalesce(string_agg(oid::regclass::text, E'\n'), '') FROM pg_class
		WHERE relkind = 'r' AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`).Scan(&all)
	return strings.FieldsFunc(all, func(r rune) bool { return r == '\n' }), err
}

// emptyText is the statements that empty a copy: the rows of all tables that are empty in the
// template, without their triggers; where the sequences stand; and what the server has counted.
func emptyText(ctx context.Context, db *sql.DB, tables []string) (string, error) {
	var b strings.Builder
	b.WriteString("SET session_replication_role = replica; ")
	for _, t := range tables {
		var filled bool
		if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+t+`)`).Scan(&filled); err != nil { //nolint:gosec // the catalogue quotes its names
			return "", err
		}
		if !filled {
			b.WriteString("DELETE FROM " + t + "; ")
		}
	}
	var sequences string
	err := db.QueryRowContext(ctx, `SELECT coalesce(string_agg(format('SELECT setval(%L, %s, %L); ',
		format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL), ''), '') FROM pg_sequences`).Scan(&sequences)
	return b.String() + sequences + "SELECT pg_stat_reset()", err
}

// catalogues are those of which DDL, settings, large objects or statistics for the planner change
// one at least.
var catalogues = []string{
	"pg_class", "pg_attribute", "pg_attrdef", "pg_type", "pg_proc", "pg_constraint", "pg_index", "pg_trigger", "pg_rewrite", "pg_policy",
	"pg_namespace", "pg_extension", "pg_default_acl", "pg_statistic", "pg_statistic_ext", "pg_largeobject_metadata",
}

// stateText reads what must be as in the template: of every catalogue and every table how many rows
// there are, and the newest transaction that wrote one of them; what is set for the database; and
// what the planner was told. Beside it, the size.
func stateText(tables []string) string {
	var b strings.Builder
	for _, t := range slices.Concat(catalogues, tables) {
		fmt.Fprintf(&b, `(SELECT concat(count(*), '/', max(xmin::text::bigint), ' ') FROM %s), `, t)
	}
	return `SELECT concat(` + b.String() + `
		(SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())), ' ',
		(SELECT concat(sum(relpages), '/', sum(reltuples)) FROM pg_class WHERE oid >= 16384)),
		pg_database_size(current_database())`
}
