package command

import (
	"time"

	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/saga"
)

// How things are called, as in findings.

func span(d time.Duration) string                      { return finding.Span(d) }
func iso(t time.Time) string                           { return finding.ISO(t) }
func count(n int, thing string) string                 { return finding.Count(n, thing) }
func waits(works int64) string                         { return finding.Works(works) }
func standing(s saga.Status, r saga.Reason) string     { return finding.Status(s, r) }
func definition(name string, v int, ended bool) string { return finding.Definition(name, v, ended) }
