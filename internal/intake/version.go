package intake

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/reading"
)

// Clock is the kind of version a source gives its objects.
type Clock string

// The clocks.
const (
	NoClock      Clock = ""        // the event does not tell, or the object has no version
	CounterClock Clock = "counter" // a whole number that grows with every change
	ObjectClock  Clock = "time"    // the object's own time of change, of some resolution
	EventClock   Clock = "event"   // the time of the event; the object itself has none, so it never proves what is newer
)

// Version is what a source says about how new an object is. It orders the versions of one object of
// one source, and nothing else.
type Version struct {
	Epoch int64         // raised by the operator when the source begins to count again; a lower one is always older
	Clock Clock         //
	N     int64         // the counter, or nanoseconds since 1970 UTC
	Step  time.Duration // times: the resolution in which the source told it; times are equal within the coarser one
}

// Compare orders v and o, both of one object: negative when v is older, 0 when they cannot be told
// apart, positive when v is newer. A version without clock is older than any other.
func (v Version) Compare(o Version) int {
	step := max(int64(v.Step), int64(o.Step), 1)
	return cmp.Or(
		cmp.Compare(v.Epoch, o.Epoch),
		cmp.Compare(min(1, len(v.Clock)), min(1, len(o.Clock))),
		cmp.Compare(floor(v.N, step), floor(o.N, step)),
	)
}

func floor(n, step int64) int64 {
	q := n / step
	if n%step < 0 {
		q--
	}
	return q
}

// Time is the time that v stands for. Zero for counters.
func (v Version) Time() time.Time {
	if v.Clock != ObjectClock && v.Clock != EventClock {
		return time.Time{}
	}
	return time.Unix(0, v.N).UTC()
}

// Revision is v as sagas name it: 17, 2026-11-20T10:00:00Z, or either behind its epoch, 2/17. Empty
// without a clock.
func (v Version) Revision() string {
	var s string
	switch v.Clock {
	case NoClock:
		return ""
	case CounterClock:
		s = strconv.FormatInt(v.N, 10)
	default:
		s = v.Time().Format(time.RFC3339Nano)
	}
	if v.Epoch > 0 {
		return strconv.FormatInt(v.Epoch, 10) + "/" + s
	}
	return s
}

// Counter is the version of a source that counts. A negative number is none.
func Counter(n int64) Version {
	if n < 0 {
		return Version{}
	}
	return Version{Clock: CounterClock, N: n}
}

// At is the version of a source that tells the time of an object's last change.
func At(t time.Time, step time.Duration) Version {
	return Version{Clock: ObjectClock, N: t.UnixNano(), Step: step}
}

var errNoTime = errors.New("it is no time we know how to read")

// ParseTime reads the time of an object's last change as sources write it: RFC 3339 with any number
// of digits behind the second and any zone, the same without a zone (UTC, as providers mean it), or
// seconds or milliseconds since 1970, which may be written as 1764000000.0. How precisely it was
// written is its resolution.
func ParseTime(text string) (Version, error) {
	text = strings.TrimSpace(text)
	if whole, ok := reading.Whole(text); ok {
		if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return epochTime(n, text)
		}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999-0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return checked(t, digits(text), text)
		}
	}
	return Version{}, fmt.Errorf("version %q: %w", text, errNoTime)
}

// epochTime tells seconds from milliseconds by their size: 100,000,000,000 seconds lie in the year
// 5138.
func epochTime(n int64, text string) (Version, error) {
	if n >= 100_000_000_000 {
		return checked(time.UnixMilli(n), time.Millisecond, text)
	}
	return checked(time.Unix(n, 0), time.Second, text)
}

func checked(t time.Time, step time.Duration, text string) (Version, error) {
	if t.Year() < 1970 || t.Year() > 2200 {
		return Version{}, fmt.Errorf("version %q: the year %d: %w", text, t.Year(), errNoTime)
	}
	return At(t, step), nil
}

// digits is the resolution of a written time: one second, or less by the digits behind its point.
func digits(text string) time.Duration {
	_, fraction, ok := strings.Cut(text, ".")
	step := time.Second
	if !ok {
		return step
	}
	for _, c := range fraction {
		if c < '0' || c > '9' || step == 1 {
			break
		}
		step /= 10
	}
	return step
}
