// Package amends is the subject of the benchmark: the workload's saga over a
// real coordinator and a real ledger, with every fence, lease and durability on.
//
// The definition is the one a user would write: an upsert, a creation that can be
// looked up, a mark that is the point of no return, a receipt that cannot be taken
// back. Everything is at its default but the log, which goes nowhere, and group
// commit, which the second variant switches off.
package amends
