package saga

import "time"

// Retry says when to try again and when a person is asked. It has no part in whether trying again
// is safe. Zero fields take the default named at each.
//
// What was provably not sent counts as no attempt, and neither does what failed while the
// destination served no other instance: an outage is not this instance's fault. Both end with
// Within. A panic always counts: it is the program's fault.
type Retry struct {
	Attempts int           // at most this many that count, the first included; 12
	Within   time.Duration // and none after one that failed later than this after the first; 72 h
	Initial  time.Duration // the first wait, doubled each time and spread by a jitter; 1 s
	Max      time.Duration // no wait is longer, but for a Retry-After; 15 min
	// Compensate: what is used up turns the saga, instead of asking a person. Only up to the pivot.
	Compensate bool
}
