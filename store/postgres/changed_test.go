package postgres_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/witness"
	"github.com/amends-dev/amends/store/postgres"
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

// After a move every tail counts as written on another database, until a person says that nothing was lost; and of one
// that was restored until its records are met, those that no session ever had as well. Neither is heard while a process runs.
func TestWhatAPersonSaysOfADatabase(t *testing.T) {
	t.Parallel()
	address := migrated.URL(t)
	db, l := connect(t, address), open(t, address)
	token := session(t, l)
	es := []ledger.Entry{start(token, "held"), start(0, "posted")}
	es[1].Schedule = &ledger.Schedule{}
	appendAll(t, l, token, es, ledger.Appended)
	say := func(r ledger.Recovery) error {
		r.By = saga.Actor{Name: "anna", Reason: "a test"}
		_, err := l.Recover(t.Context(), r)
		return err
	}
	if err := say(ledger.Recovery{}); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("beside a process: %v", err)
	}
	if err := l.Bury(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	stands := func(when string, changed, restored int) {
		t.Helper()
		token := session(t, l)
		chains, err := l.Load(t.Context(), []saga.ID{es[0].ID, es[1].ID})
		if err != nil || len(chains) != 2 {
			t.Fatalf("loaded %+v, %v", chains, err)
		}
		for _, c := range chains {
			if !c.Changed.IsZero() {
				changed--
			}
			if c.Restored {
				restored--
			}
		}
		if changed != 0 || restored != 0 {
			t.Errorf("%s there are %d tails of 2 too few of before a change, and %d of before a restore", when, changed, restored)
		}
		if err := l.Bury(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	db.MustExecContext(t.Context(), `UPDATE amends_sessions SET database = 'as it was before'`)
	stands("behind a move", 2, 0)
	if err := say(ledger.Recovery{NothingLost: true}); err != nil {
		t.Fatal(err)
	}
	l = open(t, address)
	stands("when nothing was lost", 0, 0)
	if err := say(ledger.Recovery{}); err != nil {
		t.Fatal(err)
	}
	stands("when it was restored", 2, 2)
	if err := say(ledger.Recovery{NothingLost: true}); err != nil {
		t.Fatal(err)
	}
	stands("when it was moved with everything later", 2, 2)
	db.MustExecContext(t.Context(), `DELETE FROM amends_sessions`)
	if err := say(ledger.Recovery{}); err != nil {
		t.Fatal(err)
	}
	stands("when it was restored to before its first session", 1, 1)
}

// A fail-over that forgot less than a minute is met as a fail-over. One that forgot more, and another database that is behind, is not
// begun on; nor is one of which a person said that nothing was lost.
func TestAWitnessAndAFailOver(t *testing.T) {
	t.Parallel()
	address, seen := migrated.URL(t), t.TempDir()
	at := func() *store {
		t.Helper()
		db, err := postgres.Open(t.Context(), address, &postgres.Options{Witness: witness.Folder(seen)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return &store{DB: db, url: address}
	}
	db, l := connect(t, address), at()
	opened := session(t, l)
	if err := errors.Join(l.Bury(t.Context(), opened), l.Close()); err != nil {
		t.Fatal(err)
	}
	marks, err := filepath.Glob(filepath.Join(seen, "*"))
	if err != nil || len(marks) != 1 {
		t.Fatalf("the witness has %q, %v", marks, err)
	}
	kept, err := os.ReadFile(marks[0])
	if err != nil {
		t.Fatal(err)
	}
	var m witness.Mark
	if err := json.Unmarshal(kept, &m); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(m.Database, "/")
	before := strings.Join([]string{parts[0], "00000000", parts[2], parts[3]}, "/")
	for name, c := range map[string]struct {
		database string        // of the mark and of the sessions before
		sessions string        // "": as database
		forgot   time.Duration // since the last sign of life
		beats    int64         // of the session that is there; 0: it is not
		refused  bool
	}{
		"a fail-over":                            {before, "", 30 * time.Second, 0, false},
		"a fail-over that forgot much":           {before, "", 2 * time.Minute, 0, true},
		"another database":                       {"another/00000000/1/2", "", time.Second, 0, true},
		"a fail-over of which nothing was lost":  {before, m.Database, time.Second, 0, true},
		"the same database, put back in between": {m.Database, "", time.Second, 0, true},
		"one that was put back under a session":  {m.Database, "", time.Second, 2, true},
		"as it was left":                         {m.Database, "", time.Second, 1, false},
	} {
		lost := m
		if lost.Database, lost.Session, lost.Beats = c.database, m.Session+1, 0; c.beats > 0 { // it was renewed once
			lost.Session, lost.Beats = m.Session, c.beats
		}
		raw, err := json.Marshal(lost)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(marks[0], raw, 0o600); err != nil {
			t.Fatal(err)
		}
		db.MustExecContext(t.Context(), `DELETE FROM amends_sessions WHERE token <> $1`, int64(m.Session))
		db.MustExecContext(t.Context(), `UPDATE amends_sessions SET dead = true, beats = 1, database = $1, opened_at = $2, renewed_at = $2`, cmp.Or(c.sessions, c.database), m.At.Add(-c.forgot))
		l := at()
		lease, err := l.OpenSession(t.Context(), time.Minute, "", nil)
		if refused := errors.Is(err, ledger.ErrBehind); refused != c.refused || !refused && err != nil {
			t.Errorf("%s: %+v, %v", name, lease, err)
		}
	}
}

// A ledger that was moved by logical replication has rows and no sequences: its next delivery is stored all the same.
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
