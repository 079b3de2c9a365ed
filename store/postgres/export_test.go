package postgres

import (
	"time"

	"github.com/jmoiron/sqlx"
)

// Lane returns a pool of l, for tests.
func Lane(l *Ledger, name string) *sqlx.DB {
	return map[string]*sqlx.DB{"records": l.records, "starts": l.starts, "blocked": l.blocked, "claiming": l.claiming, "pulse": l.pulse, "rest": l.rest}[name]
}

// SetClock makes l's statements take now for the server's time.
func SetClock(l *Ledger, now time.Time) { l.now = func() any { return now.UnixMicro() } }

// SetMost bounds what one statement of l carries.
func SetMost(l *Ledger, bytes int) { l.most = bytes }

// ClaimText is the statement of a claim, for looking at its plan.
const ClaimText = claimText
