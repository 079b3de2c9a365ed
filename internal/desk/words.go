package desk

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// How things are called, as in findings.

func iso(t time.Time) string                           { return finding.ISO(t) }
func count(n int, thing string) string                 { return finding.Count(n, thing) }
func standing(s saga.Status, r saga.Reason) string     { return finding.Status(s, r) }
func definition(name string, v int, ended bool) string { return finding.Definition(name, v, ended) }

// With is a text behind what is said before it; "" for none.
func With(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// Counted is a number of things whose plural is a word of its own.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// clock is a moment in UTC without the day.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// effect names an attempt of a step's action or of its undo.
func effect(step string, d saga.Direction, attempt int) string {
	name := step
	if d == saga.Undo {
		name = "undo of " + step
	}
	if attempt > 0 {
		name += fmt.Sprintf(" #%d", attempt)
	}
	return name
}

// happened says what a resolution says.
func happened(yes bool, externalID string) string {
	switch {
	case !yes:
		return "it did not happen"
	case externalID == "":
		return "it happened"
	default:
		return "it happened, as " + externalID
	}
}

// saying is a signal in words.
func saying(s *machine.Signal) string {
	words := string(s.Kind)
	switch {
	case isRerun(*s):
		words = "rerun"
	case s.Kind == machine.SignalCancel && s.ByHand && s.Revision != "": // the source's is not by hand
		words = "undo"
	case s.Kind == machine.SignalResolve || s.Kind == machine.SignalLate:
		words += fmt.Sprintf(" %s: %s", effect(s.Step, s.Direction, s.Attempt), happened(s.Happened, s.ExternalID))
	case s.Step != "":
		words += " " + effect(s.Step, s.Direction, s.Attempt)
	}
	return words + With(" at revision ", s.Revision) + With(", says ", s.Actor) + With(": ", s.Reason)
}

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
