package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/prove"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/reconcile/schedule"
)

// Store is what a database keeps for a coordinator and a reconciler.
type Store interface {
	ledger.Ledger
	intake.Inbox
	intake.Gate
	intake.Reader
	schedule.Store
	schedule.Reader
	plan.Plans
	plan.Drifts
	scan.Store
}

// Harness tells the suite how to make a store, and what else this kind of store can do. Only Open
// is required; what is nil is not tested.
type Harness struct {
	// Open returns an empty store. The suite closes it.
	Open func(t T) Store

	// Again opens the database behind s once more, as another process would. The suite closes it
	// before s.
	Again func(t T, s Store) Store

	// Address is where the database behind s is, for the function given to [Main].
	Address func(t T, s Store) string

	// DB returns the database behind s, which then implements [ledger.TxStarter].
	DB func(t T, s Store) *sqlx.DB

	// Change makes the database behind s another one in the eyes of the ledger, as a fail-over that
	// lost nothing.
	Change func(t T, s Store)

	// Newer makes the schema behind s newer than this program knows, as a migration by a newer one.
	Newer func(t T, s Store)

	// LosesAnswers says that answers between the store and its database get lost, and that the
	// store asks again. When others have written since, it cannot tell what it wrote itself from
	// what they did.
	LosesAnswers bool

	// SetTime stops every clock of s at a time, that of the ledger and the one by which a reconciler
	// lives. [Differ] needs it.
	SetTime func(t T, s Store, at time.Time)
}

// Run runs the suite on the stores of h. Every case has a store of its own, and all run in
// parallel.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					if c.needs != nil && !c.needs(h) {
						t.Skip("the harness does not say how")
					}
					b := newBench(t, h, switches()[prove.Broken()].how)
					defer b.caught()
					c.run(b)
				})
			}
		})
	}
}

// Prove runs, for each switch of the suite, the case that it belongs to with the rule broken, in a
// process of its own, and fails unless that case notices. A suite that cannot fail proves nothing.
// test is the test that calls [Run] with h, directly.
func Prove(t *testing.T, h Harness, test string) {
	t.Helper()
	rules := make(map[string]string)
	for rule, s := range switches() {
		if s.needs == nil || s.needs(h) {
			rules[rule] = strings.ReplaceAll(s.part, " ", "_")
		}
	}
	prove.Rules(t, test, rules)
}
