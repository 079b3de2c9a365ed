package cost

import (
	"context"
	"time"
)

// Reading is what was spent up to a moment, or between two.
type Reading struct {
	Commits     int64
	LogBytes    int64
	EngineCPU   time.Duration // this process
	DatabaseCPU time.Duration // the database's processes, when it has any
}

// Sub returns what was spent since an earlier reading.
func (r Reading) Sub(earlier Reading) Reading {
	return Reading{
		Commits:     r.Commits - earlier.Commits,
		LogBytes:    r.LogBytes - earlier.LogBytes,
		EngineCPU:   r.EngineCPU - earlier.EngineCPU,
		DatabaseCPU: r.DatabaseCPU - earlier.DatabaseCPU,
	}
}

// A Meter reads the costs of one engine on one ledger.
type Meter interface {
	Read(ctx context.Context) (Reading, error)
	Close() error
}
