// Package whole holds tests only: a shop, its books, its mail server and everything of amends
// between them, in virtual time, from the first webhook to a ledger that was lost.
//
// A world is one shop with orders that are paid, changed, cancelled and deleted (it counts
// versions, or tells times of a second or a millisecond, or shows everybody an old state for a
// while), books that keep what they are given under any reference, as often as they are given it,
// and a mail server that remembers nothing. Between them works what a user would run: a saga in a
// coordinator over a ledger, a processor, an incremental sweep, and a reconciler.
//
// An adversary permutes, copies, delays and drops webhooks. Everybody who is asked refuses at
// times, says 429 or 503, hangs, loses the answer behind the effect, or cuts a listing short. The
// process dies at any boundary between it and the others, again and again. Ledger and inbox are
// lost altogether.
//
// When all is quiet, one person has answered what only a person can answer, and one reconciliation
// has run, the invariants of check_test.go hold, whatever the seed.
//
//	AMENDS_SIMULATE=full go test ./reconcile/simulation/whole -v
//	AMENDS_SEED=42 go test ./reconcile/simulation/whole
package whole
