package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
	"github.com/amends-dev/amends/store/internal/pgdb"
	"github.com/amends-dev/amends/store/postgres"
)

// silence is how long a server may say nothing in these tests. A slow machine has half of it for an
// answer.
const silence = 4 * time.Second

// isSilence wants the error of a server that said nothing: which one, and what it was asked for.
func isSilence(t *testing.T, what, address string, err error) {
	t.Helper()
	u, perr := url.Parse(address)
	if perr != nil {
		t.Fatal(perr)
	}
	s, ok := errors.AsType[*pgdb.Silence](err)
	if !ok {
		t.Errorf("%s: %v, want that the server is silent", what, err)
		return
	}
	if s.Server != u.Host || !strings.Contains(err.Error(), "the server "+u.Host+" has said nothing for ") {
		t.Errorf("%s: %v, want the server %s in it", what, err, u.Host)
	}
}

// Whatever message of a starting process's first connection is the last that comes through, opening
// ends by itself, and the next one opens (issue 45, item 17). The address says how long a server may
// be silent, or the options.
func TestOpeningOverASilentConnection(t *testing.T) {
	t.Parallel()
	address := migrated.URL(t)
	for messages := range 7 {
		t.Run(fmt.Sprint(messages), func(t *testing.T) {
			t.Parallel()
			w := pgtest.NewWire(t, address)
			at, o := with(t, w.URL(), "connect_timeout=4"), &postgres.Options{}
			if messages%2 == 0 {
				at, o.ConnectTimeout = w.URL(), silence
			}
			w.SilenceNext(messages)
			err := never(t, "Open", func() error { _, err := postgres.Open(t.Context(), at, o); return err })
			isSilence(t, "Open", w.URL(), err)
			if s, ok := errors.AsType[*pgdb.Silence](err); ok && s.During == "" {
				t.Errorf("%v does not say during what", err)
			}
			goesOn(t, "Open", func(ctx context.Context) error {
				db, err := postgres.Open(ctx, at, o)
				if err == nil {
					err = db.Close()
				}
				return err
			})
			if messages > 1 {
				return
			}
			w.SilenceNext(messages)
			isSilence(t, "Version", w.URL(), never(t, "Version", func() error {
				_, err := postgres.Version(t.Context(), with(t, w.URL(), "connect_timeout=4"))
				return err
			}))
		})
	}
}

// A call whose context has no end does not wait for ever for a connection that has gone silent,
// while others are heard, while new ones are silent, too, and while it makes one (issue 45, item 17).
func TestSilenceEndsEveryCall(t *testing.T) {
	t.Parallel()
	some := []string{"OpenSession", "Append a record", "Post", "History"}
	if pace.AtNight() {
		some = append(some, "Append a start", "Claim", "Describe", "Count", "Overview")
	}
	for _, method := range some {
		for name, fresh := range map[string]pgtest.Way{"one": 0, "all": pgtest.Both} {
			t.Run(method+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := pgtest.NewWire(t, migrated.URL(t))
				l := open(t, with(t, w.URL(), "connect_timeout=4"))
				defer closed(t, l)
				token := session(t, l)
				e := start(token, "w")
				head := appendAll(t, l, token, []ledger.Entry{e}, ledger.Appended)[0].Number
				call := methods(l, token, e, head)[method]
				goesOn(t, method, call) // its lane is open
				w.SilenceNew(fresh)
				w.Silence(pgtest.Both)
				if method == "OpenSession" { // it has a connection of its own first
					w.SilenceNext(0)
				}
				isSilence(t, method, w.URL(), never(t, method, func() error { return call(t.Context()) }))
				w.SilenceNew(0)
				w.Cut()
			})
		}
	}
}

// A server that works is waited for, however long it says nothing: a migration, a check.
func TestWorkIsNoSilence(t *testing.T) {
	t.Parallel()
	w := pgtest.NewWire(t, migrated.URL(t))
	l := open(t, with(t, w.URL(), "connect_timeout=4"))
	defer closed(t, l)
	began := time.Now()
	if _, err := postgres.Pool(l.DB, "read").ExecContext(t.Context(), `SELECT pg_sleep(6)`); err != nil || time.Since(began) < silence {
		t.Errorf("a statement that takes a while: %v after %v", err, time.Since(began))
	}
}

// never fails when a call does not come back by itself. The limit says never, not soon.
func never(t *testing.T, what string, call func() error) error {
	t.Helper()
	back := make(chan error, 1)
	go func() { back <- call() }()
	select {
	case err := <-back:
		return err
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s has not come back after two minutes", what)
		return nil
	}
}
