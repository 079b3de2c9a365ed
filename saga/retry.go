package saga

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Retry says when to try again and when a person is asked. It has no part in whether trying again is safe. Zero fields
// take the default named at each.
//
// What was provably not sent counts as no attempt, and neither does what failed while the destination served no
// other work: an outage is not the work's fault. Both end with Within. A panic always counts: it is the program's fault.
type Retry struct {
	Attempts int           `json:"maxAttempts,omitempty"`     // at most this many that count, the first included; 12
	Within   time.Duration `json:"maxElapsed,omitempty"`      // and none after one that failed later than this after the first; 72 h
	Initial  time.Duration `json:"initialInterval,omitempty"` // the first wait, doubled each time; 1 s
	Max      time.Duration `json:"maxInterval,omitempty"`     // no wait is longer, but for a Retry-After; 15 min
	// Compensate: what is used up turns the saga, instead of asking a person. Only up to the pivot.
	Compensate bool `json:"compensateWhenExhausted,omitempty"`
}

// The defaults of [Retry], and the longest Retry-After that is believed.
const (
	defaultAttempts = 12
	defaultWithin   = 72 * time.Hour
	defaultInitial  = time.Second
	defaultMax      = 15 * time.Minute
	maxRetryAfter   = 24 * time.Hour
)

func (r Retry) withDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = defaultAttempts
	}
	if r.Within == 0 {
		r.Within = defaultWithin
	}
	if r.Initial == 0 {
		r.Initial = defaultInitial
	}
	if r.Max == 0 {
		r.Max = max(defaultMax, r.Initial)
	}
	return r
}

// Backoff is the wait after the n-th try (from 1) of what key names: exponential, capped, and spread by a
// jitter of up to half its length. The jitter comes from the key and n, so the same chain always decides the
// same wait, and works that failed together do not return together.
func (r Retry) Backoff(key string, n int) time.Duration {
	r = r.withDefaults()
	d := r.Max
	if shift := n - 1; shift < 32 && r.Initial <= r.Max>>shift {
		d = r.Initial << shift
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(key), uint64(n)))
	spread := time.Duration(binary.BigEndian.Uint16(sum[:2])) * (d >> 17)
	return (d - spread).Truncate(time.Millisecond)
}

// keyMargin is how long before a destination's key window ends we stop trusting it: a twentieth of the
// window, between a millisecond and five minutes, for clock rates and slow appends; and the settle time, within
// which an attempt may still arrive after its deadline.
func (s *StepSpec) keyMargin() time.Duration {
	return min(max(s.TTL/20, time.Millisecond), 5*time.Minute) + s.Settle
}
