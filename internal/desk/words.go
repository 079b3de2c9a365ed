package desk

import (
	"fmt"
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
	case s.Kind == machine.SignalResolve || s.Kind == machine.SignalLate:
		words += fmt.Sprintf(" %s: %s", effect(s.Step, s.Direction, s.Attempt), happened(s.Happened, s.ExternalID))
	case s.Step != "":
		words += " " + effect(s.Step, s.Direction, s.Attempt)
	}
	if s.Revision != "" {
		words += " at revision " + s.Revision
	}
	if s.Actor != "" {
		words += ", says " + s.Actor
	}
	if s.Reason != "" {
		words += ": " + s.Reason
	}
	return words
}
