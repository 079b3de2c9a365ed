// Package simulation holds tests only: whole histories of a world, through inbox, gate, processor
// and fetch, in virtual time.
//
// A world is a set of sources of all kinds (seconds, milliseconds, counters, deltas, no version at
// all, reads that lag), each with objects that are changed, deleted and restored. An adversary
// permutes, copies, delays and drops what the sources tell, replays it hours later, stamps some of
// it in the future and gives some of it a used id. Sources refuse, are slow, ask for patience and
// show old states. Two processes hear on one store and are crashed at any boundary between them and
// it, the sources and the user's function.
//
// What must hold at the end, and at every moment, is in check_test.go. The seed decides world,
// adversary and faults; how goroutines interleave is up to the scheduler.
//
// It is a package of its own because it uses nothing but the exported names of package inbox and of
// the memory store: what a user could do. `go test` runs a small world, `make simulate` the full
// size on several seeds:
//
// Package whole, below this one, plays the same game with everything: saga, coordinator, ledger,
// sweeps, reconciler, books and mail.
//
//	AMENDS_SIMULATE=full go test ./reconcile/simulation -v
//	AMENDS_SEED=42 go test ./reconcile/simulation
package simulation
