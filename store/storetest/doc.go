// Package storetest is the conformance suite of the stores of package reconcile: one test for each sentence of the
// contract in its roles, with the sentence above it.
//
//	func TestConformance(t *testing.T) {
//		t.Parallel()
//		storetest.Harness{
//			Open: func(t *testing.T) storetest.Store { return memory.New(nil) },
//		}.Run(t)
//	}
//
// Every test has a store of its own. A store that lives in a database says so with a [Harness]: open the same
// database as a second process would, and say where it is, so that a child process can be killed on it; its TestMain
// calls [Main] for that.
//
// # No clock of its own
//
// The suite needs no clock that can be set. What must not happen is an hour away; what must happen is a few
// milliseconds away, and the suite waits for it by asking the store what time it is. So a slow machine makes a test
// slow, never wrong.
//
// # A suite that can fail
//
// [Break] wraps a store so that it breaks one rule, really, in the database behind it. [Harness.Prove] runs the test
// that is named for each [Rule] in a process of its own with the rule broken, and wants it to fail. Run obeys the
// environment variable AMENDS_BREAK_RULE for that; set it by hand to see what a broken store looks like:
//
//	AMENDS_BREAK_RULE=judge-locks go test ./store/memory -run TestInbox
package storetest
