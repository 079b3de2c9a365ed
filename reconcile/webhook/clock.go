package webhook

import (
	"slices"
	"sync"
	"time"
)

// clockWatch notices that it is our clock that is wrong: when genuine deliveries fail for their time one after
// the other, and none succeeds between them. Forged ones do not count; nobody signed their time.
type clockWatch struct {
	mu      sync.Mutex
	skews   []time.Duration // of the failures in a row, the latest
	alarmed bool
}

const (
	clockEnough = 5  // failures in a row that raise the alarm
	clockKept   = 31 // of which the median is taken
)

// note takes in the outcome of one delivery. It returns the median skew and the number of failures when an alarm
// is due, once for each row of failures.
func (w *clockWatch) note(why *refusal) (time.Duration, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case why == nil:
		w.skews, w.alarmed = w.skews[:0], false
		return 0, 0
	case why.reason != TooOld && why.reason != TooNew:
		return 0, 0
	}
	if w.skews = append(w.skews, why.skew); len(w.skews) > clockKept {
		w.skews = slices.Delete(w.skews, 0, 1)
	}
	if w.alarmed || len(w.skews) < clockEnough {
		return 0, 0
	}
	w.alarmed = true
	sorted := slices.Sorted(slices.Values(w.skews))
	return sorted[len(sorted)/2], len(sorted)
}
