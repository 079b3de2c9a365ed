package desk

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PointInTime reads a moment as a person writes it: a time, a day, or how long ago. Empty is no
// moment.
func PointInTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil // without a zone it is meant as UTC, as everything that is printed
		}
	}
	ago := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			ago = strconv.Itoa(24*n) + "h"
		}
	}
	if d, err := time.ParseDuration(ago); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2006-01-02T15:04:05Z, 2006-01-02, or how long ago, such as 2h or 7d", text)
}

// Duration is a time.Duration that is said as a text, such as 30s.
type Duration time.Duration

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration, such as 30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText is the text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
