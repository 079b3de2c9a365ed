package store

import "github.com/amends-dev/amends/internal/ledger"

// Ledger is the half of a database that packages saga and coordinator need: instances, their records, sessions, controls, messages. Its contract
// is package internal/ledger.
type Ledger interface {
	ledger.Ledger
	ledger.TxStarter
	ledger.Recoverer
	ledger.Eraser
}
