package command

import (
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/finding"
)

// when shows a moment of a document in a table: how long ago, or in UTC, as --time says.
func (a *app) when(at *time.Time) string {
	t := desk.At(at)
	if t.IsZero() {
		return ""
	}
	if a.times == "relative" || a.times == "auto" && a.screen.terminal {
		return a.ago(t)
	}
	return finding.ISO(t)
}

// both shows a moment in UTC and how long ago it was.
func (a *app) both(t time.Time) string { return fmt.Sprintf("%s (%s)", finding.ISO(t), a.ago(t)) }

func (a *app) ago(t time.Time) string {
	d := a.now().Sub(t)
	switch {
	case d < -time.Second:
		return "in " + finding.Span(-d)
	case d < time.Second:
		return "now"
	default:
		return finding.Span(d) + " ago"
	}
}

// exact is a moment in UTC to the millisecond.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
