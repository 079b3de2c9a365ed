package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/lib/pq" // the driver "postgres"
)

// Database makes a new, empty database on a server and returns its URL and how to
// drop it. Dropping cuts the connections that are still open. The database is made
// from template0, which no user can have changed.
func Database(ctx context.Context, server string) (address string, drop func(context.Context) error, err error) {
	return fromTemplate(ctx, server, "template0")
}

func fromTemplate(ctx context.Context, server, template string) (address string, drop func(context.Context) error, err error) {
	parsed, err := parse(server)
	if err != nil {
		return "", nil, err
	}
	name := "amends_test_" + strings.ToLower(rand.Text())
	if err := execute(ctx, server, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return "", nil, fmt.Errorf("create a database on %s: %w", parsed.Redacted(), err)
	}
	drop = func(ctx context.Context) error {
		if err := execute(ctx, server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop database %s: %w", name, err)
		}
		return nil
	}
	parsed.Path = "/" + name
	return parsed.String(), drop, nil
}

// parse checks that a server is given as a URL, so that its database can be
// replaced.
func parse(server string) (*url.URL, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return nil, errors.New(Env + " is not a URL") // without its text: it may hold a password
	}
	if parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errors.New(Env + " must look like postgres://user@host/database")
	}
	return parsed, nil
}

// execute runs one statement on a connection of its own, and leaves nothing open.
func execute(ctx context.Context, server, statement string) (err error) {
	db, err := sql.Open("postgres", server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, statement)
	return err
}
