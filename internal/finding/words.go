package finding

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// How things are called wherever people read of them.

// Span is a duration in its two largest units, as people say it.
func Span(d time.Duration) string {
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

// Count is a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Status is a status with the reason of a review.
func Status(s saga.Status, r saga.Reason) string {
	if r == "" {
		return string(s)
	}
	return fmt.Sprintf("%s: %s", s, r)
}

// Definition names what a process has to register.
func Definition(name string, version int, ended bool) string {
	if ended {
		return fmt.Sprintf("%s version %d or a newer one", name, version)
	}
	return fmt.Sprintf("%s version %d", name, version)
}

// Flag is how a scope is named on the command line.
func Flag(scope string) string {
	kind, name, named := strings.Cut(scope, ":")
	if !named {
		return "--all"
	}
	return "--" + kind + " " + program.Word(name)
}

// ScopeIs names a scope that is not a destination, as the beginning of a sentence.
func ScopeIs(s coordinator.Scope) string {
	if name, ok := strings.CutPrefix(s.String(), "saga:"); ok {
		return "saga " + name + " is"
	}
	return "everything is"
}

// Works is how many works wait, or nothing.
func Works(n int64) string {
	switch {
	case n == 0:
		return ""
	case n >= ledger.MaxBacklog:
		return "1000 or more"
	default:
		return strconv.FormatInt(n, 10)
	}
}

// ISO is a moment in UTC to the second.
func ISO(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// Stands says where a destination stands, whatever else is paused.
func Stands(d *coordinator.DestinationStatus) string {
	name := d.Name
	switch {
	case d.State == "healthy":
		return name + " is healthy"
	case d.State == "paused":
		return fmt.Sprintf("%s is paused, says %s: %s", name, d.Actor, d.Why)
	case d.State == "limited":
		return fmt.Sprintf("%s asked to be left alone until %s", name, ISO(d.Until))
	case d.Until.IsZero():
		return fmt.Sprintf("%s fails since %s, and is being tried: %s; the latest: %s", name, ISO(d.Since), d.Evidence, d.Why)
	default:
		return fmt.Sprintf("%s fails since %s, and is tried next at %s: %s; the latest: %s", name, ISO(d.Since), ISO(d.Until), d.Evidence, d.Why)
	}
}
