package postgres_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/postgres"
)

// Where all connections of a server are taken, one is waited for; where none comes, the error says what to change.
func TestAServerWithoutAConnectionLeft(t *testing.T) {
	t.Parallel()
	address := pgtest.Own(t, pgtest.Settings{"max_connections": "8", "superuser_reserved_connections": "0"}).URL()
	open := func() error {
		db, err := postgres.Open(t.Context(), address, &postgres.Options{Migrate: true})
		if err == nil {
			err = db.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var taken []*sql.Conn
	for err == nil {
		var c *sql.Conn
		if c, err = pool.Conn(t.Context()); err == nil {
			taken = append(taken, c)
		}
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "max_connections") || !strings.Contains(err.Error(), "Writers") {
		t.Errorf("a server that is full: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	context.AfterFunc(ctx, func() {
		for _, c := range taken {
			_ = c.Raw(func(any) error { return sql.ErrConnDone })
			_ = c.Close()
		}
		_ = pool.Close()
	})
	err = open()
	for err != nil && strings.Contains(err.Error(), "max_connections") && t.Context().Err() == nil { // on a busy machine they are not given back yet
		err = open()
	}
	if err != nil {
		t.Errorf("connections are given back: %v", err)
	}
}
