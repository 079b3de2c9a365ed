package ledgertest

import (
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/prove"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Store is what a ledger implements: the coordinator's side and the people's side.
type Store interface {
	ledger.Ledger
}

// Harness tells the suite how to make a store, and what else this kind of store can do. Only Open is required;
// what is nil is not tested.
type Harness struct {
	// Open returns an empty ledger. The suite closes it.
	Open func(t *testing.T) Store

	// Again opens the database behind s once more, as another process would. The suite closes it before s.
	Again func(t *testing.T, s Store) Store

	// Change makes the database behind s another one in the eyes of the ledger, as a fail-over that lost nothing.
	Change func(t *testing.T, s Store)

	// Newer makes the schema behind s newer than this program knows, as a migration by a newer one.
	Newer func(t *testing.T, s Store)

	// DB returns the database behind s, for a store that implements [ledger.TxStarter].
	DB func(t *testing.T, s Store) *sqlx.DB
}

// Run runs the conformance suite. open returns an empty ledger each time it is called; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	Harness{Open: open}.Run(t)
}

// Run runs the conformance suite on the stores of h. Every test has a store of its own and ends with
// [ledger.Check]; all run in parallel.
func (h Harness) Run(t *testing.T) {
	t.Helper()
	rule := Rule(prove.Broken())
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newBench(t, h, rule))
				})
			}
		})
	}
}

// group is one part of the contract, in one file.
type group struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string // the rule in a few words
	run  func(*bench)
}

var groups = []group{
	{"append", appendCases},
	{"start", startCases},
	{"invalid", invalidCases},
	{"head", headCases},
	{"record", recordCases},
	{"session", sessionCases},
	{"claim", claimCases},
	{"give back", giveBackCases},
	{"waiting", waitingCases},
	{"overview", overviewCases},
	{"signal", signalCases},
	{"control", controlCases},
	{"load", loadCases},
	{"list", listCases},
	{"definition", definitionCases},
	{"duplicate", duplicateCases},
	{"race", raceCases},
	{"fault", faultCases},
	{"transaction", txCases},
}

// bench is one test with its store.
type bench struct {
	*testing.T
	Store
	harness Harness
	raw     Store // the store without the wrapper of a broken rule
	witness saga.Token
}

func newBench(t *testing.T, h Harness, r Rule) *bench {
	t.Helper()
	raw := h.Open(t)
	b := &bench{T: t, Store: raw, harness: h, raw: raw}
	if r != "" {
		b.Store = Break(raw, r)
	}
	t.Cleanup(func() {
		check(t, raw, &ledger.CheckOptions{ChainsOnly: true})
		if err := raw.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// again is a second process on the same database where the harness can have one, else the same store.
func (b *bench) again() Store {
	b.Helper()
	if b.harness.Again == nil {
		return b.Store
	}
	s := b.harness.Again(b.T, b.raw)
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Errorf("close the second process: %v", err)
		}
	})
	return s
}

// clock reads the ledger's clock: every renewal tells it.
func (b *bench) clock() time.Time {
	b.Helper()
	if b.witness == 0 {
		b.witness = b.session()
	}
	lease, err := b.raw.Renew(b.Context(), b.witness, ledger.Renewal{TTL: time.Hour})
	if err != nil {
		b.Fatalf("read the ledger's clock: %v", err)
	}
	return lease.At
}

// until waits for the ledger's clock to pass at. Times in the suite are either a few milliseconds or an hour
// away, so a test waits briefly or not at all, and a slow machine changes nothing.
func (b *bench) until(at time.Time) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !b.clock().After(at) {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatalf("the ledger's clock did not reach %v: %v", at, b.Context().Err())
		}
	}
}

// session opens a session that outlives the test.
func (b *bench) session() saga.Token {
	b.Helper()
	lease, err := b.OpenSession(b.Context(), time.Hour, "suite", nil)
	if err != nil {
		b.Fatalf("open session: %v", err)
	}
	return lease.Token
}

// expire ends a session's lease without burying it: it renews it to one millisecond and waits for its end by every clock.
func (b *bench) expire(t saga.Token) {
	b.Helper()
	lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Millisecond})
	if err != nil {
		b.Fatalf("renew session %s: %v", t, err)
	}
	b.until(lease.At.Add(lease.TTL + b.Limits().Skew))
}

// bury ends a session as a process does when it stops.
func (b *bench) bury(t saga.Token) {
	b.Helper()
	if err := b.Bury(b.Context(), t); err != nil {
		b.Fatalf("bury session %s: %v", t, err)
	}
}

func (b *bench) wantError(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: got error %v, want one that matches %q", what, err, want)
	}
}
