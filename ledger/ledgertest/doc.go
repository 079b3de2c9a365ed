// Package ledgertest is the conformance suite of ledgers: one test for each sentence of the contract in package
// ledger, with the sentence above it. A ledger that passes is one a coordinator can trust with its works.
//
//	func TestConformance(t *testing.T) {
//		t.Parallel()
//		ledgertest.Run(t, func(t *testing.T) ledgertest.Store { return memory.New(nil) })
//	}
//
// Run gives every test a store of its own, runs them all in parallel and ends each with [ledger.Check]. A ledger
// that can do more says so with a [Harness]: open the same database as a second process would, and hand out the
// database for starts inside a caller's transaction.
//
// # No clock of its own
//
// The suite needs no clock that can be set. What must not happen is an hour away; what must happen is a few
// milliseconds away, and the suite waits for it by asking the ledger what time it is. A lease is ended by renewing
// it to one millisecond. So a slow machine makes a test slow, never wrong.
//
// # A suite that can fail
//
// [Break] wraps a store so that it breaks one rule, really, in the database behind it. [Prove] runs the suite
// once for each [Rule] in a process of its own and wants it to fail, in the test that is named for the rule. Run
// obeys the environment variable AMENDS_BREAK_RULE for that; set it by hand to see what a broken ledger looks
// like:
//
//	AMENDS_BREAK_RULE=predecessor go test ./store/memory -run TestLedger
//
// # Faults
//
// [Faulty] wraps a ledger so that calls fail before their effect, or behind it, or the process ends there. It is
// for tests of those who use a ledger: run once without faults to count the calls, then once for each call and
// each fault.
//
// [MustCheck] ends a test with [ledger.Check], machine included.
package ledgertest
