package pgdb

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/pgtest"
)

// Who the database is, the provider asks, and nothing else does: the greeting needs no
// function of Postgres's own log, which what only speaks its protocol has not.
func TestOnlyTheProviderAsksForTheLog(t *testing.T) {
	t.Parallel()
	log := regexp.MustCompile(`pg_control|pg_wal|pg_current_wal|pg_is_in_recovery`)
	if said := greeting(bounds); log.MatchString(said) {
		t.Errorf("the greeting asks for the log: %s", said)
	}
	if asked := (Timeline{}).Query(); !log.MatchString(asked) {
		t.Errorf("this test cannot see who asks for the log: %s", asked)
	}
}

// named is a provider of another kind: its database says by itself who it is.
type named string

func (n named) Query() string { return "SELECT " + pq.QuoteLiteral(string(n)) }
func (named) Forgets() bool   { return false }

func (named) FailedOver(string, string) bool { return false }

// saga/A4: a database is who its provider says, on every connection and in every answer, and one that has no
// name is a standby, on whose word nothing is decided.
func TestTheProviderSaysWhoItIs(t *testing.T) {
	t.Parallel()
	s, err := New(pgtest.URL(t), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s.who = named("cluster 7, generation 3")
	db := s.Pool(1)
	defer db.Close()
	id, err := s.Identify(t.Context(), db)
	if err != nil || id != "cluster 7, generation 3" || s.Identity() != id || s.Forgets() {
		t.Errorf("it is %q, seen as %q, forgets %t, %v", id, s.Identity(), s.Forgets(), err)
	}
	s.who = named("")
	if err := s.Recognise(t.Context()); !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("recognise a standby: %v", err)
	}
	if _, err := s.Identify(t.Context(), db); !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("identify a standby: %v", err)
	}
}
