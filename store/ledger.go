package store

import "github.com/amends-dev/amends/internal/ledger"

// Ledger is the half of a database in which instances are: their records, sessions, controls, messages, and what erases and recovers them. It is all
// that a coordinator takes.
type Ledger interface {
	ledger.Ledger
	ledger.TxStarter
	ledger.Recoverer
	ledger.Eraser
}
