package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/postgres"
)

// frozen is a clock that stands still.
func frozen() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

// Two processes that draw the same references clash, and draw again; nothing is stored twice, and a
// start that is repeated after a lost answer is known by its work and not by its reference.
func TestReferencesThatClash(t *testing.T) {
	t.Parallel()
	one := open(t, migrated.URL(t))
	two := open(t, one.url)
	defer closed(t, one, two)
	postgres.SetRefs(one.DB, frozen)
	postgres.SetRefs(two.DB, frozen)
	token := session(t, one)
	first := []ledger.Entry{start(token, "a"), start(token, "b")}
	appendAll(t, one, token, first, ledger.Appended)
	second := []ledger.Entry{start(token, "c"), start(token, "d"), start(token, "e")}
	got := appendAll(t, two, token, second, ledger.Appended)
	for i, a := range appendAll(t, one, token, second, ledger.Mine) {
		if a.Number != got[i].Number {
			t.Errorf("%s: reference %d, and %d when it is repeated", second[i].ID, got[i].Number, a.Number)
		}
	}
	other := start(token, "c")
	other.Record.Nonce = 7
	other.Record.Seal(other.ID, machine.Salt{}, 0, machine.Hash{}, token)
	appendAll(t, two, token, []ledger.Entry{other}, ledger.Exists)
	heads, err := ledger.First(t.Context(), one, ledger.Filter{})
	if err != nil || len(heads) != 5 {
		t.Fatalf("%d instances, %v, want 5", len(heads), err)
	}
	for _, h := range heads {
		if records, err := one.History(t.Context(), h.ID); err != nil || len(records) != 1 {
			t.Errorf("%s has %d records, %v, want 1", h.ID, len(records), err)
		}
	}
}

// A clash does not abort the caller's transaction, whatever its level; nor does a work that is
// known.
func TestReferencesThatClashInTransactions(t *testing.T) {
	t.Parallel()
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			one := open(t, migrated.URL(t))
			two := open(t, one.url)
			defer closed(t, one, two)
			postgres.SetRefs(one.DB, frozen)
			postgres.SetRefs(two.DB, frozen)
			token := session(t, one)
			appendAll(t, one, token, []ledger.Entry{start(token, "a"), start(token, "b")}, ledger.Appended)
			tx, err := connect(t, one.url).BeginTxx(t.Context(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			known := start(token, "a")
			known.Record.Nonce = 7
			known.Record.Seal(known.ID, machine.Salt{}, 0, machine.Hash{}, token)
			for _, c := range []struct {
				e    ledger.Entry
				want ledger.Result
			}{{start(token, "c"), ledger.Appended}, {start(token, "c"), ledger.Mine}, {known, ledger.Exists}, {start(token, "d"), ledger.Appended}} {
				if a, err := two.StartTx(t.Context(), tx, c.e); err != nil || a.Result != c.want {
					t.Fatalf("start %s: %+v, %v, want %s", c.e.ID, a, err, c.want)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if heads, err := ledger.First(t.Context(), one, ledger.Filter{}); err != nil || len(heads) != 4 {
				t.Errorf("%d instances, %v, want 4", len(heads), err)
			}
		})
	}
}

// References go on from each other when the clock is set back, and stay positive.
func TestReferencesNeverStepBack(t *testing.T) {
	t.Parallel()
	l := open(t, migrated.URL(t))
	defer closed(t, l)
	token := session(t, l)
	var last int64
	for i, at := range []time.Time{frozen(), frozen(), frozen().Add(-time.Hour), frozen().AddDate(-10, 0, 0), frozen().AddDate(0, 0, 1)} {
		postgres.SetRefs(l.DB, func() time.Time { return at })
		a := appendAll(t, l, token, []ledger.Entry{start(token, fmt.Sprint("w", i))}, ledger.Appended)[0]
		if a.Number <= last {
			t.Errorf("at %v: reference %d behind %d", at, a.Number, last)
		}
		last = a.Number
	}
	if micros := last >> 5; micros != frozen().AddDate(0, 0, 1).Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Microseconds() {
		t.Errorf("the reference %d counts %d microseconds", last, micros)
	}
}

// The bucket of a work stands in the top bits of its reference; without buckets they are zero.
func TestReferencesNameTheirBucket(t *testing.T) {
	t.Parallel()
	for buckets, want := range map[int]int64{1: 0, 64: 51} { // of the golden test
		url := migrated.URL(t)
		connect(t, url).MustExecContext(t.Context(), `UPDATE amends_meta SET buckets = $1`, buckets)
		l := open(t, url)
		token := session(t, l)
		a := appendAll(t, l, token, []ledger.Entry{start(token, "shop:order:10492")}, ledger.Appended)[0]
		if got := a.Number >> 57; got != want {
			t.Errorf("with %d buckets it is in %d, want %d", buckets, got, want)
		}
		closed(t, l)
	}
}

// A ledger that this program would misread is refused when it is opened.
func TestOpenRefusesAnotherLedger(t *testing.T) {
	t.Parallel()
	for change, says := range map[string]string{
		`UPDATE amends_meta SET bucket_hash = 'md5'`:  `it spreads works by "md5", this program by "sha256"`,
		`UPDATE amends_meta SET document_version = 2`: "its documents have version 2, this program knows 1",
	} {
		url := migrated.URL(t)
		connect(t, url).MustExecContext(t.Context(), change)
		l, err := postgres.Open(t.Context(), url, nil)
		if err == nil {
			err = errors.Join(errors.New("it was opened"), l.Close())
		}
		if !errors.Is(err, ledger.ErrSchema) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "use a newer program") {
			t.Errorf("%s: %v, want %v and %q", change, err, ledger.ErrSchema, says)
		}
	}
}
