// Package ledgertest helps to test those who use a ledger.
//
// [Faulty] wraps a ledger so that calls fail before their effect, or behind it, or the process ends
// there. Run once without faults to count the calls, then once for each call and each fault.
//
// [MustCheck] ends a test with [ledger.Check], machine included.
//
// What every ledger must do is held by package store/storetest.
package ledgertest
