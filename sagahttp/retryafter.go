package sagahttp

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter caps what a destination may ask for.
const maxRetryAfter = time.Hour

// retryAfter returns the wait that an answer asks for, or 0. now serves when the answer has no
// date. capped reports that it asks for a longer one.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, capped bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	seconds, isNumber := number(value)
	if until, ok := moment(value, seconds); ok {
		if sent, err := http.ParseTime(h.Get("Date")); err == nil {
			now = sent
		}
		seconds = max(until.Sub(now), 0).Seconds()
	} else if !isNumber {
		return 0, false
	}
	capped = seconds > maxRetryAfter.Seconds()
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second)), capped
}

// moment reads until when to wait: a date, as HTTP writes it or as RFC 3339 does, or what some
// write in its place, the seconds, milliseconds, microseconds or nanoseconds since 1970.
func moment(value string, number float64) (time.Time, bool) {
	for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
		if s := number / unit; s >= 1e9 && s < 1e10 { // as a wait, thirty years; as a time, from 2001 on
			return time.UnixMilli(int64(s * 1000)), true
		}
	}
	if t, err := http.ParseTime(value); err == nil {
		return t, true
	}
	t, err := time.Parse(time.RFC3339, value)
	return t, err == nil
}

// number reads "120", and "2.0" as some shops write it.
func number(value string) (n float64, ok bool) {
	if strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil && !math.IsInf(n, 1) {
		return 0, false
	}
	return n, true
}
