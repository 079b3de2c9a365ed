// Package storetest is the conformance suite of stores: one case for each sentence of the contract
// in package ledger and in the roles of package inbox, with the sentence above it. A store that
// passes is one that a coordinator and a reconciler can trust with what they do.
//
//	func TestConformance(t *testing.T) {
//		t.Parallel()
//		storetest.Run(t, harness)
//	}
//
// Every case has a store of its own, runs beside all others and ends with [ledger.Check]. A
// [Harness] makes the stores. One that can do more says so: open the same database as a second
// process would, hand out the database for starts inside a caller's transaction, or say where it
// is, so that a child process can be killed on it; TestMain calls [Main] for that.
//
// Cases know no testing.T but [T], so that more than a test can run them.
//
// # No clock of its own
//
// The suite needs no clock that can be set. What must not happen is an hour away; what must happen
// is a few milliseconds away, and the suite waits for it by asking the store what time it is. A
// lease is ended by renewing it to one millisecond. So a slow machine makes a test slow, never
// wrong.
//
// # A suite that can fail
//
// A case names its switches: wrappers of a store that break the rule, really, in the database
// behind it. [Prove] runs the case once for each of its switches, in a process of its own, and
// wants it to fail. Run obeys the environment variable AMENDS_BREAK_RULE for that; set it by hand
// to see what a broken store looks like:
//
//	AMENDS_BREAK_RULE=predecessor go test ./store/memory -run TestConformance
package storetest
