package program

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Retry is saga.Retry as definitions are stored.
type Retry struct {
	Attempts   int           `json:"maxAttempts,omitempty"`
	Within     time.Duration `json:"maxElapsed,omitempty"`
	Initial    time.Duration `json:"initialInterval,omitempty"`
	Max        time.Duration `json:"maxInterval,omitempty"`
	Compensate bool          `json:"compensateWhenExhausted,omitempty"`
}

// The defaults of [Retry], and the longest Retry-After that is believed.
const (
	defaultAttempts = 12
	DefaultWithin   = 72 * time.Hour
	defaultInitial  = time.Second
	defaultMax      = 15 * time.Minute
	MaxRetryAfter   = 24 * time.Hour
)

// WithDefaults returns r with the defaults where it says nothing.
func (r Retry) WithDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = defaultAttempts
	}
	if r.Within == 0 {
		r.Within = DefaultWithin
	}
	if r.Initial == 0 {
		r.Initial = defaultInitial
	}
	if r.Max == 0 {
		r.Max = max(defaultMax, r.Initial)
	}
	return r
}

// Backoff is the wait after the n-th try (from 1) of what key names: exponential, capped, and
// spread by a jitter of up to half its length. The jitter comes from the key and n, so the same
// chain always decides the same wait, and works that failed together do not return together.
func (r Retry) Backoff(key string, n int) time.Duration {
	r = r.WithDefaults()
	d := r.Max
	if shift := n - 1; shift < 32 && r.Initial <= r.Max>>shift {
		d = r.Initial << shift
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(key), uint64(n)))
	spread := time.Duration(binary.BigEndian.Uint16(sum[:2])) * (d >> 17)
	return (d - spread).Truncate(time.Millisecond)
}
