package webhook

import (
	"slices"
	"sync"
	"time"
)

// clockWatch notices that it is our clock that is wrong: when genuine deliveries fail for their
// time one after the other, all by as much, and none succeeds between them. Forged ones do not
// count, for their time is not signed; nor do copies of a delivery that was signed once, which can
// be captured and sent again.
type clockWatch struct {
	mu      sync.Mutex
	failed  []failedTime // in a row, the latest
	alarmed bool
}

// failedTime is a signed time that lay beyond the tolerance.
type failedTime struct {
	at   int64 // in seconds since 1970
	skew time.Duration
}

const (
	clockEnough = 5           // failures in a row that raise the alarm
	clockKept   = 31          // of which the median is taken
	clockSpread = time.Minute // how far they may lie apart
)

// note takes in the outcome of one delivery. It returns the median skew and the number of failures
// when an alarm is due, once for each row of failures.
func (w *clockWatch) note(why *refusal, now time.Time) (time.Duration, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case why == nil:
		w.failed, w.alarmed = w.failed[:0], false
		return 0, 0
	case why.reason != TooOld && why.reason != TooNew:
		return 0, 0
	}
	f := failedTime{now.Add(why.skew).Unix(), why.skew}
	if slices.ContainsFunc(w.failed, func(o failedTime) bool { return o.at == f.at }) {
		return 0, 0
	}
	w.failed = slices.DeleteFunc(w.failed, func(o failedTime) bool { return (o.skew - f.skew).Abs() > clockSpread })
	if w.failed = append(w.failed, f); len(w.failed) > clockKept {
		w.failed = slices.Delete(w.failed, 0, 1)
	}
	if w.alarmed || len(w.failed) < clockEnough {
		return 0, 0
	}
	w.alarmed = true
	skews := make([]time.Duration, len(w.failed))
	for i, o := range w.failed {
		skews[i] = o.skew
	}
	slices.Sort(skews)
	return skews[len(skews)/2], len(skews)
}
