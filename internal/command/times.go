package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// when shows a moment in a table: how long ago, or in UTC, as --time says.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if a.times == "relative" || a.times == "auto" && a.screen.terminal {
		return a.ago(t)
	}
	return iso(t)
}

// both shows a moment in UTC and how long ago it was.
func (a *app) both(t time.Time) string { return fmt.Sprintf("%s (%s)", iso(t), a.ago(t)) }

func (a *app) ago(t time.Time) string {
	d := a.now().Sub(t)
	switch {
	case d < -time.Second:
		return "in " + span(-d)
	case d < time.Second:
		return "now"
	default:
		return span(d) + " ago"
	}
}

// exact is a moment in UTC to the millisecond, clock without the day.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// utc puts a moment on its way into JSON.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// timeOf is a time of JSON; zero for none.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// pointInTime reads a moment as a person writes it: a time, a day, or how long ago. Empty is no
// moment.
func pointInTime(text string, now time.Time) (time.Time, error) {
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
