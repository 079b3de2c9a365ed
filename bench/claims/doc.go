// Package claims measures how fast due instances are claimed: from amends' own ledger, and from a
// bare table by the four forms that a claim can have. See `bench claims`.
package claims
