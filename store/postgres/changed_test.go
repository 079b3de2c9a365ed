package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
)

// elsewhere returns an empty database of the same name on another server. One such server is enough
// for all tests: it ends with the process.
func elsewhere(t *testing.T, address string) string {
	t.Helper()
	server, err := another()
	if err != nil {
		t.Fatal(err)
	}
	here, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	there, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	there.Path = here.Path
	connect(t, server.URL()).MustExecContext(t.Context(), `CREATE DATABASE `+strings.TrimPrefix(here.Path, "/"))
	return there.String()
}

var another = sync.OnceValues(func() (*pgtest.Cluster, error) { return pgtest.Start(context.Background(), "", nil) })

// A fail-over in the worst case: the old server still answers on the connections that are open, new
// ones lead to another server under the same name. Nothing is stored for sessions of the old server
// once the new one is seen; a new session begins there, and what it writes is there.
func TestDatabaseChanged(t *testing.T) {
	t.Parallel()
	before := migrated.URL(t)
	after := elsewhere(t, before)
	closed(t, open(t, before), open(t, after)) // migrated
	w := pgtest.NewWire(t, before)
	l := open(t, w.URL())
	defer closed(t, l)
	old, err := l.OpenSession(t.Context(), time.Hour, "before", nil)
	if err != nil {
		t.Fatal(err)
	}
	es := []ledger.Entry{start(old.Token, "a"), start(old.Token, "b")} // every lane has an open connection
	for i, a := range appendAll(t, l, old.Token, es, ledger.Appended) {
		es[i] = next(es[i], a.Number, old.Token, machine.Record{Kind: machine.KindNoted, Status: saga.Running}, nil)
	}
	appendAll(t, l, old.Token, es, ledger.Appended)

	w.Lead(t, after)
	fresh, err := l.OpenSession(t.Context(), time.Hour, "after", nil)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Database == old.Database {
		t.Fatalf("both sessions are on %s", fresh.Database)
	}
	if _, err := l.Append(t.Context(), old.Token, es); !errors.Is(err, ledger.ErrDatabaseChanged) {
		t.Errorf("append for the old session: %v, want ErrDatabaseChanged", err)
	}
	if _, err := l.Renew(t.Context(), old.Token, ledger.Renewal{TTL: time.Hour}); !errors.Is(err, ledger.ErrDatabaseChanged) {
		t.Errorf("renew the old session: %v, want ErrDatabaseChanged", err)
	}
	state := ledger.Control{Kind: ledger.ControlDestination, Name: "books", Nonce: 1}
	if _, err := l.SetControl(t.Context(), old.Token, state); !errors.Is(err, ledger.ErrDatabaseChanged) {
		t.Errorf("set a control for the old session: %v, want ErrDatabaseChanged", err)
	}
	if _, err := l.SetControl(t.Context(), fresh.Token, state); err != nil {
		t.Errorf("set a control for the new session: %v", err)
	}
	if _, err := l.Renew(t.Context(), fresh.Token, ledger.Renewal{TTL: time.Hour}); err != nil {
		t.Errorf("renew the new session: %v", err)
	}
	if as, err := l.Append(t.Context(), fresh.Token, es); err != nil || as[0].Result != ledger.Missing {
		t.Errorf("a record whose predecessor was lost: %+v, %v, want missing", as, err)
	}
	appendAll(t, l, fresh.Token, []ledger.Entry{start(fresh.Token, "c")}, ledger.Appended)
	direct := open(t, after)
	defer closed(t, direct)
	if heads, err := ledger.First(t.Context(), direct, ledger.Filter{}); err != nil || len(heads) != 1 || heads[0].ID.Work != "c" {
		t.Errorf("the new server has %+v, %v, want the work of the new session", heads, err)
	}
}

// A connection that leads to another server than before is refused before anything is written on
// it.
func TestConnectionToAnotherServer(t *testing.T) {
	t.Parallel()
	before := migrated.URL(t)
	after := elsewhere(t, before)
	closed(t, open(t, before), open(t, after))
	w := pgtest.NewWire(t, before)
	l := open(t, w.URL())
	defer closed(t, l)
	token := session(t, l)
	w.Lead(t, after)
	terminate(t, connect(t, before))
	var err error
	for range 10 { // connections that were cut are noticed one by one
		if _, err = l.Append(t.Context(), token, []ledger.Entry{start(token, "w")}); errors.Is(err, ledger.ErrDatabaseChanged) {
			break
		}
	}
	if !errors.Is(err, ledger.ErrDatabaseChanged) {
		t.Errorf("append: %v, want ErrDatabaseChanged", err)
	}
	if _, err := ledger.First(t.Context(), l, ledger.Filter{}); err == nil {
		t.Error("the other server was read as if it were ours")
	}
}

// What RULES.md says of a move that lost nothing (core.md D6): behind it every tail counts as
// written before the change, and a person who can tell that nothing was forgotten vouches for it
// with the statement that stands there.
func TestVouchingForAMove(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../internal/ledger/RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	vouch := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(text)
	if vouch == nil {
		t.Fatal("RULES.md has no statement")
	}
	address := migrated.URL(t)
	db, l := connect(t, address), open(t, address)
	token := session(t, l)
	es := []ledger.Entry{start(token, "held"), start(0, "posted")}
	es[1].Schedule = &ledger.Schedule{}
	appendAll(t, l, token, es, ledger.Appended)
	closed(t, l)
	db.MustExecContext(t.Context(), `UPDATE amends_sessions SET database = 'as it was before'`)
	changed := func() (n int) {
		t.Helper()
		l := open(t, address)
		defer closed(t, l)
		token := session(t, l)
		chains, err := l.Load(t.Context(), []saga.ID{es[0].ID, es[1].ID})
		if err != nil || len(chains) != 2 {
			t.Fatalf("loaded %+v, %v", chains, err)
		}
		for _, c := range chains {
			if !c.Changed.IsZero() {
				n++
			}
		}
		if err := l.Bury(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := changed(); n != 2 {
		t.Errorf("behind a move %d of 2 tails count as written before it", n)
	}
	db.MustExecContext(t.Context(), string(vouch[1]))
	if n := changed(); n != 0 {
		t.Errorf("after an operator vouched %d of 2 tails count as written before the move", n)
	}
}

// cases-4, 10: a ledger that was moved by logical replication has rows and no sequences: its next delivery is stored all the same.
func TestASequenceBehindItsTable(t *testing.T) {
	t.Parallel()
	address := migrated.URL(t)
	l := open(t, address)
	accept := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			id := fmt.Sprint(n)
			e := intake.Event{Object: intake.Object{Source: "shop", Type: "order", ID: id}, Dedupe: intake.DigestOf(id), Body: []byte(`{}`)}
			if err := l.Accept(t.Context(), []intake.Event{e}); err != nil {
				t.Errorf("delivery %d: %v", n, err)
			}
		}
	}
	accept(0, 5)
	closed(t, l)
	connect(t, address).MustExecContext(t.Context(), `ALTER TABLE amends_inbox ALTER COLUMN number RESTART WITH 1`)
	l = open(t, address)
	accept(5, 8)
	db := connect(t, address)
	role := "dml_" + strings.ToLower(rand.Text()[:8])
	db.MustExecContext(t.Context(), `CREATE ROLE `+role+` LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO `+role+`; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO `+role)
	t.Cleanup(func() {
		db.MustExecContext(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role)
	})
	as, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	as.User = url.User(role)
	closed(t, l)
	l = open(t, as.String()) // who may not set the sequence
	accept(8, 9)
}
