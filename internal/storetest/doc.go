// Package storetest says what every store does. [Differ] says it by example: it plays random histories
// of calls on [memory.DB], the readable reference, and on another store, and what the one answers the
// other has to answer. [Run] has what such a history does not meet: values that a database bends, and
// what takes two processes, a kill, a lost answer or a transaction of the caller's. A store that passes
// both is one that a coordinator and a reconciler can trust with what they do.
//
//	func TestConformance(t *testing.T) { t.Parallel(); storetest.Run(t, harness) }
//
//	func TestDiffer(t *testing.T) { t.Parallel(); storetest.Differ(t, harness) }
//
// # A history
//
// A history is a list of numbers, and each number stands for one call with all its arguments, so that
// rapid can shorten it. Both stores live by one clock, which goes on between calls only. What is drawn
// by chance (tokens, hashes, numbers) is compared by its place. Where the contract leaves something
// open, the call says so beside what it leaves out. A history that differs is printed with how to play
// it again; AMENDS_DIFFER_TIME says for how long histories are played. It prints which method met which
// class of error; at night each pair that is expected has to be among them.
//
// # A case
//
// Every case has a store of its own, runs beside all others and ends with [ledger.Check]. A
// [Harness] makes the stores. One that can do more says so: open the same database as a second
// process would, hand out the database for starts inside a caller's transaction, or say where it
// is, so that a child process can be killed on it; TestMain calls [Main] for that. Cases know no
// testing.T but [T]. They need no clock that can be set: what must not happen is an hour away; what must
// happen is a few milliseconds away, and the case asks the store what time it is.
//
// # A suite that can fail
//
// A case names its switches: wrappers of a store that break the rule, really, in the database
// behind it. [Prove] runs the case once for each of its switches, in a process of its own, and
// wants it to fail. [DifferCatches] wants histories to find those that only a rare one meets. Run obeys
// the environment variable AMENDS_BREAK_RULE; set it by hand to see what a broken store looks like:
//
//	AMENDS_BREAK_RULE=split-batch go test ./store/memory -run TestConformance
package storetest
