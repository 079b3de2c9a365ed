package main

import (
	"fmt"
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

// span is a duration in its two largest units, as people say it.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
}

// iso is a moment in UTC to the second, exact to the millisecond, clock without the day.
func iso(t time.Time) string   { return t.UTC().Format("2006-01-02T15:04:05Z") }
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
