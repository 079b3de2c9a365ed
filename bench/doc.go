// Package bench measures what amends costs, beside the cheapest durable ledger there can be. It holds
// benchmarks only; the README of this folder says how they are run, and what they say.
package bench
