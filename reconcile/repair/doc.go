// Package repair compares source, ledger and destination, plans what to do about every difference, and does it within
// bounds.
package repair
